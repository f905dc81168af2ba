# SPDX-License-Identifier: Apache-2.0
"""Counters of two wheels to a pose and back: signs, units, wrap, and reconnections."""

import math
import random

import pytest

from drone_bridge.robot_class import BodyVelocity, Wheels

AXLE, M_PER_COUNT = 0.23, 1 / 11724.4


def wheels(**options):
    return Wheels(AXLE, M_PER_COUNT, **options)


@pytest.mark.parametrize(
    ("left", "right", "pose"),
    [
        (1.0, 1.0, (1.0, 0.0, 0.0)),
        (-1.0, -1.0, (-1.0, 0.0, 0.0)),
        (-math.pi * AXLE / 4, math.pi * AXLE / 4, (0.0, 0.0, math.pi / 2)),
        (math.pi / 2 * (1 - AXLE / 2), math.pi / 2 * (1 + AXLE / 2), (1.0, 1.0, math.pi / 2)),
    ],
)
def test_counters_are_a_pose_and_velocity_in_the_axes_of_ros(left, right, pose):
    its, before = wheels(), (65_000, 30)
    assert its.counted(*before) == ((0.0, 0.0, 0.0), 0.0, None)
    counts = [(then + round(way / M_PER_COUNT)) % 65_536 for then, way in zip(before, (left, right), strict=True)]
    position, yaw, velocity = its.counted(*counts, elapsed_s=2.0)
    assert (*position[:2], yaw) == pytest.approx(pose, abs=1e-3)
    assert (velocity.forward, velocity.turn) == pytest.approx(((left + right) / 4, pose[2] / 2), abs=1e-3)


@pytest.mark.parametrize("bits", [12, 16, 32])
def test_both_ends_agree_over_many_wraps_in_either_direction(bits):
    drawn = random.Random(bits)
    robot, client = (Wheels(AXLE, 0.0005, bits) for _ in range(2))
    pose = robot.pose
    client.counted(*robot.counts((0.0, 0.0, 0.0), 0.0))
    for way in (1, -1) * 500:
        pose = pose.moved(0.1, way * drawn.uniform(0.0, 3.0), drawn.uniform(-2.0, 2.0))
        position, yaw, velocity = client.counted(*robot.counts((pose.x, pose.y, 0.0), pose.yaw), 0.1)
        assert abs(velocity.forward) < 3.1
    assert robot.ways == pytest.approx(client.ways, abs=0.001)
    assert position[:2] == pytest.approx(pose[:2], abs=0.2)
    assert math.remainder(yaw - pose.yaw, math.tau) == pytest.approx(0.0, abs=0.02)


@pytest.mark.parametrize(("at", "now", "moves"), [(0.29, 0.0, False), (0.29, 0.001, True), (0.02, 0.0, True)])
def test_a_short_leap_to_0_is_a_reset_that_keeps_the_pose(at, now, moves):
    its = wheels()
    for way in (0.0, *[at] * 60, now):
        position, _, _ = its.counted(*[round(way / M_PER_COUNT)] * 2)
    assert position[0] == pytest.approx(now if moves else at, abs=1e-3)


def test_a_velocity_is_speeds_of_the_wheels_and_a_limit_keeps_its_arc():
    assert wheels().sides(BodyVelocity(0.5, turn=1.0)) == pytest.approx((0.385, 0.615))
    left, right = wheels(max_speed=0.4).sides(BodyVelocity(0.5, turn=-2.0))
    assert left == pytest.approx(0.4)
    slowed = wheels().velocity(left, right)
    assert slowed.turn / slowed.forward == pytest.approx(-4.0)
