# SPDX-License-Identifier: Apache-2.0
"""Dead reckoning of drones that report level velocities, but no position."""

import math

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.dead_reckoning import DRIFT, MOST_VARIANCE, DeadReckoning
from drone_bridge.motion.measurement import Measurement


def walk(*steps, roll=0.0, pitch=0.0, yaw=0.0, **velocity):
    """Return the last pose after reports at these times, s."""
    dead_reckoning = DeadReckoning()
    measured = Measurement(yaw=yaw, velocity=BodyVelocity(**velocity), height=1.0, roll=roll, pitch=pitch)
    return [dead_reckoning.update(measured, now_s) for now_s in steps][-1]


def test_the_path_follows_the_heading():
    pose = walk(0.0, 0.4, 0.8, forward=1.0)
    assert (pose.x, pose.y, pose.z) == pytest.approx((0.8, 0, 1))
    pose = walk(0.0, 0.4, 0.8, forward=1.0, yaw=-math.pi / 2)  # facing right
    assert (pose.x, pose.y) == pytest.approx((0, -0.8))
    pose = walk(0.0, 0.4, 0.8, left=-1.0)
    assert (pose.x, pose.y) == pytest.approx((0, -0.8))


def test_a_tilt_does_not_shorten_the_path():
    pose = walk(0.0, 0.4, 0.8, forward=1.0, pitch=0.5)
    assert (pose.x, pose.y, pose.z) == pytest.approx((0.8, 0, 1))


def test_variances_grow_with_distance_and_with_each_gap():
    near, far = walk(0.0, 0.1, forward=1.0), walk(0.0, 0.4, 0.8, forward=1.0)
    assert 0 < near.variance < far.variance
    pose = walk(0.0, 0.4, 3.4, forward=1.0)
    assert pose.x == pytest.approx(0.4), "the motion in the gap is unknown"
    assert pose.variance > 100
    assert walk(0.0, 0.4, forward=3.0, left=-4.0).variance == pytest.approx((DRIFT * 2.0) ** 2), "of the whole way"


def test_a_doubted_velocity_moves_nothing_and_a_long_doubt_is_a_gap():
    measured = Measurement(yaw=0.0, velocity=BodyVelocity(1.0), height=1.0, roll=0.0, pitch=0.0)
    for end_s, x, gap in ((0.4, 0.6, False), (3.0, 0.2, True)):
        reckoning = DeadReckoning()
        reckoning.update(measured, 0.0)
        before = reckoning.update(measured, 0.2)
        doubted = reckoning.update(measured, end_s, is_doubted=True)
        assert (doubted.x, doubted.variance) == (before.x, math.inf)
        after = reckoning.update(measured, end_s + 0.2)
        assert after.x == pytest.approx(x)
        assert (after.variance > 1.0) is gap
    assert reckoning.update(measured, 1e4).variance == MOST_VARIANCE, "it is still of use for goals"


@pytest.mark.parametrize("lacks", ["yaw", "velocity", "height", "roll", "pitch"])
def test_a_report_without_a_required_value_gives_no_pose(lacks):
    values = {"yaw": 0.0, "velocity": BodyVelocity(), "height": 1.0, "roll": 0.0, "pitch": 0.0}
    assert DeadReckoning().update(Measurement(**{**values, lacks: None}), 0.0) is None


def test_in_the_plane_what_was_never_reported_is_0_and_what_was_is_required():
    reckoning = DeadReckoning(in_plane=True)
    moving = Measurement(velocity=BodyVelocity(1.0))
    reckoning.update(moving, 0.0)
    assert reckoning.update(moving, 0.4)[:6] == pytest.approx((0.4, 0, 0, 0, 0, 0))
    high = Measurement(velocity=BodyVelocity(1.0), height=2.0, yaw=math.pi / 2)
    assert reckoning.update(high, 0.8)[:6] == pytest.approx((0.4, 0.4, 2, 0, 0, math.pi / 2))
    assert reckoning.update(moving, 0.9) is None


def test_a_robot_that_reports_once_per_second_has_moved():
    reckoning = DeadReckoning(in_plane=True)
    moving = Measurement(velocity=BodyVelocity(1.0))
    assert [reckoning.update(moving, at_s).x for at_s in (0.0, 1.1, 2.2, 9.0)] == pytest.approx([0.0, 1.1, 2.2, 2.2])
    assert reckoning.update(moving, 8.0).x == pytest.approx(2.2), "a clock that steps back"
