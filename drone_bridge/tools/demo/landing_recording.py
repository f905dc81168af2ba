# SPDX-License-Identifier: Apache-2.0
"""A landing, read back from its bag. The drone has no position: its path is its integrated velocity."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from drone_bridge.geometry.quaternions import Quaternion, euler_from_quaternion
from drone_bridge.tools.bags.bag import Bag, stamp_s

OWN_SIGHTINGS: Final = "/drone_controller/landing_pad"

Array = npt.NDArray[np.float64]


class Span(NamedTuple):
    """A state of the controller, from one time to another, s."""

    state: str
    begins_s: float
    ends_s: float


class View(NamedTuple):
    """An image, and what the drone knew when it was taken."""

    time_s: float
    pixels: npt.NDArray[np.uint8]  # height x width x 3: red, green, blue
    matrix: Array  # 3 x 3, takes directions of the optical frame to homogeneous pixels
    angles: tuple[float, float, float]  # rad: roll, pitch, yaw of the drone
    pad: Array | None  # from the drone, levelled, m; None where it was not found
    altitude: float  # m


@dataclass
class LandingRecording:
    """Times are seconds of the drone's clock since the first command; positions are in the rover's map, m."""

    times: Array = field(default_factory=lambda: np.zeros(0))
    path: Array = field(default_factory=lambda: np.zeros((0, 2)))  # of the drone, by dead reckoning
    altitudes: Array = field(default_factory=lambda: np.zeros(0))  # above ground
    rover_times: Array = field(default_factory=lambda: np.zeros(0))
    rover_path: Array = field(default_factory=lambda: np.zeros((0, 2)))
    sighting_times: Array = field(default_factory=lambda: np.zeros(0))
    sightings: Array = field(default_factory=lambda: np.zeros((0, 3)))  # from the drone to the pad, axes of the map
    spans: list[Span] = field(default_factory=list)
    landed_s: float = math.nan
    views: list[View] = field(default_factory=list)
    messages: int = 0

    def state_at(self, time_s: float) -> str:
        """Return the state of the controller."""
        begins = [span.begins_s for span in self.spans]
        return self.spans[max(bisect_right(begins, time_s) - 1, 0)].state

    def altitude_at(self, time_s: float) -> float:
        """Return the height above ground, m."""
        return float(np.interp(time_s, self.times, self.altitudes))


def along(times: Array, path: Array, time_s: float | Array) -> Array:
    """Return where a path (n x 2) is at a time, 2, or at several, m x 2."""
    return np.stack([np.interp(time_s, times, axis) for axis in path.T], axis=-1)


def read_landing(path: Path) -> LandingRecording:
    """Read a bag. Its stamps have to be those of the drone's clock."""
    recording = LandingRecording()
    with Bag(path) as bag:
        recording.messages = bag.count
        angles = {stamp_s(message): _angles(message) for message in bag.deserialized("/imu/data")}
        states = [(stamp_s(message), message.state) for message in bag.deserialized("/drone_controller/state")]
        # Before the first measurement a controller stamps by its own clock.
        states = [(time_s, state) for time_s, state in states if time_s in angles]
        begin_s = states[0][0]
        recording.spans = _spans(states, begin_s)
        recording.landed_s = recording.spans[-1].begins_s
        altitudes = {stamp_s(message): float(message.point.z) for message in bag.deserialized("/height")}
        velocities = {
            stamp_s(message): _in_map_axes(angles[stamp_s(message)][2], message.twist.linear.x, message.twist.linear.y)
            for message in bag.deserialized("/velocity")
            if stamp_s(message) in angles
        }
        rover = [(stamp_s(message), message.pose.pose.position) for message in bag.deserialized("/rover/odom")]
        recording.rover_times = np.array([time_s for time_s, _ in rover]) - begin_s
        recording.rover_path = np.array([(position.x, position.y) for _, position in rover])
        _add_sightings(recording, bag, angles, begin_s)
        _add_path(recording, velocities, altitudes, begin_s)
        _add_views(recording, bag, angles, begin_s)
    return recording


def _spans(states: list[tuple[float, str]], begin_s: float) -> list[Span]:
    begins = [item for index, item in enumerate(states) if index == 0 or states[index - 1][1] != item[1]]
    ends = [time_s for time_s, _ in begins[1:]] + [states[-1][0]]
    return [Span(state, time_s - begin_s, end - begin_s) for (time_s, state), end in zip(begins, ends, strict=True)]


def _add_path(
    recording: LandingRecording, velocities: dict[float, Array], altitudes: dict[float, float], begin_s: float
) -> None:
    """Integrate the velocities, and shift the path to fit the last sighting of the pad."""
    times = np.array(sorted(time_s for time_s in velocities if time_s >= begin_s))
    steps = np.diff(times, prepend=times[0])[:, np.newaxis]
    path = np.cumsum(np.array([velocities[time_s] for time_s in times]) * steps, axis=0)
    recording.times = times - begin_s
    recording.altitudes = np.array([altitudes.get(time_s, math.nan) for time_s in times])
    last_s = float(recording.sighting_times[-1])
    drone_at_last = along(recording.rover_times, recording.rover_path, last_s) - recording.sightings[-1, :2]
    recording.path = path + drone_at_last - along(recording.times, path, last_s)


def _add_sightings(recording: LandingRecording, bag: Bag, angles: dict[float, Any], begin_s: float) -> None:
    """Read where the pad was seen: by the controller if it looked itself, else as the drone reported it."""
    topic = OWN_SIGHTINGS if any(topic.name == OWN_SIGHTINGS for topic in bag.topics) else "/landing_pad"
    seen = [(stamp_s(message), message) for message in bag.deserialized(topic) if message.detected]
    seen = [(time_s, message) for time_s, message in seen if time_s in angles and time_s >= begin_s]
    recording.sighting_times = np.array([time_s - begin_s for time_s, _ in seen])
    recording.sightings = np.array(
        [
            (*_in_map_axes(angles[time_s][2], message.offset_x, message.offset_y), -message.distance)
            for time_s, message in seen
        ]
    )


def _add_views(recording: LandingRecording, bag: Bag, angles: dict[float, Any], begin_s: float) -> None:
    """Keep four images in which the pad was seen: the first, two on the way down, the last."""
    seen = recording.sighting_times[recording.sighting_times <= recording.landed_s]
    heights = np.array([recording.altitude_at(time_s) for time_s in seen])
    descending = np.arange(len(seen)) >= int(np.argmax(heights))
    wanted = [seen[0], seen[-1]]
    for share in (0.6, 0.25):
        misses = np.where(descending, abs(heights - share * heights.max()), np.inf)
        wanted.append(seen[int(np.argmin(misses))])
    matrix = None
    for info in bag.deserialized("/camera/camera_info"):
        matrix = np.array(info.k).reshape(3, 3)
        break
    assert matrix is not None, "the bag has no camera_info"
    for message in bag.deserialized("/camera/image_raw"):
        stamp = stamp_s(message)
        time_s = stamp - begin_s
        if not any(abs(time_s - other) < 1e-3 for other in wanted):
            continue
        index = int(np.argmin(abs(recording.sighting_times - time_s)))
        pixels = message.data.reshape(message.height, message.width, 3)
        pad = _in_map_axes(-angles[stamp][2], *recording.sightings[index, :2])
        recording.views.append(
            View(
                time_s,
                pixels,
                matrix,
                angles[stamp],
                np.array([*pad, recording.sightings[index, 2]]),
                recording.altitude_at(time_s),
            )
        )


def _in_map_axes(yaw: float, x: float, y: float) -> Array:
    """Return a vector in the drone's levelled axes in those of the map, to which the yaw refers."""
    return np.array([math.cos(yaw) * x - math.sin(yaw) * y, math.sin(yaw) * x + math.cos(yaw) * y])


def _angles(message: Any) -> tuple[float, float, float]:
    q = message.orientation
    return euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w))
