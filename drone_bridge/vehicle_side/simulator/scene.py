# SPDX-License-Identifier: Apache-2.0
"""The interface of a scene: what provides it, simulated bodies or a vehicle in ROS, is a simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drone_bridge.geometry.wxyz import Vector, WxyzQuaternion
from drone_bridge.protocols.simulator import AddEntity, AttributeValue


class Scene(Protocol):
    """Entities and objects by their IDs, as the wire has them: SI units, north-east-down, w first in quaternions.

    What is asked for by ID has to be there. Where something can't be done, RefusedError is raised with the code and the
    sentence to answer with, and ValueError with the sentence where the code follows from the request.
    """

    # Entities.

    @property
    def entities(self) -> Sequence[int]:
        """The IDs of the entities, oldest first."""

    def has_entity(self, entity: int) -> bool:
        """Return whether there is such an entity."""

    def is_current(self, entity: int) -> bool:
        """Return whether the entity's state is known as of now; nobody is told of one that is not."""

    def add_entity(self, request: AddEntity) -> int:
        """Add an entity, but for its extended attributes; return its ID. Raises RefusedError and ValueError."""

    def remove_entity(self, entity: int) -> None:
        """Remove an entity and what is attached to it. Raises RefusedError."""

    def place(self, entity: int) -> Vector:
        """Return where an entity is, m."""

    def place_before(self, entity: int) -> Vector:
        """Return where an entity was before the last step, m."""

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return an attribute: q of the body frame, w in the model frame, as EGET and streams have them."""

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        """Set an attribute: q of the model frame, as ESET has it. Raises RefusedError and ValueError."""

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        """Return the attitude of the entity's model frame in the world."""

    def body_to_model(self, entity: int) -> WxyzQuaternion:
        """Return how the entity's principal axes lie to its model (btom)."""

    def radius(self, entity: int) -> float:
        """Return the radius of the sphere that cameras and triggers take an entity for, m."""

    # Objects: forces on all entities, and engines on one each.

    @property
    def object_classes(self) -> Sequence[str]:
        """The classes of objects that clients can add."""

    @property
    def objects(self) -> Sequence[int]:
        """The IDs of the objects."""

    def has_object(self, number: int) -> bool:
        """Return whether there is such an object."""

    def objects_of(self, entity: int) -> Sequence[int]:
        """Return the IDs of the objects that go with an entity."""

    def add_object(self, class_name: str, data: bytes) -> int:
        """Add an object of a class that there is; return its ID. Raises RefusedError."""

    def remove_object(self, number: int) -> None:
        """Remove an object. Raises RefusedError."""

    def object_data(self, number: int, attribute: int) -> bytes:
        """Return an attribute of an object. Raises RefusedError."""

    def set_object(self, number: int, attribute: int, data: bytes) -> None:
        """Set an attribute of an object. Raises RefusedError."""
