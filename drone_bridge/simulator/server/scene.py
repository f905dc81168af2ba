# SPDX-License-Identifier: Apache-2.0
"""The scene of a simulator made from topics; an entity's state is unknown while its topics are silent."""

from collections.abc import Callable
from dataclasses import dataclass

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion
from drone_bridge.simulator.codec import AddEntity, Attribute, AttributeValue
from drone_bridge.simulator.device.requests import NO_ENTITY
from drone_bridge.simulator.device.world import RefusedError
from drone_bridge.simulator.topics import Axes, EntityState, wire_value

#: Of an entity that is listed, but of which nothing is heard.
UNKNOWN_STATE = "The state of this entity is not known."
#: Attributes that cmd_vel sets.
STEERED_ATTRIBUTES = (Attribute.VELOCITY, Attribute.ANGULAR_VELOCITY)

Steer = Callable[[int, Vector], None]


@dataclass(slots=True)
class MirroredEntity:
    """One entity; its state is None until a message arrives."""

    radius: float = 1.0  # m
    corporeal: bool = True
    has_source: bool = False  # it is subscribed to
    is_configured: bool = False  # by our own parameters; the others are known from a bridge
    state: EntityState | None = None
    previous_position: Vector = (0.0, 0.0, 0.0)  # m, on the wire
    updated_s: float = 0.0


class MirroredScene:
    """A Scene whose states come from topics. For the link's thread."""

    object_classes: tuple[str, ...] = ()
    objects: tuple[int, ...] = ()

    def __init__(self, axes: Axes, vehicle: int, now_s: Callable[[], float], timeout_s: Callable[[], float]) -> None:
        """`now_s`: a clock that stops while the world is paused; `timeout_s`: how long a state stays current."""
        self._axes = axes
        self._vehicle = vehicle
        self._clock = now_s
        self._now_s = now_s()
        self._timeout_s = timeout_s
        self._entities: dict[int, MirroredEntity] = {}
        #: Called with v or w of the vehicle. Raises RefusedError.
        self.steer: Steer = lambda attribute, value: None

    def update_time(self) -> None:
        """Read the clock, so that no state expires in the middle of a step or a request."""
        self._now_s = self._clock()

    def add(self, entity: int, mirrored: MirroredEntity) -> None:
        self._entities[entity] = mirrored

    def forget(self, entity: int) -> None:
        self._entities.pop(entity, None)

    def has_source(self, entity: int) -> bool:
        """Return whether the entity has topics."""
        return entity in self._entities and self._entities[entity].has_source

    def is_silent(self, entity: int) -> bool:
        """Return whether the entity has topics, and nothing is heard on them."""
        return self.has_source(entity) and not self.is_current(entity)

    def is_configured(self, entity: int) -> bool:
        """Return whether the entity is there with or without a bridge."""
        return entity in self._entities and self._entities[entity].is_configured

    def expect_source(self, entity: int) -> None:
        """Note that an existing entity has topics."""
        self._entities[entity].has_source = True

    def update(self, entity: int, state: EntityState) -> None:
        """Set the state of an entity, if it exists."""
        mirrored = self._entities.get(entity)
        if mirrored is None:
            return
        mirrored.previous_position = self._axes.world(*(mirrored.state or state).position)
        mirrored.state, mirrored.updated_s = state, self._now_s

    def state(self, entity: int) -> EntityState | None:
        """Return the state of an entity, None if it is unknown or outdated."""
        return self._entities[entity].state if self.is_current(entity) else None

    # Scene.

    @property
    def entities(self) -> list[int]:
        return list(self._entities)

    def has_entity(self, entity: int) -> bool:
        return entity in self._entities

    def is_current(self, entity: int) -> bool:
        mirrored = self._entities.get(entity)
        if mirrored is None or mirrored.state is None:
            return False
        return self._now_s - mirrored.updated_s <= self._timeout_s()

    def add_entity(self, request: AddEntity) -> int:
        raise RefusedError(0, "Entities can't be added here.")

    def remove_entity(self, entity: int) -> None:
        """See Scene. The caller checks whether it may be removed."""
        self.forget(entity)

    def position(self, entity: int) -> Vector:
        return self._axes.world(*self._known(entity).position)

    def previous_position(self, entity: int) -> Vector:
        return self._entities[entity].previous_position

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        return wire_value(self._known(entity), self._entities[entity].corporeal, attribute, self._axes)

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        """See Scene. Only v and w of the vehicle can be set."""
        if entity != self._vehicle or attribute not in STEERED_ATTRIBUTES:
            raise RefusedError(1, f"{Attribute(attribute).name.capitalize()} of entity {entity} can't be set here.")
        assert isinstance(value, tuple)
        x, y, z = value
        self.steer(attribute, (x, y, z))

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        return self._axes.wire_orientation(self._known(entity).orientation)

    def body_to_model(self, entity: int) -> WxyzQuaternion:
        """See Scene. ROS knows of models only."""
        return IDENTITY

    def radius(self, entity: int) -> float:
        return self._entities[entity].radius

    def _known(self, entity: int) -> EntityState:
        if (state := self.state(entity)) is None:
            raise RefusedError(0, UNKNOWN_STATE if self.is_configured(entity) else NO_ENTITY)
        return state

    def has_object(self, number: int) -> bool:
        return False

    def objects_of(self, entity: int) -> tuple[int, ...]:
        return ()

    def add_object(self, class_name: str, data: bytes) -> int:
        raise NotImplementedError("There are no classes of objects.")

    def remove_object(self, number: int) -> None:
        raise NotImplementedError("There are no objects.")

    def object_data(self, number: int, attribute: int) -> bytes:
        raise NotImplementedError("There are no objects.")

    def set_object(self, number: int, attribute: int, data: bytes) -> None:
        raise NotImplementedError("There are no objects.")
