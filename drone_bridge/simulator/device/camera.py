# SPDX-License-Identifier: Apache-2.0
"""Cameras: where entities appear to be, seen from others."""

from __future__ import annotations

from dataclasses import dataclass

from drone_bridge.motion.wxyz import (
    IDENTITY,
    Vector,
    WxyzQuaternion,
    conjugate,
    multiply,
    rotate,
)
from drone_bridge.simulator.device.items import Item

_LARGEST_FLOAT32 = 3.4028234663852886e38


@dataclass(frozen=True, slots=True)
class View:
    """Where an entity appears to a camera. Lengths on the screen are in units of the focal length's."""

    x: float = 0.0  # to the right
    y: float = 0.0  # down
    radius: float = 0.0  # 0 when the entity is not in front of the camera
    depth: float = 0.0  # m along the camera's axis, negative behind it


@dataclass(slots=True, kw_only=True)
class Camera(Item):
    """A pinhole that looks along its x axis, with y to the right and z down."""

    entity: int
    q: WxyzQuaternion  # of the camera in the entity's model frame
    x: Vector  # in the entity's model frame, m
    focal_length: float
    is_enabled: bool
    world_q: WxyzQuaternion = IDENTITY  # as of the last update
    world_x: Vector = (0.0, 0.0, 0.0)

    def update(self, entity_x: Vector, entity_q: WxyzQuaternion) -> None:
        """Move with its entity, whose model frame is given."""
        dx, dy, dz = rotate(entity_q, self.x)
        self.world_x = entity_x[0] + dx, entity_x[1] + dy, entity_x[2] + dz
        self.world_q = multiply(entity_q, self.q)

    def view(self, target: Vector, radius: float) -> View:
        """Return where a sphere appears."""
        towards = tuple(there - here for there, here in zip(target, self.world_x, strict=True))
        depth, right, down = rotate(conjugate(self.world_q), towards)
        if depth == 0:
            return View()
        scale = self.focal_length / depth
        return View(
            _float32(right * scale),
            _float32(down * scale),
            _float32(radius * scale) if depth > 0 else 0.0,
            _float32(depth),
        )


def _float32(value: float) -> float:
    """Return the nearest finite float32."""
    return max(-_LARGEST_FLOAT32, min(_LARGEST_FLOAT32, value))
