# SPDX-License-Identifier: Apache-2.0
"""What a drone that is steered by tilt is sent: by feedback, by an estimate, or nothing, without time that passes."""

from types import SimpleNamespace

import pytest

from drone_bridge.motion.tilt_control import BLIND_TILT_SHARE, Motion, Shares, TiltedDrone, Velocity
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.tilt_pilot import FEEDBACK_TIMEOUT_S, TiltPilot

DRONE = TiltedDrone(max_tilt=0.3, max_climb=1.0, max_yaw_rate=1.0)
AT_REST = Motion(0.0, 0.0, 0.0, 1.0, 0.0)
DRIFTING = Motion(1.0, 0.0, 0.0, 1.0, 0.0)
FORWARD, RAW = Velocity(forward=1.0), Shares(pitch=0.7)
PERIOD_S = 0.05


class Flight:
    """A pilot whose arbiter decides what the test says."""

    def __init__(self, *, hovers=False):
        self.now_s = 50.0
        self.wanted, self.decisions, self.is_forgotten = None, 0, False
        arbiter = SimpleNamespace(decide=self._decide, forget=self._forget)
        self.pilot = TiltPilot(arbiter, DRONE, hovers=hovers)
        self.pilot.restart(self.now_s)

    def _decide(self, now_s):
        assert now_s == self.now_s
        self.decisions += 1
        return Decision(Rank.COMMAND, self.wanted)

    def _forget(self):
        self.is_forgotten = True

    def fly(self, seconds, *, measured=None, **options):
        """Let time pass; return what was sent last."""
        shares = None
        for _ in range(round(seconds / PERIOD_S)):
            self.now_s += PERIOD_S
            if measured:
                self.pilot.measured(measured, self.now_s)
            shares = self.pilot.shares(self.now_s, **options)
        return shares


@pytest.fixture
def flight():
    return Flight()


def test_shares_are_sent_as_they_are_and_nothing_is_neutral(flight):
    assert flight.fly(PERIOD_S) is None
    flight.wanted = RAW
    assert flight.fly(PERIOD_S) == RAW
    assert not flight.pilot.is_estimating


def test_a_velocity_is_flown_by_what_is_measured(flight):
    flight.wanted = FORWARD
    assert flight.fly(1.0, measured=AT_REST).pitch > BLIND_TILT_SHARE
    assert not flight.pilot.is_estimating
    flight.wanted = Velocity()
    assert flight.fly(1.0, measured=DRIFTING).pitch < -BLIND_TILT_SHARE


def test_what_was_measured_too_long_ago_is_not_flown_by(flight):
    flight.wanted = FORWARD
    flight.fly(0.5, measured=AT_REST)
    flight.fly(FEEDBACK_TIMEOUT_S - PERIOD_S)
    assert not flight.pilot.is_estimating
    assert 0.0 < flight.fly(2 * PERIOD_S).pitch <= BLIND_TILT_SHARE + 1e-9
    assert flight.pilot.is_estimating
    flight.fly(PERIOD_S, measured=AT_REST)
    assert not flight.pilot.is_estimating


def test_one_measurement_is_taken_once(flight):
    flight.wanted = FORWARD
    taken = []
    flight.pilot._control.measure = taken.append
    flight.pilot.measured(AT_REST, flight.now_s)
    flight.fly(3 * PERIOD_S)
    assert taken == [AT_REST]


def test_where_nothing_was_ever_measured_velocities_are_flown_by_an_estimate(flight):
    flight.wanted = FORWARD
    assert 0.0 < flight.fly(1.0).pitch <= BLIND_TILT_SHARE + 1e-9
    assert flight.pilot.is_estimating


def test_on_the_ground_nothing_is_measured_and_nothing_is_estimated(flight):
    flight.wanted = FORWARD
    flight.fly(0.5, measured=AT_REST)
    flight.pilot.stands()
    flight.fly(PERIOD_S)
    first = flight.fly(PERIOD_S)
    assert flight.fly(2.0) == pytest.approx(first)  # no reference runs away from it
    assert not flight.pilot.is_estimating


@pytest.mark.parametrize("hovers", [True, False])
def test_a_drone_that_stops_by_itself_does_so_where_nothing_is_measured(hovers):
    flight = Flight(hovers=hovers)
    flight.wanted = FORWARD
    flight.fly(1.0)
    flight.wanted = Velocity()
    stopping = flight.fly(PERIOD_S)
    assert (stopping is None) is hovers
    assert flight.pilot.is_estimating is not hovers
    assert (flight.fly(0.5, measured=AT_REST) is None) is False


def test_what_is_overruled_is_neutral_and_not_even_decided(flight):
    flight.wanted = FORWARD
    assert flight.fly(0.5, measured=AT_REST, is_overruled=True) is None
    assert flight.decisions == 0


@pytest.mark.parametrize("between", [None, RAW])
def test_references_begin_anew_after_something_else_than_a_velocity(flight, between):
    flight.wanted = Velocity(up=0.5)
    flight.fly(2.0, measured=AT_REST)  # it does not climb, and is far behind
    behind = flight.fly(PERIOD_S, measured=AT_REST).thrust
    flight.wanted = between
    flight.fly(PERIOD_S, measured=AT_REST)
    flight.wanted = Velocity(up=0.5)
    assert flight.fly(PERIOD_S, measured=AT_REST).thrust < behind


def test_another_drone_is_flown_by_nothing_that_was_before(flight):
    flight.wanted = FORWARD
    flight.fly(1.0, measured=AT_REST)
    flight.is_forgotten = False
    flight.pilot.restart(flight.now_s)
    assert flight.is_forgotten
    fresh = Flight()
    fresh.wanted = FORWARD
    assert flight.fly(PERIOD_S) == fresh.fly(PERIOD_S)
    assert flight.pilot.is_estimating


def test_a_pilot_that_stood_still_takes_a_short_step(flight):
    flight.wanted = Velocity(up=0.5)
    flight.fly(0.5, measured=AT_REST)
    flight.now_s += 3600.0
    late = flight.fly(PERIOD_S, measured=AT_REST)
    assert all(abs(share) <= 1.0 for share in late)
