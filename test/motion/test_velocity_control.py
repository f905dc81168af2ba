# SPDX-License-Identifier: Apache-2.0
"""Velocity control of a drone by rates and thrust, with the emulator's physics and the data of each layout."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rotations import of_testbed_angles
from testbed_velocity_flights import LAYOUTS, LEG_S, LEGS, STEP_S, WINDS, fly, speed_error

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.flight_control import DroneModel, RatesAndThrust, hover
from drone_bridge.motion.quaternions import MeasuredAttitude
from drone_bridge.motion.velocity_control import VelocityControl
from drone_bridge.motion.wind import WindRotation
from drone_bridge.testbed.vehicle.device.drone_state import DroneState

SPEED_TOLERANCE = 0.02  # m/s, in calm air
GUSTY_TOLERANCE = 0.1  # m/s, where positions are measured
FASTEST = math.radians(720)
DRONE = DroneModel(1.0, 9.81, 0.2, 25.0, FASTEST, FASTEST, FASTEST)
SCRIPT = [(LEG_S, leg) for velocity in LEGS for leg in (velocity, STILL)]


def way(flight):
    return float(np.linalg.norm(flight[-1].state.position - flight[0].state.position))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_velocities_are_followed_and_zero_stops_in_calm_air(layout):
    flight = fly(layout, SCRIPT)
    assert speed_error(flight) < SPEED_TOLERANCE
    tail = round(1 / STEP_S)
    for index, (_, velocity) in enumerate(SCRIPT):
        last = flight[round(LEG_S / STEP_S) * (index + 1) - tail : round(LEG_S / STEP_S) * (index + 1)]
        turned = np.mean([moment.flown.turn for moment in last])
        assert turned == pytest.approx(velocity.turn, abs=0.02)


@pytest.mark.parametrize(
    "wind", [pytest.param(wind, marks=[pytest.mark.exhaustive] * (not gusts)) for wind, (_, gusts) in WINDS.items()]
)
def test_positions_compensate_the_wind(wind):
    assert speed_error(fly("pose", SCRIPT, *WINDS[wind])) < GUSTY_TOLERANCE


def test_zero_holds_the_place_in_gusts():
    flight = fly("pose", [(30.0, STILL)], *WINDS["0.7 m/s, gusts 0.3 m/s"])
    assert max(np.linalg.norm(moment.state.position) for moment in flight) < 0.3


@pytest.mark.parametrize("layout", ["pose", "pitch_roll"])
@pytest.mark.parametrize(
    ("rotation", "farthest"),
    [
        pytest.param([(0, (-2, 3, 1.7))], 0.2, marks=pytest.mark.exhaustive),
        ([(0, (4, 4, 4)), (15, (-4, 4, 4)), (30, (0, -4, -4))], 0.2),
        ([(0, (9, 8, -9))], 0.5),
    ],
)
def test_wind_that_turns_the_drone_does_not_carry_it_away(layout, rotation, farthest):
    flight = fly(layout, [(30.0, STILL)], rotation=WindRotation(rotation))
    assert max(np.linalg.norm(moment.state.position) for moment in flight) < farthest


@given(layout=st.sampled_from(LAYOUTS), heading=st.floats(-180, 180), pitch=st.floats(-80, 80), roll=st.floats(-80, 80))
def test_any_attitude_ends_in_a_hover(layout, heading, pitch, roll):
    """Only with a measured roll: without it, a drone is assumed to start level."""
    roll = 0.0 if layout == "pitch_yaw" else roll
    start = DroneState(np.zeros(3), np.zeros(3), of_testbed_angles(heading, pitch, roll))
    flight = fly(layout, [(8.0, STILL)], start=start)
    assert max(map(abs, (*flight[-1].flown.linear, flight[-1].flown.turn))) < 0.02
    assert way(flight) < 5


def test_raw_rates_in_between_reset_the_position():
    """It does not return to a position that raw rates have left."""
    control = VelocityControl(DRONE)
    level = MeasuredAttitude(0.0, 0.0, 0.0)
    control.measured(0.0, level, (0.0, 0.0, 0.0))
    control.flown(control.command(STILL), is_velocity=True)
    for step in range(1, 60):
        control.flown(RatesAndThrust(0.0, 0.0, 0.0, 9.81), is_velocity=False)
        control.measured(step * STEP_S, level, (step * 0.003, 0.0, 0.0))
    control.flown(RatesAndThrust(0.0, 0.0, 0.0, 9.81), is_velocity=False)
    for step in range(60, 600):
        control.measured(step * STEP_S, level, (0.18, 0.0, 0.0))
        command = control.command(STILL)
        control.flown(RatesAndThrust(0.0, 0.0, 0.0, 9.81), is_velocity=True)
    assert abs(command.pitch_rate) < 0.2
    assert command.thrust == pytest.approx(9.81, abs=0.05)


def test_a_new_simulation_starts_over():
    control = VelocityControl(DRONE)
    level = MeasuredAttitude(0.0, 0.0, 0.0)
    for step in range(60):
        control.measured(step * STEP_S, level, (0.0, 0.0, -0.2 * step))
        control.flown(control.command(STILL), is_velocity=True)
    assert control.command(STILL).thrust > 12  # it falls
    control.measured(0.0, level, (0.0, 0.0, 0.0))
    assert control.command(STILL) == RatesAndThrust(0.0, 0.0, 0.0, 9.81)


@given(
    steps=st.lists(
        st.tuples(
            st.floats(-1, 3),
            st.tuples(*3 * [st.floats(-7, 7)]),
            st.tuples(*3 * [st.floats(-1e9, 1e9)]),
            st.tuples(*6 * [st.floats(-1e6, 1e6)]),
        ),
        max_size=12,
    )
)
@example(steps=[(step_s, 3 * (0.0,), 3 * (0.0,), 6 * (0.0,)) for step_s in (0.0, 1e-170, 1e-10, 1e-9)])
def test_any_measurements_give_commands_that_can_be_flown(steps):
    control = VelocityControl(DRONE)
    time_s = 0.0
    for step_s, angles, position, wanted in steps:
        time_s += step_s
        control.measured(time_s, MeasuredAttitude(*angles), position)
        command = control.command(control.within_maxima(BodyVelocity(*wanted)))
        assert command.is_finite
        assert 0 <= command.thrust <= DRONE.max_thrust
        control.flown(command, is_velocity=True)


def jumped(positions, step_s=STEP_S):
    """Return a control that has hovered by these positions, and its commands."""
    control, level, commands = VelocityControl(DRONE), MeasuredAttitude(0.0, 0.0, 0.0), []
    for number, x in enumerate(positions):
        control.measured(number * step_s, level, (x, 0.0, 0.0))
        commands.append(control.command(STILL))
        control.flown(RatesAndThrust(0.0, 0.0, 0.0, 9.81), is_velocity=True)
    return control, commands


@pytest.mark.parametrize(
    "positions",
    [
        [0.0] * 60 + [50.0] + [0.0] * 60,
        *([50.0 * (number % every == every - 1) for number in range(900)] for every in (4, 10)),
    ],
    ids=["once", "each fourth", "each tenth"],
)
def test_a_jump_of_the_position_is_not_followed(positions):
    control, commands = jumped(positions)
    assert max(abs(command.pitch_rate) for command in commands) < 0.01
    assert not control.doubts


def test_a_jump_that_lasts_is_doubted_for_a_while_and_not_followed():
    control, commands = jumped([0.0] * 60 + [50.0] * 500)
    assert control.doubts
    assert max(abs(command.pitch_rate) for command in commands) < 0.01
    control, commands = jumped([0.0] * 60 + [50.0] * 800)
    assert not control.doubts
    assert max(abs(command.pitch_rate) for command in commands) < 0.01


def test_measurements_that_are_too_far_apart_level_the_drone():
    control, commands = jumped([0.0, 0.3, 0.6, 0.9, 1.2], step_s=0.5)
    assert control.doubts
    assert commands[-1] == hover(DRONE)


@pytest.mark.parametrize("climbs_s", [0.5, 2.5])
def test_a_climb_that_ends_before_the_drone_lifts_off_leaves_it_on_the_ground(climbs_s):
    control, level, thrust = VelocityControl(DRONE), MeasuredAttitude(0.0, 0.0, 0.0), []
    for step in range(round(30 / STEP_S)):
        at_s = step * STEP_S
        control.measured(at_s, level, (0.0, 0.0, 0.0))  # the ground carries it
        up = -0.4 if at_s < 10.0 else 0.4 if at_s < 10.0 + climbs_s else 0.0
        command = control.command(BodyVelocity(up=up))
        control.flown(command, is_velocity=True)
        if at_s > 10.0 + climbs_s:
            thrust.append(command.thrust)
    assert max(thrust) < DRONE.mass * DRONE.gravity


def test_zero_below_the_height_at_which_a_climb_began_holds_that_height():
    legs = [(4.0, BodyVelocity(up=1.0)), (6.0, BodyVelocity(up=-1.0)), (8.0, STILL)]
    heights = [float(moment.state.position[1]) for moment in fly("pose", legs)]
    assert heights[-1] == pytest.approx(heights[round(10.0 / STEP_S)], abs=0.1)
