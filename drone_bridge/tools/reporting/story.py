# SPDX-License-Identifier: Apache-2.0
"""What happened, read from a bag in one pass."""

from dataclasses import dataclass, field
from typing import Any

from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, Bag, BagError
from drone_bridge.tools.reporting.numbers import Series

PICTURES = 8  # of each camera
MAX_CAMERAS = 4
MAX_LOG_LINES = 200
MAX_STATES = 30  # of one topic; strings with more different values are not states, but for example documents
WARNING = 30  # in rcl_interfaces/msg/Log

_IMAGES = ("sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage")
_COMPRESSED = "/compressed"  # as image_transport calls them
_TRACKED = ("nav_msgs/msg/Odometry", "geometry_msgs/msg/PoseStamped")
_STATES = ("drone_bridge/msg/ControllerState", "std_msgs/msg/Bool", "std_msgs/msg/String")
_DIAGNOSTICS = "diagnostic_msgs/msg/DiagnosticArray"
_LOG = "rcl_interfaces/msg/Log"
#: Has numbers, and none that a plot over time would explain.
_NOT_PLOTTED = (
    *("sensor_msgs/msg/CameraInfo", "rosgraph_msgs/msg/Clock", "tf2_msgs/msg/TFMessage"),
    *("rcl_interfaces/msg/ParameterEvent", "lifecycle_msgs/msg/TransitionEvent"),
)


@dataclass(frozen=True, slots=True)
class StateInterval:
    """A state that held from one time to another."""

    state: str
    reason: str
    from_s: float
    to_s: float


@dataclass(frozen=True, slots=True)
class Picture:
    """A camera's image, not decoded."""

    time_s: float
    type_name: str
    message: Any


@dataclass(slots=True)
class Story:
    """Everything the page shows. Times are seconds from the beginning of the bag."""

    series: dict[str, Series] = field(default_factory=dict)
    tracks: dict[str, list[tuple[float, float, float, float]]] = field(default_factory=dict)
    """Time and x, y, z in m, by topic"""
    states: dict[str, list[StateInterval]] = field(default_factory=dict)
    diagnostics: dict[str, list[tuple[float, int, str]]] = field(default_factory=dict)
    """Time, level and sentence, by status"""
    pictures: dict[str, list[Picture]] = field(default_factory=dict)
    log: list[tuple[float, int, str, str]] = field(default_factory=list)
    """Time, level, node and line, from warnings up"""
    illegible: dict[str, str] = field(default_factory=dict)
    """Why the rest of a topic is left out, by topic"""


def read_story(bag: Bag) -> Story:
    """Read a bag from the beginning to the end. Raises BagError."""
    story = Story()
    cameras = _cameras(bag)[:MAX_CAMERAS]
    span_ns = max(1, bag.end_ns - bag.start_ns)
    picture_period_ns = max(1, span_ns // PICTURES)
    next_ns = dict.fromkeys(cameras, 0)  # when the next picture of each is due
    for message in bag.messages():
        name, type_name = message.topic.name, message.topic.type_name
        since_start_ns = message.time_ns - bag.start_ns
        time_s = since_start_ns / NANOSECONDS_PER_SECOND
        if name in story.illegible or type_name in _NOT_PLOTTED:
            continue
        try:
            if type_name not in _IMAGES:
                _note(story, name, type_name, time_s, bag.deserialize(message))
            # Images are large: only those that are shown are decoded.
            elif name in cameras and since_start_ns >= next_ns[name]:
                next_ns[name] = (since_start_ns // picture_period_ns + 1) * picture_period_ns
                story.pictures.setdefault(name, []).append(Picture(time_s, type_name, bag.deserialize(message)))
        except BagError as error:
            story.illegible[name] = str(error)
    for topic, intervals in list(story.states.items()):
        if len({interval.state for interval in intervals}) > MAX_STATES:
            del story.states[topic]
            continue
        intervals[-1] = StateInterval(
            intervals[-1].state, intervals[-1].reason, intervals[-1].from_s, span_ns / NANOSECONDS_PER_SECOND
        )
    return story


def _cameras(bag: Bag) -> list[str]:
    """Return the image topics, without compressed ones of which the raw images are recorded too."""
    images = [topic.name for topic in bag.topics if topic.type_name in _IMAGES and topic.count]
    return [name for name in images if not (name.endswith(_COMPRESSED) and name.removesuffix(_COMPRESSED) in images)]


def _note(story: Story, topic: str, type_name: str, time_s: float, message: Any) -> None:
    if type_name == _DIAGNOSTICS:
        for status in message.status:
            story.diagnostics.setdefault(status.name, []).append((time_s, int(status.level), status.message))
    elif type_name == _LOG:
        if message.level >= WARNING and len(story.log) < MAX_LOG_LINES:
            story.log.append((time_s, int(message.level), message.name, message.msg))
    else:
        if type_name in _STATES:
            _note_state(story.states.setdefault(topic, []), time_s, message)
        if type_name in _TRACKED:
            pose = message.pose.pose if hasattr(message.pose, "pose") else message.pose
            point = pose.position
            story.tracks.setdefault(topic, []).append((time_s, point.x, point.y, point.z))
        story.series.setdefault(topic, Series()).add(time_s, message)


def _note_state(intervals: list[StateInterval], time_s: float, message: Any) -> None:
    state = str(getattr(message, "state", getattr(message, "data", "")))[:60]
    reason = str(getattr(message, "reason", ""))[:120]
    if intervals and intervals[-1].state == state:
        return
    if intervals:
        intervals[-1] = StateInterval(intervals[-1].state, intervals[-1].reason, intervals[-1].from_s, time_s)
    intervals.append(StateInterval(state, reason, time_s, time_s))
