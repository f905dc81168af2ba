# SPDX-License-Identifier: Apache-2.0
"""The picture of a fleet's flights: tracks from above, and each drone's distance to its target."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.patches import Circle

from drone_bridge.emulators.testbed.flight import REACHED_WITHIN_M
from drone_bridge.tools.demo.plotting import INK, finish, label, new_figure, save, show_square

SIZE_INCHES: Final = (13.0, 6.2)
MARGIN_M: Final = 1.5  # around tracks and targets
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
        self.times_s.append(time_s)
        self.positions.append(position)

    @property
    def distances_m(self) -> npt.NDArray[np.float64]:
        """Distance to the target's centre at each time."""
        distances: npt.NDArray[np.float64] = np.linalg.norm(np.array(self.positions) - self.target, axis=1)
        return distances

    @property
    def flown_m(self) -> float:
        """Length of the track."""
        return float(np.linalg.norm(np.diff(np.array(self.positions), axis=0), axis=1).sum())


def draw(tracks: list[Track], file: Path) -> None:
    """Write the picture of at least one track as PNG."""
    figure = new_figure(SIZE_INCHES)
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
    show_square(above, shown, MARGIN_M)
    above.set(xlabel="east of its start (m)", ylabel="north of its start (m)")
    finish(above, f"{len(tracks)} drones from above, each in a world of its own")
    distance.axhline(REACHED_WITHIN_M, color=INK, ls=":", lw=1.2)
    distance.set(xlabel="simulated time (s)", ylabel="to the target's centre (m)", ylim=(0, None), xlim=(0, None))
    finish(distance, "distance; diamonds: reached")
    distance.legend(frameon=False, ncols=2)
    save(figure, file)


def _draw_from_above(panel: Any, track: Track, colour: Any) -> None:
    path = np.array(track.positions)
    panel.plot(path[:, 0], path[:, 1], color=colour, lw=2)
    centre = (track.target[0], track.target[1])
    panel.add_patch(Circle(centre, REACHED_WITHIN_M, fill=False, color=colour, ls=":", lw=1.2))
    panel.plot(*centre, "x", color=colour, ms=7, mew=2)
    label(panel, track.name, centre, (6, 6), color=colour)
