# SPDX-License-Identifier: Apache-2.0
"""Flights by velocities of the testbed's drone, per attitude layout, without a clock.

The emulated drone flies under the control law of testbed_bridge, which sees only what the wire carries (float32),
without sockets or ROS. The velocities are those of teleop_twist_keyboard, and a fast leg.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from drone_bridge.motion.attitude_estimator import MeasuredAttitude
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.motion.matrices import Triple
from drone_bridge.motion.velocity_control import VelocityCommand, VelocityControl, VelocityParameters
from drone_bridge.motion.wind import NO_ROTATION, Wind, WindRotation
from drone_bridge.testbed.device.drone_state import Airframe, DroneState, Motion

STEP_S = 1 / 60
LAYOUTS = ("pose", "pitch_yaw", "pitch_roll")
WINDS: dict[str, tuple[Triple, float]] = {  # velocity and gusts, m/s
    "none": ((0.0, 0.0, 0.0), 0.0),
    "1 m/s": ((1.0, 0.0, 0.0), 0.0),
    "0.7 m/s, gusts 0.3 m/s": ((0.5, 0.0, 0.5), 0.3),
}
LEG_S = 4.0
LEGS = (
    VelocityCommand(forward=0.5),
    VelocityCommand(forward=-0.5),
    VelocityCommand(left=0.5),
    VelocityCommand(up=0.5),
    VelocityCommand(up=-0.5),
    VelocityCommand(yaw_rate=1.0),
    VelocityCommand(forward=0.5, yaw_rate=1.0),
    VelocityCommand(forward=3.0),
)


@dataclass(frozen=True, slots=True)
class Moment:
    """One step of a flight, measured from outside."""

    commanded: VelocityCommand
    flown: VelocityCommand  # in the same frame
    state: DroneState


def fly(
    layout: str,
    script: list[tuple[float, VelocityCommand]],
    wind: Triple = (0.0, 0.0, 0.0),
    gusts: float = 0.0,
    *,
    airframe: Airframe | None = None,
    start: DroneState | None = None,
    rotation: WindRotation = NO_ROTATION,
) -> list[Moment]:
    """Fly a script of (seconds, velocity) and return every step of it."""
    airframe = airframe or Airframe()
    fastest = math.radians(720)
    drone = DroneModel(airframe.mass, airframe.gravity, airframe.drag, 25.0, fastest, fastest, fastest)
    control = VelocityControl(drone, VelocityParameters())
    state, air = start or DroneState.at_start(), Wind(wind, gusts, seed=1)
    flight = []
    for duration_s, wanted in script:
        for _ in range(round(duration_s / STEP_S)):
            control.measured(float(np.float32(state.time)), *_seen(layout, state))
            command = control.command(wanted)
            control.flown(command, is_velocity=True)
            pitch, roll, yaw = map(math.degrees, (command.pitch_rate, command.roll_rate, -command.yaw_rate))
            motion = Motion(pitch, roll, yaw, command.thrust)
            before, state = (
                state,
                state.advance(airframe, motion, air.velocity, STEP_S, rotation.at(state.time + STEP_S / 2)),
            )
            air.advance(STEP_S)
            flight.append(Moment(wanted, _velocity(before, state), state))
    return flight


def _seen(layout: str, state: DroneState) -> tuple[MeasuredAttitude, Triple | None]:
    """Return what the layout carries of a state."""
    heading, pitch, roll = (math.radians(float(np.float32(angle))) for angle in state.angles)
    attitude = MeasuredAttitude(
        roll=None if layout == "pitch_yaw" else roll,
        pitch=pitch,
        yaw=None if layout == "pitch_roll" else math.remainder(math.pi / 2 - heading, math.tau),
    )
    x, y, z = (float(np.float32(value)) for value in state.position)
    return attitude, (x, -z, y) if layout == "pose" else None


def _velocity(before: DroneState, state: DroneState) -> VelocityCommand:
    """Return how a drone moves, in the levelled frame that looks where it looks."""
    headings = [math.radians(moment.angles[0]) for moment in (before, state)]
    x, up, z = state.velocity.tolist()
    sine, cosine = math.sin(headings[1]), math.cos(headings[1])
    turned = math.remainder(headings[0] - headings[1], math.tau)
    return VelocityCommand(sine * x - cosine * z, -cosine * x - sine * z, up, turned / STEP_S)


def speed_error(flight: list[Moment]) -> float:
    """Return the largest difference, m/s, between the velocity commanded and the mean one of its last second."""
    worst, tail = 0.0, round(1 / STEP_S)
    for end in range(round(LEG_S / STEP_S), len(flight) + 1, round(LEG_S / STEP_S)):
        flown = np.mean([moment.flown[:3] for moment in flight[end - tail : end]], axis=0)
        worst = max(worst, float(np.linalg.norm(flown - np.array(flight[end - 1].commanded[:3]))))
    return worst
