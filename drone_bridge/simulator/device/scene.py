# SPDX-License-Identifier: Apache-2.0
"""The interface of a scene: simulated bodies, or vehicles in ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from drone_bridge.motion.wxyz import Vector, WxyzQuaternion
from drone_bridge.simulator.codec import AddEntity, AttributeValue


class Scene(Protocol):
    """Entities and objects by ID, in the units and axes of the wire: SI, north-east-down, quaternions w first.

    IDs passed in must exist. Refused requests raise RefusedError with the error to answer, or ValueError with a
    sentence if the request determines the code.
    """

    # Entities.

    @property
    def entities(self) -> Sequence[int]:
        """The IDs of the entities, oldest first."""

    def has_entity(self, entity: int) -> bool:
        """Return whether there is such an entity."""

    def is_current(self, entity: int) -> bool:
        """Return whether the entity's state is known at present; streams and triggers skip unknown ones."""

    def add_entity(self, request: AddEntity) -> int:
        """Add an entity without its extended attributes; return its ID. Raises RefusedError and ValueError."""

    def remove_entity(self, entity: int) -> None:
        """Remove an entity and what is attached to it. Raises RefusedError."""

    def position(self, entity: int) -> Vector:
        """Return the position of an entity, m."""

    def previous_position(self, entity: int) -> Vector:
        """Return the position before the last step, m."""

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return an attribute as in EGET and streams: q of the body frame, w in the model frame."""

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        """Set an attribute as in ESET: q of the model frame. Raises RefusedError and ValueError."""

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        """Return the attitude of the entity's model frame in the world."""

    def body_to_model(self, entity: int) -> WxyzQuaternion:
        """Return the rotation from the entity's principal axes to its model frame (btom)."""

    def radius(self, entity: int) -> float:
        """Return the radius of the sphere that stands for the entity in cameras and triggers, m."""

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
        """Return the IDs of the objects attached to an entity."""

    def add_object(self, class_name: str, data: bytes) -> int:
        """Add an object of an existing class; return its ID. Raises RefusedError."""

    def remove_object(self, number: int) -> None:
        """Remove an object. Raises RefusedError."""

    def object_data(self, number: int, attribute: int) -> bytes:
        """Return an attribute of an object. Raises RefusedError."""

    def set_object(self, number: int, attribute: int, data: bytes) -> None:
        """Set an attribute of an object. Raises RefusedError."""
