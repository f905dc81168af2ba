# SPDX-License-Identifier: Apache-2.0
"""Arcs in the plane."""

import math

import pytest

from drone_bridge.motion.planar_pose import PlanarPose

SMALLEST = math.ulp(0.0)


@pytest.mark.parametrize("turn", [0.0, SMALLEST, -SMALLEST, 50 * SMALLEST, 1e-300, 1e-9, -1e-9])
def test_the_slowest_turns_are_straight(turn):
    for seconds in (0.02, 0.5, 2.0):
        moved = PlanarPose(1.0, 2.0, math.pi / 2).moved(seconds, 0.1, turn)
        assert moved == pytest.approx((1.0, 2.0 + 0.1 * seconds, math.pi / 2))


def test_half_a_circle_ends_beside_its_start():
    assert PlanarPose().moved(math.pi, 0.5, 1.0) == pytest.approx((0.0, 1.0, math.pi))
