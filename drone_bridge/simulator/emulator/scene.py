# SPDX-License-Identifier: Apache-2.0
"""The scene of simulated bodies, forces and engines, and what is in it at the start."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import cast

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion, conjugate, rotate
from drone_bridge.simulator import codec as wire
from drone_bridge.simulator.codec import VEHICLE, AddEntity, Attribute, AttributeValue
from drone_bridge.simulator.device.world import RefusedError, World
from drone_bridge.simulator.emulator.physics import (
    GRAVITY,
    Body,
    Buoyancy,
    DragPlane,
    Engine,
    Force,
    Gravity,
    Motion,
    Physics,
    Turbulence,
    check_turbulence,
)
from drone_bridge.wire.layouts import MisfitError

ENGINE_OBJECTS = 1 << 31  # forces and engines both count from 0: as objects, engines come from here on


class SimulatedScene:
    """A simulated Scene."""

    object_classes = (wire.Turbulence.CLASS,)

    def __init__(self, step_s: float, report: Callable[[str], None], turbulence: random.Random | None = None) -> None:
        """Make an empty scene.

        Args:
            step_s: how much time passes in a step, s.
            report: gets sentences about what went wrong.
            turbulence: what it is drawn from.
        """
        self.physics = Physics(step_s)
        self.steps = 0
        self._report = report
        self._random = turbulence or random.Random()
        self._next_entity = 0
        self._stopped: set[int] = set()  # entities that were reported once as having been stopped
        self._rows: list[list[float]] | None = None  # the physics' state, a row for each body
        self._rows_before: list[list[float]] | None = None

    # Time.

    @property
    def time(self) -> float:
        """Simulated time, s."""
        return self.steps * self.physics.duration

    def step(self) -> None:
        lost = self.physics.step()
        self.steps += 1
        self._forget_rows()
        for number in lost:
            if number not in self._stopped:
                self._report(f"entity {number} left the range of finite numbers, and is stopped whenever it does")
            self._stopped.add(number)

    # Entities.

    @property
    def entities(self) -> list[int]:
        return self.physics.bodies.ids

    def has_entity(self, entity: int) -> bool:
        return entity in self.physics.bodies.columns

    def is_current(self, entity: int) -> bool:
        return True

    def add_entity(self, request: AddEntity) -> int:
        """See Scene. Its attitude is that of the body frame."""
        body = Body(request.mass, request.radius, request.inertia, request.body_to_model)
        return self.add_body(body, Motion(x=request.position, q=request.orientation), request.corporeal)

    def add_body(self, body: Body, motion: Motion, is_corporeal: bool) -> int:
        """Add a body as an entity; return its ID. Raises ValueError."""
        number = self._next_entity
        self.physics.bodies.add(number, body, motion, is_corporeal)
        self._next_entity += 1
        self._forget_rows()
        return number

    def remove_entity(self, entity: int) -> None:
        self.physics.remove_body(entity)
        self._stopped.discard(entity)
        self._forget_rows()

    def position(self, entity: int) -> Vector:
        x, y, z = self._row(entity)[:3]
        return x, y, z

    def previous_position(self, entity: int) -> Vector:
        if self._rows_before is None:
            self._rows_before = self.physics.bodies.before[:3].T.tolist()
        x, y, z = self._rows_before[self.physics.bodies.columns[entity]]
        return x, y, z

    def attribute(self, entity: int, attribute: int) -> AttributeValue:
        row = self._row(entity)
        if attribute == Attribute.POSITION:
            return tuple(row[0:3])
        if attribute == Attribute.VELOCITY:
            return tuple(row[3:6])
        if attribute == Attribute.ACCELERATION:
            return tuple(row[6:9])
        if attribute == Attribute.ORIENTATION:
            return tuple(row[9:13])
        bodies = self.physics.bodies
        if attribute == Attribute.ANGULAR_VELOCITY:
            return tuple(row[13:16]) if self.body_to_model(entity) == IDENTITY else bodies.model_rates(entity)
        return bool(bodies.is_corporeal[bodies.columns[entity]])

    def set_attribute(self, entity: int, attribute: int, value: AttributeValue) -> None:
        bodies = self.physics.bodies
        if attribute == Attribute.CORPOREAL:
            bodies.is_corporeal[bodies.columns[entity]] = bool(value)
            return
        numbers = cast(tuple[float, ...], value)
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"The numbers must be finite, not {numbers}.")
        if attribute == Attribute.ORIENTATION:
            w, x, y, z = numbers
            bodies.set_model_attitude(entity, (w, x, y, z))
        else:
            setters = {
                Attribute.POSITION: bodies.set_position,
                Attribute.VELOCITY: bodies.set_velocity,
                Attribute.ACCELERATION: bodies.push,
                Attribute.ANGULAR_VELOCITY: bodies.set_model_rates,
            }
            x, y, z = numbers
            setters[Attribute(attribute)](entity, (x, y, z))
        self._forget_rows()

    def model_attitude(self, entity: int) -> WxyzQuaternion:
        return self.physics.bodies.model_attitude(entity)

    def body_to_model(self, entity: int) -> WxyzQuaternion:
        return self.physics.bodies.bodies[entity].btom

    def radius(self, entity: int) -> float:
        return self.physics.bodies.bodies[entity].radius

    def _row(self, entity: int) -> list[float]:
        if self._rows is None:
            self._rows = self.physics.bodies.state.T.tolist()
        return self._rows[self.physics.bodies.columns[entity]]

    def _forget_rows(self) -> None:
        self._rows = self._rows_before = None

    # Objects.

    @property
    def objects(self) -> tuple[int, ...]:
        """See Scene. The IDs of engines are offset by 2^31."""
        return (*self.physics.forces, *(ENGINE_OBJECTS + number for number in self.physics.engines))

    def has_object(self, number: int) -> bool:
        return number in self.physics.forces or number - ENGINE_OBJECTS in self.physics.engines

    def objects_of(self, entity: int) -> list[int]:
        return [ENGINE_OBJECTS + number for number, (body, _) in self.physics.engines.items() if body == entity]

    def add_object(self, class_name: str, data: bytes) -> int:
        return self.add_force(Turbulence(_turbulence_limits(data, code=0), self._random))

    def add_force(self, force: Force) -> int:
        """Add a force; return its ID as an object."""
        return self.physics.add_force(force)

    def attach(self, entity: int, engine: Engine) -> int:
        """Attach an engine to an entity; return its ID as an object."""
        return ENGINE_OBJECTS + self.physics.attach(entity, engine)

    def remove_object(self, number: int) -> None:
        if number >= ENGINE_OBJECTS:
            del self.physics.engines[number - ENGINE_OBJECTS]
        else:
            del self.physics.forces[number]

    def object_data(self, number: int, attribute: int) -> bytes:
        """See Scene. Only the limits of turbulence exist."""
        return self._turbulence(number, attribute).limits.encode()

    def set_object(self, number: int, attribute: int, data: bytes) -> None:
        turbulence = self._turbulence(number, attribute)
        turbulence.limits = _turbulence_limits(data, code=2)

    def _turbulence(self, number: int, attribute: int) -> Turbulence:
        force = self.physics.forces.get(number)
        if attribute != wire.PARAMETERS or not isinstance(force, Turbulence):
            raise RefusedError(1, f"Object {number} has no attribute {attribute}.")
        return force


def _turbulence_limits(data: bytes, code: int) -> wire.Turbulence:
    try:
        limits = wire.Turbulence.decode(data)
        check_turbulence(limits)
    except MisfitError as error:
        raise RefusedError(code, f"The data are not a turbulence: {error}.") from error
    except ValueError as error:
        raise RefusedError(code, str(error)) from error
    return limits


# What is there at the start: the vehicle, and example scenes.


RENDER = "render"  # the attribute that tells visualizers what to draw: tags of the CUAUV simulator's own world

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
    """Add the vehicle (entity 0), gravity (force 0), and the vehicle's buoyancy (engine 0) and drag (engines 1 to n).

    `btom`: from the vehicle's body frame to its model frame, which is level at the start and looks north.
    """
    body = Body(_MASS, _RADIUS, _INERTIA, btom)
    number = scene.add_body(body, Motion(q=body.btom), True)
    world.entity_added(number, {RENDER: b"vehicle"})
    if number != VEHICLE:
        raise ValueError("The vehicle has to come before any other entity.")
    to_body = conjugate(body.btom)
    scene.add_force(Gravity())
    scene.attach(number, Buoyancy(_MASS * GRAVITY, rotate(to_body, _CENTRE_OF_BUOYANCY)))
    for centre, normal, coefficient, area in _DRAG_PLANES:
        scene.attach(number, DragPlane(rotate(to_body, centre), rotate(to_body, normal), coefficient, area))


def add_buoys(world: World, scene: SimulatedScene) -> None:
    """Add three buoys ahead of the vehicle, and behind them a gate of two posts, all at a depth of 2 m."""
    for name, x, y in ((b"red_buoy", 4.0, -1.5), (b"green_buoy", 5.0, 0.0), (b"yellow_buoy", 4.0, 1.5)):
        _add_marker(world, scene, name, _BUOY_RADIUS, (x, y, 2.0))
    for y in (-1.0, 1.0):
        _add_marker(world, scene, b"gate_post", _POST_RADIUS, (9.0, y, 2.0))


#: What there can be beside the vehicle, by name.
SCENES: dict[str, Callable[[World, SimulatedScene], None]] = {"empty": lambda world, scene: None, "buoys": add_buoys}


def _add_marker(world: World, scene: SimulatedScene, name: bytes, radius: float, x: Vector) -> None:
    """Add an anchored body."""
    moment = 0.4 * _MARKER_MASS * radius * radius  # of a solid sphere
    body = Body(_MARKER_MASS, radius, (moment, moment, moment))
    world.entity_added(scene.add_body(body, Motion(x=x), False), {RENDER: name})
