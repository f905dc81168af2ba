# SPDX-License-Identifier: Apache-2.0
"""Streams: data sent periodically to the client that requested it."""

from __future__ import annotations

from dataclasses import dataclass

from drone_bridge.protocols.simulator import (
    CameraData,
    EntityData,
    ExtendedAttribute,
    ExtendedData,
    Response,
)
from drone_bridge.vehicle_side.simulator.items import Item
from drone_bridge.vehicle_side.simulator.surroundings import Surroundings


@dataclass(slots=True, kw_only=True)
class Stream(Item):
    """What all streams have."""

    period: int  # steps; 0 for never
    _steps: int = 0  # since it was sent last

    def after_step(self, number: int, world: Surroundings) -> Response | None:
        """See Item. Counts the step, and sends every so many."""
        self._steps += 1
        if self._steps != self.period:
            return None
        self._steps = 0
        return self.message(number, world)

    def message(self, number: int, world: Surroundings) -> Response:
        """Return what to send."""
        raise NotImplementedError


@dataclass(slots=True, kw_only=True)
class EntityStream(Stream):
    """Attributes of an entity."""

    entity: int
    attributes: tuple[int, ...]

    def message(self, number: int, world: Surroundings) -> EntityData:
        """See Stream."""
        values = tuple([world.attribute(self.entity, attribute) for attribute in self.attributes])
        return EntityData(number, self.attributes, values)


@dataclass(slots=True, kw_only=True)
class ExtendedStream(Stream):
    """Extended attributes of an entity. One that it lacks is left out."""

    entity: int
    keys: tuple[str, ...]

    def message(self, number: int, world: Surroundings) -> ExtendedData:
        """See Stream."""
        there = world.extended(self.entity)
        return ExtendedData(number, tuple(ExtendedAttribute(key, there[key]) for key in self.keys if key in there))


@dataclass(slots=True, kw_only=True)
class CameraStream(Stream):
    """Where an entity appears. Steps do not count while the camera is disabled."""

    camera: int
    on: int  # the entity that has the camera
    target: int

    @property
    def steps_with(self) -> frozenset[int]:
        """See Item. The target's are no steps of the camera."""
        return frozenset({self.on})

    def after_step(self, number: int, world: Surroundings) -> Response | None:
        """See Stream."""
        if not world.is_enabled(self.camera) or not world.is_current(self.target):
            return None
        return super(CameraStream, self).after_step(number, world)

    def message(self, number: int, world: Surroundings) -> CameraData:
        """See Stream."""
        view = world.view(self.camera, self.target)
        return CameraData(number, view.x, view.y, view.radius, view.depth)
