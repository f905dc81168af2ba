# SPDX-License-Identifier: Apache-2.0
"""SimulatedScene: simulated bodies, forces and engines, and the initial scenes."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import count
from typing import Any, cast

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion, conjugate, multiply, rotate, unit
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.codec import VEHICLE, AddEntity, Attribute, AttributeValue
from drone_bridge.simulator.vehicle.device.world import World
from drone_bridge.simulator.vehicle.emulator.physics import (
    GRAVITY,
    Body,
    Buoyancy,
    DragPlane,
    Force,
    TurbulenceForce,
    check_turbulence,
    total,
)

#: Attributes that are fields of Body, as on the wire.
_FIELDS: dict[int, str] = {
    Attribute.POSITION: "x",
    Attribute.VELOCITY: "v",
    Attribute.ACCELERATION: "a",
    Attribute.ORIENTATION: "q",
    Attribute.ANGULAR_VELOCITY: "model_rates",
    Attribute.CORPOREAL: "is_corporeal",
}


class SimulatedScene:
    """Scene of simulated bodies."""

    object_classes = (wire.Turbulence.CLASS,)

    def __init__(self, step_s: float, report: Callable[[str], None], turbulence: random.Random | None = None) -> None:
        """Create an empty scene.

        Args:
            step_s: duration of a step, s.
            report: receives sentences about problems.
            turbulence: its source of random numbers.
        """
        self.entities: dict[int, Body] = {}
        self.objects: dict[int, Force] = {}
        self.steps = 0
        self._step_s, self._report, self._random = step_s, report, turbulence or random.Random()
        self._entities, self._forces = count(), count()  # next IDs
        self._stopped: set[int] = set()  # entities reported as stopped

    # Time.

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.steps * self._step_s

    def step(self) -> None:
        for force in self.objects.values():
            force.begin_step(self._step_s)
        together = total(self.objects.values())
        for number, body in self.entities.items():
            if not body.step(together, self._step_s) and number not in self._stopped:
                self._report(f"entity {number} was stopped, as its state became infinite")
                self._stopped.add(number)
        self.steps += 1

    # Entities.

    def is_current(self, entity: int) -> bool:
        return True

    def add_entity(self, request: AddEntity) -> int:
        """See Scene. The attitude is that of the body frame."""
        body = Body(
            request.mass,
            request.radius,
            request.inertia,
            request.body_to_model,
            x=request.position,
            q=request.orientation,
            is_corporeal=request.corporeal,
        )
        return self.add_body(body)

    def add_body(self, body: Body) -> int:
        """Add a body as an entity. Return its ID."""
        number = next(self._entities)
        self.entities[number] = body
        return number

    def remove_entity(self, entity: int) -> None:
        del self.entities[entity]
        self._stopped.discard(entity)

    def position(self, entity: int) -> Vector:
        return self.entities[entity].x

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        value: AttributeValue = getattr(self.entities[entity], _FIELDS[attribute])
        return value

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        body = self.entities[entity]
        if attribute == Attribute.CORPOREAL:
            body.is_corporeal = bool(value)
            return
        numbers: Any = tuple(map(float, cast(tuple[float, ...], value)))
        if attribute == Attribute.POSITION:
            body.x = body.x_before = numbers  # also the start of the next step's sweeps
        elif attribute == Attribute.VELOCITY:
            body.v = numbers
        elif attribute == Attribute.ACCELERATION:
            body.a, body.is_pushed = numbers, True
        elif attribute == Attribute.ORIENTATION:
            body.q = multiply(unit(numbers), body.btom)
        else:
            body.w = rotate(conjugate(body.btom), numbers)

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        return self.entities[entity].model_attitude

    # Objects: the forces. No message carries the ID of an engine, and REMOVE refers to forces.

    def add_object(self, class_name: str, data: bytes) -> int:
        limits = wire.Turbulence.of(data)
        check_turbulence(limits)
        return self.add_force(TurbulenceForce(limits=limits, random=self._random))

    def add_force(self, force: Force) -> int:
        """Add a force. Return its ID as an object."""
        number = next(self._forces)
        self.objects[number] = force
        return number

    def remove_object(self, number: int) -> None:
        del self.objects[number]


# Initial scenes: the vehicle, and examples.


RENDER = "render"  # attribute with the model for visualizers: tags of the CUAUV simulator's own world

# A small survey vehicle of 0.9 by 0.5 by 0.5 m, neutrally buoyant, x forward, y right, z down. In its model frame:
_MASS = 30.0  # kg
_RADIUS = 0.5  # m
_INERTIA = (1.25, 2.65, 2.65)  # kg m^2, about the axes of the body frame
_CENTRE_OF_BUOYANCY = (0.0, 0.0, -0.05)  # m
_DRAG_PLANES = (  # centre in m, normal, coefficient, area in m^2
    ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), 1.0, 0.25),  # the front
    ((0.25, 0.0, 0.0), (0.0, 1.0, 0.0), 1.2, 0.225),  # the sides, fore and aft
    ((-0.25, 0.0, 0.0), (0.0, 1.0, 0.0), 1.2, 0.225),
    ((0.25, 0.15, 0.0), (0.0, 0.0, 1.0), 1.2, 0.1125),  # top and bottom, by quarters
    ((0.25, -0.15, 0.0), (0.0, 0.0, 1.0), 1.2, 0.1125),
    ((-0.25, 0.15, 0.0), (0.0, 0.0, 1.0), 1.2, 0.1125),
    ((-0.25, -0.15, 0.0), (0.0, 0.0, 1.0), 1.2, 0.1125),
)

_MARKER_MASS = 5.0  # kg
_BUOY_RADIUS = 0.15  # m
_POST_RADIUS = 0.1  # m


def add_default_environment(world: World, scene: SimulatedScene, btom: WxyzQuaternion = IDENTITY) -> None:
    """Add the vehicle (entity 0), gravity (force 0), and the vehicle's buoyancy and drag.

    `btom`: from the vehicle's body frame to its model frame, which is initially level and faces north.
    """
    body = Body(_MASS, _RADIUS, _INERTIA, btom, q=btom)
    number = scene.add_body(body)
    world.entity_added(number, {RENDER: b"vehicle"})
    if number != VEHICLE:
        raise ValueError("The vehicle must be added before other entities.")
    to_body = conjugate(body.btom)
    scene.add_force(Force(acceleration=(0.0, 0.0, GRAVITY)))
    body.engines.append(Buoyancy(_MASS * GRAVITY, rotate(to_body, _CENTRE_OF_BUOYANCY)))
    for centre, normal, coefficient, area in _DRAG_PLANES:
        body.engines.append(DragPlane(rotate(to_body, centre), rotate(to_body, normal), coefficient, area))


def add_buoys(world: World, scene: SimulatedScene) -> None:
    """Add three buoys ahead of the vehicle, and behind them a gate of two posts, all at a depth of 2 m."""
    for name, x, y in ((b"red_buoy", 4.0, -1.5), (b"green_buoy", 5.0, 0.0), (b"yellow_buoy", 4.0, 1.5)):
        _add_marker(world, scene, name, _BUOY_RADIUS, (x, y, 2.0))
    for y in (-1.0, 1.0):
        _add_marker(world, scene, b"gate_post", _POST_RADIUS, (9.0, y, 2.0))


#: Additional entities by name.
SCENES: dict[str, Callable[[World, SimulatedScene], None]] = {"empty": lambda world, scene: None, "buoys": add_buoys}


def _add_marker(world: World, scene: SimulatedScene, name: bytes, radius: float, x: Vector) -> None:
    """Add an anchored body."""
    moment = 0.4 * _MARKER_MASS * radius * radius  # of a solid sphere
    body = Body(_MARKER_MASS, radius, (moment, moment, moment), x=x, is_corporeal=False)
    world.entity_added(scene.add_body(body), {RENDER: name})
