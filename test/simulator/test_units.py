# SPDX-License-Identifier: Apache-2.0
"""Physical meaning of the simulator's axes, without ROS."""

import math

import pytest

from drone_bridge.simulator import units

HALF = math.sqrt(0.5)
NORTH, EAST = (1.0, 0.0, 0.0, 0.0), (HALF, 0.0, 0.0, HALF)  # orientations of a body that faces there: w, x, y, z


def measured(v=(0.0, 0.0, 0.0), q=NORTH, w=(0.0, 0.0, 0.0), *, is_attitude_known=True):
    return units.measurement(((1.0, 2.0, -3.0), v, (0.0,) * 3, q, w), is_attitude_known=is_attitude_known)


def test_north_is_y_east_is_x_and_up_is_z():
    assert measured().position == (2.0, 1.0, 3.0)
    assert measured().yaw == pytest.approx(math.pi / 2)
    assert measured(q=EAST).yaw == pytest.approx(0.0)


@pytest.mark.parametrize(("q", "v"), [(NORTH, (2.0, 0.0, -0.5)), (EAST, (0.0, 2.0, -0.5))])
def test_a_vehicle_that_moves_where_it_faces_goes_forward(q, v):
    assert measured(v, q).level_velocity == pytest.approx((2.0, 0.0, 0.5))


def test_a_vehicle_that_faces_north_and_moves_east_goes_right():
    assert measured((0.0, 1.0, 0.0)).level_velocity == pytest.approx((0.0, -1.0, 0.0))


def test_rates_are_about_forward_left_and_up():
    assert measured(w=(0.1, 0.2, 0.3)).rates == (0.1, -0.2, -0.3)


def test_without_a_known_attitude_only_the_position_is_measured():
    found = measured((1.0, 0.0, 0.0), is_attitude_known=False)
    assert (found.position, found.yaw, found.velocity) == ((2.0, 1.0, 3.0), None, None)
