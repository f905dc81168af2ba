# SPDX-License-Identifier: Apache-2.0
"""Signs, units and axes of the testbed: to SI units in the axes of REP 103, and back. Pure.

The wire has degrees (or radians, with some testbeds) and otherwise SI units. Its world has y up and a heading that
turns right.
"""

import math
from typing import NamedTuple

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, quaternion_from_euler, rotated_back
from drone_bridge.testbed.codec import AngleUnit, Constants, MotionParameters, SensorFrame, within_maxima

#: Levelling out: rate per angle of tilt, 1/s, and maximum rate, rad/s.
LEVELLING_GAIN, MAX_LEVELLING_RATE = 4.0, 1.5


def wire_from_radians(angle: float, unit: AngleUnit) -> float:
    """Convert an angle or angular rate to the unit of the wire."""
    return angle if unit.half_turn == math.pi else math.degrees(angle)


# The testbed's world is right-handed with y up. Heading 0 looks along -z, and x is to the right. On a map, -z is north,
# x is east, and the heading is clockwise from north, like a compass.


def enu_from_testbed(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Convert a point or vector from the testbed's world to ENU: x is east, -z is north, y is up."""
    return x, -z, y


def testbed_from_enu(east: float, north: float, up: float) -> tuple[float, float, float]:
    """Convert a point or vector from ENU to the testbed's world: x, y, z."""
    return east, up, -north


def enu_yaw_from_heading(heading: float) -> float:
    """Convert a heading (clockwise from north) to a yaw (counter-clockwise from east), rad."""
    return math.remainder(math.pi / 2 - heading, 2 * math.pi)


def heading_from_enu_yaw(yaw: float) -> float:
    """Convert a yaw (counter-clockwise from east) to a heading (clockwise from north), rad."""
    return math.remainder(math.pi / 2 - yaw, 2 * math.pi)


def testbed_from_orientation(q: Quaternion) -> tuple[float, float, float]:
    """Return pitch (within a quarter turn), roll and heading, rad, of an orientation in ENU."""
    roll, pitch, yaw = euler_from_quaternion(q)
    return pitch, roll, heading_from_enu_yaw(yaw)


class BodyRates(NamedTuple):
    """Angular velocity of the body about its own axes, rad/s, REP 103."""

    roll: float  # about x: positive banks right
    pitch: float  # about y: positive lowers the nose
    yaw: float  # about z: positive turns left


def testbed_rates_from_body(rates: BodyRates) -> tuple[float, float, float]:
    """Return pitch, roll and yaw rate in the testbed's signs, rad/s: its yaw rate is positive to the right."""
    return rates.pitch, rates.roll, 0.0 - rates.yaw  # -x would turn 0.0 into -0.0, which has other bytes


def body_from_testbed_rates(pitch: float, roll: float, yaw: float) -> BodyRates:
    """Return the body rates for rates in the testbed's signs, rad/s."""
    return BodyRates(roll, pitch, 0.0 - yaw)


# Commands.


class BodyRatesCommand(NamedTuple):
    """Command of body rates, and thrust along the body's z axis, N."""

    rates: BodyRates
    thrust: float


def hover(constants: Constants) -> BodyRatesCommand:
    """Return the command that keeps a level drone in place: no rotation, and thrust equal to its weight."""
    return BodyRatesCommand(BodyRates(0.0, 0.0, 0.0), constants.weight * abs(constants.gravity))


def tilt_of(attitude: Quaternion) -> float:
    """Return the angle between a drone's up axis and the world's, rad."""
    x, y, z = rotated_back(attitude, 0.0, 0.0, 1.0)
    return math.atan2(math.hypot(x, y), z)


def levelling(constants: Constants, attitude: Quaternion) -> BodyRatesCommand:
    """Return the command that rotates a drone to level while carrying its weight."""
    up_x, up_y, up_z = rotated_back(attitude, 0.0, 0.0, 1.0)  # in the body frame
    tilt_sine = math.hypot(up_x, up_y)
    rate = min(LEVELLING_GAIN * math.atan2(tilt_sine, up_z), MAX_LEVELLING_RATE)
    thrust = hover(constants).thrust / max(up_z, 0.5)
    if constants.max_thrust > 0:
        thrust = min(thrust, constants.max_thrust)
    if tilt_sine < 1e-9:
        return BodyRatesCommand(BodyRates(0.0, 0.0, 0.0), thrust)
    return BodyRatesCommand(BodyRates(-rate * up_y / tilt_sine, rate * up_x / tilt_sine, 0.0), thrust)


def motion_parameters(
    command: BodyRatesCommand, constants: Constants, unit: AngleUnit
) -> tuple[MotionParameters, bool]:
    """Convert a command to the wire, clamped to the announced maxima; return it, and whether it was within them."""
    pitch, roll, yaw = (wire_from_radians(rate, unit) for rate in testbed_rates_from_body(command.rates))
    return within_maxima(MotionParameters(pitch, roll, yaw, command.thrust), constants)


def command_from_motion_parameters(motion: MotionParameters, unit: AngleUnit) -> BodyRatesCommand:
    """Convert motion parameters back to a command."""
    wire = (motion.pitch_rate, motion.roll_rate, motion.yaw_rate)
    pitch, roll, yaw = (rate * unit.radians for rate in wire)
    return BodyRatesCommand(body_from_testbed_rates(pitch, roll, yaw), motion.thrust)


def body_velocity(ahead: float, right: float, up: float, yaw_rate: float) -> BodyVelocity:
    """Convert a velocity in the testbed's level axes, m/s and rad/s, whose yaw rate is positive to the right."""
    return BodyVelocity(ahead, 0.0 - right, up, turn=0.0 - yaw_rate)


# The drone, and its frames.


def drone_model(constants: Constants, unit: AngleUnit) -> DroneModel:
    """Return the announced drone, with gravity positive downwards. Raises ValueError if it can't fly."""
    return DroneModel(
        mass=constants.weight,
        gravity=abs(constants.gravity),
        drag=constants.drag,
        max_thrust=constants.max_thrust,
        max_roll_rate=constants.max_roll_rate * unit.radians,
        max_pitch_rate=constants.max_pitch_rate * unit.radians,
        max_yaw_rate=constants.max_yaw_rate * unit.radians,
    )


def measurement(frame: SensorFrame, unit: AngleUnit, time_s: float | None = None) -> Measurement:
    """Return the pose in a frame, at a time of the testbed.

    Pitch and roll have the signs of REP 103. Only the heading has the opposite sign.
    """
    return Measurement(
        position=None if frame.position is None else enu_from_testbed(*frame.position),
        yaw=None if frame.yaw is None else enu_yaw_from_heading(frame.yaw * unit.radians),
        roll=None if frame.roll is None else frame.roll * unit.radians,
        pitch=frame.pitch * unit.radians,
        time_s=time_s,
    )


def orientation(measured: Measurement) -> Quaternion:
    """Return an orientation. Angles that the wire lacks are 0."""
    return quaternion_from_euler(measured.roll or 0.0, measured.pitch or 0.0, measured.yaw or 0.0)
