# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of `campaign/reports_that_lie.py`, with its bounds."""

import pytest
from lying_flights import FENCE_M, at_wall, bounds_of, effect, farthest_in_fence, honest, lied_to, violations

BEGIN_S = 3.0


@pytest.mark.parametrize(
    ("drone", "lie", "command"),
    [
        ("AR.Drone", "velocity 0", "0.3 m/s"),
        ("AR.Drone", "velocity 0, noise 20 mm/s", "0.3 m/s"),
        ("AR.Drone", "the same report", "0.3 m/s"),
        ("AR.Drone", "late by 1 s", "0.3 m/s"),
        ("landing drone", "velocity 0, noise 1 mm/s", "0.3 m/s"),
        ("landing drone", "sign", "0.3 m/s"),
        ("landing drone", "the same report", "STOP"),
    ],
)
def test_a_lie_has_a_bounded_effect_that_ends(drone, lie, command):
    flown = effect(lied_to(drone, lie, command, BEGIN_S), lied_to(drone, None, command, BEGIN_S))
    bounds = bounds_of(lie)
    assert not violations(flown, bounds if command != "STOP" else bounds._replace(said_s=None))


def test_a_drone_that_reports_no_motion_leaves_a_fence_by_a_bounded_distance():
    lie = "velocity 0, noise 20 mm/s"
    assert FENCE_M < farthest_in_fence("landing drone", lie) <= bounds_of(lie).in_fence


@pytest.mark.parametrize("drone", ["AR.Drone", "landing drone"])
@pytest.mark.parametrize("name", ["gusts 2 m/s", "wind 3 m/s at once"])
def test_an_honest_flight_is_not_doubted(drone, name):
    assert honest(drone, name, "zero")[:2] == (0.0, 0.0)


def test_a_wall_is_reported_and_left_slowly():
    wall = at_wall("landing drone", 0.3, 0.0)
    assert wall.tilt < 0.4
    assert wall.said_s < 6.5
    assert wall.speed < 0.9
