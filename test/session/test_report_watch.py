# SPDX-License-Identifier: Apache-2.0
"""ReportWatch: jumps, and numbers that do not change while the vehicle is commanded to move."""

import math

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.session.report_watch import REPORTED_S, UNCHANGED_S, ReportWatch

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


def test_a_jump_is_reported_for_a_while():
    vehicle = Vehicle()
    vehicle.run(1.0)
    vehicle.x += 5.0
    assert vehicle.run(PERIOD_S) == ["its own position can't be right: it jumps"]
    assert vehicle.run(REPORTED_S - 1.0) != []
    assert vehicle.run(2.0) == []


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
