# SPDX-License-Identifier: Apache-2.0
"""How testbed_bridge makes answers of commands: of velocities, of rates and thrust, and of none."""

from dataclasses import astuple, replace
from functools import partial

import numpy as np
import pytest

from drone_bridge.motion.velocity_control import VelocityCommand, VelocityParameters
from drone_bridge.testbed.bridge.flight import TestbedFlight
from drone_bridge.testbed.codec import AngleUnit, Constants, SensorFrame
from drone_bridge.testbed.device.drone_state import Airframe, DroneState, Motion
from drone_bridge.testbed.topics import BodyRates, Command, pose

CONSTANTS = Constants(90.0, 90.0, 4, 4, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
STEP_S = 1 / 30
FORWARD = VelocityCommand(forward=1.0)
POSE = partial(pose, unit=AngleUnit.DEGREES)
LAYOUTS = ["pitch_yaw", "pitch_roll", "pose"]


def frame(layout, state):
    heading, pitch, roll = (float(np.float32(angle)) for angle in state.angles)
    return SensorFrame(
        b"",
        b"",
        time=float(np.float32(state.time)),
        pitch=pitch,
        roll=None if layout == "pitch_yaw" else roll,
        yaw=None if layout == "pitch_roll" else heading,
        position=tuple(float(np.float32(value)) for value in state.position) if layout == "pose" else None,
    )


def fly(layout, commands, airframe=None, flight=None):
    """Return the answers to the frames of a simulated drone, one for each command."""
    airframe = airframe or Airframe(1.0, 9.81, 0.2)
    flight = flight or TestbedFlight(CONSTANTS, AngleUnit.DEGREES, VelocityParameters(), POSE)
    state, answers = DroneState.at_start(), []
    for command in commands:
        flight.see(frame(layout, state))
        answer, _ = flight.answer(command)
        answers.append(answer)
        state = state.advance(airframe, Motion(*astuple(answer)), np.zeros(3), STEP_S)
    return answers


def numbers(answers):
    return np.array([astuple(answer) for answer in answers])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_drone_that_nobody_commands_stays_where_it_is(layout):
    flight = TestbedFlight(CONSTANTS, AngleUnit.DEGREES, VelocityParameters(), POSE)
    answers = numbers(fly(layout, [None] * 30, flight=flight))
    assert np.abs(answers - astuple(flight.neutral)).max() < 1e-6


def moved(first, index, **changes):
    """Return the frames of a drone at rest, of which one differs."""
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
    flight = TestbedFlight(CONSTANTS, AngleUnit.DEGREES, VelocityParameters(), POSE)
    answers = []
    for seen in moved(frame(layout, DroneState.at_start()), index, **changes):
        flight.see(seen)
        answers.append(flight.answer(None)[0])
    assert any(answer != flight.neutral for answer in answers[index : index + 2])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_drone_that_was_turned_by_rates_is_not_turned_back_when_they_end(layout):
    """Nor does it take longer to come to rest where the frames are few."""
    answers = fly(layout, [None] * 5 + [Command(BodyRates(0.0, 0.0, 0.5), 9.81)] * 20 + [None] * 5)
    assert abs(answers[24].yaw_rate) == pytest.approx(np.degrees(0.5))
    assert np.abs(numbers(answers[25:])[:, :3]).max() < 0.05


def test_a_drone_that_cannot_fly_velocities_gets_neutral_answers():
    flight = TestbedFlight(replace(CONSTANTS, gravity=0.0), AngleUnit.DEGREES, VelocityParameters(), POSE)
    assert flight.problem
    assert set(fly("pose", [None, FORWARD, FORWARD, None], Airframe(1.0, 0.0, 0.2), flight)) == {flight.neutral}
