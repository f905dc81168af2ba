# SPDX-License-Identifier: Apache-2.0
"""Parameters whose values are lines: entities, cameras and triggers of the bridge, and entities of the server.

    3:buoy
    front entity=0 xyz=0.3,0,0 rpy=0,0,0 f=1 targets=3,4 period=1 enabled=true
    near collision a=0 b=3 distance=0.5
    touch sweep a=0 b=3
    gate path entity=0 start=0,0,-1 end=5,0,-1 distance=0.5
    3:buoy pose=/buoy/pose twist=/buoy/twist render=red_buoy radius=0.15

All values are in ROS axes. All functions raise ValueError with a sentence about the line.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from geometry_msgs.msg import Point

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.motion.wxyz import Vector
from drone_bridge.ros.topics.topic_names import topic_token
from drone_bridge.simulator.topics.services import point_message, pose_message, wire_add_camera, wire_trigger
from drone_bridge.srv import AddCamera, AddTrigger
from drone_bridge.wire.printable import printable

_LARGEST_ID = 0xFFFFFFFF
ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class EntityLine:
    """Entity of the server, and its topics."""

    number: int
    name: str
    odom: str = ""
    imu: str = ""
    pose: str = ""
    twist: str = ""
    render: str = ""
    radius: float = 1.0  # m


def read_entities(lines: Iterable[str]) -> dict[int, str]:
    """Return the names of the bridge's entities by ID. Without a name, 3 is named entity_3."""
    entities: dict[int, str] = {}
    for line in filter(None, map(str.strip, lines)):
        entity, name = _numbered(line, line)
        if entity in entities:
            raise ValueError(f"{printable(line)!r} repeats an entity.")
        entities[entity] = name
    return entities


def read_entity_lines(lines: Iterable[str]) -> list[EntityLine]:
    """Return the server's entities."""
    plans = [_read_entity(line, *line.split()) for line in lines if line.strip()]
    numbers = [plan.number for plan in plans]
    if twice := {number for number in numbers if numbers.count(number) > 1}:
        raise ValueError(f"entities names {min(twice)} twice.")
    return plans


def published_topics(name: str) -> tuple[str, str]:
    """Return the topics on which a bridge publishes the pose and twist of an entity other than the vehicle."""
    topic = f"entities/{topic_token(name, 'entity')}"
    return f"{topic}/pose", f"{topic}/twist"


def read_cameras(lines: Iterable[str]) -> list[AddCamera.Request]:
    """Return the cameras in lines, as requests of the service add_camera."""
    return [_read_camera(line, *line.split()) for line in lines if line.strip()]


def read_triggers(lines: Iterable[str]) -> list[AddTrigger.Request]:
    """Return the triggers in lines, as requests of the service add_trigger."""
    return [_read_trigger(line, *line.split()) for line in lines if line.strip()]


def _numbered(line: str, text: str) -> tuple[int, str]:
    number, _, name = text.partition(":")
    return _read(line, "the ID", number.strip(), _whole), name.strip() or f"entity_{number}"


def _read_entity(line: str, first: str, *rest: str) -> EntityLine:
    readers: dict[str, Callable[[str], Any]] = dict.fromkeys(("pose", "twist", "odom", "render"), str)
    number, name = _numbered(line, first)
    values = _values(line, rest, {**readers, "radius": _radius})
    if values.keys() >= {"odom", "pose"}:
        raise ValueError(f"{printable(line)!r} has both odom and pose.")
    if not values.keys() & {"odom", "pose"}:
        pose, twist = published_topics(name)
        values = {"pose": pose, "twist": twist, **values}
    return EntityLine(number, name, **values)


def _read_camera(line: str, name: str, *rest: str) -> AddCamera.Request:
    readers = {"entity": _whole, "xyz": _vector, "rpy": _vector, "f": _number, "targets": _wholes, "period": _whole}
    values = _values(line, rest, {**readers, "enabled": _truth})
    rotation = quaternion_from_euler(*values.pop("rpy", (0.0, 0.0, 0.0)))
    pose = pose_message(values.pop("xyz", (0.0, 0.0, 0.0)), rotation)
    fields = {{"entity": "entity_id", "f": "focal_length"}.get(key, key): value for key, value in values.items()}
    return _checked(line, AddCamera.Request(name=name, pose=pose, **fields), wire_add_camera)


def _read_trigger(line: str, name: str, kind: str = "", *rest: str) -> AddTrigger.Request:
    if kind not in _TRIGGERS:
        raise ValueError(
            f"{printable(line)!r} is not a trigger: its name must be followed by collision, sweep or path."
        )
    number, readers, optional = _TRIGGERS[kind]
    values = _values(line, rest, {**readers, **optional}, needed=tuple(readers))
    names = {"a": "entity_a", "b": "entity_b", "entity": "entity_a"}
    fields = {"distance": -1.0, **{names.get(key, key): value for key, value in values.items()}}
    return _checked(line, AddTrigger.Request(name=name, type=number, **fields), wire_trigger)


def _values(
    line: str, words: Iterable[str], readers: Mapping[str, Callable[[str], Any]], needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Parse words such as key=value."""
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if key not in readers or not equals:
            raise ValueError(
                f"{printable(line)!r} has {printable(word)!r}; allowed: {', '.join(readers)}, each followed by =."
            )
        values[key] = _read(line, key, text, readers[key])
    if missing := [key for key in needed if key not in values]:
        raise ValueError(f"{printable(line)!r} lacks {' and '.join(missing)}.")
    return values


def _read(line: str, key: str, text: str, reader: Callable[[str], ItemT]) -> ItemT:
    try:
        return reader(text)
    except ValueError as error:
        raise ValueError(f"{printable(line)!r} has {printable(text)!r} for {key}, which must be {error}.") from error


# Parsers of values. Each raises ValueError with a description of allowed values.


def _whole(text: str) -> int:
    if not text.isdecimal() or int(text) > _LARGEST_ID:
        raise ValueError("a whole number from 0 on")
    return int(text)


def _wholes(text: str) -> tuple[int, ...]:
    return tuple(_whole(part) for part in text.split(",") if part)


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError("a finite number")
    return value


def _radius(text: str) -> float:
    if not 0.0 < _number(text) < 1e9:
        raise ValueError("a positive number of metres")
    return _number(text)


def _vector(text: str) -> Vector:
    parts = text.split(",")
    if len(parts) != 3:
        raise ValueError("three numbers with commas")
    x, y, z = map(_number, parts)
    return x, y, z


def _point(text: str) -> Point:
    return point_message(_vector(text))


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


def _checked(line: str, request: ItemT, convert: Callable[[ItemT], Any]) -> ItemT:
    """Return a request if it can be converted. Otherwise, the error names the line."""
    try:
        convert(request)
    except ValueError as error:
        raise ValueError(f"{error} In {printable(line)!r}.") from error
    return request


_PAIR, _DISTANCE = {"a": _whole, "b": _whole}, {"distance": _number}
#: Number of each kind of trigger, its needed values, and optional ones.
_TRIGGERS: dict[str, tuple[int, Mapping[str, Callable[[str], Any]], Mapping[str, Callable[[str], Any]]]] = {
    "collision": (AddTrigger.Request.COLLISION, _PAIR, _DISTANCE),
    "sweep": (AddTrigger.Request.SWEEP_COLLISION, _PAIR, {}),
    "path": (AddTrigger.Request.PATH, {"entity": _whole, "start": _point, "end": _point, **_DISTANCE}, {}),
}
