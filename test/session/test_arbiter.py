# SPDX-License-Identifier: Apache-2.0
"""Arbiter: its table of ranks, row by row, and the timeout of commands."""

from collections import Counter
from types import SimpleNamespace

import pytest

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import LOW_BATTERY_S, LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.arbiter import Arbiter, Arrival, Entrance, Rank
from drone_bridge.session.hold_state import CALLED, HELM_ENDS_AFTER_S, HoldState

TIMEOUT_S = 0.5
ODOMETRY_TIMEOUT_S, LAND_AFTER_S = 0.5, 2.0
PLACED = {"fence_radius": 100.0, "odometry_timeout": ODOMETRY_TIMEOUT_S, "land_without_odometry": LAND_AFTER_S}
SINKING = BodyVelocity(up=-0.5)


class Vehicle:
    """Vehicle with an arbiter and a fake clock."""

    def __init__(self, *, sinks=True, within_maxima=None, **limits):
        self.now_s = 1000.0
        self.hold, self.observed = HoldState(), ObservedMotion(lambda: self.now_s)
        self.timeout_s = TIMEOUT_S
        self.counts, self.durations = Counter(), []
        statistics = SimpleNamespace(
            counts=self.counts, record_duration=lambda name, seconds: self.durations.append((name, seconds))
        )
        limits = Limits(LimitParameters(**limits), self.observed)
        self.waiting = []
        self.arbiter = Arbiter(
            self.hold,
            limits,
            lambda: self.timeout_s,
            statistics,
            take=lambda now_s: [*map(self.command, self.waiting)],
            within_maxima=within_maxima,
        )
        if sinks:
            self.arbiter.sinks = True

    def fly(self, x=0.0, y=0.0):
        """Set the position, with a heading along the world's x."""
        self.observed.measured(0.0, (x, y, 1.0), (0.0, 0.0, 0.0))

    def discharge(self):
        """Report a low battery for long enough."""
        self.arbiter.limits.charged(0.1, self.now_s - LOW_BATTERY_S)

    def command(self, command, stamp=None, **source):
        arrival = Arrival(command, self.now_s, stamp, **source)
        self.arbiter.put(arrival)
        return arrival

    def decided(self, *arguments):
        decision = self.arbiter.decide(self.now_s, *arguments)
        return decision.rank, decision.command


FORWARD, FAST, RAW = BodyVelocity(1.0, turn=0.2), BodyVelocity(8.0, turn=0.2), "raw"


@pytest.fixture
def vehicle():
    """Return a vehicle at its start with watched odometry and a good battery."""
    vehicle = Vehicle(**PLACED, low_battery=0.2, land_on_low_battery=True)
    vehicle.arbiter.limits.charged(1.0, vehicle.now_s)
    vehicle.fly()
    return vehicle


# The table, from bottom to top: each row starts to apply while all rows below it do.


def test_the_first_row_that_applies_decides(vehicle):
    assert vehicle.decided() == (Rank.NEUTRAL, None)
    vehicle.timeout_s = 60.0
    vehicle.command(FORWARD, entrance=Entrance.HELM)
    assert vehicle.decided() == (Rank.COMMAND, FORWARD)
    vehicle.now_s += ODOMETRY_TIMEOUT_S + 0.1
    assert vehicle.decided() == (Rank.BLIND, None)
    vehicle.discharge()
    assert vehicle.decided() == (Rank.LANDING, SINKING)
    vehicle.hold.steer(vehicle.now_s)
    assert vehicle.decided() == (Rank.HELM, FORWARD)
    vehicle.hold.hold(CALLED)
    assert vehicle.decided() == (Rank.HOLD, None), "it may be on a bench"
    vehicle.arbiter.limits.flew(True, vehicle.now_s)
    assert vehicle.decided() == (Rank.LANDING, SINKING)
    vehicle.arbiter.limits.flew(False, vehicle.now_s)
    vehicle.hold.steer(vehicle.now_s)
    assert vehicle.decided() == (Rank.HOLD, None)

    vehicle.hold.release(vehicle.now_s)
    assert vehicle.decided() == (Rank.HELM, FORWARD)
    vehicle.now_s += HELM_ENDS_AFTER_S + 0.1
    assert vehicle.decided() == (Rank.HOLD, None)
    vehicle.hold.release(vehicle.now_s)
    assert vehicle.decided() == (Rank.LANDING, SINKING)
    vehicle.arbiter.limits.charged(1.0, vehicle.now_s)
    assert vehicle.decided() == (Rank.BLIND, None)
    vehicle.fly()
    assert vehicle.decided() == (Rank.COMMAND, FORWARD)
    vehicle.arbiter.forget()
    assert vehicle.decided() == (Rank.NEUTRAL, None)


def test_a_helm_without_a_fresh_command_is_neutral(vehicle):
    vehicle.discharge()
    vehicle.hold.steer(vehicle.now_s)
    assert vehicle.decided() == (Rank.HELM, None)
    vehicle.command(FORWARD)
    vehicle.now_s += TIMEOUT_S + 0.1
    assert vehicle.decided() == (Rank.HELM, None)


def test_a_forced_landing_continues_without_commands(vehicle):
    vehicle.now_s += ODOMETRY_TIMEOUT_S + LAND_AFTER_S - 0.1
    assert vehicle.decided() == (Rank.NEUTRAL, None)
    vehicle.now_s += 0.2
    for _ in range(3):
        assert vehicle.decided() == (Rank.LANDING, SINKING)
        assert vehicle.arbiter.rank(vehicle.now_s) is Rank.LANDING
        vehicle.now_s += 100.0
    vehicle.command(RAW)
    assert vehicle.decided() == (Rank.LANDING, SINKING)


def test_a_landing_by_button_is_neutral_meanwhile():
    vehicle = Vehicle(sinks=False, low_battery=0.2, land_on_low_battery=True)
    vehicle.discharge()
    vehicle.command(FORWARD)
    assert vehicle.decided() == (Rank.LANDING, None)


def test_a_raw_command_needs_no_odometry_and_has_no_limits(vehicle):
    vehicle.now_s += ODOMETRY_TIMEOUT_S + 0.1
    vehicle.command(RAW)
    assert vehicle.decided() == (Rank.COMMAND, RAW)


def test_only_a_blind_command_that_returns_is_slowed(vehicle):
    slow = BodyVelocity(0.1)
    vehicle.arbiter.limits.returning = lambda asked, now_s: slow
    vehicle.timeout_s = 60.0
    vehicle.command(FORWARD, entrance=Entrance.HELM)
    assert vehicle.decided() == (Rank.COMMAND, FORWARD)
    vehicle.now_s += ODOMETRY_TIMEOUT_S + 0.1
    assert vehicle.decided() == (Rank.COMMAND, slow)
    vehicle.hold.steer(vehicle.now_s)
    assert vehicle.decided() == (Rank.HELM, FORWARD)


def test_velocities_at_the_helm_are_limited_too():
    vehicle = Vehicle(max_speed=2.0)
    vehicle.command(FAST)
    assert vehicle.decided() == (Rank.COMMAND, BodyVelocity(2.0, turn=0.2))
    vehicle.hold.steer(vehicle.now_s)
    assert vehicle.decided() == (Rank.HELM, None)  # a command received meanwhile is not the helm's
    vehicle.command(FAST, entrance=Entrance.HELM)
    assert vehicle.decided() == (Rank.HELM, BodyVelocity(2.0, turn=0.2))
    assert vehicle.counts == {"limited_commands": 2}
    vehicle.command(FORWARD, entrance=Entrance.HELM)
    assert vehicle.decided() == (Rank.HELM, FORWARD)
    assert vehicle.counts == {"limited_commands": 2}


def test_a_command_is_limited_by_the_current_limits():
    vehicle = Vehicle(fence_radius=10.0)
    vehicle.fly()
    vehicle.timeout_s = 60.0
    vehicle.command(FORWARD)
    assert vehicle.decided() == (Rank.COMMAND, FORWARD)
    vehicle.fly(x=9.9)
    assert vehicle.decided()[1].forward < 1.0


def test_vehicle_maxima_apply_after_limits_and_count_each_command_once():
    def within_maxima(command):
        return BodyVelocity(3.0) if command == BodyVelocity(5.0) else RAW if command == "too much" else command

    vehicle = Vehicle(max_speed=5.0, within_maxima=within_maxima)
    assert vehicle.arbiter.reduced == (BodyVelocity(), BodyVelocity())
    vehicle.command(BodyVelocity(9.0))
    for _ in range(3):
        assert vehicle.decided() == (Rank.COMMAND, BodyVelocity(3.0))
    assert vehicle.counts == {"limited_commands": 1, "clamped_commands": 1}
    vehicle.command("too much")
    assert vehicle.decided() == (Rank.COMMAND, RAW)
    assert vehicle.counts == {"limited_commands": 1, "clamped_commands": 2}
    vehicle.command(FORWARD)
    vehicle.decided()
    assert vehicle.arbiter.reduced == (BodyVelocity(9.0), BodyVelocity(3.0))


@pytest.mark.parametrize("entrance", Entrance)
def test_what_is_reduced_of_our_own_controllers_is_counted_and_told_to_nobody(entrance):
    vehicle = Vehicle(max_speed=2.0)
    vehicle.command(FAST, entrance=entrance)
    if entrance is Entrance.HELM:
        vehicle.hold.steer(vehicle.now_s)
    assert vehicle.decided()[1] == BodyVelocity(2.0, turn=0.2)
    assert vehicle.counts == {"limited_commands": 1}
    is_told = vehicle.arbiter.reduced == (FAST, BodyVelocity(2.0, turn=0.2))
    assert is_told is (entrance not in (Entrance.GOAL, Entrance.LANDING))


def test_a_landing_is_limited_by_the_vehicle_s_maxima():
    vehicle = Vehicle(low_battery=0.2, land_on_low_battery=True)
    vehicle.arbiter.within_maxima = lambda command: BodyVelocity(up=max(command.up, -0.1))
    vehicle.discharge()
    assert vehicle.decided() == (Rank.LANDING, BodyVelocity(up=-0.1))


# Timeout of a command.


def test_a_command_is_valid_for_its_timeout_which_may_change(vehicle):
    vehicle.command(FORWARD)
    for after_s, timeout_s, rank in ((0.0, 0.5, Rank.COMMAND), (0.5, 0.5, Rank.COMMAND), (0.51, 0.5, Rank.NEUTRAL)):
        vehicle.timeout_s = timeout_s
        assert vehicle.arbiter.decide(1000.0 + after_s).rank is rank
    vehicle.timeout_s = 5.0
    vehicle.now_s += 0.51
    vehicle.fly()
    assert vehicle.decided() == (Rank.COMMAND, FORWARD)


def test_a_command_excludes_those_of_lower_entrances_for_its_timeout(vehicle):
    arbiter, now_s = vehicle.arbiter, vehicle.now_s
    for newest in Entrance:
        arbiter.put(Arrival(FORWARD, now_s, entrance=newest))
        for entrance in Entrance:
            admitted = [arbiter.admits(entrance, now_s + after_s) for after_s in (0.0, 0.25, 0.5)]
            assert admitted == ([True] * 3 if entrance >= newest else [False, False, True])


def test_a_command_that_waits_is_taken_before_a_decision(vehicle):
    vehicle.waiting.append(FORWARD)
    assert vehicle.decided() == (Rank.COMMAND, FORWARD)


def test_a_decision_has_the_arrival_time_of_its_command(vehicle):
    vehicle.command(FORWARD)
    vehicle.now_s += 0.2
    assert vehicle.arbiter.decide(vehicle.now_s).arrived_s == 1000.0


def test_the_delay_of_a_command_is_measured_once_and_only_if_it_is_used(vehicle):
    vehicle.hold.hold(CALLED)
    vehicle.command(FORWARD)
    vehicle.decided()
    assert vehicle.durations == []
    vehicle.hold.release(vehicle.now_s)
    vehicle.now_s += 0.25
    vehicle.decided()
    vehicle.now_s += 0.125
    vehicle.decided()
    assert vehicle.durations == [("command_received_to_sent", 0.25)]


# An answer in lockstep, which replaces the newest command.


def test_an_answer_replaces_the_newest_command_by_the_same_rules(vehicle):
    answer = vehicle.command(FORWARD, stamp=(1, 0))
    vehicle.command(RAW)
    vehicle.now_s += 0.1
    assert vehicle.decided(answer) == (Rank.COMMAND, FORWARD)
    assert vehicle.decided() == (Rank.COMMAND, RAW)
    vehicle.hold.hold(CALLED)
    assert vehicle.decided(answer) == (Rank.HOLD, None)
