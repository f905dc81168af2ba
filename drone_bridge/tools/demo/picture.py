# SPDX-License-Identifier: Apache-2.0
"""The picture of a flight to a target: what the cameras saw, the path, the distance."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.patches import Circle

from drone_bridge.emulators.testbed_flight import REACHED_WITHIN_M
from drone_bridge.emulators.testbed_world import World
from drone_bridge.tools.demo.flight import Recording, target_in_enu
from drone_bridge.translate.frames import enu_from_testbed

PATH_COLOUR: Final = "#1f5fbf"
TARGET_COLOUR: Final = "#d62728"
OBSTACLE_COLOUR: Final = "#9a9a9a"
INK: Final = "#333333"
MOMENTS: Final = ("start", "midway", "end")
SIZE_INCHES: Final = (13.0, 7.4)
DOTS_PER_INCH: Final = 110


def draw(recording: Recording, world: World, reached_at_s: float, file: Path) -> None:
    """Write the picture as PNG."""
    mpl.rcParams.update({"font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK})
    figure = plt.figure(figsize=SIZE_INCHES, constrained_layout=True)
    cameras, flight = figure.subfigures(2, 1, height_ratios=[1.0, 1.15])
    _draw_cameras(cameras, recording)
    above, side, distance = flight.subplots(1, 3)
    _draw_path(above, recording, world, reached_at_s, axes=(0, 1), labels=("east (m)", "north (m)"), title="from above")
    _draw_path(side, recording, world, reached_at_s, axes=(0, 2), labels=("east (m)", "up (m)"), title="from the side")
    _draw_distance(distance, recording, world, reached_at_s)
    figure.savefig(file, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)


def _draw_cameras(figure: Any, recording: Recording) -> None:
    axes = figure.subplots(1, 2 * len(MOMENTS))
    for index, moment in enumerate(MOMENTS):
        for offset, camera in enumerate(("left", "right")):
            seconds, pixels = recording.images[camera][index]
            panel = axes[2 * index + offset]
            panel.imshow(pixels, interpolation="nearest")
            panel.set_xticks([])
            panel.set_yticks([])
            panel.set_title(f"{moment}, {seconds:.1f} s" if offset == 0 else "", loc="left", fontweight="bold")
            panel.set_xlabel(f"{camera} camera")


def _draw_path(
    panel: Any,
    recording: Recording,
    world: World,
    reached_at_s: float,
    *,
    axes: tuple[int, int],
    labels: tuple[str, str],
    title: str,
) -> None:
    """Draw the path and the spheres, seen along the axis that is left out, everything to one scale."""
    first, second = axes
    for sphere in world.obstacles:
        centre = enu_from_testbed(*sphere.centre)
        panel.add_patch(Circle((centre[first], centre[second]), sphere.radius, color=OBSTACLE_COLOUR, lw=0))
    target = target_in_enu(world)
    panel.add_patch(Circle((target[first], target[second]), world.targets[0].radius, color=TARGET_COLOUR, lw=0))
    panel.add_patch(
        Circle((target[first], target[second]), REACHED_WITHIN_M, fill=False, color=TARGET_COLOUR, ls=":", lw=1.2)
    )
    path = recording.positions
    panel.plot(path[:, first], path[:, second], color=PATH_COLOUR, lw=2)
    panel.plot(path[0, first], path[0, second], "o", color=PATH_COLOUR, ms=7, label="start")
    reached = int(np.searchsorted(recording.times, reached_at_s).clip(0, len(path) - 1))
    panel.plot(
        path[reached, first], path[reached, second], "D", color="white", mec=PATH_COLOUR, ms=7, label="target reached"
    )
    panel.set_xlabel(labels[0])
    panel.set_ylabel(labels[1])
    panel.set_title(title, loc="left", fontweight="bold")
    panel.set_aspect("equal", adjustable="datalim")
    panel.margins(0.15)
    panel.grid(color="#e6e6e6", lw=0.8)
    panel.set_axisbelow(True)


def _draw_distance(panel: Any, recording: Recording, world: World, reached_at_s: float) -> None:
    distances: npt.NDArray[np.float64] = np.linalg.norm(recording.positions - target_in_enu(world), axis=1)
    panel.plot(recording.times, distances, color=PATH_COLOUR, lw=2)
    panel.axhline(REACHED_WITHIN_M, color=TARGET_COLOUR, ls=":", lw=1.2)
    panel.axvline(reached_at_s, color=INK, ls="--", lw=0.8)
    panel.annotate(
        f"reached after {reached_at_s:.1f} s",
        (reached_at_s, REACHED_WITHIN_M),
        xytext=(8, 22),
        textcoords="offset points",
    )
    panel.set_xlabel("simulated time (s)")
    panel.set_ylabel("distance to the target's centre (m)")
    panel.set_title("distance", loc="left", fontweight="bold")
    panel.set_ylim(bottom=0)
    panel.set_xlim(left=0)
    panel.grid(color="#e6e6e6", lw=0.8)
