# SPDX-License-Identifier: Apache-2.0
"""ContinuousPose: which poses begin again, and how odom goes on."""

import math

import pytest
from session_talk import notes

from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.continuous_pose import POSE_RESTARTS, ContinuousPose, continued

SPEED, TURN = 1.0, 2.0  # the vehicle's maxima


class Vehicle:
    """Vehicle at 1.5 m, turned to the left, whose reports come every 0.1 s."""

    def __init__(self):
        self.observed = ObservedMotion(lambda: self.now_s)
        self.pose, self.now_s = ContinuousPose(self.observed, SPEED, TURN), 10.0
        self.report(1.5, 0.0, math.pi / 2)

    def report(self, x=None, y=None, yaw=None, z=0.25, gap_s=0.1):
        """Return the reported place and yaw in odom, and the number of restarts."""
        self.now_s += gap_s
        measured = Measurement(position=None if x is None else (x, y, z), yaw=yaw)
        reported, actions = continued(self.pose, measured, self.now_s)
        assert reported == self.pose.shifted(measured)
        place = reported.position and tuple(round(value, 6) for value in reported.position)
        counted = notes(actions, POSE_RESTARTS)
        assert not any(counted), "with a sentence, it would wait for a log that blocks"
        return place, reported.yaw, len(counted)


@pytest.fixture
def vehicle():
    return Vehicle()


def test_odom_goes_on_from_where_it_was_after_a_greeting(vehicle):
    vehicle.pose.greeted()
    assert vehicle.report(0.05, 0.0, -0.05, gap_s=4.0) == ((1.5, 0.0, 0.25), pytest.approx(math.pi / 2), 1)
    place, yaw, restarts = vehicle.report(0.15, 0.0, 0.0)
    assert place[1] == pytest.approx(0.1, abs=0.01), "ahead, which is to the left in odom"
    assert yaw == pytest.approx(math.pi / 2 + 0.05)
    assert not restarts
    assert vehicle.observed.unseen_m == pytest.approx(4.0 * SPEED)


@pytest.mark.parametrize(
    ("last", "first", "begins_again"),
    [
        ((1.5, 0.0, 0.0), (0.0, 0.1, 0.0), True),
        ((1.5, 0.0, 0.0), (0.0, 0.11, 0.0), False),
        ((1.5, 0.0, 0.0), (0.0, 0.0, 0.1), True),
        ((1.5, 0.0, 0.0), (0.0, 0.0, -0.11), False),
        ((0.31, 0.0, 0.0), (0.0, 0.01, 0.0), True),
        ((0.0, 0.29, 0.29), (0.0, 0.01, 0.0), False),
        ((0.0, 0.0, -0.31), (0.0, 0.01, 0.0), True),
        ((0.0, 0.0, 0.29 - math.tau), (0.0, 0.01, 0.0), False),
        ((0.04, 0.0, 0.0), (0.0, 0.0, 0.0), True),
        ((0.02, 0.0, -0.02), (0.0, 0.0, 0.0), False),
    ],
)
def test_a_pose_near_0_after_a_greeting_begins_again(vehicle, last, first, begins_again):
    vehicle.report(*last, gap_s=5.0)
    assert not vehicle.report(*first, gap_s=5.0)[2], "it may have driven there"
    vehicle.report(*last, gap_s=5.0)
    vehicle.pose.greeted()
    assert bool(vehicle.report(*first, gap_s=5.0)[2]) is begins_again
    vehicle.report(*last, gap_s=5.0)
    assert not vehicle.report(*first, gap_s=5.0)[2], "only the first pose after a greeting"


@pytest.mark.parametrize(
    ("pose", "gap_s", "begins_again"),
    [
        ((1.5 + 0.39, 0.0, math.pi / 2), 0.1, False),
        ((1.5 + 0.41, 0.0, math.pi / 2), 0.1, True),
        ((1.5, -1.29, math.pi / 2), 1.0, False),
        ((1.5, -1.31, math.pi / 2), 1.0, True),
        ((1.5, 0.0, math.pi / 2 + 0.49 - math.tau), 0.1, False),
        ((None, None, math.pi / 2 - 0.51), 0.1, True),
        ((1.5, 0.0, math.pi / 2 - 0.51), 0.1, True),
    ],
)
def test_a_pose_that_moves_faster_than_the_vehicle_can_begins_again(vehicle, pose, gap_s, begins_again):
    place, yaw, restarts = vehicle.report(*pose, gap_s=gap_s)
    assert bool(restarts) is begins_again
    if begins_again:
        assert (place, yaw) == (None if pose[0] is None else (1.5, 0.0, 0.25), pytest.approx(math.pi / 2))
        assert vehicle.observed.unseen_m == pytest.approx(gap_s * SPEED)
    else:
        assert place == pytest.approx((*pose[:2], 0.25))
        assert vehicle.observed.unseen_m == 0.0


def test_a_place_alone_begins_again_and_leaves_the_yaw(vehicle):
    assert vehicle.report(1.5, 9.0) == ((1.5, 0.0, 0.25), None, 1)
    assert vehicle.report(1.5, 9.0, math.pi / 2) == ((1.5, 0.0, 0.25), pytest.approx(math.pi / 2), 0)
    assert vehicle.report(1.5, -9.0)[2] == 1
    pose = ContinuousPose(ObservedMotion(lambda: 0.0), SPEED, TURN)
    for x, restarts in ((1.0, 0), (9.0, 1)):
        assert len(notes(pose.update(Measurement(position=(x, 0.0, 0.0)), 1.0)[1], POSE_RESTARTS)) == restarts


@pytest.mark.parametrize(
    ("often", "then"), [({"yaw": math.pi / 2}, {"x": 4.2, "y": 0.0}), ({"x": 1.5, "y": 0.0}, {"yaw": 7.0})]
)
def test_what_is_reported_seldom_may_have_moved_farther(vehicle, often, then):
    for _ in range(30):
        assert not vehicle.report(**often)[2]
    assert not vehicle.report(**then)[2]


def test_the_first_yaw_after_places_is_no_restart():
    pose = ContinuousPose(ObservedMotion(lambda: 0.0), SPEED, TURN)
    for measured in (Measurement(position=(0.0, 0.0, 0.0)), Measurement(position=(0.0, 0.0, 0.0), yaw=2.0)):
        assert pose.update(measured, 1.0) == (measured, [])


def test_a_report_without_a_pose_does_not_hide_the_reset(vehicle):
    vehicle.pose.greeted()
    assert vehicle.pose.update(Measurement(height=1.0), 10.2) == (Measurement(height=1.0), [])
    assert vehicle.report(0.0, 0.0, 0.0, gap_s=5.0)[2] == 1


def test_a_late_report_after_an_outage_does_not_begin_again(vehicle):
    assert not vehicle.report(1.5, 0.0, math.pi / 2, gap_s=2.0)[2], "sent at the start of the outage"
    assert not vehicle.report(3.4, 0.0, math.pi / 2, gap_s=0.05)[2]
    assert vehicle.report(5.8, 0.0, math.pi / 2, gap_s=0.05)[2] == 1


def test_a_pose_that_does_not_jump_is_returned_unchanged(vehicle):
    measured = Measurement(position=(1.6, 0.0, 0.0), yaw=1.5)
    assert vehicle.pose.update(measured, 10.2)[0] is measured
    assert continued(None, measured, 10.2) == (measured, [])


@pytest.mark.parametrize("first", ["place", "yaw"])
def test_place_and_yaw_in_packets_of_their_own_begin_again_once(vehicle, first):
    vehicle.pose.greeted()
    packets = {"place": {"x": 0.0, "y": 0.0}, "yaw": {"yaw": 0.0}}
    assert vehicle.report(**packets.pop(first), gap_s=4.0)[2] == 1
    assert not vehicle.report(**packets.popitem()[1])[2]
    place, yaw, restarts = vehicle.report(0.1, 0.0, 0.0)
    assert (place, yaw, restarts) == ((1.5, 0.1, 0.25), pytest.approx(math.pi / 2), 0)


def test_a_second_restart_goes_on_from_the_first(vehicle):
    for _ in range(2):
        vehicle.pose.greeted()
        assert vehicle.report(0.0, 0.0, 0.0, gap_s=4.0)[2] == 1
        place, yaw, _ = vehicle.report(0.4, 0.0, 0.0, gap_s=0.4)
    assert (place, yaw) == ((1.5, 0.8, 0.25), pytest.approx(math.pi / 2))


@pytest.mark.parametrize(("gap_s", "is_unit"), [(0.1, True), (1.1, False)])
def test_a_pose_that_begins_again_at_each_report_has_another_unit(gap_s, is_unit):
    pose = ContinuousPose(ObservedMotion(lambda: 0.0), SPEED, TURN)
    reports = [pose.update(Measurement(position=(30.0 * number, 0.0, 0.0)), gap_s * number) for number in range(3)]
    said = ["m and rad" in each for _, actions in reports for each in notes(actions, "")]
    assert said == [False, is_unit], "millimetres, at 0.3 m/s"


def test_reports_at_one_time_without_a_largest_speed_leave_a_fence():
    observed = ObservedMotion(lambda: 0.0)
    pose = ContinuousPose(observed, math.inf, TURN)
    for yaw, restarts in ((0.0, 0), (3.0, 1)):
        assert len(notes(pose.update(Measurement(yaw=yaw), 1.0)[1], POSE_RESTARTS)) == restarts
    assert observed.unseen_m == 0.0


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e300, 1.5e9, 1e9])
def test_numbers_without_sense_leave_the_pose_where_it_was(vehicle, number):
    for measured in (Measurement(position=(number, 0.0, 0.0), yaw=0.0), Measurement(yaw=number), Measurement()):
        assert vehicle.pose.update(measured, 10.2) == (measured, [])
    assert vehicle.report(1.5, 0.0, math.pi / 2)[0] == pytest.approx((1.5, 0.0, 0.25))
