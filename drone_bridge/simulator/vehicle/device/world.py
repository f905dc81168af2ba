# SPDX-License-Identifier: Apache-2.0
"""World: the world of a simulator, shared by all clients: entities and objects of a scene, and items that observe them.

A Scene has the bodies: simulated ones, or vehicles in ROS. All else with an ID, such as a camera, trigger or stream, is
an Item. An item may belong to a client and end with it, is removed with the items that it depends on, and may send a
message after each step.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from drone_bridge.motion.vectors import added, dot, subtracted
from drone_bridge.motion.wxyz import Vector, WxyzQuaternion, conjugate, multiply, rotate
from drone_bridge.simulator.codec import (
    AddCamera,
    AddEntity,
    AttributeValue,
    CameraData,
    EntityData,
    Error,
    ItemType,
    PathEnded,
    PathFailed,
    PathStarted,
    Response,
    Spied,
    Triggered,
    Untriggered,
)

MAX_ITEMS = 1000  # of each type, except spies
MAX_SPIES = 32  # one per client: each is sent a message for each added or removed item

# Error codes that the specification does not define.
INVALID = 16  # invalid number
FULL = 17
UNSUPPORTED = 18

Key = tuple[ItemType, int]


def name_of(kind: ItemType) -> str:
    """Return the name of a type of items for sentences."""
    return kind.name.lower().replace("_", " ")


class RequestRefusedError(Exception):
    """Refused request."""

    def __init__(self, code: int, message: str) -> None:
        """`code` is the one specified for the request, or one of the above."""
        super().__init__(message)
        self.code = code

    @property
    def answer(self) -> Error:
        return Error(self.code, str(self))


class ItemOwner(Protocol):
    """Owner of streams, triggers and spies, which are removed when it disconnects."""

    def post(self, response: Response) -> None:
        """Send a message that answers no request."""


@dataclass(slots=True)
class Item:
    """Object that clients refer to by ID."""

    client: ItemOwner | None = None  # None: it outlives its client
    depends_on: frozenset[Key] = frozenset()  # removed with any of these
    request: Any = None  # that has added it, with normalized rotations

    @property
    def stepped_by(self) -> frozenset[int]:
        """Entities whose steps count as steps of this item, if entities step separately."""
        return frozenset(number for kind, number in self.depends_on if kind is ItemType.ENTITY)

    def after_step(self, number: int, world: World) -> Response | None:
        """Return the message for the client after a step, if any. `number` is the item's ID."""
        return None


def check_room(kind: ItemType, count: int) -> None:
    """Raise RequestRefusedError if there are already too many items of a type."""
    if count >= (MAX_SPIES if kind is ItemType.SPY else MAX_ITEMS):
        raise RequestRefusedError(FULL, f"There are already {count} items of type {name_of(kind)}, which is the limit.")


@dataclass(slots=True)
class Items:
    """Items other than entities and objects, which are in the scene. Each type has its own IDs."""

    _items: dict[ItemType, dict[int, Item]] = field(
        default_factory=lambda: {kind: {} for kind in ItemType if kind not in (ItemType.ENTITY, ItemType.OBJECT)}
    )
    _next: dict[ItemType, int] = field(default_factory=lambda: dict.fromkeys(ItemType, 0))

    def of(self, kind: ItemType) -> dict[int, Item]:
        """Return the items of a type, by ID."""
        return self._items[kind]

    def add(self, kind: ItemType, item: Item, number: int | None = None) -> int:
        """Add an item with the given free ID, or the next one. Return the ID. Raises RequestRefusedError."""
        check_room(kind, len(self._items[kind]))
        if number is None:
            number = self._next[kind]
        self._next[kind] = max(self._next[kind], number + 1)
        self._items[kind][number] = item
        return number

    def remove(self, key: Key) -> None:
        kind, number = key
        del self._items[kind][number]

    def dependents(self, key: Key) -> list[Key]:
        """Return the items that depend on this one, in order of dependency."""
        gone = {key: None}
        if key[0] in (ItemType.ENTITY, ItemType.CAMERA):  # no items depend on other types
            for kind, items in self._items.items():  # cameras, on which others depend, come first
                gone |= {(kind, number): None for number, item in items.items() if item.depends_on & gone.keys()}
        return list(gone)[1:]

    def of_client(self, client: ItemOwner) -> list[Key]:
        return [
            (kind, number)
            for kind, items in self._items.items()
            for number, item in items.items()
            if item.client is client
        ]


# Interface of a scene.


class Scene(Protocol):
    """Entities and objects by ID, in the units and axes of the wire: SI, north-east-down, quaternions w first.

    IDs passed in must exist. A refusal raises RequestRefusedError with the error to answer, or ValueError with a
    sentence if the request determines the code.
    """

    #: Entities, oldest first. `radius`: of the sphere that represents one for cameras and triggers, m; `x_before`:
    #: position before the last step, m; `btom`: rotation from the principal axes to the model frame.
    entities: dict[int, Any]
    #: Forces on all entities.
    objects: dict[int, Any]

    # Entities.

    def is_current(self, entity: int) -> bool:
        """Return whether the entity's state is fresh. Streams and triggers skip stale ones."""

    def add_entity(self, request: AddEntity) -> int:
        """Add an entity without its extended attributes. Return its ID. Raises RequestRefusedError and ValueError."""

    def remove_entity(self, entity: int) -> None:
        """Remove an entity. Raises RequestRefusedError."""

    def position(self, entity: int) -> Vector:
        """Return the position of an entity, m."""

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return an attribute as in EGET and streams: q of the body frame, w in the model frame."""

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        """Set an attribute as in ESET: q of the model frame. Raises RequestRefusedError and ValueError."""

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        """Return the attitude of the entity's model frame in the world."""

    # Objects. By default, a scene has none.

    @property
    def object_classes(self) -> Sequence[str]:
        """Classes of objects that clients can add."""
        return ()

    def add_object(self, class_name: str, data: bytes) -> int:
        """Add an object of an existing class. Return its ID. Raises RequestRefusedError."""
        raise RequestRefusedError(UNSUPPORTED, "Objects are not supported.")

    def remove_object(self, number: int) -> None:
        """Remove an object. Raises RequestRefusedError."""
        raise RequestRefusedError(UNSUPPORTED, "Objects are not supported.")


# Extended attributes.


MAX_BYTES = 8 << 20  # of all entities together, so that a stream's message for one entity is not too long
_OVERHEAD_BYTES = 64  # per attribute, besides its name and data


class ExtendedAttributes:
    """Extended attributes of all entities."""

    def __init__(self) -> None:
        self._attributes: dict[int, dict[str, bytes]] = {}  # by entity
        self._bytes = 0

    def add_entity(self, entity: int, attributes: Mapping[str, bytes]) -> None:
        """Add an entity. Raises RequestRefusedError."""
        self._take_room(_size(attributes))
        self._attributes[entity] = dict(attributes)

    def remove_entity(self, entity: int) -> None:
        self._bytes -= _size(self._attributes.pop(entity))

    def of(self, entity: int) -> Mapping[str, bytes]:
        return self._attributes[entity]

    def set(self, entity: int, key: str, data: bytes) -> None:
        """Set an attribute. Raises RequestRefusedError."""
        attributes = self._attributes[entity]
        self._take_room(_size({key: data}) - _size({key: attributes[key]} if key in attributes else {}))
        attributes[key] = data

    def _take_room(self, size: int) -> None:
        """Reserve bytes. Raises RequestRefusedError if the limit is exceeded."""
        if size > 0 and self._bytes + size > MAX_BYTES:
            raise RequestRefusedError(FULL, f"Extended attributes use {self._bytes} of at most {MAX_BYTES} bytes.")
        self._bytes += size


def _size(attributes: Mapping[str, bytes]) -> int:
    return sum(
        len(key.encode(errors="surrogateescape")) + len(data) + _OVERHEAD_BYTES for key, data in attributes.items()
    )


# Cameras.


_LARGEST_FLOAT32 = 3.4028234663852886e38


#: Position of an entity in the image: x to the right, y down, radius, all in units of the focal length. The radius is 0
#: if the entity is not in front of the camera. Depth: m along the camera's axis, negative behind it.
View = tuple[float, float, float, float]


def view(camera: AddCamera, entity_x: Vector, entity_q: WxyzQuaternion, target: Vector, radius: float) -> View:
    """Return a sphere's position in the image, given the pose of the model of the camera's entity.

    The camera is a pinhole that looks along its x axis, with y to the right and z down.
    """
    towards = subtracted(target, added(entity_x, rotate(entity_q, camera.position)))
    depth, right, down = rotate(conjugate(multiply(entity_q, camera.orientation)), towards)
    if depth == 0:
        return 0.0, 0.0, 0.0, 0.0
    scale = camera.focal_length / depth
    x, y, size = right * scale, down * scale, radius * scale if depth > 0 else 0.0
    return _float32(x), _float32(y), _float32(size), _float32(depth)


def _float32(value: float) -> float:
    """Return the nearest finite float32."""
    return max(-_LARGEST_FLOAT32, min(_LARGEST_FLOAT32, value))


# Streams.


@dataclass(slots=True)
class Stream(Item):
    """Base class for streams."""

    _steps: int = 0  # since the last message

    def after_step(self, number: int, world: World) -> Response | None:
        self._steps += 1
        if self._steps != self.request.period:
            return None
        self._steps = 0
        return self.message(number, world)

    def message(self, number: int, world: World) -> Response:
        raise NotImplementedError


class EntityStream(Stream):
    """Stream of an entity's attributes."""

    def message(self, number: int, world: World) -> EntityData:
        entity, attributes = self.request.id, self.request.attributes
        return EntityData(number, attributes, tuple([world.scene.attribute(entity, each) for each in attributes]))


@dataclass(slots=True)
class CameraStream(Stream):
    """Stream of an entity's position in the image. Steps do not count while the camera is disabled."""

    on: int = 0  # the camera's entity

    @property
    def stepped_by(self) -> frozenset[int]:
        """See Item. Steps of the target do not count."""
        return frozenset({self.on})

    def after_step(self, number: int, world: World) -> Response | None:
        if not world.camera(self.request.id).enabled or not world.scene.is_current(self.request.target):
            return None
        return Stream.after_step(self, number, world)

    def message(self, number: int, world: World) -> CameraData:
        return CameraData(number, *world.view(self.request.id, self.request.target))


# Triggers: checked after each step, and reported when they begin or end.


TriggerEvent = Triggered | Untriggered | PathStarted | PathFailed | PathEnded


@dataclass(slots=True)
class Collision(Item):
    """Collision that compares the distance after each step, so that fast entities may be missed."""

    distance: float = 0.0  # m
    is_active: bool = False

    def after_step(self, number: int, world: World) -> TriggerEvent | None:
        if not (world.scene.is_current(self.request.a) and world.scene.is_current(self.request.b)):
            return None
        was_active, self.is_active = self.is_active, self.is_met(world)
        if self.is_active == was_active:
            return None
        return Triggered(number) if self.is_active else Untriggered(number)

    def is_met(self, world: World) -> bool:
        """Return whether the two entities collide."""
        return math.dist(world.scene.position(self.request.a), world.scene.position(self.request.b)) <= self.distance


class SweepCollision(Collision):
    """Collision that compares the smallest distance during a step, along straight lines."""

    def is_met(self, world: World) -> bool:
        scene, a, b = world.scene, self.request.a, self.request.b
        first = subtracted(scene.entities[b].x_before, scene.entities[a].x_before)
        last = subtracted(scene.position(b), scene.position(a))
        return _distance_to_segment((0.0, 0.0, 0.0), first, last) <= self.distance


@dataclass(slots=True)
class Path(Item):
    """Line that an entity should follow from start to end."""

    is_active: bool = False

    def after_step(self, number: int, world: World) -> TriggerEvent | None:
        position, path = world.scene.position(self.request.entity), self.request
        if not self.is_active:
            self.is_active = math.dist(position, path.start) <= path.distance
            return PathStarted(number) if self.is_active else None
        if math.dist(position, path.end) <= path.distance:
            self.is_active = False
            return PathEnded(number)
        if _distance_to_line(position, path.start, path.end) > path.distance:
            self.is_active = False
            return PathFailed(number)
        return None


def _along(point: Vector, start: Vector, end: Vector) -> float:
    """Return the foot of the perpendicular on the line: 0 at its start, 1 at its end."""
    direction = subtracted(end, start)
    length = math.hypot(*direction)
    if length == 0:
        return 0.0
    x, y, z = (component / length for component in direction)  # squares of lengths could overflow
    return dot(subtracted(point, start), (x, y, z)) / length


def _foot(start: Vector, end: Vector, part: float) -> Vector:
    x, y, z = (s + part * (e - s) for s, e in zip(start, end, strict=True))
    return x, y, z


def _distance_to_line(point: Vector, start: Vector, end: Vector) -> float:
    return math.dist(point, _foot(start, end, _along(point, start, end)))


def _distance_to_segment(point: Vector, start: Vector, end: Vector) -> float:
    return math.dist(point, _foot(start, end, min(max(_along(point, start, end), 0.0), 1.0)))


# The world.


# Items in the CUAUV server's order of notification.
_NOTIFIED = (ItemType.CAMERA_STREAM, ItemType.ENTITY_STREAM, ItemType.TRIGGER)


class World:
    """World shared by all clients."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.items = Items()
        self.extended_attributes = ExtendedAttributes()

    # Time.

    def notify_step(self, entities: Collection[int] | None = None) -> None:
        """Send clients their messages after a step. `entities`: those that have moved. None: all."""
        for kind in _NOTIFIED:
            for number, item in self.items.of(kind).items():
                if entities is not None and item.stepped_by.isdisjoint(entities):
                    continue
                message = item.after_step(number, self)
                if message and item.client:
                    item.client.post(message)

    # Adding and removing.

    def add_entity(self, request: AddEntity) -> int:
        """Add an entity. Return its ID. Raises RequestRefusedError and ValueError."""
        check_room(ItemType.ENTITY, len(self.scene.entities))
        extended = {attribute.key: attribute.data for attribute in request.attributes}
        number = self.scene.add_entity(request)
        try:
            self.entity_added(number, extended)
        except RequestRefusedError:  # no room for its attributes
            self.scene.remove_entity(number)
            raise
        return number

    def entity_added(self, entity: int, extended: Mapping[str, bytes]) -> None:
        """Register an entity that was added to the scene. Raises RequestRefusedError."""
        self.extended_attributes.add_entity(entity, extended)
        self._notify_spies(True, (ItemType.ENTITY, entity))

    def add_object(self, class_name: str, data: bytes) -> int:
        """Add an object. Return its ID. Raises RequestRefusedError."""
        check_room(ItemType.OBJECT, len(self.scene.objects))
        number = self.scene.add_object(class_name, data)
        self._notify_spies(True, (ItemType.OBJECT, number))
        return number

    def add(self, kind: ItemType, item: Item, number: int | None = None) -> int:
        """Add an item of another type, with the given ID or the next one. Return the ID. Raises RequestRefusedError.

        An existing item with that ID is removed first, with its dependents.
        """
        if number is not None and self.has(kind, number):
            self.remove((kind, number))
        number = self.items.add(kind, item, number)
        self._notify_spies(True, (kind, number))
        return number

    def has(self, kind: ItemType, number: int) -> bool:
        if kind is ItemType.ENTITY:
            return number in self.scene.entities
        if kind is ItemType.OBJECT:
            return number in self.scene.objects
        return number in self.items.of(kind)

    def remove(self, key: Key) -> None:
        """Remove an existing item, after its dependents. Raises RequestRefusedError."""
        kind, number = key
        for other in reversed(self.items.dependents(key)):
            self.items.remove(other)
            self._notify_spies(False, other)
        if kind is ItemType.ENTITY:
            self.scene.remove_entity(number)
            self.extended_attributes.remove_entity(number)
        elif kind is ItemType.OBJECT:
            self.scene.remove_object(number)
        else:
            self.items.remove(key)
        self._notify_spies(False, key)

    def entity_removed(self, entity: int) -> None:
        """Remove an entity that the scene may have already lost, and its dependents."""
        if entity in self.scene.entities:
            self.remove((ItemType.ENTITY, entity))

    def leave(self, client: ItemOwner) -> None:
        """Remove the items of a client."""
        keys = self.items.of_client(client)
        for key in sorted(keys, key=lambda key: key[0] is not ItemType.SPY):  # spies first: not notified of the rest
            self.remove(key)

    def _notify_spies(self, is_added: bool, key: Key) -> None:
        kind, number = key
        for spy, item in self.items.of(ItemType.SPY).items():
            if item.client and key != (ItemType.SPY, spy):
                item.client.post(Spied(is_added, kind, number, 1 if number < 256 else 4))

    # Cameras.

    def camera(self, number: int) -> AddCamera:
        """Return an existing camera."""
        camera: AddCamera = self.items.of(ItemType.CAMERA)[number].request
        return camera

    def view(self, camera: int, target: int) -> View:
        """Return an entity's position in the image."""
        scene, seeing = self.scene, self.camera(camera)
        pose = scene.position(seeing.entity), scene.model_attitude(seeing.entity)
        return view(seeing, *pose, scene.position(target), scene.entities[target].radius)


# Running and pausing the world.


@dataclass(frozen=True, slots=True)
class Timing:
    """Speed of the world, as in CONFIG."""

    frequency: float = 100.0  # steps per second of the wall clock
    speed: float = 1.0  # simulated seconds per second of the wall clock
    is_non_real_time: bool = False  # steps run as fast as possible

    @property
    def step_s(self) -> float:
        """Simulated time per step, s."""
        return self.speed / self.frequency


class RunControl:
    """Whether the world runs, for a number of steps or forever. It starts paused."""

    def __init__(self) -> None:
        #: Callback for the start of a run.
        self.on_run: Callable[[], None] = lambda: None
        #: Remaining steps until it pauses; 0: unlimited.
        self.steps_left = 0
        #: Whether the world runs.
        self.is_running = False

    def run(self, steps: int) -> None:
        """Run for `steps` steps; 0: unlimited. Raises RequestRefusedError while running."""
        if self.is_running:
            raise RequestRefusedError(0, "The simulator is not paused.")
        self.steps_left, self.is_running = steps, True
        self.on_run()

    def pause(self) -> None:
        """Pause. Raises RequestRefusedError while paused."""
        if not self.is_running:
            raise RequestRefusedError(0, "The simulator is not running.")
        self.is_running = False

    def follow(self, *, is_running: bool) -> None:
        """Follow the state of another world, which counts its own steps."""
        self.steps_left, self.is_running = 0, is_running

    def count_step(self) -> bool:
        """Count a step. Return whether it was the last one, which pauses the world."""
        if self.steps_left != 1:
            self.steps_left = max(0, self.steps_left - 1)
            return False
        self.steps_left, self.is_running = 0, False
        return True
