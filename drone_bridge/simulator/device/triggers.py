# SPDX-License-Identifier: Apache-2.0
"""Triggers: conditions that are checked after each step and reported when they begin or end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drone_bridge.motion.wxyz import Vector, dot
from drone_bridge.simulator.codec import (
    PathEnded,
    PathFailed,
    PathStarted,
    Triggered,
    Untriggered,
)
from drone_bridge.simulator.device.items import Item

if TYPE_CHECKING:
    from drone_bridge.simulator.device.world import World

TriggerEvent = Triggered | Untriggered | PathStarted | PathFailed | PathEnded


@dataclass(slots=True, kw_only=True)
class Collision(Item):
    """Compares the distance after each step, so that fast entities can be missed."""

    a: int
    b: int
    distance: float  # m
    is_active: bool = False

    def after_step(self, number: int, world: World) -> TriggerEvent | None:
        if not (world.scene.is_current(self.a) and world.scene.is_current(self.b)):
            return None
        was_active, self.is_active = self.is_active, self.is_met(world)
        if self.is_active == was_active:
            return None
        return Triggered(number) if self.is_active else Untriggered(number)

    def is_met(self, world: World) -> bool:
        """Return whether the two entities collide."""
        return math.dist(world.scene.position(self.a), world.scene.position(self.b)) <= self.distance


@dataclass(slots=True, kw_only=True)
class SweepCollision(Collision):
    """Compares the smallest distance during a step, on straight lines."""

    def is_met(self, world: World) -> bool:
        first = _difference(world.scene.previous_position(self.b), world.scene.previous_position(self.a))
        last = _difference(world.scene.position(self.b), world.scene.position(self.a))
        return _distance_to_segment((0.0, 0.0, 0.0), first, last) <= self.distance


@dataclass(slots=True, kw_only=True)
class Path(Item):
    """A line that an entity should follow from start to end."""

    entity: int
    start: Vector  # m
    end: Vector  # m
    distance: float  # m
    is_active: bool = False

    def after_step(self, number: int, world: World) -> TriggerEvent | None:
        position = world.scene.position(self.entity)
        if not self.is_active:
            self.is_active = math.dist(position, self.start) <= self.distance
            return PathStarted(number) if self.is_active else None
        if math.dist(position, self.end) <= self.distance:
            self.is_active = False
            return PathEnded(number)
        if _distance_to_line(position, self.start, self.end) > self.distance:
            self.is_active = False
            return PathFailed(number)
        return None


def _difference(a: Vector, b: Vector) -> Vector:
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def _along(point: Vector, start: Vector, end: Vector) -> float:
    """Return the foot of the perpendicular on the line: 0 at its start, 1 at its end."""
    direction = _difference(end, start)
    length = math.hypot(*direction)
    if length == 0:
        return 0.0
    x, y, z = (component / length for component in direction)  # squares of lengths could overflow
    return dot(_difference(point, start), (x, y, z)) / length


def _foot(start: Vector, end: Vector, part: float) -> Vector:
    x, y, z = (s + part * (e - s) for s, e in zip(start, end, strict=True))
    return x, y, z


def _distance_to_line(point: Vector, start: Vector, end: Vector) -> float:
    return math.dist(point, _foot(start, end, _along(point, start, end)))


def _distance_to_segment(point: Vector, start: Vector, end: Vector) -> float:
    return math.dist(point, _foot(start, end, min(max(_along(point, start, end), 0.0), 1.0)))
