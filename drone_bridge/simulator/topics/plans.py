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
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from drone_bridge.motion.quaternions import IDENTITY, Quaternion, quaternion_from_euler
from drone_bridge.motion.wxyz import Vector
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.topics import Axes
from drone_bridge.wire.layouts import printable

_LARGEST_ID = 0xFFFFFFFF
PlanT = TypeVar("PlanT")


@dataclass(frozen=True, slots=True)
class CameraPlan:
    """A camera on an entity, and its targets. Raises ValueError."""

    name: str
    entity: int
    position: Vector = (0.0, 0.0, 0.0)  # m, in the entity's frame
    rotation: Quaternion = IDENTITY  # in the entity's frame; it looks along its x axis
    focal_length: float = 1.0
    enabled: bool = True
    targets: tuple[int, ...] = ()
    period: int = 1  # steps

    @property
    def frame(self) -> str:
        """Its tf frame, without prefix."""
        return topic_token(self.name, "camera")

    def __post_init__(self) -> None:
        if not 0.0 < self.focal_length < math.inf:
            raise ValueError(f"The focal length is {self.focal_length:g}, and has to be finite and more than 0.")


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
    def path(  # noqa: PLR0917 # geometry
        cls, name: str, entity: int, start: Vector, end: Vector, distance: float, axes: Axes
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
    """Return the names of entities, by ID, of lines such as 3:buoy; just 3 gets the name entity_3."""
    entities: dict[int, str] = {}
    for line in filter(None, map(str.strip, lines)):
        number, _, name = line.partition(":")
        entity = _whole(line, "the ID", number)
        if entity in entities:
            raise ValueError(f"{printable(line)!r} names an entity a second time.")
        entities[entity] = name.strip() or f"entity_{entity}"
    return entities


def read_entity_plans(lines: Iterable[str]) -> list[EntityPlan]:
    """Return the server's entities."""
    plans = [_read_entity(line) for line in lines if line.strip()]
    numbers = [plan.number for plan in plans]
    if twice := {number for number in numbers if numbers.count(number) > 1}:
        raise ValueError(f"entities names {min(twice)} twice.")
    return plans


def _read_entity(line: str) -> EntityPlan:
    first, *rest = line.split()
    number, _, name = first.partition(":")
    plan = EntityPlan(_whole(line, "the ID", number), name or f"entity_{number}")
    words: dict[str, Any] = {**_words(line, rest, ("pose", "twist", "odom", "tf", "render", "radius"))}
    if sum(key in words for key in ("odom", "pose", "tf")) > 1:
        raise ValueError(f"{printable(line)!r} has more than one of odom, pose and tf.")
    if "radius" in words:
        radius = words["radius"] = _number(line, "radius", words["radius"])
        if not 0.0 < radius < 1e9:
            raise ValueError(f"{printable(line)!r} has a radius that is not a positive number of metres.")
    if not words.keys() & {"odom", "pose", "tf"}:
        topic = f"entities/{topic_token(plan.name, 'entity')}"
        words["pose"] = f"{topic}/pose"
        words.setdefault("twist", f"{topic}/twist")
    return replace(plan, **words)


def read_cameras(lines: Iterable[str]) -> list[CameraPlan]:
    """Return the cameras that lines describe."""
    return [_read_camera(line) for line in lines if line.strip()]


def read_triggers(lines: Iterable[str], axes: Axes) -> list[TriggerPlan]:
    """Return the triggers that lines describe."""
    return [_read_trigger(line, axes) for line in lines if line.strip()]


def _read_camera(line: str) -> CameraPlan:
    name, _, rest = line.strip().partition(" ")
    words = _words(line, rest.split(), ("entity", "xyz", "rpy", "f", "targets", "period", "enabled"))
    targets = filter(None, words.get("targets", "").split(","))
    return _of(
        line,
        lambda: CameraPlan(
            name,
            _whole(line, "entity", words.get("entity", "0")),
            _vector(line, "xyz", words.get("xyz", "0,0,0")),
            quaternion_from_euler(*_vector(line, "rpy", words.get("rpy", "0,0,0"))),
            _number(line, "f", words.get("f", "1")),
            _truth(line, words.get("enabled", "true")),
            tuple(_whole(line, "a target", target) for target in targets),
            _whole(line, "period", words.get("period", "1")),
        ),
    )


def _read_trigger(line: str, axes: Axes) -> TriggerPlan:
    name, kind, *rest = [*line.split(), "", ""][: max(2, len(line.split()))]
    if kind == "collision":
        words = _words(line, rest, ("a", "b", "distance"), needed=("a", "b"))
        a, b = _whole(line, "a", words["a"]), _whole(line, "b", words["b"])
        return _of(
            line, lambda: TriggerPlan.collision(name, a, b, _number(line, "distance", words.get("distance", "-1")))
        )
    if kind == "sweep":
        words = _words(line, rest, ("a", "b"), needed=("a", "b"))
        return TriggerPlan(
            name, sim.SweepCollisionTrigger(_whole(line, "a", words["a"]), _whole(line, "b", words["b"]))
        )
    if kind == "path":
        needed = ("entity", "start", "end", "distance")
        words = _words(line, rest, needed, needed)
        entity, distance = _whole(line, "entity", words["entity"]), _number(line, "distance", words["distance"])
        start, end = _vector(line, "start", words["start"]), _vector(line, "end", words["end"])
        return _of(line, lambda: TriggerPlan.path(name, entity, start, end, distance, axes))
    raise ValueError(f"{printable(line)!r} is not a trigger: its name has to be followed by collision, sweep or path.")


def _words(line: str, words: Iterable[str], known: tuple[str, ...], needed: tuple[str, ...] = ()) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in known or not equals:
            raise ValueError(
                f"{printable(line)!r} has {printable(word)!r}; allowed are {', '.join(known)}, each followed by =."
            )
        values[key] = value
    if missing := [key for key in needed if key not in values]:
        raise ValueError(f"{printable(line)!r} lacks {' and '.join(missing)}.")
    return values


def _whole(line: str, what: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = -1
    if not 0 <= value <= _LARGEST_ID:
        raise ValueError(
            f"{printable(line)!r} has {printable(text)!r} for {what}, which has to be a whole number from 0 on."
        )
    return value


def _number(line: str, what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{printable(line)!r} has {printable(text)!r} for {what}, which has to be a finite number.")
    return value


def _vector(line: str, what: str, text: str) -> Vector:
    parts = text.split(",")
    if len(parts) != 3:
        raise ValueError(
            f"{printable(line)!r} has {printable(text)!r} for {what}, which has to be three numbers with commas."
        )
    x, y, z = (_number(line, what, part) for part in parts)
    return x, y, z


def _truth(line: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError(f"{printable(line)!r} has {printable(text)!r} for enabled, which has to be true or false.")
    return text == "true"


def _of(line: str, make: Callable[[], PlanT]) -> PlanT:
    """Create a plan, naming the line in errors."""
    try:
        return make()
    except ValueError as error:
        raise ValueError(f"{error} This is about {printable(line)!r}.") from error
