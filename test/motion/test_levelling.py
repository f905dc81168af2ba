# SPDX-License-Identifier: Apache-2.0
"""Levelling of a tilted drone by rates."""

import math

import pytest

from drone_bridge.motion.quaternions import euler_from_quaternion, multiplied, quaternion_from_euler
from drone_bridge.motion.quaternions import quaternion_from_vector as rotation
from drone_bridge.testbed.codec import Constants
from drone_bridge.testbed.units import levelling

CONSTANTS = Constants(120.0, 90.0, 2, 1, 0.25, 1.0, 9.8125, 0.25, 25.0, 720.0, 720.0, 720.0)


@pytest.mark.parametrize(("roll", "pitch"), [(0.0, 41.0), (-60.0, 0.0), (30.0, -30.0), (0.0, 0.0), (170.0, 0.0)])
def test_a_tilted_drone_is_levelled_out(roll, pitch):
    """In 3 s, by the rates for the attitude that it has by now, 50 times per second."""
    attitude, period_s = quaternion_from_euler(math.radians(roll), math.radians(pitch), 1.0), 0.02
    for _ in range(150):
        command = levelling(CONSTANTS, attitude)
        assert 0.0 < command.thrust <= CONSTANTS.max_thrust
        attitude = multiplied(attitude, rotation(*(rate * period_s for rate in command.rates)))
    assert math.hypot(*euler_from_quaternion(attitude)[:2]) < math.radians(1.0)
    assert euler_from_quaternion(attitude)[2] == pytest.approx(1.0, abs=0.6) or abs(roll) > 90
