# SPDX-License-Identifier: Apache-2.0
"""Contact of the drone with the rover or the ground, and the criteria of a good landing."""

import math
from dataclasses import replace

import numpy as np
import pytest

from drone_bridge.motion.wind import Wind
from drone_bridge.telemetry.codec import DroneCommand
from drone_bridge.telemetry.vehicle.emulator.flight import FlyingDrone
from drone_bridge.telemetry.vehicle.emulator.rover import Rover, RoverPattern
from drone_bridge.telemetry.vehicle.emulator.scene import PAD_HEIGHT, ROVER_LENGTH
from drone_bridge.telemetry.vehicle.emulator.world import (
    LANDING_GEAR,
    MAX_POSITION_ERROR,
    MAX_RELATIVE_SPEED,
    MAX_VERTICAL_SPEED,
    STEP_S,
    LandingPhase,
    LandingWorld,
    Touchdown,
)

ON_PAD = PAD_HEIGHT + LANDING_GEAR
GOOD = Touchdown(time=1.0, on_rover=True, position_error=0.1, vertical_speed=0.5, relative_speed=0.2)


def make_world(position, *, velocity=(0, 0, 0), rover_velocity=(0, 0), phase=LandingPhase.FLYING):
    """The rover starts at the origin and keeps its velocity for a second."""
    rover = Rover(RoverPattern.FOLLOW)
    rover.lead((0.0, 0.0), rover_velocity)
    drone = FlyingDrone(position)
    drone.velocity = np.array(velocity, dtype=float)
    return LandingWorld(drone, rover, Wind((0.0, 0.0, 0.0)), phase)


def command(world, **values):
    world.drone.command = DroneCommand(**values)


def come_down(world, seconds=3.0, thrust=-0.2):
    command(world, thrust=thrust)
    while not world.has_landed and world.time < seconds:
        world.advance(STEP_S)
    assert world.has_landed
    return world.touchdown


def test_it_lands_on_the_pad():
    world = make_world((0.1, 0.05, 0.8))
    touchdown = come_down(world)
    assert world.phase is LandingPhase.ON_ROVER
    assert touchdown.on_rover
    assert touchdown.position_error == pytest.approx(math.hypot(0.1, 0.05))
    assert touchdown.vertical_speed == pytest.approx(0.46, abs=0.02)  # 0.5 at the end of a longer way
    assert touchdown.relative_speed == pytest.approx(0, abs=1e-6)
    assert touchdown.is_good
    assert world.drone.position == pytest.approx([0.1, 0.05, ON_PAD])
    assert world.towards_pad == pytest.approx([-0.1, -0.05, -LANDING_GEAR])


def test_it_rides_on_the_rover():
    world = make_world((0.1, 0.0, 0.45), velocity=(0.5, 0.0, -0.3), rover_velocity=(0.5, 0.0))
    come_down(world)
    before = world.drone.position.copy()
    command(world)
    world.advance(0.4)
    assert world.drone.position - before == pytest.approx([0.2, 0, 0], abs=1e-6)
    assert world.drone.velocity.tolist() == [0.5, 0, 0]
    assert world.phase is LandingPhase.ON_ROVER


def test_beside_the_rover_is_the_ground():
    world = make_world((2.0, 0.0, 0.8))
    touchdown = come_down(world)
    assert world.phase is LandingPhase.ON_GROUND
    assert not touchdown.on_rover
    assert not touchdown.is_good
    assert touchdown.position_error == pytest.approx(2.0)
    assert world.drone.position == pytest.approx([2.0, 0.0, LANDING_GEAR])
    world.advance(1)
    assert not world.drone.velocity.any()


def test_flying_into_the_rovers_side_ends_on_the_ground():
    world = make_world((-1.0, 0.0, 0.2), velocity=(2.0, 0.0, 0.0))
    world.advance(1)
    assert world.phase is LandingPhase.ON_GROUND
    assert not world.touchdown.is_good
    assert world.drone.position[0] == pytest.approx(-ROVER_LENGTH / 2, abs=0.02)
    command(world, thrust=0.3)
    world.advance(5)
    assert world.phase is LandingPhase.FLYING, "it is not stuck there"
    assert world.drone.position[2] > ON_PAD


@pytest.mark.parametrize(
    ("place", "phase"), [((0.0, 0.0, 0.6), LandingPhase.ON_ROVER), ((3.0, 0.0, 0.3), LandingPhase.ON_GROUND)]
)
def test_it_can_take_off_again_and_land_again(place, phase):
    world = make_world(place)
    first = come_down(world)
    assert world.phase is phase
    command(world, thrust=0.5)
    world.advance(1.0)
    assert world.phase is LandingPhase.FLYING
    assert world.drone.position[2] > place[2] - 0.1
    assert world.touchdown is first
    second = come_down(world, seconds=10)
    assert second is not first
    assert second.time > first.time


def test_a_good_landing_is_within_every_limit():
    assert GOOD.is_good
    at_the_limits = replace(
        GOOD, position_error=MAX_POSITION_ERROR, vertical_speed=MAX_VERTICAL_SPEED, relative_speed=MAX_RELATIVE_SPEED
    )
    assert at_the_limits.is_good
    for worse in (
        {"on_rover": False},
        {"position_error": MAX_POSITION_ERROR + 0.01},
        {"vertical_speed": MAX_VERTICAL_SPEED + 0.01},
        {"relative_speed": MAX_RELATIVE_SPEED + 0.01},
    ):
        assert not replace(GOOD, **worse).is_good
