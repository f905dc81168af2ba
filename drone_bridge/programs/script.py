# SPDX-License-Identifier: Apache-2.0
"""Script: operator that follows a plan by the session of a bridge.

There are two threads. The thread of a LinkLoop runs the session, with the plan's velocity in place of the arbiter's.
The main thread prints the legs and waits.
"""

from __future__ import annotations

import argparse
import contextlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.derived_velocity import DerivedVelocity
from drone_bridge.motion.limits import LimitParameters, Limits
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.link_loop import Link, LinkLoop
from drone_bridge.programs.plan import FASTEST, Leg
from drone_bridge.programs.program import print_event
from drone_bridge.programs.session_output import SessionOutput
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.feedback import Feedback, Pilot
from drone_bridge.session.session import Outcome

LOOK_S, REPORT_PERIOD_S = 0.05, 1.0
#: Time after a takeoff until the plan starts, even if the drone does not report that it flies.
TAKEOFF_S = 15.0
#: Longest time for braking at the end of the plan, s, and speed below which a vehicle stands, m/s.
BRAKING_S, STANDING = 5.0, 0.1
#: Speed above which a vehicle has moved, and is to, m/s or rad/s.
MOVES = 0.02


@dataclass(slots=True)
class _Request:
    """Request with its outcome."""

    name: str
    asked_s: float


class _SeenFeedback(Feedback):
    """Feedback that keeps the newest report, and the largest speed in the plane and about it, m/s or rad/s."""

    newest: Measurement | None = None
    fastest: float | None = None

    def __init__(self, observed: ObservedMotion, limits: Limits, pilot: Pilot | None) -> None:
        super().__init__(observed, limits, pilot)
        self._derived = DerivedVelocity(FASTEST, FASTEST)

    def measured(self, measured: Measurement, now_s: float) -> None:
        self.newest = measured
        if velocity := self._derived.update(replace(measured, yaw=measured.yaw or 0.0), now_s):
            self.fastest = max(self.fastest or 0.0, *map(abs, (velocity.forward, velocity.left, velocity.turn)))
        super().measured(measured, now_s)


class PlannedCommands(SessionOutput):
    """Arbiter of the session with the plan's velocity, and receiver of its outcomes."""

    def __init__(self, within_maxima: Callable[[Any], Any] = lambda velocity: velocity) -> None:
        """`within_maxima`: see Arbiter."""
        self._observed = ObservedMotion(elapsed_s)
        self.velocity = BodyVelocity()
        self.limits = Limits(LimitParameters(), self._observed)
        self.within_maxima = within_maxima
        self._feedback: _SeenFeedback | None = None
        self.outcome: Outcome | None = None

    def make_feedback(self, pilot: Pilot | None = None) -> Feedback:
        """Return the receiver of the vehicle's reports for the session. `pilot` flies a drone by tilt."""
        self._feedback = _SeenFeedback(self._observed, self.limits, pilot)
        return self._feedback

    @property
    def newest(self) -> Measurement | None:
        """Newest report of the vehicle."""
        return self._feedback.newest if self._feedback else None

    def has_moved(self) -> bool | None:
        """Return whether the vehicle has reported motion since the last call; None if it reports no velocity."""
        if self._feedback is None or (fastest := self._feedback.fastest) is None:
            return None
        self._feedback.fastest = 0.0
        return fastest > MOVES

    def decide(self, now_s: float) -> Decision[Any]:
        return Decision(Rank.COMMAND, self.within_maxima(self.velocity))

    def rank(self, now_s: float) -> Rank:
        return Rank.COMMAND

    def cause(self, now_s: float) -> None:
        """Return None: a plan has no limits."""

    def is_held(self, now_s: float) -> bool:
        return False

    def start(self, now_s: float) -> None:
        """Do nothing: the plan continues."""

    def forget(self) -> None:
        """Do nothing, likewise."""

    def resolve(self, outcome: Outcome) -> None:
        self.outcome = outcome


class Script:
    """Operator that prepares a vehicle, follows a plan by a session, and always leaves the vehicle neutral."""

    #: Period of commands, s.
    period_s = 0.05
    #: Timeout of the first report before the plan starts, s: some vehicles report nothing.
    first_report_s = 3.0

    def __init__(
        self,
        name: str,
        link: Link,
        session: Any,
        wish: PlannedCommands,
        *,
        options: argparse.Namespace,
        cancellation: Cancellation,
        requests: Collection[str],
    ) -> None:
        """Start the session, whose `ask` makes these requests. `options` has a plan, and perhaps `in_the_air`."""
        self.plan, self.cancellation, self.now_s = options.plan, cancellation, elapsed_s
        self._began_s = self._report_at = 0.0
        self.options = options
        self._wish, self._session, self._requests = wish, session, requests
        self._loop = LinkLoop(f"{name} operator", link, session, wish)
        self._loop.start()
        self._has_failed = False
        self._flies = "takeoff" in requests and not getattr(options, "in_the_air", False)

    def prepare(self) -> None:
        """Wait for the vehicle, and take off if supported. Raises LinkError on a refusal."""
        while not self._session.is_open:
            self.listen(LOOK_S)
        self.wait(self.first_report_s, until=lambda: self._wish.newest is not None)
        print_event(f"connected to {self._session.peer}")
        if self._flies:
            self.take_off()
            self.wait(TAKEOFF_S, until=lambda: not (newest := self._wish.newest) or newest.is_flying is not False)

    @property
    def elapsed_s(self) -> float:
        """Time since the beginning of the plan, s."""
        return self.now_s() - self._began_s

    def operate(self) -> int:
        """Prepare, follow the plan, and leave. Return the exit status: 1 if the vehicle has not moved.

        Raises LinkError.
        """
        try:
            with contextlib.suppress(LinkCancelledError):
                self.prepare()
                self.follow()
                self.finish()
        finally:
            self.leave()
        return int(self._has_failed)

    def follow(self) -> None:
        """Steer along the plan to its end."""
        self._wish.has_moved()
        self._began_s, announced = self.now_s(), None
        while (elapsed := self.elapsed_s) < self.plan.duration_s:
            leg = self.plan.leg_at(elapsed)
            report = self.steer(leg)
            if leg is not announced:
                announced = leg
                print_event(f"leg {leg}: {report}")
            self.wait(self.period_s)
        is_to_move = any(max(map(abs, (leg.forward, leg.left, leg.turn))) > MOVES for leg in self.plan.legs)
        self._has_failed = is_to_move and self._wish.has_moved() is False
        failed = "the plan has ended, but the vehicle reports no motion"
        print_event(failed if self._has_failed else "the plan is done")

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Wait for some time, or until a condition is met. Raises LinkCancelledError."""
        end_s = self.now_s() + seconds
        while not until() and (left_s := end_s - self.now_s()) > 0:
            self.listen(left_s)

    def take_off(self) -> None:
        """Request the take-off, and wait for its outcome. Raises LinkError on a refusal."""
        self._ask("takeoff")

    def steer(self, leg: Leg) -> str:
        """Command a leg's velocity. Return the vehicle's report as text."""
        self._wish.velocity = BodyVelocity(leg.forward, leg.left, leg.up, turn=leg.turn)
        report, now_s = described(self._wish.newest), self.now_s()
        if now_s >= self._report_at:
            self._report_at = now_s + REPORT_PERIOD_S
            print_event(f"reports {report}")
        return report

    def finish(self) -> None:
        """Brake, and land what has taken off."""
        self._wish.velocity = BodyVelocity()
        self.wait(BRAKING_S, until=self._stands)
        if self._flies and "land" in self._requests:
            self._ask("land")

    def _stands(self) -> bool:
        velocity = self._wish.newest.velocity if self._wish.newest else None
        return velocity is None or math.hypot(velocity.forward, velocity.left) < STANDING

    def leave(self) -> None:
        """End the session, which sends the neutral command."""
        self._loop.stop()
        print_event(f"ended: {described(self._wish.newest)}")

    def listen(self, timeout_s: float) -> None:
        """Wait. Raises LinkCancelledError."""
        if self.cancellation.wait(min(timeout_s, LOOK_S)):
            raise LinkCancelledError("Waiting was cancelled.")

    def _ask(self, name: str, ask: Callable[..., Any] | None = None) -> None:
        """Send a request and wait for its outcome. Raises LinkError."""
        self._wish.outcome = None
        self._loop.post(partial(ask or self._session.ask, _Request(name, elapsed_s())), is_kept=True)
        while (outcome := self._wish.outcome) is None:
            self.listen(LOOK_S)
        print_event(f"{name}: {outcome.sentence}")
        if not outcome.is_success:
            raise LinkError(f"{name} was refused: {outcome.sentence}")


def described(measured: Measurement | None) -> str:
    """Return a report as text, in m, rad, m/s and percent, without missing values."""
    if measured is None:
        return "no telemetry"
    parts, velocity = [], measured.velocity
    if measured.position:
        parts.append("at {:.2f} {:.2f} {:.2f} m".format(*measured.position))
    for name, value, scale, unit in (
        ("yaw", measured.yaw, 1.0, "rad"),
        ("height", measured.height, 1.0, "m"),
        ("forward", velocity.forward if velocity else None, 1.0, "m/s"),
        ("left", velocity.left if velocity else None, 1.0, "m/s"),
        ("battery", measured.charge, 100.0, "%"),
    ):
        if value is not None:
            parts.append(f"{name} {scale * value:.2f} {unit}")
    if measured.is_flying is not None:
        parts.append("flying" if measured.is_flying else "not flying")
    return ", ".join(parts) or "telemetry"
