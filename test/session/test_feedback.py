# SPDX-License-Identifier: Apache-2.0
"""Feedback: measurements reach pilot and limits in their session, before anything is published."""

from types import SimpleNamespace

import pytest

from drone_bridge.ar_drone.drone import AR_DRONE
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import LOW_BATTERY_S, LimitParameters, Limits
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.tilt_pilot import TiltPilot

NOW_S = 100.0
REPORT = Measurement(yaw=0.5, velocity=BodyVelocity(1.0, 2.0, 3.0), height=4.0, roll=0.1, pitch=0.2, climb=-1.0)

LIMITS = LimitParameters(max_height=50.0, low_battery=0.2)


class Pilot:
    """Pilot with doubts as the test wants, which records its calls."""

    def __init__(self, *, doubts_position=False, doubts_height=False):
        self.is_position_doubted, self.is_height_doubted, self.calls = doubts_position, doubts_height, []
        self.modelled_velocity = None

    def reported(self, measured, now_s):
        self.calls.append((measured, now_s))


def vehicle(pilot=None, parameters=LIMITS):
    made = SimpleNamespace(now_s=NOW_S)
    made.observed = ObservedMotion(lambda: made.now_s)
    made.limits = Limits(parameters, made.observed)
    made.feedback = Feedback(made.observed, made.limits, pilot)
    return made


def test_a_report_reaches_the_limits_and_the_pilot_with_its_time():
    pilot = Pilot()
    made = vehicle(pilot)
    made.feedback.measured(REPORT, NOW_S)
    assert pilot.calls == [(REPORT, NOW_S)]
    newest = made.observed.newest
    assert (newest.yaw, newest.position[2], newest.velocity[2]) == (0.5, 4.0, -1.0)
    assert not made.limits.is_blind(NOW_S)


def test_motion_that_the_pilot_doubts_is_withheld_from_the_limits():
    made = vehicle(Pilot(doubts_position=True))
    made.feedback.measured(REPORT, NOW_S)
    assert made.observed.newest.position is None
    assert made.observed.newest.is_doubted
    assert made.limits.is_blind(NOW_S)
    assert not Limits(LimitParameters(max_speed=2.0), made.observed).is_blind(NOW_S)


def test_a_doubted_height_blinds_the_maximum_height_only():
    for parameters, is_blind in ((LimitParameters(max_height=9.0), True), (LimitParameters(fence_radius=9.0), False)):
        pilot = Pilot()
        made = vehicle(pilot, parameters)
        made.feedback.measured(REPORT, NOW_S)
        pilot.is_height_doubted = True
        made.now_s += 1.0
        made.feedback.measured(REPORT, made.now_s)
        assert made.limits.is_blind(made.now_s) is is_blind
        assert not made.observed.newest.is_doubted


def test_a_report_on_the_ground_is_not_flown_by_but_has_a_place(monkeypatch):
    pilot, calls = TiltPilot(SimpleNamespace(), AR_DRONE, hovers=True), []
    monkeypatch.setattr(pilot, "grounded", lambda now_s: calls.append("grounded"))
    monkeypatch.setattr(pilot, "measured", lambda motion, now_s: calls.append((motion, now_s)))
    made = vehicle(pilot)
    grounded = Measurement(yaw=0.5, velocity=BodyVelocity(), height=0.0, is_flying=False)
    for report in (grounded, REPORT, Measurement(yaw=0.5, height=4.0)):
        made.feedback.measured(report, NOW_S)
    assert calls == ["grounded", (REPORT.motion, NOW_S)], "an incomplete report steers nothing"
    assert made.observed.newest.yaw == 0.5


@pytest.mark.parametrize("pilot", [None, Pilot(), Pilot(doubts_position=True)])
def test_a_low_charge_counts_also_in_a_doubted_report(pilot):
    made = vehicle(pilot)
    made.feedback.measured(Measurement(charge=0.1), NOW_S)
    assert made.limits.is_battery_low(NOW_S + LOW_BATTERY_S)
