# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
from rotations import of_testbed_angles

from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState
from drone_bridge.testbed.vehicle.emulator.world import SphereWorld, WorldFlight

CALM = np.zeros(3)
STEP = 1 / 60  # s


def fly(state, airframe, motion, steps, wind=CALM, step=STEP):
    for _ in range(steps):
        state = state.advance(airframe, motion, wind, step)
    return state


def facing(heading=0.0, pitch=0.0, roll=0.0):
    return DroneState(np.zeros(3), np.zeros(3), of_testbed_angles(heading, pitch, roll))


@pytest.mark.parametrize("step", [STEP, 1 / 7, 2.0])
def test_falling_through_air_follows_the_exponential_at_any_step(step):
    airframe = Airframe(mass=2, drag=0.5)
    steps = round(4 / step)
    state = fly(DroneState.at_start(), airframe, DroneInput(), steps, step=step)
    time, terminal, decay = steps * step, 2 * 9.81 / 0.5, 0.5 / 2
    assert state.velocity[1] == pytest.approx(-terminal * (1 - math.exp(-decay * time)), rel=1e-9)
    fallen = terminal * (time - (1 - math.exp(-decay * time)) / decay)
    assert state.position[1] == pytest.approx(-fallen, rel=1e-9)


def test_the_ground_ends_a_descent_and_lets_the_drone_rise():
    flight = WorldFlight(SphereWorld.random(0, ground=-3.0), Airframe(), STEP)
    for thrust, height in ((0.0, -3.0), (0.0, -3.0), (20.0, 1.0)):
        for _ in range(120):
            flight.advance(DroneInput(thrust=thrust))
        assert flight.state.position[1] == pytest.approx(-3.0) if thrust == 0.0 else flight.state.position[1] > height


def test_wind_turns_the_drone_about_the_world_s_axes_whatever_its_attitude():
    state = facing(heading=90, roll=90)  # its nose points to +x, its right side down
    for _ in range(60):
        state = state.advance(Airframe(), DroneInput(), CALM, STEP, np.array([0.0, 0.0, 30.0]))
    assert state.angles == pytest.approx((90, -30, 90), abs=1e-9)
    commanded = facing(pitch=20).advance(Airframe(), DroneInput(pitch_rate=9, roll_rate=5, yaw_rate=-7), CALM, STEP)
    blown = facing(pitch=20)
    rates = blown.rotation @ [-9.0, 7.0, -5.0]  # about the body's axes, right-handed
    assert blown.advance(Airframe(), DroneInput(), CALM, STEP, rates).rotation == pytest.approx(commanded.rotation)


def test_turning_within_a_step_is_integrated_and_not_frozen():
    motion = DroneInput(pitch_rate=200, roll_rate=-300, yaw_rate=500, thrust=20)
    airframe, start, wind = Airframe(drag=0.7), facing(20, -30, 40), np.array([1.0, -2, 3])
    coarse = fly(start, airframe, motion, 6, wind, step=1 / 6)
    fine = fly(start, airframe, motion, 6000, wind, step=1 / 6000)
    assert coarse.position == pytest.approx(fine.position, abs=1e-8)
    assert coarse.velocity == pytest.approx(fine.velocity, abs=1e-8)
    assert coarse.rotation == pytest.approx(fine.rotation, abs=1e-8)


def test_random_worlds_are_as_promised():
    worlds = [SphereWorld.random(seed, obstacles=seed % 5) for seed in range(100)]
    bearings = []
    for world in worlds:
        (target,) = world.targets
        x, y, z = target.centre
        distance = math.hypot(x, y, z)
        bearings.append(math.atan2(x, -z))
        assert (target.radius, target.colour) == (0.5, (255, 0, 0))
        assert 4 <= distance <= 12
        assert abs(math.degrees(math.asin(y / distance))) <= 35
        assert math.hypot(*world.wind) <= 1
        assert all(math.hypot(*sphere.centre) > sphere.radius + 1 for sphere in world.obstacles)
    assert [len(world.obstacles) for world in worlds] == [seed % 5 for seed in range(100)]
    assert min(bearings) < -2.5
    assert max(bearings) > 2.5


def test_a_world_without_room_for_another_obstacle_is_refused():
    with pytest.raises(ValueError, match="no room left"):
        SphereWorld.random(0, obstacles=100000)
