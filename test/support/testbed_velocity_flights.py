# SPDX-License-Identifier: Apache-2.0
"""Flights by velocities of the testbed's drone, per attitude layout, without a clock.

The emulated drone flies under the control law of testbed_bridge, which sees only what the wire carries (float32),
without sockets or ROS. The velocities are those of teleop_twist_keyboard, and a fast leg.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.matrices import Triple
from drone_bridge.motion.wind import NO_ROTATION, Wind, WindRotation
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame
from drone_bridge.testbed.session.flight import TestbedFlight
from drone_bridge.testbed.vehicle.device.drone_state import Airframe, DroneInput, DroneState

CONSTANTS = Constants(90.0, 90.0, 1, 1, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
STEP_S = 1 / 60
LAYOUTS = ("pose", "pitch_yaw", "pitch_roll")
WINDS: dict[str, tuple[Triple, float]] = {  # velocity and gusts, m/s
    "none": ((0.0, 0.0, 0.0), 0.0),
    "1 m/s": ((1.0, 0.0, 0.0), 0.0),
    "0.7 m/s, gusts 0.3 m/s": ((0.5, 0.0, 0.5), 0.3),
}
LEG_S = 4.0
LEGS = (
    BodyVelocity(forward=0.5),
    BodyVelocity(forward=-0.5),
    BodyVelocity(left=0.5),
    BodyVelocity(up=0.5),
    BodyVelocity(up=-0.5),
    BodyVelocity(turn=1.0),
    BodyVelocity(forward=0.5, turn=1.0),
    BodyVelocity(forward=3.0),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of a flight, measured from outside."""

    commanded: RatesAndThrust | BodyVelocity | None
    answer: MotionParameters
    flown: BodyVelocity  # in the levelled frame that looks where the drone looks
    state: DroneState


def make_flight(constants: Constants = CONSTANTS) -> TestbedFlight:
    """Return the command conversion of testbed_bridge."""
    return TestbedFlight(constants, AngleUnit.DEGREES)


def frame_of(layout: str, state: DroneState) -> SensorFrame:
    """Return the part of a state that the layout carries."""
    heading, pitch, roll = (float(np.float32(angle)) for angle in state.angles)
    x, y, z = (float(np.float32(value)) for value in state.position)
    return SensorFrame(
        b"",
        b"",
        float(np.float32(state.time)),
        pitch,
        None if layout == "pitch_yaw" else roll,
        None if layout == "pitch_roll" else heading,
        (x, y, z) if layout == "pose" else None,
    )


def fly(
    layout: str,
    script: list[tuple[float, RatesAndThrust | BodyVelocity | None]],
    wind: Triple = (0.0, 0.0, 0.0),
    gusts: float = 0.0,
    *,
    start: DroneState | None = None,
    rotation: WindRotation = NO_ROTATION,
) -> list[Moment]:
    """Fly a script of (seconds, command) pairs. Return all steps."""
    bridge, state, air = make_flight(), start or DroneState.at_start(), Wind(wind, gusts, seed=1)
    flight = []
    for duration_s, wanted in script:
        for _ in range(round(duration_s / STEP_S)):
            bridge.reported(bridge.measurement(frame_of(layout, state)), 0.0)
            answer, _ = bridge.answer(wanted)
            motion, turned = DroneInput.from_answer(answer, AngleUnit.DEGREES), rotation.at(state.time + STEP_S / 2)
            before, state = state, state.advance(Airframe(), motion, air.velocity, STEP_S, turned)
            air.advance(STEP_S)
            flight.append(Moment(wanted, answer, _velocity(before, state), state))
    return flight


def _velocity(before: DroneState, state: DroneState) -> BodyVelocity:
    """Return the velocity of a drone in its levelled frame."""
    headings = [math.radians(moment.angles[0]) for moment in (before, state)]
    x, up, z = state.velocity.tolist()
    sine, cosine = math.sin(headings[1]), math.cos(headings[1])
    turned = math.remainder(headings[0] - headings[1], math.tau)
    return BodyVelocity(sine * x - cosine * z, -cosine * x - sine * z, up, turn=turned / STEP_S)


def speed_error(flight: list[Moment]) -> float:
    """Return the largest difference, m/s, between a commanded velocity and the mean of its last second."""
    worst, tail = 0.0, round(1 / STEP_S)
    for end in range(round(LEG_S / STEP_S), len(flight) + 1, round(LEG_S / STEP_S)):
        flown = np.mean([moment.flown.linear for moment in flight[end - tail : end]], axis=0)
        wanted = flight[end - 1].commanded or STILL
        assert isinstance(wanted, BodyVelocity)
        worst = max(worst, float(np.linalg.norm(flown - np.array(wanted.linear))))
    return worst
