# SPDX-License-Identifier: Apache-2.0
"""The emulated streams: what is sent again and again to the client that asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from drone_bridge.emulators.simulator_camera import View
from drone_bridge.emulators.simulator_items import Item
from drone_bridge.protocols.simulator import (
    AttributeValue,
    CameraData,
    EntityData,
    ExtendedAttribute,
    ExtendedData,
    Response,
)


class Watched(Protocol):
    """What streams look at."""

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        """Return an attribute that exists of an entity that exists."""

    def extended(self, entity: int) -> Mapping[str, bytes]:
        """Return the extended attributes of an entity that exists."""

    def is_enabled(self, camera: int) -> bool:
        """Return whether a camera that exists is enabled."""

    def view(self, camera: int, target: int) -> View:
        """Return where an entity that exists appears to a camera that exists."""


@dataclass(slots=True, kw_only=True)
class Stream(Item):
    """What all streams have."""

    period: int  # steps; 0 for never
    _steps: int = 0  # since it was sent last

    def step(self, number: int, world: Watched) -> Response | None:
        """Count a step; return what to send now. `number` is the stream's ID."""
        self._steps += 1
        if self._steps != self.period:
            return None
        self._steps = 0
        return self.message(number, world)

    def message(self, number: int, world: Watched) -> Response:
        """Return what to send."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class EntityStream(Stream):
    """Attributes of an entity."""

    entity: int
    attributes: tuple[int, ...]

    def message(self, number: int, world: Watched) -> EntityData:
        """See Stream."""
        values = tuple([world.attribute(self.entity, attribute) for attribute in self.attributes])
        return EntityData(number, self.attributes, values)


@dataclass(slots=True, kw_only=True)
class ExtendedStream(Stream):
    """Extended attributes of an entity. One that it lacks is left out."""

    entity: int
    keys: tuple[str, ...]

    def message(self, number: int, world: Watched) -> ExtendedData:
        """See Stream."""
        there = world.extended(self.entity)
        return ExtendedData(number, tuple(ExtendedAttribute(key, there[key]) for key in self.keys if key in there))


@dataclass(slots=True, kw_only=True)
class CameraStream(Stream):
    """Where an entity appears. Steps do not count while the camera is disabled."""

    camera: int
    target: int

    def step(self, number: int, world: Watched) -> Response | None:
        """See Stream."""
        return super(CameraStream, self).step(number, world) if world.is_enabled(self.camera) else None

    def message(self, number: int, world: Watched) -> CameraData:
        """See Stream."""
        view = world.view(self.camera, self.target)
        return CameraData(number, view.x, view.y, view.radius, view.depth)
