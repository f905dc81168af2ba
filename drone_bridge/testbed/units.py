# SPDX-License-Identifier: Apache-2.0
"""Signs, units and axes of the testbed: to SI units in the axes of REP 103, and back. Pure.

The wire has degrees (or radians, with some testbeds) and otherwise SI units. Its world has y up and a heading that
turns right.
"""

import math
from types import SimpleNamespace
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.flight_control import DroneModel, RatesAndThrust
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
    """Convert a heading (clockwise from north) to a yaw (counter-clockwise from east), rad, or back."""
    return math.remainder(math.pi / 2 - heading, 2 * math.pi)


def testbed_from_orientation(q: Quaternion) -> tuple[float, float, float]:
    """Return pitch (within a quarter turn), roll and heading, rad, of an orientation in ENU."""
    roll, pitch, yaw = euler_from_quaternion(q)
    return pitch, roll, enu_yaw_from_heading(yaw)


# Commands.


def hover(constants: Constants) -> RatesAndThrust:
    """Return the command that keeps a level drone in place: no rotation, and thrust equal to its weight."""
    return RatesAndThrust(0.0, 0.0, 0.0, constants.weight * abs(constants.gravity))


def tilt_of(attitude: Quaternion) -> float:
    """Return the angle between a drone's up axis and the world's, rad."""
    x, y, z = rotated_back(attitude, 0.0, 0.0, 1.0)
    return math.atan2(math.hypot(x, y), z)


def levelling(constants: Constants, attitude: Quaternion) -> RatesAndThrust:
    """Return the command that rotates a drone to level while carrying its weight."""
    up_x, up_y, up_z = rotated_back(attitude, 0.0, 0.0, 1.0)  # in the body frame
    tilt_sine = math.hypot(up_x, up_y)
    rate = min(LEVELLING_GAIN * math.atan2(tilt_sine, up_z), MAX_LEVELLING_RATE)
    thrust = hover(constants).thrust / max(up_z, 0.5)
    if constants.max_thrust > 0:
        thrust = min(thrust, constants.max_thrust)
    if tilt_sine < 1e-9:
        return RatesAndThrust(0.0, 0.0, 0.0, thrust)
    return RatesAndThrust(-rate * up_y / tilt_sine, rate * up_x / tilt_sine, 0.0, thrust)


def motion_parameters(command: RatesAndThrust, constants: Constants, unit: AngleUnit) -> tuple[MotionParameters, bool]:
    """Convert a command to the wire, clamped to the announced maxima; return it, and whether it was within them.

    The testbed's yaw rate is positive to the right.
    """
    roll, pitch, yaw = (wire_from_radians(rate, unit) for rate in command.rates)
    # 0.0 - x, because -x would turn 0.0 into -0.0, which has other bytes.
    return within_maxima(MotionParameters(pitch, roll, 0.0 - yaw, command.thrust), constants)


def command_from_motion_parameters(motion: MotionParameters, unit: AngleUnit) -> RatesAndThrust:
    """Convert motion parameters back to a command."""
    wire = (motion.roll_rate, motion.pitch_rate, motion.yaw_rate)
    roll, pitch, yaw = (rate * unit.radians for rate in wire)
    return RatesAndThrust(roll, pitch, 0.0 - yaw, motion.thrust)


def body_velocity(ahead: float, right: float, up: float, yaw_rate: float) -> BodyVelocity:
    """Convert a velocity in the testbed's level axes, m/s and rad/s, whose yaw rate is positive to the right."""
    return BodyVelocity(ahead, 0.0 - right, up, turn=0.0 - yaw_rate)


# The drone, and its frames.


#: Properties whose names differ from those of the constants, and ends of the names of angles and rates.
_RENAMED = {"width": "image_width", "height": "image_height", "weight": "mass"}
_ANGULAR = ("angle_of_view", "rate")


def properties(constants: Constants, unit: AngleUnit) -> dict[str, Any]:
    """Return the constants in SI units by the names of DroneProperties, with gravity positive downwards."""
    values = {name: getattr(constants, name) for name in Constants.__slots__}
    values["gravity"] = abs(constants.gravity)
    for name in values:
        if name.endswith(_ANGULAR):
            values[name] *= unit.radians
    return {_RENAMED.get(name, name): value for name, value in values.items()}


def constants_of(drone: object, unit: AngleUnit) -> Constants:
    """Return the constants that a testbed announces for a drone with the attributes of DroneProperties."""
    values = {name: getattr(drone, _RENAMED.get(name, name)) for name in Constants.__slots__}
    for name, value in values.items():
        if name.endswith(_ANGULAR):
            values[name] = wire_from_radians(value, unit)
    return Constants(**values)


def drone_model(constants: Constants, unit: AngleUnit) -> DroneModel:
    """Return the announced drone. Raises ValueError if it can't fly."""
    return DroneModel.of(SimpleNamespace(**properties(constants, unit)))


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
