# SPDX-License-Identifier: Apache-2.0
"""ReportWatch: jumps, and numbers that do not change while the vehicle is commanded to move."""

import math

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.session.report_watch import UNCHANGED_S, ReportWatch

PERIOD_S = 0.1
FORWARD = BodyVelocity(1.0)


class Vehicle:
    """Vehicle that follows its commands, with reports as the test wants."""

    def __init__(self):
        self.watch, self.now_s, self.x = ReportWatch(), 100.0, 0.0

    def run(self, seconds, velocity=FORWARD, report=None):
        for _ in range(round(seconds / PERIOD_S)):
            self.now_s += PERIOD_S
            self.x += (velocity.forward if velocity else 0.0) * PERIOD_S
            self.watch.commanded(velocity)
            self.watch.measured(report(self.x) if report else placed(self.x), self.now_s)
        return self.watch.reasons(self.now_s)


def placed(x):
    return Measurement(position=(x, 0.0, 0.0))


@pytest.mark.parametrize("velocity", [None, BodyVelocity(), FORWARD, BodyVelocity(30.0)])
def test_an_honest_vehicle_is_not_reported(velocity):
    assert Vehicle().run(20.0, velocity) == []


def test_a_drone_on_the_ground_need_not_move():
    report = Measurement(position=(0.0, 0.0, 0.0), height=0.0, is_flying=False)
    assert Vehicle().run(10.0, BodyVelocity(1.0, up=0.5), lambda x: report) == []


def test_a_number_that_is_not_finite_counts_as_not_reported():
    assert Vehicle().run(10.0, report=lambda x: placed(x if int(x) % 3 else math.nan)) == []


@pytest.mark.parametrize(
    ("name", "report", "velocity"),
    [
        ("position", lambda x: placed(2.0), FORWARD),
        ("velocity", lambda x: Measurement(velocity=BodyVelocity(0.3)), FORWARD),
        ("height", lambda x: Measurement(height=2.0), BodyVelocity(up=0.5)),
    ],
)
def test_constant_reports_are_noticed_while_the_vehicle_has_to_move(name, report, velocity):
    vehicle = Vehicle()
    assert vehicle.run(10.0, BodyVelocity(), report) == []
    assert vehicle.run(UNCHANGED_S - 0.5, velocity, report) == []
    expected = [f"its own {name} does not change: it is blocked, or that can't be right"]
    assert vehicle.run(1.0, velocity, report) == expected
    assert vehicle.run(1.5, BodyVelocity(), report) == []


def test_a_level_flight_needs_no_change_of_the_height():
    assert Vehicle().run(10.0, FORWARD, lambda x: Measurement(position=(x, 0.0, 2.0), height=2.0)) == []


def test_a_vehicle_that_was_carried_between_connections_does_not_jump():
    vehicle = Vehicle()
    vehicle.run(1.0)
    vehicle.watch.restart()
    vehicle.x += 50.0
    assert vehicle.run(1.0) == []


# By the second: times and distances that binary numbers represent exactly.


def watched(reports, velocity=FORWARD):
    """Return the watch after (time, x) pairs, under a constant command."""
    watch = ReportWatch()
    watch.commanded(velocity)
    for now_s, x in reports:
        watch.measured(placed(x), now_s)
    return watch


def each_eighth(until_s, x=0.0, from_s=0.0):
    return [(from_s + number / 8, x) for number in range(round(8 * (until_s - from_s)) + 1)]


@pytest.mark.parametrize(("gap_s", "speed", "way"), [(0.5, 1.0, 6.0), (1.0, 1.0, 11.0), (0.5, 16.0, 17.0)])
def test_a_jump_is_more_than_its_speed_explains(gap_s, speed, way):
    for x, is_reported in ((way, False), (way + 0.125, True)):
        watch = watched([(0.0, 0.0), (gap_s, x)], BodyVelocity(speed))
        expected = ["its own position can't be right: it jumps"] if is_reported else []
        assert watch.reasons(gap_s) == watch.reasons(gap_s + 9.875) == expected
        assert watch.reasons(gap_s + 10.0) == []


def test_reports_far_apart_or_out_of_order_are_not_compared():
    assert watched([(0.0, 0.0), (1.125, 50.0)]).reasons(1.125) == []
    assert watched([(1.0, 0.0), (0.875, 50.0)]).reasons(1.0) == []


def test_a_jump_past_a_number_that_is_not_finite_is_reported():
    assert watched([(0.0, 0.0), (0.25, math.nan), (0.5, 50.0)]).reasons(0.5) != []


def test_constant_reports_are_reported_after_3_s_for_1_s():
    assert watched(each_eighth(3.0)).reasons(3.0) == []
    watch = watched(each_eighth(3.125))
    assert watch.reasons(4.0) != []
    assert watch.reasons(4.125) == []
    assert watched(each_eighth(9.0), BodyVelocity(0.1)).reasons(9.0) != []


def test_a_change_or_a_gap_begins_anew():
    assert watched([*each_eighth(2.0), *each_eighth(5.0, 1.0, from_s=2.125)]).reasons(5.0) == []
    assert watched([*each_eighth(2.0), *each_eighth(6.0, from_s=4.0)]).reasons(6.0) == []


def test_a_new_connection_begins_without_a_command():
    watch = watched(each_eighth(2.0))
    watch.restart()
    for now_s, x in each_eighth(9.0, from_s=2.0):
        watch.measured(placed(x), now_s)
    assert watch.reasons(9.0) == []


def test_a_constant_height_is_noticed_while_the_vehicle_has_to_sink():
    assert Vehicle().run(2 * UNCHANGED_S, BodyVelocity(up=-0.5), lambda x: Measurement(height=2.0))
