# SPDX-License-Identifier: Apache-2.0
"""The picture of a fleet's flights: tracks from above, and each drone's distance to its target."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.patches import Circle

from drone_bridge.emulators.testbed.flight import REACHED_WITHIN_M
from drone_bridge.tools.demo.labels import label
from drone_bridge.tools.demo.picture import DOTS_PER_INCH, GRID_COLOUR, INK, MARGIN_M

SIZE_INCHES: Final = (13.0, 6.2)
COLOURS: Final = "tab10"


@dataclass
class Track:
    """Where one drone has been. Times are simulated seconds, positions ENU in m, from where it started."""

    name: str
    target: npt.NDArray[np.float64]  # its centre
    times_s: list[float] = field(default_factory=list)
    positions: list[tuple[float, float, float]] = field(default_factory=list)
    reached_at_s: float | None = None

    def add(self, time_s: float, position: tuple[float, float, float]) -> None:
        """Note where it is."""
        self.times_s.append(time_s)
        self.positions.append(position)

    @property
    def distances_m(self) -> npt.NDArray[np.float64]:
        """How far it was from its target's centre each time."""
        distances: npt.NDArray[np.float64] = np.linalg.norm(np.array(self.positions) - self.target, axis=1)
        return distances

    @property
    def flown_m(self) -> float:
        """The length of its way."""
        return float(np.linalg.norm(np.diff(np.array(self.positions), axis=0), axis=1).sum())


def draw(tracks: list[Track], file: Path) -> None:
    """Write the picture of at least one track as PNG."""
    mpl.rcParams.update({"font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK})
    figure = plt.figure(figsize=SIZE_INCHES, constrained_layout=True)
    above, distance = figure.subplots(1, 2)
    colours = plt.get_cmap(COLOURS)
    for number, track in enumerate(tracks):
        _draw_from_above(above, track, colours(number % colours.N))
        distance.plot(track.times_s, track.distances_m, color=colours(number % colours.N), lw=1.6, label=track.name)
        if track.reached_at_s is not None:
            at_m = float(np.interp(track.reached_at_s, track.times_s, track.distances_m))
            distance.plot(track.reached_at_s, at_m, "D", color="white", mec=colours(number % colours.N), ms=6)
    above.plot(0, 0, "o", color=INK, ms=6)
    shown = np.vstack([np.vstack((track.positions, track.target))[:, :2] for track in tracks])
    low, high = shown.min(axis=0), shown.max(axis=0)
    centre, half = (low + high) / 2, (high - low).max() / 2 + MARGIN_M
    above.set_aspect("equal")
    above.set(
        xlabel="east of its start (m)",
        ylabel="north of its start (m)",
        xlim=(centre[0] - half, centre[0] + half),
        ylim=(centre[1] - half, centre[1] + half),
    )
    above.set_title(f"{len(tracks)} drones from above, each in a world of its own", loc="left", fontweight="bold")
    distance.axhline(REACHED_WITHIN_M, color=INK, ls=":", lw=1.2)
    distance.set(xlabel="simulated time (s)", ylabel="to the target's centre (m)", ylim=(0, None), xlim=(0, None))
    distance.set_title("distance; diamonds: reached", loc="left", fontweight="bold")
    distance.legend(frameon=False, ncols=2)
    for panel in (above, distance):
        panel.grid(color=GRID_COLOUR, lw=0.8)
        panel.set_axisbelow(True)
    figure.savefig(file, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)


def _draw_from_above(panel: Any, track: Track, colour: Any) -> None:
    path = np.array(track.positions)
    panel.plot(path[:, 0], path[:, 1], color=colour, lw=2)
    centre = (track.target[0], track.target[1])
    panel.add_patch(Circle(centre, REACHED_WITHIN_M, fill=False, color=colour, ls=":", lw=1.2))
    panel.plot(*centre, "x", color=colour, ms=7, mew=2)
    label(panel, track.name, centre, (6, 6), color=colour)
