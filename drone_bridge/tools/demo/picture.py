# SPDX-License-Identifier: Apache-2.0
"""Picture of a recorded flight: images, height, distance and states of the controller, and the path from above."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")  # rendering to files, without a display

import matplotlib.pyplot as plt
import numpy as np

from drone_bridge.tools.bags.bag import BagReader, stamp_s
from drone_bridge.tools.reporting.pad_track import PadTrack

SIZE_INCHES = (15.0, 7.2)
DOTS_PER_INCH = 110
INK, GRID, TARGET = "#333333", "#e6e6e6", "#d62728"
PICTURES = 6  # in a row
STATES = "/drone_controller/state"
#: Topics with the positions of the drone and its goal.
PLACES = ("/odom", "/rover/odom", "/landing_pad", "/imu/data")


def draw(file: Path, bag_folder: Path, title: str) -> None:
    """Write the picture as PNG, with times from the stamps. Raises BagReadError and OSError."""
    mpl.rcParams.update({"font.size": 10, "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK})
    figure = plt.figure(figsize=SIZE_INCHES, constrained_layout=True)
    cameras, plots = figure.subfigures(2, 1, height_ratios=[1.0, 1.8])
    height, distance, above = plots.subplots(1, 3)
    with BagReader(bag_folder) as bag:
        _draw_images(cameras, bag)
        heights = [(stamp_s(message), message.point.z) for message in bag.deserialized("/height")]
        heights = heights or [(stamp_s(each), each.pose.pose.position.z) for each in bag.deserialized("/odom")]
        # Before the first measurement, controllers stamp their state by their own clock.
        end_s = max(time_s for time_s, _ in heights)
        states = [message for message in bag.deserialized(STATES) if stamp_s(message) <= end_s]
        _draw_path(above, bag, states[-1].distance)
    height.plot(*zip(*heights, strict=True), lw=1.6)
    distance.plot([stamp_s(state) for state in states], [state.distance for state in states], lw=1.6)
    height.set(title="Height", xlabel="time (s)", ylabel="height (m)")
    distance.set(title="Distance to the goal", xlabel="time (s)", ylabel="distance to the goal (m)", ylim=(0, None))
    named = [(stamp_s(state), state.state) for state in states]
    figure.suptitle(title, fontsize=14)
    for panel in (height, distance):
        panel.set(xlim=(heights[0][0], end_s))
        panel.grid(color=GRID, lw=0.8)
        panel.set_axisbelow(True)
        _draw_states(panel, named)
    figure.savefig(file, dpi=DOTS_PER_INCH, facecolor="white")
    plt.close(figure)


def _draw_images(figure: Any, bag: BagReader) -> None:
    """Draw images of each camera, evenly from the first to the last one."""
    cameras = [topic for topic in bag.topics if topic.type_name == "sensor_msgs/msg/Image" and topic.count]
    shown: list[tuple[float, str, Any]] = []
    for topic in cameras:
        # Only the drawn images are deserialized.
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


def _draw_path(panel: Any, bag: BagReader, goal_m: float) -> None:
    """Draw the path of the drone, and its goal: the rover with the pad, else the point `goal_m` ahead at the end."""
    pad_track, drone, rover, ahead = PadTrack(), list[tuple[float, float]](), list[tuple[float, float]](), (1.0, 0.0)
    for message in bag.messages([topic for topic in bag.topics if topic.name in PLACES]):
        content = bag.deserialize(message)
        if position := pad_track.note(message.topic.name, message.topic.type_name, content):
            drone.append(position[:2])
        elif message.topic.type_name == "nav_msgs/msg/Odometry":
            pose = content.pose.pose
            (rover if "rover" in message.topic.name else drone).append((pose.position.x, pose.position.y))
            q = pose.orientation
            ahead = 1.0 - 2.0 * (q.y * q.y + q.z * q.z), 2.0 * (q.w * q.z + q.x * q.y)
    if not drone:
        panel.set_axis_off()
        return
    (x, y), (forward_x, forward_y) = drone[-1], ahead
    goal = rover or [(x + goal_m * forward_x, y + goal_m * forward_y)]
    panel.plot(*zip(*goal, strict=True), color=TARGET, lw=1.6, ls="--")
    panel.plot(*goal[-1], "o", color=TARGET, ms=11, label="rover with the pad" if rover else "target")
    panel.plot(*zip(*drone, strict=True), lw=1.6, label="drone")
    panel.plot(*drone[0], "s", color=INK, ms=6, label="start")
    panel.set(title="From above", xlabel="x (m)", ylabel="y (m)")
    panel.set_aspect("equal", adjustable="datalim")
    panel.grid(color=GRID, lw=0.8)
    panel.legend(fontsize=8.5, framealpha=0.9, edgecolor="none")


def _draw_states(panel: Any, states: Sequence[tuple[float, str]]) -> None:
    """Draw the controller's states behind a plot."""
    changes = [each for index, each in enumerate(states) if index == 0 or states[index - 1][1] != each[1]]
    named = dict.fromkeys(state for _, state in changes)
    colours = {state: plt.get_cmap("Set3")(number) for number, state in enumerate(named)}
    ends = [time_s for time_s, _ in changes[1:]] + [states[-1][0]]
    for state, colour in colours.items():
        panel.plot([], [], color=colour, lw=6, label=state)
    for (begin_s, state), end_s in zip(changes, ends, strict=True):
        panel.axvspan(begin_s, end_s, color=colours[state], alpha=0.5, lw=0)
    panel.legend(fontsize=8.5, framealpha=0.9, edgecolor="none")
