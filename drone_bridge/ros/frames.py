# SPDX-License-Identifier: Apache-2.0
"""Axes that more than one protocol has; those of one protocol are in its folder.

ROS (REP 103): body x forward, y left, z up; world ENU, x east, y north, z up; rotations by the right hand; radians.
Optical frames: x right, y down, z into the picture.
"""

import math
from typing import NamedTuple

from drone_bridge.motion.quaternions import Quaternion


class BodyRates(NamedTuple):
    """Angular velocity of the body about its own axes, rad/s, REP 103."""

    roll: float  # about x: positive banks right
    pitch: float  # about y: positive lowers the nose
    yaw: float  # about z: positive turns left


#: Turns the axes of a camera's body frame (x forward) into those of its optical frame (z forward).
OPTICAL_IN_BODY = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Turns the axes of the body into those of a downward camera's optical frame: up in the picture is forward.
DOWNWARD_OPTICAL_IN_BODY = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Turns the body's x axis down, which is along what a rangefinder measures.
DOWN_IN_BODY = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))


# A skid steer has a left and a right side that each run forward or backward, and no frames.


def wheel_speeds_from_body(forward: float, left_turn: float, separation: float) -> tuple[float, float]:
    """Return the speeds of the left and the right side, m/s, for linear x in m/s and angular z in rad/s of the body.

    `separation` is the distance between the sides in m. To turn left, the right side has to be the faster one.
    """
    return forward - left_turn * separation / 2, forward + left_turn * separation / 2


def body_from_wheel_speeds(left: float, right: float, separation: float) -> tuple[float, float]:
    """Return linear x in m/s and angular z in rad/s of the body for the speeds of its sides, m/s."""
    return (left + right) / 2, (right - left) / separation


# A north-east-down world with forward-right-down bodies, as ships and submarines have it.


def enu_from_ned(north: float, east: float, down: float) -> tuple[float, float, float]:
    """Return a point or vector of the north-east-down world in ENU; and the other way round, by the same swap."""
    return east, north, 0.0 - down  # not -x, which makes -0.0 of zero


def flu_from_frd(forward: float, right: float, down: float) -> tuple[float, float, float]:
    """Return a vector of the forward-right-down body in REP 103's axes; and the other way round, by the same turn."""
    return forward, 0.0 - right, 0.0 - down
