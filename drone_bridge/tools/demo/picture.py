# SPDX-License-Identifier: Apache-2.0
"""The picture of flights to their targets: what cameras saw, the ways from above, height and distance over time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # draws into files, without a display

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt

from drone_bridge.tools.bags.bag import Bag, stamp_s

Array = npt.NDArray[np.float64]

SIZE_INCHES = (13.0, 6.8)
DOTS_PER_INCH = 110
INK, GRID, TARGET = "#333333", "#e6e6e6", "#8c5a3c"
MARGIN_M = 1.0
PICTURES = 6  # in a row
STATES = "/drone_controller/state"


class Flight:
    """The way of a vehicle to its target. Times are the emulator's, positions ENU in m."""

    def __init__(
        self,
        name: str,
        times_s: Sequence[float],
        positions: Sequence[Sequence[float]],
        targets: Sequence[Sequence[float]],
        reached_s: float,
    ) -> None:
        """Each position has its time, and the target's centre at that time."""
        self.name, self.reached_s = name, reached_s
        self.times_s, self.positions, self.targets = np.array(times_s), np.array(positions), np.array(targets)

    @property
    def distances_m(self) -> Array:
        distances: Array = np.linalg.norm(self.positions - self.targets, axis=1)
        return distances

    @property
    def flown_m(self) -> float:
        return float(np.linalg.norm(np.diff(self.positions, axis=0), axis=1).sum())


def draw(file: Path, flights: Sequence[Flight], bag_folder: Path | None = None) -> None:
    """Write the picture of at least one flight as PNG. Images and states are from the bag, if there is one."""
    mpl.rcParams.update({"font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK})
    figure = plt.figure(figsize=SIZE_INCHES, constrained_layout=True)
    plots = figure
    if bag_folder is not None:
        with Bag(bag_folder) as bag:
            cameras, plots = figure.subfigures(2, 1, height_ratios=[1.0, 1.8])
            _draw_images(cameras, bag)
            states = [(stamp_s(message), message.state) for message in bag.deserialized(STATES)]
            # Before the first measurement a controller stamps by its own clock.
            states = [each for each in states if each[0] <= flights[0].times_s[-1]]
    above, height, distance = plots.subplots(1, 3)
    if bag_folder is not None:
        _draw_states(height, states)
    colours = plt.get_cmap("tab10")
    for number, flight in enumerate(flights):
        colour = colours(number % colours.N)
        above.plot(*flight.targets.T[:2], color=TARGET, lw=5, alpha=0.4, solid_capstyle="round")
        above.plot(*flight.targets[-1, :2], "x", color=colour, ms=7, mew=2)
        above.plot(*flight.positions.T[:2], color=colour, lw=2)
        above.plot(*flight.positions[0, :2], "o", color=colour, ms=6)
        height.plot(flight.times_s, flight.positions[:, 2], color=colour, lw=1.6)
        distance.plot(flight.times_s, flight.distances_m, color=colour, lw=1.6, label=flight.name)
        reached = int(np.searchsorted(flight.times_s, flight.reached_s).clip(0, len(flight.times_s) - 1))
        for panel, x, y in (
            (above, *flight.positions[reached, :2]),
            (height, flight.reached_s, flight.positions[reached, 2]),
            (distance, flight.reached_s, flight.distances_m[reached]),
        ):
            panel.plot(x, y, "D", color="white", mec=colour, ms=6)
    _show_square(above, np.vstack([array[:, :2] for each in flights for array in (each.positions, each.targets)]))
    above.set(title="from above; crosses: targets", xlabel="east (m)", ylabel="north (m)")
    height.set(title="height", xlabel="time (s)", ylabel="up (m)")
    distance.set(title="distance; diamonds: reached", xlabel="time (s)", ylabel="to the target's centre (m)")
    distance.set(xlim=(0, None), ylim=(0, None))
    distance.legend(frameon=False, ncols=1 + len(flights) // 5)
    for panel in (above, height, distance):
        panel.grid(color=GRID, lw=0.8)
        panel.set_axisbelow(True)
    figure.savefig(file, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)


def _draw_images(figure: Any, bag: Bag) -> None:
    """Draw what each camera saw, from the first image to the last one."""
    cameras = [topic for topic in bag.topics if topic.type_name == "sensor_msgs/msg/Image" and topic.count]
    shown: list[tuple[float, str, Any]] = []
    for topic in cameras:
        # Only those that are drawn are decoded.
        wanted = set(np.linspace(0, topic.count - 1, PICTURES // len(cameras)).astype(int))
        for index, message in enumerate(bag.messages([topic])):
            if index in wanted:
                image = bag.deserialize(message)
                shown.append((stamp_s(image), topic.name, image))
    for panel, (time_s, name, image) in zip(figure.subplots(1, len(shown)), sorted(shown, key=_moment), strict=True):
        panel.imshow(image.data.reshape(image.height, image.width, 3), interpolation="nearest")
        panel.set(xticks=[], yticks=[], title=f"{time_s:.1f} s", xlabel=name)


def _moment(shown: tuple[float, str, Any]) -> tuple[float, str]:
    return round(shown[0], 1), shown[1]


def _draw_states(panel: Any, states: Sequence[tuple[float, str]]) -> None:
    """Draw the controller's states behind the height."""
    changes = [each for index, each in enumerate(states) if index == 0 or states[index - 1][1] != each[1]]
    named = dict.fromkeys(state for _, state in changes)
    colours = {state: plt.get_cmap("Set3")(number) for number, state in enumerate(named)}
    ends = [time_s for time_s, _ in changes[1:]] + [states[-1][0]]
    for state, colour in colours.items():
        panel.plot([], [], color=colour, lw=6, label=state)
    for (begin_s, state), end_s in zip(changes, ends, strict=True):
        panel.axvspan(begin_s, end_s, color=colours[state], alpha=0.5, lw=0)
    panel.legend(fontsize=8.5, framealpha=0.9, edgecolor="none")


def _show_square(panel: Any, points: Array) -> None:
    """Show all points (n x 2) with a margin around them, both axes to one scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    centre, half = (low + high) / 2, (high - low).max() / 2 + MARGIN_M
    panel.set_aspect("equal")
    panel.set(xlim=(centre[0] - half, centre[0] + half), ylim=(centre[1] - half, centre[1] + half))
