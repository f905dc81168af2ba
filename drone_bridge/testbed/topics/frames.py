# SPDX-License-Identifier: Apache-2.0
"""The testbed's signs and units."""

import math

from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, quaternion_from_euler
from drone_bridge.ros.frames import BodyRates
from drone_bridge.testbed.codec import AngleUnit


def radians_from_wire(angle: float, unit: AngleUnit) -> float:
    """Return an angle, or angular rate, of the wire in radians."""
    return angle * unit.radians


def wire_from_radians(angle: float, unit: AngleUnit) -> float:
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
