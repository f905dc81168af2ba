# SPDX-License-Identifier: Apache-2.0
"""ReportData: the data of a report, read from a bag in one pass: states, images, and numbers of any message type."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion
from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, BagReader, BagReadError, field_names
from drone_bridge.tools.report.landing_verdict import LandingVerdict
from drone_bridge.tools.report.pad_track import PadTrack
from drone_bridge.tools.shared.progress import counted

PICTURES = 8  # per camera
MAX_CAMERAS = 4
MAX_STATES = 30  # per topic; a string with more distinct values is not a state, but for example a document
LONGEST_STATE = 60  # characters; a longer text is not a state, nor is one of several lines
PAD_TRACK = "drone above its rover, by {}"

_IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
_COMPRESSED = "/compressed"  # suffix of image_transport
_TRACKED = ("nav_msgs/msg/Odometry", "geometry_msgs/msg/PoseStamped")
_STATES = ("drone_bridge/msg/ControllerState", "std_msgs/msg/Bool", "std_msgs/msg/String")
_DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
#: Types with numbers that are not worth a plot over time.
_NOT_PLOTTED = (
    *("sensor_msgs/msg/CameraInfo", "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage"),
    *("rcl_interfaces/msg/Log", "rcl_interfaces/msg/ParameterEvent", "lifecycle_msgs/msg/TransitionEvent"),
)
LEVELS = ("OK", "WARN", "ERROR", "STALE")  # of diagnostics
#: Suffix of the names of angles.
ANGLE = ", deg"
MAX_FIELDS = 12  # per topic; more lines are indistinguishable
MAX_POINTS = 4000  # per line, more than the columns of a screen
#: Fields that are not plotted: origin and time of a message, and constants.
_LEFT_OUT = ("header", "stamp", "covariance", "_covariance")
_CONSTANT = ("field_of_view", "min_range", "max_range", "radiation_type", "design_capacity", "capacity")


def numbers_in(message: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield names and values of the scalar numbers in a message. Quaternions become Euler angles in degrees."""
    for name in field_names(message):
        value = getattr(message, name)
        if name.endswith(_LEFT_OUT) or name in _CONSTANT:
            continue
        label = f"{prefix}{name}"
        if is_dataclass(value):
            if set(field_names(value)) >= {"x", "y", "z", "w"}:
                axes = (f"{label} {axis}{ANGLE}" for axis in ("roll", "pitch", "yaw"))
                yield from zip(axes, _degrees(value), strict=True)
            else:
                yield from numbers_in(value, _shortened(label))
        elif isinstance(value, bool | int | float | np.number | np.bool_):
            yield label, float(value)


def _shortened(label: str) -> str:
    """Shorten the prefix of a name: 'pose.pose.position.x' becomes 'position.x'."""
    return "" if label in ("pose", "twist", "pose.pose", "twist.twist", "vector", "point") else f"{label}."


def _degrees(rotation: Any) -> tuple[float, ...]:
    """Return roll, pitch and yaw of REP 103, degrees."""
    angles = euler_from_quaternion(Quaternion(rotation.x, rotation.y, rotation.z, rotation.w))
    return tuple(map(math.degrees, angles))


@dataclass(slots=True)
class Series:
    """Numbers of a topic over time."""

    times: list[float] = field(default_factory=list)  # s from the beginning of the bag
    columns: dict[str, list[float]] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    """Names of boolean columns"""
    type_name: str = ""
    """Type of the messages, package/msg/Name"""

    def add(self, time_s: float, message: Any) -> None:
        """Add a message. Only the fields of the first message are kept."""
        found = dict(numbers_in(message))
        if not self.times:
            self.columns = {name: [] for name in list(found)[:MAX_FIELDS]}
            self.flags = {name for name in field_names(message) if isinstance(getattr(message, name), bool | np.bool_)}
        self.times.append(time_s)
        for name, column in self.columns.items():
            column.append(found.get(name, math.nan))

    def is_interesting(self, name: str) -> bool:
        """Return whether a column has any number other than zero."""
        column = np.asarray(self.columns[name])
        return bool(np.any(np.isfinite(column) & (column != 0)))


def thinned(times: Sequence[float], values: Sequence[float]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Reduce a line to at most MAX_POINTS: the lowest and highest points of each stretch, so that peaks are kept."""
    t, v = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if len(t) <= MAX_POINTS:
        return t, v
    chosen = set()
    for stretch in np.array_split(np.arange(len(t)), MAX_POINTS // 2):
        part = v[stretch]
        if np.all(np.isnan(part)):
            chosen.add(int(stretch[0]))
        else:
            chosen |= {int(stretch[np.nanargmin(part)]), int(stretch[np.nanargmax(part)])}
    indices = sorted(chosen)
    return t[indices], v[indices]


@dataclass(slots=True)
class StateInterval:
    """Time interval of a state."""

    state: str
    reason: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class ReportPicture:
    """Image of a camera, not decoded."""

    time_s: float
    type_name: str
    message: Any


@dataclass(slots=True)
class ReportData:
    """Contents of the page. Times are seconds from the beginning of the bag."""

    series: dict[str, Series] = field(default_factory=dict)
    tracks: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    """Time and x, y, z in m, by topic. The way of a drone that sees its rover's pad has a name, PAD_TRACK."""
    verdict: LandingVerdict = field(default_factory=LandingVerdict)
    pad_track: PadTrack = field(default_factory=PadTrack)
    states: dict[str, list[StateInterval]] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    """Topics with a text of more than a line, which is not a state"""
    diagnostics: dict[str, list[StateInterval]] = field(default_factory=dict)
    """Level, with the message as its reason, by status"""
    pictures: dict[str, list[ReportPicture]] = field(default_factory=dict)
    illegible: dict[str, str] = field(default_factory=dict)
    """Reason why the rest of a topic is left out, by topic"""


def read_report_data(bag: BagReader) -> ReportData:
    """Read the whole bag. Raises BagReadError."""
    data = ReportData()
    cameras = _cameras(bag)[:MAX_CAMERAS]
    span_ns = max(1, bag.end_ns - bag.start_ns)
    picture_period_ns = max(1, span_ns // PICTURES)
    next_ns = dict.fromkeys(cameras, 0)  # due time of the next image, by camera
    for message in counted(bag.messages(), "reading", bag.count):
        name, type_name = message.topic.name, message.topic.type_name
        since_start_ns = message.time_ns - bag.start_ns
        time_s = since_start_ns / NANOSECONDS_PER_SECOND
        if name in data.illegible or type_name in _NOT_PLOTTED:
            continue
        try:
            if type_name not in _IMAGES:
                _note(data, name, type_name, time_s, bag.deserialize(message))
            # Only images that are shown are deserialized, since they are large.
            elif name in cameras and since_start_ns >= next_ns[name]:
                next_ns[name] = (since_start_ns // picture_period_ns + 1) * picture_period_ns
                data.pictures.setdefault(name, []).append(ReportPicture(time_s, type_name, bag.deserialize(message)))
        except BagReadError as error:
            data.illegible[name] = str(error)
    for topic, intervals in list(data.states.items()):
        if topic in data.texts or len({interval.state for interval in intervals}) > MAX_STATES:
            del data.states[topic]
        else:
            intervals[-1].to_s = span_ns / NANOSECONDS_PER_SECOND  # the last state lasts to the end
    return data


def _cameras(bag: BagReader) -> list[str]:
    """Return the image topics, without compressed ones whose raw images are recorded, too."""
    images = [topic.name for topic in bag.topics if topic.type_name in _IMAGES and topic.count]
    return [name for name in images if not (name.endswith(_COMPRESSED) and name.removesuffix(_COMPRESSED) in images)]


def _note(data: ReportData, topic: str, type_name: str, time_s: float, message: Any) -> None:
    if type_name == _DIAGNOSTICS:
        for status in message.status:
            level = LEVELS[min(int(status.level), len(LEVELS) - 1)]
            told = data.diagnostics.setdefault(status.name, [])
            _note_state(told, time_s, level, status.message, is_new_with_reason=True)
    else:
        if type_name in _STATES:
            state = str(getattr(message, "state", getattr(message, "data", "")))
            reason = str(getattr(message, "reason", ""))[:120]
            if len(state) > LONGEST_STATE or len(state.splitlines()) > 1:
                data.texts.add(topic)
            _note_state(data.states.setdefault(topic, []), time_s, state[:LONGEST_STATE], reason)
        if type_name in _TRACKED:
            pose = message.pose.pose if hasattr(message.pose, "pose") else message.pose
            point = pose.position
            data.tracks.setdefault(topic, []).append((time_s, point.x, point.y, point.z))
        if position := data.pad_track.note(topic, type_name, message):
            data.tracks.setdefault(PAD_TRACK.format(topic), []).append((time_s, *position))
        data.verdict.note(topic, type_name, time_s, message)
        data.series.setdefault(topic, Series(type_name=type_name)).add(time_s, message)


def _note_state(
    intervals: list[StateInterval], time_s: float, state: str, reason: str, *, is_new_with_reason: bool = False
) -> None:
    """Extend the last interval, or begin a new one."""
    if intervals:
        intervals[-1].to_s = time_s
        if intervals[-1].state == state and (intervals[-1].reason == reason or not is_new_with_reason):
            return
    intervals.append(StateInterval(state, reason, time_s, time_s))
