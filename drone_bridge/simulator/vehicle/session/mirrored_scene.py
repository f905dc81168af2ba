# SPDX-License-Identifier: Apache-2.0
"""MirroredScene: a scene from topics. An entity's state is unknown while its topics are silent.

All values are in the wire's units and axes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion
from drone_bridge.simulator.codec import AddEntity, Attribute, AttributeValue
from drone_bridge.simulator.vehicle.device.world import RequestRefusedError, Scene

#: Error for a listed entity without a state.
UNKNOWN_STATE = "The state of this entity is unknown."

#: Values of x, v, a, q and w, in the order of their attributes' numbers.
State = tuple[AttributeValue, ...]


class ConfiguredEntity(NamedTuple):
    """Entity that exists from the start, and has topics."""

    number: int
    radius: float  # m
    render: str = ""
    """Extended attribute of this name, by which visualizers choose a model. Empty: none."""


@dataclass(slots=True)
class MirroredEntity:
    """One entity. Its state is None until a message arrives."""

    radius: float = 1.0  # m
    corporeal: bool = True
    has_source: bool = False  # its topics are subscribed
    is_configured: bool = False  # from our own parameters; others are known from a bridge
    state: State | None = None
    x_before: Vector = (0.0, 0.0, 0.0)  # m
    btom: WxyzQuaternion = IDENTITY  # ROS has only models
    updated_s: float = 0.0


class MirroredScene(Scene):
    """Scene whose states come from topics, without objects."""

    def __init__(self, timeout_s: Callable[[], float]) -> None:
        """`timeout_s` returns the age at which a state is stale."""
        #: Time for the age of states, set by the session. Simulated time may be paused.
        self.now_s = 0.0
        self._timeout_s = timeout_s
        self.entities: dict[int, MirroredEntity] = {}
        self.objects: dict[int, Any] = {}

    def has_source(self, entity: int) -> bool:
        """Return whether the entity has topics."""
        return entity in self.entities and self.entities[entity].has_source

    def update(self, entity: int, state: State) -> None:
        """Set the state of an entity, if it exists."""
        if mirrored := self.entities.get(entity):
            mirrored.x_before = cast(Vector, (mirrored.state or state)[Attribute.POSITION])
            mirrored.state, mirrored.updated_s = state, self.now_s

    def orientation(self, entity: int) -> WxyzQuaternion | None:
        """Return the orientation of an entity. None if its state is unknown or stale."""
        return self.model_attitude(entity) if self.is_current(entity) else None

    # Scene.

    def is_current(self, entity: int) -> bool:
        mirrored = self.entities.get(entity)
        if mirrored is None or mirrored.state is None:
            return False
        return self.now_s - mirrored.updated_s <= self._timeout_s()

    def add_entity(self, request: AddEntity) -> int:
        raise RequestRefusedError(0, "Entities can't be added.")

    def remove_entity(self, entity: int) -> None:
        """See Scene. The caller checks whether removal is allowed."""
        del self.entities[entity]

    def position(self, entity: int) -> Vector:
        return cast(Vector, self.attribute(entity, Attribute.POSITION))

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        mirrored = self.entities[entity]
        if mirrored.state is None or not self.is_current(entity):
            raise RequestRefusedError(0, UNKNOWN_STATE)
        return mirrored.corporeal if attribute == Attribute.CORPOREAL else mirrored.state[attribute]

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        """See Scene. v and w of the vehicle are commands, and are handled elsewhere."""
        raise RequestRefusedError(1, f"{Attribute(attribute).name.capitalize()} of entity {entity} can't be set.")

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        return cast(WxyzQuaternion, self.attribute(entity, Attribute.ORIENTATION))
