# SPDX-License-Identifier: Apache-2.0
"""Every sign and every unit that changes between a wire and ROS, and nothing else.

ROS (REP 103): body x forward, y left, z up; world ENU, x east, y north, z up; rotations by the right hand; radians.
Optical frames: x right, y down, z into the picture.
"""

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from drone_bridge.geometry.quaternions import Quaternion, euler_from_quaternion, quaternion_from_euler

if TYPE_CHECKING:  # all bridges import this file, and one of them speaks to testbeds
    from drone_bridge.protocols.testbed import AngleUnit


class BodyRates(NamedTuple):
    """Angular velocity of the body about its own axes, rad/s, REP 103."""

    roll: float  # about x: positive banks right
    pitch: float  # about y: positive lowers the nose
    yaw: float  # about z: positive turns left


#: Turns the axes of a camera's body frame (x forward) into those of its optical frame (z forward).
OPTICAL_IN_BODY: Final = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Turns the axes of the body into those of a downward camera's optical frame: up in the picture is forward.
DOWNWARD_OPTICAL_IN_BODY: Final = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Turns the body's x axis down, which is along what a rangefinder measures.
DOWN_IN_BODY: Final = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))


def radians_from_wire(angle: float, unit: "AngleUnit") -> float:
    """Return an angle, or angular rate, of the wire in radians."""
    return angle * unit.radians


def wire_from_radians(angle: float, unit: "AngleUnit") -> float:
    """Return an angle, or angular rate, in the unit of the wire."""
    return angle if unit.half_turn == math.pi else math.degrees(angle)


# The testbed's world is right-handed with y up; heading 0 looks along -z, with x to the right. Read as a map, that
# is north ahead and east to the right, and heading counts clockwise from north, as a compass does.


def enu_from_testbed(x: float, y: float, z: float) -> tuple[float, float, float]:
    """Return a point or vector of the testbed's world in ENU: its x is east, its -z north, its y up."""
    return x, -z, y


def testbed_from_enu(east: float, north: float, up: float) -> tuple[float, float, float]:
    """Return a point or vector of ENU in the testbed's world: x, y, z."""
    return east, up, -north


def enu_yaw_from_heading(heading: float) -> float:
    """Return the yaw, counter-clockwise from east, of a heading clockwise from north; both in radians."""
    return math.remainder(math.pi / 2 - heading, 2 * math.pi)


def heading_from_enu_yaw(yaw: float) -> float:
    """Return the heading, clockwise from north, of a yaw counter-clockwise from east; both in radians."""
    return math.remainder(math.pi / 2 - yaw, 2 * math.pi)


def orientation_from_testbed(pitch: float, roll: float, heading: float) -> Quaternion:
    """Return the body's orientation in ENU. Radians; pitch + looks down, roll + banks right, heading + turns right.

    Pitch and roll have the signs of REP 103 already; only the heading turns the other way round.
    """
    return quaternion_from_euler(roll, pitch, enu_yaw_from_heading(heading))


def testbed_from_orientation(q: Quaternion) -> tuple[float, float, float]:
    """Return pitch (within a quarter turn), roll and heading, rad, of the body's orientation in ENU."""
    roll, pitch, yaw = euler_from_quaternion(q)
    return pitch, roll, heading_from_enu_yaw(yaw)


def testbed_rates_from_body(rates: BodyRates) -> tuple[float, float, float]:
    """Return pitch, roll and yaw rate as the testbed counts them, rad/s: its yaw rate is positive to the right."""
    return rates.pitch, rates.roll, 0.0 - rates.yaw  # not -x, which makes -0.0 of zero, and other bytes


def body_from_testbed_rates(pitch: float, roll: float, yaw: float) -> BodyRates:
    """Return the rates of the body, rad/s, for those that the testbed counts, rad/s."""
    return BodyRates(roll, pitch, 0.0 - yaw)


def body_from_testbed_velocity(
    ahead: float, right: float, up: float, yaw_rate: float
) -> tuple[float, float, float, float]:
    """Return linear x, y, z and angular z of a levelled body for what the testbed counts to the right."""
    return ahead, 0.0 - right, up, 0.0 - yaw_rate


# The dronegui protocol has no frames, only directions: roll + goes right, pitch + goes backward, yaw + turns right.


def dronegui_axes_from_body(forward: float, left: float, up: float, left_turn: float) -> tuple[float, ...]:
    """Return roll, pitch, yaw and gas for linear x, y, z and angular z of a body; the scale stays as it is."""
    return 0.0 - left, 0.0 - forward, 0.0 - left_turn, up  # 0.0 - x, because -x of zero is the other zero


def body_from_dronegui_axes(roll: float, pitch: float, yaw: float, gas: float) -> tuple[float, float, float, float]:
    """Return linear x, y, z and angular z of a body for the axes of the wire; the scale stays as it is."""
    return 0.0 - pitch, 0.0 - roll, gas, 0.0 - yaw


def radians_from_millidegrees(angle: float) -> float:
    """Return an angle of navdata, which is in thousandths of a degree."""
    return math.radians(angle / 1000)


def millidegrees_from_radians(angle: float) -> float:
    """Return an angle as navdata has it."""
    return 1000 * math.degrees(angle)


def orientation_from_dronegui(phi: float, theta: float, psi: float) -> Quaternion:
    """Return the body's orientation. Radians; phi + banks right, theta + raises the nose, psi + turns right."""
    return quaternion_from_euler(phi, 0.0 - theta, 0.0 - psi)


def dronegui_angles_from_orientation(q: Quaternion) -> tuple[float, float, float]:
    """Return phi, theta and psi, in radians, for the body's orientation."""
    roll, pitch, yaw = euler_from_quaternion(q)
    return roll, 0.0 - pitch, 0.0 - yaw


# A skid steer has a left and a right side that each run forward or backward, and no frames.


def wheel_speeds_from_body(forward: float, left_turn: float, separation: float) -> tuple[float, float]:
    """Return the speeds of the left and the right side, m/s, for linear x in m/s and angular z in rad/s of the body.

    `separation` is the distance between the sides in m. To turn left, the right side has to be the faster one.
    """
    return forward - left_turn * separation / 2, forward + left_turn * separation / 2


def body_from_wheel_speeds(left: float, right: float, separation: float) -> tuple[float, float]:
    """Return linear x in m/s and angular z in rad/s of the body for the speeds of its sides, m/s."""
    return (left + right) / 2, (right - left) / separation


# The robot protocol counts in whole thousandths and hundredths.


def volts_from_millivolts(millivolts: int) -> float:
    """Return a voltage in V."""
    return millivolts / 1000


def millivolts_from_volts(volts: float) -> int:
    """Return a finite voltage as it is on the wire."""
    return round(volts * 1000)


def amperes_from_milliamperes(milliamperes: int) -> float:
    """Return a current in A."""
    return milliamperes / 1000


def milliamperes_from_amperes(amperes: float) -> int:
    """Return a finite current as it is on the wire."""
    return round(amperes * 1000)


def celsius_from_hundredths(hundredths: int) -> float:
    """Return a temperature in degrees Celsius."""
    return hundredths / 100


def hundredths_from_celsius(celsius: float) -> int:
    """Return a finite temperature as it is on the wire."""
    return round(celsius * 100)


# The telemetry protocol documents one sign: thrust + is up. At rest its accelerometer reads + on z, so its body has z
# up. By default the rest is taken as in REP 103, x forward and y left: roll + lowers the right side, pitch + lowers
# the nose, yaw + turns left; a command to roll + goes right, to pitch + forward. A sign of -1 is for peers that count
# the other way round.


class TelemetrySigns(NamedTuple):
    """1, or -1 where a peer counts the other way round than REP 103."""

    roll: int = 1  # of the angle and of the rate about x
    pitch: int = 1  # about y
    yaw: int = 1  # about z
    relative_x: int = 1
    relative_y: int = 1


class TelemetryCommandSigns(NamedTuple):
    """1, or -1 where a drone follows a command the other way round than REP 103."""

    pitch: int = 1  # 1: positive tilts forward
    roll: int = 1  # 1: positive tilts to the right
    yaw: int = 1  # 1: positive turns left


def telemetry_axes_from_body(
    forward: float, left: float, up: float, left_turn: float, signs: TelemetryCommandSigns
) -> tuple[float, float, float, float]:
    """Return thrust, pitch, roll and yaw for linear x, y, z and angular z of a body; the scale stays as it is."""
    # 0.0 + x, because the product of -1 and zero is the other zero.
    return up, 0.0 + signs.pitch * forward, 0.0 - signs.roll * left, 0.0 + signs.yaw * left_turn


def body_from_telemetry_axes(
    thrust: float, pitch: float, roll: float, yaw: float, signs: TelemetryCommandSigns
) -> tuple[float, float, float, float]:
    """Return linear x, y, z and angular z of a body for thrust, pitch, roll and yaw; the scale stays as it is."""
    return 0.0 + signs.pitch * pitch, 0.0 - signs.roll * roll, thrust, 0.0 + signs.yaw * yaw


def orientation_from_telemetry(roll: float, pitch: float, yaw: float, signs: TelemetrySigns) -> Quaternion:
    """Return the body's orientation for Euler angles in rad."""
    return quaternion_from_euler(signs.roll * roll, signs.pitch * pitch, signs.yaw * yaw)


def telemetry_angles_from_orientation(q: Quaternion, signs: TelemetrySigns) -> tuple[float, float, float]:
    """Return roll, pitch and yaw, in rad, as the wire counts them."""
    roll, pitch, yaw = euler_from_quaternion(q)
    return signs.roll * roll, signs.pitch * pitch, signs.yaw * yaw


def rates_from_telemetry(x: float, y: float, z: float, signs: TelemetrySigns) -> BodyRates:
    """Return the body's rates for angular velocities in rad/s."""
    return BodyRates(signs.roll * x, signs.pitch * y, signs.yaw * z)


def level_in_body_from_telemetry(roll: float, pitch: float, signs: TelemetrySigns) -> Quaternion:
    """Return the orientation in the body of axes that share its heading and stay level."""
    x, y, z, w = quaternion_from_euler(signs.roll * roll, signs.pitch * pitch, 0.0)
    return Quaternion(-x, -y, -z, w)


def level_from_body(rates: BodyRates, roll: float, pitch: float, signs: TelemetrySigns) -> BodyRates:
    """Return the body's rates about axes that share its heading and stay level."""
    sin_roll, cos_roll = math.sin(signs.roll * roll), math.cos(roll)
    sin_pitch, cos_pitch = math.sin(signs.pitch * pitch), math.cos(pitch)
    x, y, z = rates
    down = sin_roll * y + cos_roll * z
    return BodyRates(cos_pitch * x + sin_pitch * down, cos_roll * y - sin_roll * z, cos_pitch * down - sin_pitch * x)


def telemetry_from_rates(rates: BodyRates, signs: TelemetrySigns) -> tuple[float, float, float]:
    """Return angular velocities, rad/s, as the wire counts them."""
    return signs.roll * rates.roll, signs.pitch * rates.pitch, signs.yaw * rates.yaw


def pad_from_body(forward: float, left: float, signs: TelemetrySigns) -> tuple[float, float]:
    """Return relative_x and relative_y of a pad that is so far forward and to the left, m."""
    return signs.relative_x * forward, signs.relative_y * left


def pad_in_body(relative_x: float, relative_y: float, signs: TelemetrySigns) -> tuple[float, float]:
    """Return how far a pad is forward and to the left, m."""
    return signs.relative_x * relative_x, signs.relative_y * relative_y


# The underwater simulator's world is north-east-down, its bodies are forward-right-down, its quaternions w, x, y, z.

_HALF_ROOT: Final = math.sqrt(0.5)
SimulatorQuaternion = tuple[float, float, float, float]  # w, x, y, z


def enu_from_ned(north: float, east: float, down: float) -> tuple[float, float, float]:
    """Return a point or vector of the north-east-down world in ENU; and the other way round, by the same swap."""
    return east, north, 0.0 - down  # not -x, which makes -0.0 of zero


def flu_from_frd(forward: float, right: float, down: float) -> tuple[float, float, float]:
    """Return a vector of the forward-right-down body in REP 103's axes; and the other way round, by the same turn."""
    return forward, 0.0 - right, 0.0 - down


def orientation_from_ned_frd(w: float, x: float, y: float, z: float) -> Quaternion:
    """Return the orientation of the same body in ENU and REP 103's axes: facing north is a yaw of 90 degrees."""
    return Quaternion(x=_HALF_ROOT * (x + y), y=_HALF_ROOT * (x - y), z=_HALF_ROOT * (w - z), w=_HALF_ROOT * (w + z))


def ned_frd_from_orientation(q: Quaternion) -> SimulatorQuaternion:
    """Return an orientation in ENU and REP 103's axes as the simulator has it."""
    return (
        _HALF_ROOT * (q.w + q.z),
        _HALF_ROOT * (q.x + q.y),
        _HALF_ROOT * (q.x - q.y),
        _HALF_ROOT * (q.w - q.z),
    )


def rotation_from_frd(w: float, x: float, y: float, z: float) -> Quaternion:
    """Return a rotation between two forward-right-down frames, of a camera on its body say, in REP 103's axes."""
    return Quaternion(x, -y, -z, w)


def frd_from_rotation(q: Quaternion) -> SimulatorQuaternion:
    """Return a rotation between two frames of REP 103 as the simulator has it."""
    return q.w, q.x, -q.y, -q.z
