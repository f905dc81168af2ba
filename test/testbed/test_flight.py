# SPDX-License-Identifier: Apache-2.0
"""Conversion of commands to replies by testbed_bridge: velocities, rates and thrust, and no command."""

import math
from dataclasses import astuple, replace

import numpy as np
import pytest
import testbed_velocity_flights as measuring
from testbed_velocity_flights import CONSTANTS, STEP_S, frame_of, make_flight

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.velocity_control import MAX_CLIMB_SPEED
from drone_bridge.motion.wind import Wind
from drone_bridge.testbed.codec import AngleUnit
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState

FORWARD = BodyVelocity(forward=1.0)
LAYOUTS = ["pitch_yaw", "pitch_roll", "pose"]


def fly(layout, *commands):
    """Return the replies to the frames of a simulated drone, with the number of frames for each command."""
    flight = measuring.fly(layout, [(count * STEP_S, command) for count, command in commands])
    return [moment.answer for moment in flight]


def numbers(answers):
    return np.array([astuple(answer) for answer in answers])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_drone_that_nobody_commands_stays_where_it_is(layout):
    answers = numbers(fly(layout, (60, None)))
    assert np.abs(answers - astuple(make_flight().neutral)).max() < 1e-6


def moved(first, index, **changes):
    """Return the frames of a drone at rest, one of which differs."""
    frames = [replace(first, time=number * STEP_S) for number in range(10)]
    frames[index] = replace(frames[index], **changes)
    return frames


@pytest.mark.parametrize(
    ("layout", "changes"),
    [
        ("pitch_yaw", {"pitch": 1.0}),
        ("pitch_yaw", {"yaw": 1.0}),
        ("pitch_roll", {"roll": -1.0}),
        ("pose", {"position": (0.0, 0.0, 0.01)}),
    ],
)
@pytest.mark.parametrize("index", [0, 5])
def test_a_drone_that_moves_by_itself_is_righted(layout, changes, index):
    flight = make_flight()
    answers = []
    for seen in moved(frame_of(layout, DroneState.at_start()), index, **changes):
        flight.reported(flight.measurement(seen), 0.0)
        answers.append(flight.answer(None)[0])
    assert any(answer != flight.neutral for answer in answers[index : index + 2])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_drone_that_was_turned_by_rates_is_not_turned_back_when_they_end(layout):
    """It does not take longer to come to rest at a low frame rate."""
    answers = fly(layout, (5, None), (20, RatesAndThrust(0.0, 0.0, 0.5, 9.81)), (5, None))
    assert abs(answers[24].yaw_rate) == pytest.approx(np.degrees(0.5))
    assert np.abs(numbers(answers[25:])[:, :3]).max() < 0.05


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_turn_that_a_stall_has_cut_short_is_not_made_up_for(layout):
    flight, state, still, step_s = make_flight(), DroneState.at_start(), np.zeros(3), 0.05
    answers = []
    for number in range(40):
        flight.reported(flight.measurement(frame_of(layout, state)), 0.0)
        answer, _ = flight.answer(BodyVelocity(turn=0.5) if number < 20 else None)
        if number == 19:
            flight.replaced()
            answer = flight.neutral
        answers.append(answer)
        state = state.advance(Airframe(), DroneInput.from_answer(answer, AngleUnit.DEGREES), still, step_s, still)
    turned = np.abs(numbers(answers)[:, 2])
    assert turned[18] == pytest.approx(np.degrees(0.5), abs=0.5)
    assert turned[19:].max() < 0.05


def test_velocities_are_bounded_before_the_flight_and_raw_ones_in_replies():
    flight, fast = make_flight(), BodyVelocity(forward=30.0, left=40.0, up=-9.0, turn=99.0)
    allowed = flight.within_maxima(fast)
    assert math.hypot(allowed.forward, allowed.left) == pytest.approx(5.0)
    assert allowed.left / allowed.forward == pytest.approx(4.0 / 3.0)
    assert (allowed.up, allowed.turn) == (-MAX_CLIMB_SPEED, math.radians(CONSTANTS.max_yaw_rate))
    assert flight.within_maxima(FORWARD) == FORWARD
    spinning = RatesAndThrust(99.0, 0.0, 0.0, 10.0)
    assert flight.within_maxima(spinning) == spinning
    answer, was_within = flight.answer(spinning)
    assert (answer.roll_rate, was_within) == (CONSTANTS.max_roll_rate, False)


def test_a_drone_that_cannot_fly_velocities_gets_neutral_answers():
    flight = make_flight(replace(CONSTANTS, gravity=0.0))
    assert flight.problem
    for command in (None, FORWARD):
        flight.reported(flight.measurement(frame_of("pose", DroneState.at_start())), 0.0)
        assert flight.answer(command) == (flight.neutral, command is None)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_drone_whose_time_stands_still_is_levelled(layout):
    """The body continues to rotate by the replies."""
    flight, state, still, tilts = make_flight(), DroneState.at_start(), np.zeros(3), []
    for _ in range(600):
        frame = frame_of(layout, state)
        flight.reported(flight.measurement(replace(frame, time=min(frame.time, 1.0))), 0.0)
        answer, _ = flight.answer(BodyVelocity(forward=2.0))
        state = state.advance(Airframe(), DroneInput.from_answer(answer, AngleUnit.DEGREES), still, STEP_S, still)
        tilts.append(max(map(abs, state.angles[1:])))
    assert max(tilts) < 40.0
    assert tilts[-1] < 1.0
    assert any("stalled" in doubt for doubt in flight.doubts)


def test_time_in_milliseconds_is_not_flown_by_until_the_unit_is_set():
    flight, first = make_flight(), frame_of("pose", DroneState.at_start())
    for number in range(60):
        flight.reported(
            flight.measurement(replace(first, time=1000.0 * number * STEP_S, position=(0.01 * number, 0.0, 0.0))), 0.0
        )
        answer, _ = flight.answer(FORWARD)
    assert any("time_unit" in doubt for doubt in flight.doubts)
    assert answer == flight.neutral


def flown_by(lie, seconds=14.0, wind=(0.0, 0.0, 0.0), gusts=0.0, drag=0.2):
    """Fly 1 m/s and stop, in the pose layout; return the maximum speed, m/s, and all doubts."""
    flight, state, air = make_flight(replace(CONSTANTS, drag=drag)), DroneState.at_start(), Wind(wind, gusts, seed=3)
    fastest, doubts = 0.0, set()
    for number in range(round(seconds / STEP_S)):
        frame = frame_of("pose", state)
        flight.reported(flight.measurement(replace(frame, position=lie(frame.position, number))), 0.0)
        answer, _ = flight.answer(FORWARD if number < seconds / 2 / STEP_S else None)
        motion = DroneInput.from_answer(answer, AngleUnit.DEGREES)
        state = state.advance(Airframe(), motion, air.velocity, STEP_S, np.zeros(3))
        air.advance(STEP_S)
        fastest, doubts = max(fastest, float(np.linalg.norm(state.velocity))), doubts | set(flight.doubts)
    return fastest, doubts


@pytest.mark.parametrize(
    "lie",
    [
        lambda position, _: (0.0, 0.0, 0.0),
        lambda position, _: tuple(-each for each in position),
        lambda position, _: tuple(1000.0 * each for each in position),
    ],
    ids=["zero", "sign", "unit"],
)
def test_positions_that_are_wrong_are_doubted_and_fly_nothing_away(lie):
    fastest, doubts = flown_by(lie)
    assert doubts
    assert fastest < 1.0 + 5.0


@pytest.mark.parametrize("drag", [0.14, 0.2, 0.26])
def test_wind_is_no_wrong_position(drag):
    fastest, doubts = flown_by(lambda position, _: position, 30.0, (4.0, 0.0, 3.0), 1.0, drag)
    assert not doubts
    assert fastest < 4.0
