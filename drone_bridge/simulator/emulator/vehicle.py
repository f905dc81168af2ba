# SPDX-License-Identifier: Apache-2.0
"""The initial contents of the emulated world: the default environment, and example scenes."""

from __future__ import annotations

from collections.abc import Callable

from drone_bridge.motion.wxyz import IDENTITY, Vector, WxyzQuaternion, conjugate, rotate
from drone_bridge.simulator.codec import VEHICLE
from drone_bridge.simulator.device.world import World
from drone_bridge.simulator.emulator.bodies import Body, Motion
from drone_bridge.simulator.emulator.forces import GRAVITY, Buoyancy, DragPlane, Gravity
from drone_bridge.simulator.emulator.scene import SimulatedScene

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


def add_nothing(world: World, scene: SimulatedScene) -> None:
    """Add no entities."""


def add_buoys(world: World, scene: SimulatedScene) -> None:
    """Add three buoys ahead of the vehicle, and behind them a gate of two posts, all at a depth of 2 m."""
    for name, x, y in ((b"red_buoy", 4.0, -1.5), (b"green_buoy", 5.0, 0.0), (b"yellow_buoy", 4.0, 1.5)):
        _add_marker(world, scene, name, _BUOY_RADIUS, (x, y, 2.0))
    for y in (-1.0, 1.0):
        _add_marker(world, scene, b"gate_post", _POST_RADIUS, (9.0, y, 2.0))


#: What there can be beside the vehicle, by name.
SCENES: dict[str, Callable[[World, SimulatedScene], None]] = {"empty": add_nothing, "buoys": add_buoys}


def _add_marker(world: World, scene: SimulatedScene, name: bytes, radius: float, x: Vector) -> None:
    """Add an anchored body."""
    moment = 0.4 * _MARKER_MASS * radius * radius  # of a solid sphere
    body = Body(_MARKER_MASS, radius, (moment, moment, moment))
    world.entity_added(scene.add_body(body, Motion(x=x), False), {RENDER: name})
