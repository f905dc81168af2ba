# SPDX-License-Identifier: Apache-2.0
"""What items of the world see of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from drone_bridge.geometry.wxyz import Vector
from drone_bridge.protocols.simulator import AttributeValue


@dataclass(frozen=True, slots=True)
class View:
    """Where an entity appears to a camera. Lengths on the screen are in units of the focal length's."""

    x: float = 0.0  # to the right
    y: float = 0.0  # down
    radius: float = 0.0  # 0 when the entity is not in front of the camera
    depth: float = 0.0  # m along the camera's axis, negative behind it


class Surroundings(Protocol):
    """The world. Entities and cameras that are asked for have to be there."""

    def is_current(self, entity: int) -> bool:
        """Return whether the entity's state is known as of now."""

    def place(self, entity: int) -> Vector:
        """Return where an entity is, m."""

    def place_before(self, entity: int) -> Vector:
        """Return where an entity was before the last step, m."""

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return one of the protocol's attributes."""

    def extended(self, entity: int) -> Mapping[str, bytes]:
        """Return the extended attributes of an entity."""

    def is_enabled(self, camera: int) -> bool:
        """Return whether a camera is enabled."""

    def view(self, camera: int, target: int) -> View:
        """Return where an entity appears."""
