# SPDX-License-Identifier: Apache-2.0
"""Tracks and battery of the emulated robot."""

import pytest

from drone_bridge.robot.vehicle.emulator import Chassis, TrackedRobot


def drive(left, right, seconds=20.0, **chassis):
    vehicle = TrackedRobot(Chassis(**chassis))
    vehicle.drive(left, right)
    for _ in range(round(seconds * 100)):
        vehicle.advance(0.01)
    return vehicle


def test_equal_speeds_go_straight_and_the_faster_side_is_the_outer_one():
    assert (drive(2048, 2048).heading, drive(2048, 2048).y) == (0, 0)
    assert drive(1024, 2048, seconds=0.5).heading > 0  # the right track is faster: to the left
    assert drive(-2048, -2048).x < -15


def test_the_battery_drains_with_the_load_and_an_empty_one_moves_nothing():
    idle, busy = drive(0, 0), drive(2048, -2048)
    assert busy.charge < idle.charge < 1
    assert busy.voltage < idle.voltage < 12.6
    assert busy.left.temperature > idle.left.temperature == pytest.approx(22)
    assert busy.left.current > 0 == idle.left.current
    empty = drive(2048, 2048, capacity=0.001)
    assert empty.charge == 0
    assert empty.speed == pytest.approx(0)


def test_it_rests_for_minutes_after_a_turn():
    """Its speeds decay to the smallest numbers there are."""
    vehicle = drive(-2048, 2048, seconds=1.0)
    vehicle.stop()
    for _ in range(30_000):
        vehicle.advance(0.01)
    assert (vehicle.time, vehicle.turn_rate) == (pytest.approx(301.0), pytest.approx(0.0))
