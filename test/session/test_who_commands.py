# SPDX-License-Identifier: Apache-2.0
"""Who commands a vehicle, after any history of people, programs, reports and time: a drone's arbiter, hold and limits.

The model below keeps the history as times of events, and looks each situation up in a table of its own. It shares no
code with the package but the names of ranks. Each removed row of the package's table, left-out time of its clock and
inverted flag fails here alone.
"""

import math
from collections import Counter
from types import SimpleNamespace

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.arbiter import LANDING_SPEED, Arbiter, Arrival, Entrance, Rank
from drone_bridge.session.hold_state import CALLED, HoldState

TIMEOUT_S, HELM_S, LOW_S, BLIND_S, LAND_AFTER_S, FORGOTTEN_S, SETTLING_S = 0.5, 1.0, 2.0, 0.5, 5.0, 60.0, 0.3
NEVER = -math.inf
#: Hold, helm, cause of a landing, last reported flight, newest command: who commands. The first row that fits.
TABLE = """
    none     helm  any          any      any      HELM
    person   any   battery      flies    any      LANDING
    machine  any   battery      flies    any      LANDING
    machine  any   odometry     flies    any      LANDING
    machine  any   unattended   flies    any      LANDING
    person   any   any          any      any      HOLD
    machine  any   any          any      any      HOLD
    none     any   battery      any      any      LANDING
    none     any   odometry     any      any      LANDING
    none     any   unattended   any      any      LANDING
    none     vain  none         any      any      NEUTRAL
    none     no    none         any      blind    BLIND
    none     no    none         any      given    COMMAND
    none     no    none         any      nothing  NEUTRAL
"""
ROWS = [line.split() for line in TABLE.strip().splitlines()]
#: Causes of a landing in a run. Each precedes those after it, so most runs have one.
LIMITS = ("unattended", "unattended", "odometry", "odometry", "battery", "battery odometry unattended")
#: Times after each step at which the decision is compared, s, if nothing happens until then.
AHEAD_S = 0.0, 0.4, 1.01, 2.0, 2.5, 3.0, 15.0, 70.0
FORWARD, RAW, PRESSED = BodyVelocity(1.0), "raw", "Anne pressed STOP"


def who_commands(*situation):
    """Return the rank of a situation by the table above."""
    fits = (row for row in ROWS if all(each in ("any", part) for each, part in zip(row, situation, strict=False)))
    return Rank[next(fits)[-1]]


class Drone(RuleBasedStateMachine):
    """Drone whose decisions are compared with the table."""

    @initialize(
        limits=st.sampled_from(LIMITS),
        unattended_s=st.sampled_from([3.0, 15.0]),
        flies=st.booleans(),
        since_s=st.sampled_from([0.0, 20.0]),
        holder=st.sampled_from(["", "", "person", "program"]),
    )
    def begin(self, limits, unattended_s, flies, since_s, holder):
        self.now_s = 1000.0
        self.unattended_s = unattended_s if "unattended" in limits else 0.0
        self.lands_on_battery, self.has_fence = "battery" in limits, "odometry" in limits
        self.observed = ObservedMotion(lambda: self.now_s, lambda: self.settled_s)
        parameters = LimitParameters(
            fence_radius=100.0 if self.has_fence else 0.0,
            odometry_timeout=BLIND_S,
            land_without_odometry=LAND_AFTER_S,
            land_unattended=self.unattended_s,
            low_battery=0.3,
            land_on_low_battery=self.lands_on_battery,
        )
        self.limits, self.hold = Limits(parameters, self.observed), HoldState()
        statistics = SimpleNamespace(counts=Counter(), record_duration=lambda *_: None)
        self.arbiter = Arbiter(self.hold, self.limits, lambda: TIMEOUT_S, statistics)
        self.arbiter.sinks = True
        # The history.
        self.is_held_by_person = self.is_held_by_program = self.has_helm_ended = False
        self.steered_s = None  # last command of the helm, unless that has ended
        self.is_refused = False  # that command
        self.low_since_s = self.reported_s = self.flying_since_s = self.newest = None
        self.charged_s = self.flight_s = self.attended_s = self.settled_s = NEVER
        self.until_s = {}
        if flies:
            self.it_reports_whether_it_flies(True)
            self.now_s += since_s
        if holder:
            self.it_is_held_by_a_person_or_a_program_that_fails(holder == "person")
        self.it_reports_its_battery(0.29)
        self.it_reports_its_place()

    # People.

    @rule(is_person=st.booleans())
    def it_is_held_by_a_person_or_a_program_that_fails(self, is_person):
        self.hold.hold(PRESSED if is_person else CALLED)
        self._forget()
        self.has_helm_ended, self.steered_s = False, None
        self.is_held_by_person |= is_person
        self.is_held_by_program |= not is_person

    @rule()
    def a_person_resumes_and_a_program_goes_on(self):
        self.a_person_resumes()
        self._command(FORWARD)

    @rule()
    def a_person_resumes(self):
        if self.arbiter.is_held(self.now_s):
            self._forget()
            self.hold.release(self.now_s)
            self.attended_s = self.now_s
            if self.steered_s is not None and self.now_s - self.steered_s > HELM_S:
                self.steered_s = None
            self.is_held_by_person = self.is_held_by_program = self.has_helm_ended = False

    @rule(
        stick=st.sampled_from(["centred", "deflected", "refused"]),
        times=st.sampled_from([1, 3]),
        seconds=st.sampled_from([0.0, 1.01, 2.0]),
    )
    def a_person_steers_and_waits(self, stick, times, seconds):
        for _ in range(times):
            self._steer(stick)
            self.now_s += 0.9
        self.now_s += seconds

    def _steer(self, stick):
        self.is_refused = stick == "refused"
        if self.hold.steer(self.now_s, "its clock is wrong" if self.is_refused else "") or self.is_refused:
            self._forget()
        self.steered_s, self.has_helm_ended = self.now_s, False
        if self.is_held_by_person or self.is_held_by_program or self.is_refused:
            return
        self.attended_s = self.now_s
        if stick == "centred":
            self._forget()
        else:
            self._put(FORWARD, Entrance.HELM)

    @rule()
    def the_node_looks_at_its_helm(self):
        if self.hold.end_helm(self.now_s):
            self._forget()
            self.has_helm_ended, self.steered_s = not (self.is_held_by_person or self.is_held_by_program), None

    # Programs.

    @rule(
        command=st.sampled_from([FORWARD, RAW, BodyVelocity()]),
        entrance=st.sampled_from([Entrance.GOAL, Entrance.PROGRAM, Entrance.STAMPED]),
        waited_s=st.sampled_from([0.0, 0.0, 3.0, 16.0]),
    )
    def a_program_waits_and_commands(self, command, entrance, waited_s):
        self.now_s += waited_s
        self._command(command, entrance)

    def _command(self, command, entrance=Entrance.PROGRAM):
        if not self.hold.is_free:
            return
        is_free = all(self.now_s >= until_s for higher, until_s in self.until_s.items() if higher > entrance)
        assert self.arbiter.admits(entrance, self.now_s) == is_free
        if is_free:
            self._put(command, entrance)

    def _put(self, command, entrance):
        self.until_s[entrance] = self.now_s + TIMEOUT_S
        self.newest = Arrival(command, self.now_s, None, entrance)
        self.arbiter.put(self.newest)
        self.attended_s = self.now_s

    def _forget(self):
        self.arbiter.forget()
        self.newest = None

    # The drone.

    @rule(charge=st.sampled_from([0.9, 0.3, 0.29, 0.9]))
    def it_reports_its_battery(self, charge):
        self.limits.charged(charge, self.now_s)
        self.charged_s = self.now_s
        if charge >= 0.3:
            self.low_since_s = None
        elif self.low_since_s is None:
            self.low_since_s = self.now_s

    @rule()
    def it_reports_its_place(self):
        self.observed.measured(0.0, (0.0, 0.0, 1.0), (0.0, 0.0, 0.0))
        self.reported_s = self.now_s

    @rule(is_flying=st.sampled_from([True, True, True, False]))
    def it_reports_whether_it_flies(self, is_flying):
        self.limits.flew(is_flying, self.now_s)
        self.flight_s = self.now_s
        self.flying_since_s = (self.flying_since_s or self.now_s) if is_flying else None

    @rule()
    def it_connects_anew(self):
        land_s = self._land_without_odometry_s()
        self.arbiter.start(self.now_s)
        self.newest = None
        if self.now_s >= land_s + FORGOTTEN_S:
            self.reported_s = None
        if self.now_s >= self.charged_s + FORGOTTEN_S:
            self.low_since_s = None
        if self.now_s >= self.flight_s + FORGOTTEN_S:
            self.flying_since_s = None

    # Time.

    @rule(seconds=st.sampled_from([0.05, 0.4, 1.01]))
    def a_moment_passes(self, seconds):
        self.now_s += seconds

    @rule(seconds=st.sampled_from([2.0, 3.0, 16.0, 70.0]))
    def time_passes(self, seconds):
        self.now_s += seconds

    @rule(seconds=st.sampled_from([0.4, 20.0]))
    def the_process_stalls(self, seconds):
        self.now_s += seconds
        self.settled_s = self.now_s + SETTLING_S

    # The table.

    def _land_without_odometry_s(self):
        """Return when a landing by missing odometry begins, s."""
        if not self.has_fence or self.reported_s is None:
            return math.inf
        return max(self.reported_s, self.settled_s) + BLIND_S + LAND_AFTER_S

    def situation(self, now_s):
        is_steered = self.steered_s is not None and now_s - self.steered_s <= HELM_S
        has_ended = self.has_helm_ended or (self.steered_s is not None and not is_steered)
        hold = "machine" if self.is_held_by_program or has_ended else "none"
        hold = "person" if self.is_held_by_person else hold
        cause = "none"
        if self.lands_on_battery and self.low_since_s is not None and now_s - self.low_since_s >= LOW_S:
            cause = "battery"
        elif now_s >= self._land_without_odometry_s():
            cause = "odometry"
        elif self.unattended_s and self.flying_since_s is not None:
            since_s = max(self.attended_s, self.flying_since_s, self.settled_s)
            cause = "unattended" if now_s >= since_s + self.unattended_s else "none"
        command = "nothing"
        if self.newest and now_s - self.newest.arrived_s <= TIMEOUT_S:
            is_blind = self.has_fence and (self.reported_s is None or now_s - self.reported_s > BLIND_S)
            command = "blind" if is_blind and self.newest.command != RAW else "given"
        flight = "unknown" if self.flying_since_s is None else "flies"
        helm = "vain" if self.is_refused else "helm"
        return hold, helm if is_steered and hold == "none" else "no", cause, flight, command

    @invariant()
    def the_table_decides_now_and_later(self):
        for ahead_s in AHEAD_S:
            self._decide(self.now_s + ahead_s)

    def _decide(self, now_s):
        situation = self.situation(now_s)
        rank, decision = who_commands(*situation), self.arbiter.decide(now_s)
        assert decision.rank is rank, situation
        assert self.arbiter.is_held(now_s) == (situation[0] != "none"), situation
        if rank is Rank.LANDING:
            assert decision.command == BodyVelocity(up=-LANDING_SPEED)
        elif rank in (Rank.HOLD, Rank.BLIND, Rank.NEUTRAL):
            assert decision.command is None
        elif rank is Rank.COMMAND:
            assert decision.command == self.newest.command


TestWhoCommands = Drone.TestCase
TestWhoCommands.settings = settings(max_examples=200, stateful_step_count=40, deadline=None)


@pytest.mark.exhaustive
@pytest.mark.parametrize("part", range(20))
def test_who_commands_in_half_a_million_steps(part):
    run_state_machine_as_test(Drone, settings=settings(TestWhoCommands.settings, max_examples=625, derandomize=False))
