# SPDX-License-Identifier: Apache-2.0
"""Streams: data sent periodically to the client that requested it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drone_bridge.simulator.codec import (
    CameraData,
    EntityData,
    ExtendedAttribute,
    ExtendedData,
    Response,
)
from drone_bridge.simulator.device.items import Item

if TYPE_CHECKING:
    from drone_bridge.simulator.device.world import World


@dataclass(slots=True, kw_only=True)
class Stream(Item):
    """The base of streams."""

    period: int  # steps; 0 for never
    _steps: int = 0  # since the last message

    def after_step(self, number: int, world: World) -> Response | None:
        self._steps += 1
        if self._steps != self.period:
            return None
        self._steps = 0
        return self.message(number, world)

    def message(self, number: int, world: World) -> Response:
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class EntityStream(Stream):
    """Attributes of an entity."""

    entity: int
    attributes: tuple[int, ...]

    def message(self, number: int, world: World) -> EntityData:
        values = tuple([world.scene.attribute(self.entity, attribute) for attribute in self.attributes])
        return EntityData(number, self.attributes, values)


@dataclass(slots=True, kw_only=True)
class ExtendedStream(Stream):
    """Extended attributes of an entity. One that it lacks is left out."""

    entity: int
    keys: tuple[str, ...]

    def message(self, number: int, world: World) -> ExtendedData:
        existing = world.extended(self.entity)
        attributes = tuple(ExtendedAttribute(key, existing[key]) for key in self.keys if key in existing)
        return ExtendedData(number, attributes)


@dataclass(slots=True, kw_only=True)
class CameraStream(Stream):
    """Where an entity appears in a camera. Steps do not count while the camera is disabled."""

    camera: int
    on: int  # the camera's entity
    target: int

    @property
    def stepped_by(self) -> frozenset[int]:
        """See Item. Steps of the target do not count."""
        return frozenset({self.on})

    def after_step(self, number: int, world: World) -> Response | None:
        if not world.is_enabled(self.camera) or not world.scene.is_current(self.target):
            return None
        return super(CameraStream, self).after_step(number, world)

    def message(self, number: int, world: World) -> CameraData:
        view = world.view(self.camera, self.target)
        return CameraData(number, view.x, view.y, view.radius, view.depth)
