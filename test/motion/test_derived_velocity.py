# SPDX-License-Identifier: Apache-2.0
"""Velocity from poses that leap, pause and come in bursts. See also `test_odometry.py` of robots in one class."""

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.derived_velocity import DerivedVelocity
from drone_bridge.motion.measurement import Measurement


def forward(*poses):
    """Return the velocities forward at these times and places along x, s and m."""
    derived = DerivedVelocity(1.0, 1.0)
    found = [derived.update(Measurement((x, 0.0, 0.0), 0.0), at_s) for at_s, x in poses]
    return [velocity and pytest.approx(velocity.forward) for velocity in found]


def test_a_leap_and_a_gap_are_no_velocity():
    assert forward((0.0, 0.0), (0.1, 0.04), (0.2, 3.08), (0.3, 3.12)) == [None, 0.4, None, 0.4]
    assert forward((0.0, 0.0), (0.1, 0.04), (4.0, 0.8), (4.1, 0.84)) == [None, 0.4, None, 0.4]
    assert forward((0.0, 0.0), (1.1, 0.44), (2.2, 0.88)) == [None, 0.4, 0.4], "one pose per second"
    assert forward((9.0, 0.0), (9.1, 0.04), (0.0, 0.0), (0.1, 0.04)) == [None, 0.4, None, 0.4], "a clock that restarts"


def test_reports_of_one_burst_are_one():
    assert forward((0.0, 0.0), (0.2, 0.04), (0.2, 0.08), (0.4, 0.16)) == [None, 0.2, 0.4, 0.4]


def test_a_vehicle_that_stops_has_stopped_within_half_a_second():
    assert forward(*((k / 10, min(0.4, 0.04 * k)) for k in range(15)))[-1] == 0.0


@pytest.mark.parametrize(
    ("position", "reported", "turn"), [((1.0, 1.0, 0.0), 0.0, 0.5), (None, 0.0, 0.5), (None, 0.2, 0.2)]
)
def test_a_velocity_that_never_turns_has_the_turn_rate_of_the_heading(position, reported, turn):
    derived = DerivedVelocity(1.0, 1.0)
    for k in range(10):
        told = Measurement(position, 0.05 * k, BodyVelocity(0.3, turn=reported))
        found = derived.update(told, k / 10)
    assert (found.forward, found.turn) == (0.3, pytest.approx(turn))
