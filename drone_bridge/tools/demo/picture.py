# SPDX-License-Identifier: Apache-2.0
"""The picture of a flight to a target: what the cameras saw, the path, the distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.patches import Circle

from drone_bridge.emulators.testbed.flight import REACHED_WITHIN_M
from drone_bridge.emulators.testbed.world import World
from drone_bridge.tools.demo.flight import CAMERAS, Recording, target_in_enu
from drone_bridge.tools.demo.plotting import INK, finish, label, new_figure, save, show_square
from drone_bridge.translate.testbed_frames import enu_from_testbed

Vector = npt.NDArray[np.float64]  # 3, ENU

PATH_COLOUR: Final = "#1f5fbf"
TARGET_COLOUR: Final = "#d62728"
OBSTACLE_COLOUR: Final = "#9a9a9a"
MARGIN_M: Final = 1.5  # around path and target
EAST, NORTH, UP = np.eye(3)
MOMENTS: Final = ("start", "midway", "end")
SIZE_INCHES: Final = (13.0, 6.6)


def draw(recording: Recording, world: World, reached_at_s: float, file: Path) -> None:
    """Write the picture as PNG."""
    figure = new_figure(SIZE_INCHES)
    cameras, flight = figure.subfigures(2, 1, height_ratios=[1.0, 1.9])
    _draw_cameras(cameras, recording)
    above, side, distance = flight.subplots(1, 3)
    goal = target_in_enu(world)
    along = np.array([goal[0], goal[1], 0.0]) / np.hypot(goal[0], goal[1])
    views = {
        "from above": ((EAST, "east (m)"), (NORTH, "north (m)")),
        "from the side": ((along, "towards the target (m)"), (UP, "up (m)")),
    }
    for panel, (title, directions) in zip((above, side), views.items(), strict=True):
        _draw_path(panel, recording, world, reached_at_s, directions)
        finish(panel, title)
    _draw_distance(distance, recording, reached_at_s)
    save(figure, file)


def _draw_cameras(figure: Any, recording: Recording) -> None:
    axes = figure.subplots(1, 2 * len(MOMENTS))
    for index, moment in enumerate(MOMENTS):
        for offset, camera in enumerate(CAMERAS):
            seconds, pixels = recording.images[camera][index]
            panel = axes[2 * index + offset]
            panel.imshow(pixels, interpolation="nearest")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_title(f"{moment}, {seconds:.1f} s" if offset == 0 else "", loc="left", fontweight="bold")
            panel.set_xlabel(f"{camera} camera")


def _draw_path(
    panel: Any, recording: Recording, world: World, reached_at_s: float, directions: tuple[tuple[Vector, str], ...]
) -> None:
    """Draw the path and the spheres along two directions, everything to one scale."""
    onto = np.array([direction for direction, _ in directions])  # 2 x 3
    target = onto @ target_in_enu(world)
    path = recording.positions @ onto.T
    for sphere in world.obstacles:
        _add_circle(panel, onto @ enu_from_testbed(*sphere.centre), sphere.radius, color=OBSTACLE_COLOUR, lw=0)
    _add_circle(panel, target, world.targets[0].radius, color=TARGET_COLOUR, lw=0)
    _add_circle(panel, target, REACHED_WITHIN_M, fill=False, color=TARGET_COLOUR, ls=":", lw=1.2)
    reached = path[np.searchsorted(recording.times, reached_at_s).clip(0, len(path) - 1)]
    panel.plot(*path.T, color=PATH_COLOUR, lw=2)
    panel.plot(*path[0], "o", color=PATH_COLOUR, ms=7)
    panel.plot(*reached, "D", color="white", mec=PATH_COLOUR, ms=6)
    label(panel, "start", path[0], (8, -12))
    show_square(panel, np.vstack((path, target)), MARGIN_M)
    panel.set(xlabel=directions[0][1], ylabel=directions[1][1])


def _add_circle(panel: Any, centre: npt.NDArray[np.float64], radius: float, **style: Any) -> None:
    panel.add_patch(Circle((centre[0], centre[1]), radius, **style))


def _draw_distance(panel: Any, recording: Recording, reached_at_s: float) -> None:
    panel.plot(recording.times, recording.distances, color=PATH_COLOUR, lw=2)
    panel.axhline(REACHED_WITHIN_M, color=TARGET_COLOUR, ls=":", lw=1.2)
    panel.axvline(reached_at_s, color=INK, ls="--", lw=0.8)
    label(panel, f"reached after {reached_at_s:.1f} s", (reached_at_s, REACHED_WITHIN_M), (8, 22))
    panel.set(xlabel="simulated time (s)", ylabel="to the target's centre (m)", ylim=(0, None), xlim=(0, None))
    finish(panel, "distance")
