# SPDX-License-Identifier: Apache-2.0
"""The rover's patterns, driven by a rover that does exactly, or nearly, what it is told."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drone_bridge.controllers.rover_patterns import PATTERNS, PatternLimits, PoseEstimate
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose

LIMITS = PatternLimits(speed=0.5, amplitude=2.0, turn_rate=1.5)
STEP_S = 0.05


def drive(name, seconds, limits=LIMITS, start=PlanarPose(), wheel=1.0, seed=0):  # noqa: B008 - a constant
    """Return the poses; `wheel` is the diameter of the right wheel in relation to the left one."""
    pattern = PATTERNS[name](limits, seed)
    pose, poses = start, []
    for step in range(round(seconds / STEP_S)):
        velocity = pattern(pose, step * STEP_S)
        forward, turn = velocity.forward, velocity.turn
        pose = pose.moved(STEP_S, forward * (1 + wheel) / 2, turn + forward * (wheel - 1))
        poses.append(pose)
    return poses


def visits(poses, corner, within=0.1):
    return any(math.dist((pose.x, pose.y), corner) < within for pose in poses)


def test_linear_goes_back_and_forth_without_turning_round():
    poses = drive("linear", 40)
    assert max(pose.x for pose in poses) == pytest.approx(2.0, abs=0.06)
    assert min(pose.x for pose in poses) == pytest.approx(-2.0, abs=0.06)
    assert max(abs(pose.y) for pose in poses) < 1e-6
    assert max(abs(pose.yaw) for pose in poses) < 1e-6


def test_the_circle_has_the_amplitude_as_its_radius_and_is_driven_at_speed():
    poses = drive("circular", 2 * math.pi * 2.0 / 0.5)
    assert {round(math.hypot(pose.x, pose.y - 2), 2) for pose in poses} == {2.0}
    assert math.dist(poses[-1][:2], (0, 0)) < 0.1  # once around


def test_a_circle_too_small_for_the_speed_is_driven_slower():
    limits = PatternLimits(speed=5.0, amplitude=0.5, turn_rate=1.0)
    assert PATTERNS["circular"](limits, 0)(PlanarPose(), 0.0) == BodyVelocity(0.5, turn=1.0)


def test_the_square_has_four_corners():
    poses = drive("square", 60)
    for corner in ((2, 2), (-2, 2), (-2, -2), (2, -2)):
        assert visits(poses, corner)
    assert max(max(abs(pose.x), abs(pose.y)) for pose in poses) < 2.1


def test_random_targets_stay_inside_and_depend_on_the_seed_alone():
    poses = drive("random", 60, seed=3)
    assert max(max(abs(pose.x), abs(pose.y)) for pose in poses) <= 2.0
    assert poses == drive("random", 60, seed=3)
    assert poses != drive("random", 60, seed=4)


@given(
    st.sampled_from(sorted(PATTERNS)),
    st.builds(PlanarPose, *[st.floats(-100, 100)] * 2, st.floats(-math.pi, math.pi)),
    st.builds(PatternLimits, st.floats(0, 10), st.floats(0.1, 100), st.floats(0.05, 20)),
)
def test_whatever_the_pose_velocities_stay_within_their_limits(name, pose, limits):
    velocity = PATTERNS[name](limits, 0)(pose, 0.0)
    assert abs(velocity.forward) <= limits.speed
    assert abs(velocity.turn) <= limits.turn_rate


# Poses.

poses = st.builds(PlanarPose, *[st.floats(-100, 100)] * 2, st.floats(-3, 3))


def test_without_odometry_the_rover_is_where_it_was_told_to_go():
    estimate = PoseEstimate()
    estimate.commanded(0.4, BodyVelocity(2.5), now_s=100.0)
    assert estimate.pose == PlanarPose(1.0, 0.0, 0.0)
    estimate.commanded(10.0, BodyVelocity(0.4), now_s=110.0)  # a stall: the bridge has stopped the rover meanwhile
    assert estimate.pose == PlanarPose(1.2, 0.0, 0.0)


def test_odometry_restarts_at_the_rovers_pose_when_it_comes_back():
    estimate = PoseEstimate()
    estimate.commanded(0.4, BodyVelocity(2.5), now_s=0.0)
    estimate.measured(PlanarPose(10, 10, math.pi / 2), now_s=0.1)
    assert estimate.pose == pytest.approx((1, 0, 0))
    estimate.commanded(5.0, BodyVelocity(9.0, turn=9.0), now_s=0.2)  # counts for nothing now
    estimate.measured(PlanarPose(10, 12, math.pi), now_s=0.3)
    assert estimate.pose == pytest.approx((3, 0, math.pi / 2))
    estimate.commanded(0.4, BodyVelocity(2.5), now_s=1.0)
    assert estimate.pose == pytest.approx((3, 1, math.pi / 2))
    estimate.measured(PlanarPose(0, 0, 0), now_s=1.1)
    assert estimate.pose == pytest.approx((3, 1, math.pi / 2))
    assert estimate.follows_odometry(3.4)
    assert not estimate.follows_odometry(3.6)


def test_a_rover_that_reports_once_per_second_is_where_its_odometry_says():
    estimate = PoseEstimate()
    for at in range(5):
        estimate.measured(PlanarPose(0.4 * at, 0, 0), now_s=float(at))
        estimate.commanded(0.5, BodyVelocity(0.5), now_s=at + 0.9)
    assert estimate.pose == pytest.approx((1.6, 0, 0))
