# SPDX-License-Identifier: Apache-2.0
"""BodyVelocity: axes and equality."""

import dataclasses

import pytest

from drone_bridge.motion.body_velocity import STILL, BodyVelocity

TURNING = BodyVelocity(forward=1.0, left=2.0, up=3.0, roll=0.1, pitch=0.2, turn=0.3)


def test_axes_are_in_the_order_of_rep_103():
    assert TURNING.linear == (1.0, 2.0, 3.0)
    assert TURNING.angular == (0.1, 0.2, 0.3)


def test_by_default_it_moves_nothing():
    assert BodyVelocity() == STILL
    assert (*STILL.linear, *STILL.angular) == (0.0,) * 6


def test_another_linear_velocity_leaves_the_rotation():
    slower = TURNING.with_linear((0.5, 1.0, 1.5))
    assert slower.linear == (0.5, 1.0, 1.5)
    assert slower.angular == TURNING.angular


def test_it_does_not_change_and_equals_no_tuple_of_its_numbers():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TURNING.forward = 0.0
    assert dataclasses.astuple(TURNING) != TURNING
    assert hash(TURNING) == hash(dataclasses.replace(TURNING))
