# SPDX-License-Identifier: Apache-2.0
"""TiltPilot: commands by feedback, by an estimate, or neutral, with a fake clock."""

from types import SimpleNamespace

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.tilt_control import BLIND_TILT_SHARE
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.tilt_pilot import FEEDBACK_TIMEOUT_S, TiltPilot

DRONE = TiltedDrone(max_tilt=0.3, max_climb=1.0, max_yaw_rate=1.0)
AT_REST = Motion(0.0, 0.0, 1.0, 0.0)
DRIFTING = Motion(1.0, 0.0, 1.0, 0.0)
FORWARD, CLIMB, RAW = BodyVelocity(forward=1.0), BodyVelocity(up=0.5), Shares(pitch=0.7)
PERIOD_S = 0.05


class Flight:
    """Pilot with a fake arbiter."""

    def __init__(self, *, hovers=False):
        self.now_s, self.noise = 50.0, 1e-9
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

    def measurements(self):
        """Return the input of the control from now on."""
        taken = []
        self.pilot._control.measure = lambda motion, trust: taken.append(motion)
        return taken

    def fly(self, seconds, *, measured=None, **options):
        """Advance the clock. Return the last sent command. Measurements get a little noise, like real sensors."""
        shares = None
        for _ in range(round(seconds / PERIOD_S)):
            self.now_s += PERIOD_S
            if measured:
                self.noise = -self.noise
                self.pilot.measured(measured._replace(left=self.noise), self.now_s)
            shares = self.pilot.shares(self.now_s, **options)
        return shares


@pytest.fixture
def flight():
    return Flight()


def test_shares_are_sent_unchanged_and_no_command_is_neutral(flight):
    assert flight.fly(PERIOD_S) is None
    flight.wanted = RAW
    assert flight.fly(PERIOD_S) == RAW
    assert not flight.pilot.is_estimating


@pytest.mark.parametrize("hovers", [False, True])
def test_landed_drone_stops_its_motors_when_sinking_unless_autonomous(hovers):
    flight = Flight(hovers=hovers)
    flight.wanted = BodyVelocity(forward=1.0, up=-0.1)
    assert flight.fly(1.0, measured=AT_REST).thrust > -1.0
    flight.pilot.grounded(flight.now_s)
    assert (flight.fly(PERIOD_S) == Shares(thrust=-1.0)) == (not hovers)
    flight.wanted = CLIMB
    assert flight.fly(PERIOD_S).thrust > 0.0


def test_a_velocity_is_flown_by_measurements(flight):
    flight.wanted = FORWARD
    assert flight.fly(0.5, measured=AT_REST).pitch > BLIND_TILT_SHARE
    assert not flight.pilot.is_estimating
    flight = Flight()
    flight.wanted = BodyVelocity()
    assert flight.fly(0.5, measured=DRIFTING).pitch < -BLIND_TILT_SHARE


def test_an_implausible_velocity_is_not_used(flight):
    flight.wanted = FORWARD
    jumping = [DRIFTING._replace(forward=(-1) ** number * 5.0) for number in range(80)]
    shares = [flight.fly(PERIOD_S, measured=each) for each in jumping]
    assert flight.pilot.doubts
    assert abs(shares[-1].pitch) < 1.1 * BLIND_TILT_SHARE
    flight.wanted = None  # a stop flies a gentle zero, and holds the height
    below = DRIFTING._replace(height=0.8)
    assert -1.1 * BLIND_TILT_SHARE < flight.fly(2 * PERIOD_S, measured=below).pitch < 0.0
    assert flight.fly(PERIOD_S, measured=below).thrust > 0.0
    assert not flight.pilot.is_drifting
    flight.pilot.restart(flight.now_s)
    assert not flight.pilot.doubts


def test_a_report_repeated_under_a_changing_command_is_no_report(flight):
    flight.wanted = FORWARD
    for _ in range(20):
        flight.now_s += PERIOD_S
        flight.pilot.measured(DRIFTING, flight.now_s)
        shares = flight.pilot.shares(flight.now_s)
    assert "estimated" in flight.pilot.notes[0].sentence
    assert any("repeated" in doubt for doubt in flight.pilot.doubts)
    assert abs(shares.pitch) < 1.1 * BLIND_TILT_SHARE
    flight.fly(PERIOD_S, measured=DRIFTING)  # any number that changes
    assert not flight.pilot.notes
    assert not flight.pilot.doubts


def test_a_report_repeated_under_a_constant_command_is_used(flight):
    flight.wanted = BodyVelocity()
    for _ in range(20):
        flight.now_s += PERIOD_S
        flight.pilot.measured(AT_REST, flight.now_s)
        flight.pilot.shares(flight.now_s)
    assert not flight.pilot.is_estimating
    assert not flight.pilot.doubts


def test_a_stale_measurement_is_not_used(flight):
    flight.wanted = BodyVelocity(forward=5.0)
    assert flight.fly(0.5, measured=AT_REST).pitch > 2 * BLIND_TILT_SHARE
    flight.fly(FEEDBACK_TIMEOUT_S - PERIOD_S)
    assert not flight.pilot.is_estimating
    assert 0.0 < flight.fly(2 * PERIOD_S).pitch < 1.1 * BLIND_TILT_SHARE
    assert flight.pilot.is_estimating
    flight.fly(PERIOD_S, measured=AT_REST)
    assert not flight.pilot.is_estimating


def test_a_measurement_is_used_once_and_again_when_references_are_reset(flight):
    flight.wanted = FORWARD
    taken = flight.measurements()
    flight.pilot.measured(AT_REST, flight.now_s)
    flight.fly(2 * PERIOD_S)
    assert taken == [AT_REST]
    flight.wanted = RAW
    flight.fly(PERIOD_S)
    flight.wanted = FORWARD
    flight.fly(PERIOD_S)
    assert taken == [AT_REST, AT_REST]


def test_a_doubt_outlasts_a_landing_and_ends_with_reports_that_agree(flight):
    flight.wanted = FORWARD
    for number in range(80):
        flight.fly(PERIOD_S, measured=DRIFTING._replace(forward=(-1) ** number * 5.0))
    assert flight.pilot.doubts
    assert flight.pilot.is_position_doubted
    flight.pilot.grounded(flight.now_s)
    flight.fly(60.0)
    assert not flight.pilot.doubts
    assert not flight.pilot.is_position_doubted
    flight.fly(2 * PERIOD_S, measured=AT_REST)
    assert flight.pilot.doubts
    flight.wanted = BodyVelocity()
    flight.fly(20.0, measured=AT_REST)
    assert not flight.pilot.doubts


def test_a_measurement_long_before_the_first_velocity_is_not_used():
    flight = Flight(hovers=True)
    taken = flight.measurements()
    flight.fly(1.0)
    flight.pilot.measured(AT_REST, flight.now_s)
    flight.fly(FEEDBACK_TIMEOUT_S + PERIOD_S)
    flight.wanted = FORWARD
    flight.fly(PERIOD_S)
    assert taken == []


def test_without_measurements_velocities_are_flown_by_an_estimate(flight):
    flight.wanted = FORWARD
    assert 0.0 < flight.fly(1.0).pitch <= BLIND_TILT_SHARE + 1e-9
    assert flight.pilot.is_estimating


def test_on_the_ground_references_wait_and_the_estimate_is_suspended(flight):
    flight.wanted = CLIMB
    flight.fly(0.5, measured=AT_REST)
    flight.pilot.grounded(flight.now_s)
    flight.fly(PERIOD_S)
    first = flight.fly(PERIOD_S)
    assert flight.fly(2.0) == pytest.approx(first)
    assert not flight.pilot.is_estimating
    assert flight.fly(0.5, measured=AT_REST).thrust > first.thrust


@pytest.mark.parametrize("hovers", [True, False])
def test_without_measurements_a_hovering_drone_stops_by_itself(hovers):
    flight = Flight(hovers=hovers)
    flight.wanted = CLIMB
    first = flight.fly(PERIOD_S)
    assert flight.fly(1.0).thrust > first.thrust
    flight.wanted = BodyVelocity()
    assert (flight.fly(PERIOD_S) is None) is hovers
    assert flight.pilot.is_estimating is not hovers
    flight.wanted = CLIMB
    assert (flight.fly(PERIOD_S) == pytest.approx(first)) is hovers
    flight.wanted = BodyVelocity()
    assert flight.fly(0.5, measured=AT_REST) is not None


def test_a_hovering_drone_stops_by_itself_once_it_is_at_rest():
    flight = Flight(hovers=True)
    flight.wanted = BodyVelocity()
    assert flight.fly(0.5, measured=AT_REST) is not None
    flight.pilot.grounded(flight.now_s)
    assert flight.fly(PERIOD_S) is None


def test_an_overruled_command_is_neutral_and_not_decided(flight):
    flight.wanted = FORWARD
    assert flight.fly(0.5, measured=AT_REST, is_overruled=True) is None
    assert flight.decisions == 0


def test_neutral_brakes_like_a_commanded_zero_while_motion_is_reported():
    stopped, zeroed = Flight(), Flight()
    for flight, neutral in ((stopped, None), (zeroed, BodyVelocity())):
        flight.wanted = FORWARD
        flight.fly(1.0, measured=DRIFTING)
        flight.wanted = neutral
    for _ in range(10):
        braking = stopped.fly(PERIOD_S, measured=DRIFTING)
        assert braking == zeroed.fly(PERIOD_S, measured=DRIFTING)
    assert braking.pitch < -BLIND_TILT_SHARE
    assert not stopped.pilot.is_drifting


def test_neutral_without_measurements_is_level_and_reported_as_drifting(flight):
    assert flight.fly(1.0) is None
    assert not flight.pilot.is_drifting  # it may be on the ground
    assert flight.fly(0.5, measured=DRIFTING) is not None
    assert flight.fly(2 * FEEDBACK_TIMEOUT_S) is None
    assert flight.pilot.is_drifting
    flight.pilot.grounded(flight.now_s)
    assert flight.fly(PERIOD_S) is None
    assert not flight.pilot.is_drifting


def test_a_hovering_drone_gets_its_own_neutral_and_does_not_drift():
    flight = Flight(hovers=True)
    assert flight.fly(0.5, measured=DRIFTING) is None
    assert flight.fly(1.0) is None
    assert not flight.pilot.is_drifting


@pytest.mark.parametrize(("between", "hovers"), [(None, True), (RAW, False)])
def test_references_are_reset_after_other_commands_than_velocities(between, hovers):
    flight = Flight(hovers=hovers)
    flight.wanted = CLIMB
    first = flight.fly(PERIOD_S, measured=AT_REST)
    assert flight.fly(0.5, measured=AT_REST).thrust > first.thrust
    flight.wanted = between
    flight.fly(PERIOD_S, measured=AT_REST)
    flight.wanted = CLIMB
    assert flight.fly(PERIOD_S, measured=AT_REST) == pytest.approx(first)


def test_another_drone_starts_without_earlier_state(flight):
    fresh = Flight()
    fresh.wanted = flight.wanted = CLIMB
    flight.fly(1.0, measured=AT_REST)
    flight.pilot.grounded(flight.now_s)
    flight.is_forgotten = False
    flight.pilot.restart(flight.now_s)
    assert flight.is_forgotten
    assert flight.fly(PERIOD_S) == pytest.approx(fresh.fly(PERIOD_S))
    assert flight.pilot.is_estimating


def test_another_drone_does_not_use_the_first_one_s_measurements(flight):
    flight.wanted = FORWARD
    flight.fly(1.0, measured=AT_REST)
    flight.pilot.restart(flight.now_s)
    flight.fly(PERIOD_S)
    assert flight.pilot.is_estimating


def test_another_drone_is_flown_within_its_own_maxima(flight):
    slower = TiltedDrone(max_tilt=0.1, max_climb=0.5, max_yaw_rate=0.5)
    flight.pilot.use(slower)
    assert flight.pilot.arbiter.within_maxima == slower.within_maxima
    assert flight.pilot.arbiter.within_maxima != DRONE.within_maxima
