# SPDX-License-Identifier: Apache-2.0
"""Parameters whose values are lines: entities, cameras and triggers of the bridge, and entities of the server.

    3:buoy
    front entity=0 xyz=0.3,0,0 rpy=0,0,0 f=1 targets=3,4 period=1 enabled=true
    near collision a=0 b=3 distance=0.5
    touch sweep a=0 b=3
    gate path entity=0 start=0,0,-1 end=5,0,-1 distance=0.5
    3:buoy pose=/buoy/pose twist=/buoy/twist render=red_buoy radius=0.15

All of it is in ROS's axes. Everything raises ValueError with a sentence about the line.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from drone_bridge.motion.quaternions import Quaternion, quaternion_from_euler
from drone_bridge.motion.wxyz import Vector
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.topics import axes
from drone_bridge.wire.printable import printable

_LARGEST_ID = 0xFFFFFFFF
PlanT = TypeVar("PlanT")


def mounted_camera(  # geometry
    entity: int, position: Vector, rotation: Quaternion, focal_length: float, enabled: bool
) -> sim.AddCamera:
    """Return a camera at a position, m, and with a rotation in an entity's frame, along whose x axis it looks then."""
    focal_length = checked_focal_length(focal_length)
    return sim.AddCamera(entity, axes.wire_rotation(rotation), axes.body(*position), focal_length, enabled)


def checked_focal_length(focal_length: float) -> float:
    """Return a focal length that can be."""
    if not 0.0 < focal_length < math.inf:
        raise ValueError(f"The focal length is {focal_length:g}, and has to be finite and more than 0.")
    return focal_length


class CameraPlan(NamedTuple):
    """A camera, its name and its targets."""

    name: str
    camera: sim.AddCamera
    targets: tuple[int, ...] = ()
    period: int = 1  # steps


@dataclass(frozen=True, slots=True)
class TriggerPlan:
    """A trigger and its name."""

    name: str
    trigger: sim.Trigger

    @classmethod
    def collision(cls, name: str, a: int, b: int, distance: float) -> "TriggerPlan":
        """Two entities come closer than a distance, m; negative: than their radii. Raises ValueError."""
        if not math.isfinite(distance):
            raise ValueError(f"The distance is {distance}, and has to be a finite number.")
        return cls(name, sim.CollisionTrigger(a, b, distance))

    @classmethod
    def path(  # geometry
        cls, name: str, entity: int, start: Vector, end: Vector, distance: float
    ) -> "TriggerPlan":
        """An entity goes from start to end, m in the world, without leaving the line by a distance, m."""
        if not 0.0 < distance < math.inf:
            raise ValueError(f"The distance is {distance:g}, and has to be finite and more than 0.")
        return cls(name, sim.PathTrigger(entity, axes.world(*start), axes.world(*end), distance))


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """An entity of the server, and its topics or tf frame."""

    number: int
    name: str
    odom: str = ""
    pose: str = ""
    twist: str = ""
    tf: str = ""  # the frame, without prefix
    render: str = ""
    radius: float = 1.0  # m


def read_entities(lines: Iterable[str]) -> dict[int, str]:
    """Return the names of the bridge's entities, by ID; just 3 gets the name entity_3."""
    entities: dict[int, str] = {}
    for line in filter(None, map(str.strip, lines)):
        entity, name = _numbered(line, line)
        if entity in entities:
            raise ValueError(f"{printable(line)!r} names an entity a second time.")
        entities[entity] = name
    return entities


def read_entity_plans(lines: Iterable[str]) -> list[EntityPlan]:
    """Return the server's entities."""
    plans = [_read_entity(line, *line.split()) for line in lines if line.strip()]
    numbers = [plan.number for plan in plans]
    if twice := {number for number in numbers if numbers.count(number) > 1}:
        raise ValueError(f"entities names {min(twice)} twice.")
    return plans


def read_cameras(lines: Iterable[str]) -> list[CameraPlan]:
    """Return the cameras that lines describe."""
    return [_read_camera(line, *line.split()) for line in lines if line.strip()]


def read_triggers(lines: Iterable[str]) -> list[TriggerPlan]:
    """Return the triggers that lines describe."""
    return [_read_trigger(line, *line.split()) for line in lines if line.strip()]


def _numbered(line: str, text: str) -> tuple[int, str]:
    number, _, name = text.partition(":")
    return _read(line, "the ID", number.strip(), _whole), name.strip() or f"entity_{number}"


def _read_entity(line: str, first: str, *rest: str) -> EntityPlan:
    readers: dict[str, Callable[[str], Any]] = dict.fromkeys(("pose", "twist", "odom", "tf", "render"), str)
    number, name = _numbered(line, first)
    values = _values(line, rest, {**readers, "radius": _radius})
    if sum(key in values for key in ("odom", "pose", "tf")) > 1:
        raise ValueError(f"{printable(line)!r} has more than one of odom, pose and tf.")
    if not values.keys() & {"odom", "pose", "tf"}:
        topic = f"entities/{topic_token(name, 'entity')}"
        values = {"pose": f"{topic}/pose", "twist": f"{topic}/twist", **values}
    return EntityPlan(number, name, **values)


def _read_camera(line: str, name: str, *rest: str) -> CameraPlan:
    readers = {"entity": _whole, "xyz": _vector, "rpy": _vector, "f": _number, "targets": _wholes, "period": _whole}
    values = _values(line, rest, {**readers, "enabled": _truth})
    camera = _naming(
        line,
        lambda: mounted_camera(
            values.get("entity", 0),
            values.get("xyz", (0.0, 0.0, 0.0)),
            quaternion_from_euler(*values.get("rpy", (0.0, 0.0, 0.0))),
            values.get("f", 1.0),
            values.get("enabled", True),
        ),
    )
    return CameraPlan(name, camera, values.get("targets", ()), values.get("period", 1))


def _read_trigger(line: str, name: str, kind: str = "", *rest: str) -> TriggerPlan:
    pair: dict[str, Callable[[str], Any]] = {"a": _whole, "b": _whole}
    if kind == "collision":
        values = _values(line, rest, {**pair, "distance": _number}, needed=("a", "b"))
        return TriggerPlan.collision(name, values["a"], values["b"], values.get("distance", -1.0))
    if kind == "sweep":
        return TriggerPlan(name, sim.SweepCollisionTrigger(**_values(line, rest, pair, needed=("a", "b"))))
    if kind == "path":
        readers = {"entity": _whole, "start": _vector, "end": _vector, "distance": _number}
        values = _values(line, rest, readers, needed=tuple(readers))
        return _naming(line, lambda: TriggerPlan.path(name, **values))
    raise ValueError(f"{printable(line)!r} is not a trigger: its name has to be followed by collision, sweep or path.")


def _values(
    line: str, words: Iterable[str], readers: Mapping[str, Callable[[str], Any]], needed: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return what words such as key=value say."""
    values: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if key not in readers or not equals:
            raise ValueError(
                f"{printable(line)!r} has {printable(word)!r}; allowed are {', '.join(readers)}, each followed by =."
            )
        values[key] = _read(line, key, text, readers[key])
    if missing := [key for key in needed if key not in values]:
        raise ValueError(f"{printable(line)!r} lacks {' and '.join(missing)}.")
    return values


def _read(line: str, key: str, text: str, reader: Callable[[str], PlanT]) -> PlanT:
    try:
        return reader(text)
    except ValueError as error:
        raise ValueError(f"{printable(line)!r} has {printable(text)!r} for {key}, which has to be {error}.") from error


# What reads a value. Raises ValueError that says what it has to be.


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


def _truth(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


def _naming(line: str, make: Callable[[], PlanT]) -> PlanT:
    """Create a plan, naming the line in errors."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{error} This is about {printable(line)!r}.") from error
