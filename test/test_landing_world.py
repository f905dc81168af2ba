# SPDX-License-Identifier: Apache-2.0
"""What happens when the drone touches the rover or the ground, and what makes it a good landing."""

import math
from dataclasses import replace

import numpy as np
import pytest

from drone_bridge.telemetry.codec import DroneCommand
from drone_bridge.telemetry.emulator.flight import Drone, GustyWind
from drone_bridge.telemetry.emulator.pad import PAD_HEIGHT
from drone_bridge.telemetry.emulator.rover import Pattern, Rover
from drone_bridge.telemetry.emulator.scene import ROVER_LENGTH
from drone_bridge.telemetry.emulator.touchdown import (
    MAX_POSITION_ERROR,
    MAX_RELATIVE_SPEED,
    MAX_VERTICAL_SPEED,
    Touchdown,
)
from drone_bridge.telemetry.emulator.world import COLUMNS, LANDING_GEAR, STEP_S, Phase, World, drone_near

ON_PAD = PAD_HEIGHT + LANDING_GEAR
GOOD = Touchdown(time=1.0, on_rover=True, position_error=0.1, vertical_speed=0.5, relative_speed=0.2)


def make_world(position, *, velocity=(0, 0, 0), rover_velocity=(0, 0), phase=Phase.FLYING, gusts=0.0, seed=0):
    """The rover starts in the origin and goes on with its velocity for a second."""
    rover = Rover(Pattern.FOLLOW)
    rover.lead((0.0, 0.0), rover_velocity)
    drone = Drone(position)
    drone.velocity = np.array(velocity, dtype=float)
    return World(drone, rover, GustyWind((0.0, 0.0, 0.0), gusts, seed), phase)


def command(world, **values):
    world.drone.command = DroneCommand(**values)


def come_down(world, seconds=3.0, thrust=-0.2):
    command(world, thrust=thrust)
    while not world.has_landed and world.time < seconds:
        world.advance(STEP_S)
    assert world.has_landed
    return world.touchdown


def test_a_hovering_drone_touches_nothing():
    world = make_world((0.0, 0.0, 1.0))
    world.advance(5)
    assert world.phase is Phase.FLYING
    assert world.touchdown is None
    assert not world.has_landed


def test_it_comes_down_on_the_pad():
    world = make_world((0.1, 0.05, 0.8))
    touchdown = come_down(world)
    assert world.phase is Phase.ON_ROVER
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
    assert world.phase is Phase.ON_ROVER


def test_speed_is_relative_to_the_rover():
    with_it = come_down(make_world((0.0, 0.0, 0.45), velocity=(0.5, 0.0, -0.3), rover_velocity=(0.5, 0.0)))
    assert with_it.relative_speed == pytest.approx(0, abs=0.05)
    against_it = come_down(make_world((0.0, 0.0, 0.45), velocity=(-0.5, 0.0, -0.3), rover_velocity=(0.5, 0.0)))
    assert against_it.relative_speed == pytest.approx(1.0, abs=0.05)
    assert with_it.is_good
    assert not against_it.is_good


def test_beside_the_rover_is_the_ground():
    world = make_world((2.0, 0.0, 0.8))
    touchdown = come_down(world)
    assert world.phase is Phase.ON_GROUND
    assert not touchdown.on_rover
    assert not touchdown.is_good
    assert touchdown.position_error == pytest.approx(2.0)
    assert world.drone.position == pytest.approx([2.0, 0.0, LANDING_GEAR])
    world.advance(1)
    assert not world.drone.velocity.any()


def test_the_rovers_edge_carries_but_is_no_good_place():
    touchdown = come_down(make_world((ROVER_LENGTH / 2 - 0.02, 0.0, 0.8)))
    assert touchdown.on_rover
    assert not touchdown.is_good


def test_flying_into_the_rovers_side_ends_on_the_ground():
    world = make_world((-1.0, 0.0, 0.2), velocity=(2.0, 0.0, 0.0))
    world.advance(1)
    assert world.phase is Phase.ON_GROUND
    assert not world.touchdown.is_good
    assert world.drone.position[0] == pytest.approx(-ROVER_LENGTH / 2, abs=0.02)


def test_a_fall_is_not_a_good_landing():
    touchdown = come_down(make_world((0.0, 0.0, 5.0), velocity=(0.0, 0.0, -2.0)), thrust=-1.0)
    assert touchdown.on_rover
    assert touchdown.vertical_speed > 2
    assert not touchdown.is_good


def test_a_standing_drone_stays_until_told_to_climb():
    world = make_world((0.0, 0.0, LANDING_GEAR), phase=Phase.ON_GROUND, gusts=2.0)
    command(world, pitch=0.5, roll=0.5, yaw=0.5, thrust=0.1)
    before = world.drone.position.copy(), world.drone.yaw
    world.advance(2)
    assert world.drone.position == pytest.approx(before[0])
    assert (world.drone.roll, world.drone.pitch, world.drone.yaw) == (0, 0, before[1])
    assert world.touchdown is None, "it has never flown"


@pytest.mark.parametrize(("place", "phase"), [((0.0, 0.0, 0.6), Phase.ON_ROVER), ((3.0, 0.0, 0.3), Phase.ON_GROUND)])
def test_it_can_take_off_again_and_land_again(place, phase):
    world = make_world(place)
    first = come_down(world)
    assert world.phase is phase
    command(world, thrust=0.5)
    world.advance(1.0)
    assert world.phase is Phase.FLYING
    assert world.drone.position[2] > place[2] - 0.1
    assert world.touchdown is first
    second = come_down(world, seconds=10)
    assert second is not first
    assert second.time > first.time


@pytest.mark.parametrize("seed", range(10))
def test_it_takes_off_once_in_gusts_too(seed):
    world = make_world((0.0, 0.0, LANDING_GEAR), phase=Phase.ON_GROUND, gusts=0.5, seed=seed)
    world.rover.lead((9.0, 9.0), (0.0, 0.0))
    command(world, thrust=0.5)
    world.advance(3)
    assert world.phase is Phase.FLYING
    assert world.drone.position[2] > 1
    assert world.touchdown is None


def test_a_good_landing_is_within_every_limit():
    assert GOOD.is_good
    at_the_limits = replace(
        GOOD,
        position_error=MAX_POSITION_ERROR,
        vertical_speed=MAX_VERTICAL_SPEED,
        relative_speed=MAX_RELATIVE_SPEED,
    )
    assert at_the_limits.is_good
    for worse in (
        {"on_rover": False},
        {"position_error": MAX_POSITION_ERROR + 0.01},
        {"vertical_speed": MAX_VERTICAL_SPEED + 0.01},
        {"relative_speed": MAX_RELATIVE_SPEED + 0.01},
    ):
        assert not replace(GOOD, **worse).is_good


def test_a_touchdown_is_reported_in_one_line():
    assert GOOD.describe() == (
        "touchdown on the rover at t=1.00 s: position error 0.100 m, vertical speed 0.50 m/s, "
        "relative speed 0.20 m/s, good"
    )
    assert replace(GOOD, on_rover=False).describe().startswith("touchdown on the ground at ")
    assert replace(GOOD, on_rover=False).describe().endswith(", bad")


def test_rows_match_the_header():
    world = make_world((1.0, 2.0, 3.0), rover_velocity=(0.5, 0.25))
    command(world, thrust=0.5, pitch=0.1, roll=-0.2, yaw=0.3)
    row = dict(zip(COLUMNS, world.row(), strict=True))
    assert row["phase"] == "flying"
    assert [row[name] for name in ("x", "y", "z")] == [1, 2, 3]
    assert [row[name] for name in ("rover_x", "rover_y", "rover_vx", "rover_vy")] == [0, 0, 0.5, 0.25]
    assert [row[f"{name}_command"] for name in ("thrust", "pitch", "roll", "yaw")] == [0.5, 0.1, -0.2, 0.3]
    world.advance(5)
    assert world.row()[COLUMNS.index("yaw")] == pytest.approx(math.degrees(world.drone.yaw))


@pytest.mark.parametrize("pattern", [Pattern.STATIONARY, Pattern.CIRCULAR])
def test_a_drone_starts_a_few_metres_beside_the_rover(pattern):
    rover = Rover(pattern)
    starts = [drone_near(rover, 5.0, seed) for seed in range(200)]
    away = np.array([drone.position[:2] - rover.position for drone in starts])
    distances = np.linalg.norm(away, axis=1)
    assert (distances.min(), distances.max()) == pytest.approx((1, 3), abs=0.1)
    assert all(drone.position[2] == 5 for drone in starts)
    bearings = np.arctan2(away[:, 1], away[:, 0])
    yaws = np.array([drone.yaw for drone in starts])
    for angles in (bearings, yaws, bearings - yaws):
        assert abs(np.exp(1j * angles).mean()) < 0.2, "in any direction"
    assert np.array_equal(drone_near(rover, 5.0, 7).position, starts[7].position)
