# SPDX-License-Identifier: Apache-2.0
"""How the drone that lands on a rover flies, against what the laws of motion say in closed form."""

import math

import numpy as np
import pytest
from examples import examples
from hypothesis import given
from hypothesis import strategies as st

from drone_bridge.telemetry.codec import DroneCommand
from drone_bridge.telemetry.emulator.flight import (
    GRAVITY,
    MAX_THRUST_TO_WEIGHT,
    VERTICAL_SHARE_OF_GUSTS,
    Airframe,
    Drone,
    GustyWind,
    rotation_from_euler,
)
from drone_bridge.telemetry.emulator.world import STEP_S

STILL = np.zeros(3)
START = (1.0, -2.0, 5.0)


def fly(seconds, *, heading=0.0, airframe=None, wind=STILL, step=STEP_S, **command):
    drone = Drone(START, heading, airframe)
    drone.command = DroneCommand(**command)
    return advance(drone, seconds, wind, step)


def advance(drone, seconds, wind=STILL, step=STEP_S):
    for _ in range(round(seconds / step)):
        drone.advance(step, wind)
    return drone


def test_hover_holds_its_place():
    drone = fly(60)
    assert drone.position == pytest.approx(START, abs=1e-9)
    assert (drone.roll, drone.pitch, drone.yaw) == (0, 0, 0)
    assert not drone.body_rates.any()


@pytest.mark.parametrize("thrust", [1.0, 0.5, -1.0])
def test_climb_settles_where_drag_balances_the_margin(thrust):
    airframe = Airframe()
    drone = fly(10, thrust=thrust)
    assert drone.velocity[2] == pytest.approx(thrust * airframe.thrust_margin / airframe.vertical_drag, rel=1e-3)
    assert 2 <= abs(drone.velocity[2] / thrust) <= 3
    assert drone.velocity[:2] == pytest.approx([0, 0])


def test_climb_follows_thrust_and_drag_through_time():
    """Two first-order lags in series, of thrust and of speed, answer to a step with two exponentials."""
    airframe = Airframe()
    lag, decay, t = airframe.thrust_lag, airframe.vertical_drag, 0.6
    slow, fast = math.exp(-decay * t), math.exp(-t / lag)
    expected = airframe.thrust_margin / decay * (1 - (slow - decay * lag * fast) / (1 - decay * lag))
    assert fly(t, thrust=1.0).velocity[2] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("command", "direction"),
    [({"pitch": 0.2}, (1, 0)), ({"pitch": -0.2}, (-1, 0)), ({"roll": 0.2}, (0, -1)), ({"roll": -0.2}, (0, 1))],
    ids=["forward", "backward", "right", "left"],
)
@pytest.mark.parametrize("heading", [0.0, 2.0])
def test_speed_settles_where_drag_balances_tilt(command, direction, heading):
    drone = fly(30, heading=heading, **command)
    speed = GRAVITY * math.tan(0.2) / Airframe().horizontal_drag
    forward, left = np.array(direction) * speed
    expected = (
        forward * math.cos(heading) - left * math.sin(heading),
        forward * math.sin(heading) + left * math.cos(heading),
    )
    assert drone.velocity[:2] == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert drone.position[2] == pytest.approx(5, abs=1e-6), "the lift is kept while tilting"


def test_attitude_answers_as_a_second_order_system():
    airframe = Airframe()
    frequency, damping = airframe.attitude_frequency, airframe.attitude_damping
    ringing = frequency * math.sqrt(1 - damping**2)
    overshoot = math.exp(-math.pi * damping / math.sqrt(1 - damping**2))
    drone = fly(math.pi / ringing, roll=0.3, step=0.001)
    assert drone.roll == pytest.approx(0.3 * (1 + overshoot), rel=0.01)
    assert advance(drone, 2).roll == pytest.approx(0.3, rel=1e-3)


def test_positive_yaw_keeps_turning_left():
    drone = fly(10, yaw=0.5)
    assert drone.body_rates == pytest.approx([0, 0, 0.5], abs=1e-6)
    turned = 0.5 * (10 - Airframe().yaw_lag)
    assert drone.yaw == pytest.approx(math.remainder(turned, math.tau), abs=0.01)


def test_body_rates_are_those_of_the_rotation():
    drone = fly(0.15, pitch=0.5, roll=-0.4, yaw=0.5)
    before = drone.rotation
    rates = drone.body_rates
    advance(drone, 1e-4, step=1e-4)
    turned = before.T @ (drone.rotation - before) / 1e-4
    assert [turned[2, 1], turned[0, 2], turned[1, 0]] == pytest.approx(rates, abs=0.01)


def test_wind_carries_a_level_drone_along():
    wind = np.array([1.0, -2.0, 0.0])
    assert fly(30, wind=wind).velocity == pytest.approx(wind, abs=1e-3)


def test_thrust_has_a_maximum():
    drone = fly(5, airframe=Airframe(thrust_margin=100.0), thrust=1.0)
    assert drone.velocity[2] == pytest.approx((MAX_THRUST_TO_WEIGHT - 1) * GRAVITY / 2, rel=1e-3)


def test_the_length_of_steps_does_not_change_the_flight():
    command = {"thrust": 0.3, "pitch": 0.3, "roll": -0.2, "yaw": 0.4}
    assert fly(3, **command, step=0.0025).position == pytest.approx(fly(3, **command).position, abs=0.05)


def test_standing_is_level_and_takes_the_speed_of_what_it_stands_on():
    drone = fly(2, thrust=1.0, pitch=0.5, yaw=0.5)
    drone.stand(STEP_S, np.array([1.0, 2.0, 0.4]), np.array([0.5, 0.0, 0.0]))
    assert (drone.roll, drone.pitch) == (0, 0)
    assert not drone.body_rates.any()
    assert drone.velocity.tolist() == [0.5, 0.0, 0.0]


def test_motors_of_a_drone_that_stands_idle_until_told_to_climb():
    drone = fly(2, thrust=-1.0)

    def stand():
        for _ in range(200):
            drone.stand(STEP_S, drone.position, STILL)

    stand()
    assert drone.thrust == pytest.approx(0, abs=1e-3)
    drone.command = DroneCommand(thrust=0.6)
    stand()
    assert drone.thrust == pytest.approx(0.6, abs=1e-3)


def test_a_rotation_takes_the_body_to_the_world():
    assert rotation_from_euler(0, 0, math.pi / 2) @ [1, 0, 0] == pytest.approx([0, 1, 0])
    nose_down = rotation_from_euler(0, 0.3, 0) @ [1, 0, 0]
    assert nose_down == pytest.approx([math.cos(0.3), 0, -math.sin(0.3)])
    right_side_down = rotation_from_euler(0.3, 0, 0) @ [0, -1, 0]
    assert right_side_down == pytest.approx([0, -math.cos(0.3), -math.sin(0.3)])


def test_gusts_have_their_deviation_and_repeat_with_their_seed():
    def gusts(seed, steady=(0.0, 0.0, 0.0)):
        wind = GustyWind(steady, 0.8, seed)
        blown = []
        for _ in range(20000):
            wind.advance(0.5)
            blown.append(wind.velocity)
        return np.array(blown)

    blown = gusts(1)
    assert blown.std(axis=0) == pytest.approx([0.8, 0.8, 0.8 * VERTICAL_SHARE_OF_GUSTS], rel=0.1)
    assert blown.mean(axis=0) == pytest.approx([0, 0, 0], abs=0.05)
    assert np.array_equal(blown, gusts(1))
    assert not np.array_equal(blown, gusts(2))
    assert gusts(1, (3.0, 0.0, -1.0)) == pytest.approx(np.add(blown, [3.0, 0.0, -1.0]))


commands = st.builds(DroneCommand, st.floats(-1, 1), *[st.floats(-0.5, 0.5)] * 3)


@examples(30)
@given(st.lists(st.tuples(commands, st.integers(1, 200)), max_size=10))
def test_whatever_is_commanded_the_camera_looks_down(flown):
    """Attitude stays so far from the horizon that each corner of the image shows ground."""
    drone = Drone(START)
    for command, steps in flown:
        drone.command = command
        for _ in range(steps):
            drone.advance(STEP_S, STILL)
            assert np.isfinite(drone.position).all()
            assert np.linalg.norm(drone.velocity) < 25
            tilt = math.acos(drone.rotation[2, 2])
            assert math.degrees(tilt) + 36 < 90
