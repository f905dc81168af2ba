# SPDX-License-Identifier: Apache-2.0
"""TiltPilot: flies an arbiter's decisions with a drone that is steered by tilt. Pure, with the time as an input.

Velocities are controlled by the drone's feedback, and raw shares are sent unchanged. Feedback from the ground, or older
than FEEDBACK_TIMEOUT_S, is not used: velocities are then flown by an estimate, and `is_estimating` is set. Implausible
measurements are not used either (see MotionObserver), and `doubts` has the reasons. A report that repeats the last one
in every number although the command has changed is no report. The references restart with each flight, and whenever
another command than a velocity was sent. Doubts outlast a landing, and end with reports that
agree.

Neutral is the drone's own hover if it has one. Another drone flies zero velocity while it is in the air and its
feedback is fresh, gently while that is doubted, so that it stops and holds its height. Otherwise it is kept level, and
`is_drifting` is set.
"""

from __future__ import annotations

import math

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.motion_observer import MotionObserver
from drone_bridge.motion.tilt_control import TiltControl
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone
from drone_bridge.session.arbiter import CommandSource, Decision
from drone_bridge.session.session import Note

#: Feedback older than this is stale, s.
FEEDBACK_TIMEOUT_S = 0.2
#: Counter of velocities that were flown without feedback, and the sentence about them.
ESTIMATED = "estimated_commands"
ESTIMATES = (
    f"The drone has not reported its motion for {FEEDBACK_TIMEOUT_S:g} s: its velocity is estimated from the commanded "
    "tilt, and it drifts with the wind."
)
UNANSWERED = "it is tilted but reports no motion: it touches something, or its own speed is wrong"
REPEATED = "its reports can't be right: the same one is repeated although the command changes"
_SHORTEST_STEP_S = 1e-3
#: A command that has changed by more must change the reports.
_CHANGED_SHARE = 0.02


class TiltPilot:
    """Converter of an arbiter's decisions to shares. For one thread."""

    def __init__(self, arbiter: CommandSource[Shares], drone: TiltedDrone, *, hovers: bool) -> None:
        """`hovers`: whether the drone stops by itself on its neutral command."""
        self.arbiter = arbiter
        #: Whether the last command is a velocity that is flown without feedback.
        self.is_estimating = False
        #: Whether the last command is a neutral one that keeps the flying drone level, so that it drifts.
        self.is_drifting = False
        self._hovers = hovers
        self._control, self._observer = TiltControl(drone), MotionObserver(drone)
        self._was_believed = True
        self._newest: tuple[Motion, float] | None = None  # with its arrival time, s
        self._seen: tuple[Motion, float] | None = None  # last one passed to the control
        self._stepped_s = -math.inf
        self._commanded: Shares | None = None  # last one; None for the drone's own neutral command
        # Newest report, the last command before it, and whether it is repeated although the command has changed.
        self._reported: tuple[Motion, Shares] | None = None
        self._is_repeated = self._is_stuck = False  # stuck: all reports are repeated, so that feedback is stale
        self._is_on_ground = False

    def use(self, drone: TiltedDrone) -> None:
        """Fly with other maxima, as the drone has reported them."""
        self._control, self._observer = TiltControl(drone), MotionObserver(drone)
        self.arbiter.within_maxima = drone.within_maxima
        self._seen = None

    def restart(self, now_s: float) -> None:
        """Reset for a new connection: the drone may be another one. Drops its commands."""
        self.arbiter.forget()
        self._control.restart()
        self._observer.restart()
        self._newest, self._stepped_s, self._is_on_ground = None, now_s, False
        self._reported, self._is_repeated, self._is_stuck = None, False, False
        self.is_estimating = self.is_drifting = False

    @property
    def notes(self) -> list[Note]:
        """Note of the last command if it is a velocity that is flown without feedback."""
        return [Note(ESTIMATED, ESTIMATES, is_ongoing=True)] if self.is_estimating else []

    @property
    def doubts(self) -> list[str]:
        """Reasons why measurements are doubted in flight, as sentences without a full stop. For any thread."""
        if self._is_on_ground:
            return []
        reasons = [REPEATED] if self._is_stuck else self._observer.reasons
        return reasons or ([UNANSWERED] if self._control.is_unanswered else [])

    @property
    def is_position_doubted(self) -> bool:
        """Whether the reports do not show where the drone is."""
        is_doubted = self._is_stuck or not self._observer.trust.speed or self._control.is_unanswered
        return is_doubted and not self._is_on_ground

    @property
    def is_height_doubted(self) -> bool:
        return (self._is_stuck or not self._observer.trust.height) and not self._is_on_ground

    @property
    def modelled_velocity(self) -> tuple[float, float] | None:
        """Velocity by the commands, forward and left, m/s; None while the drone hovers by itself, or is not steered."""
        return None if self._commanded is None else (self._control.velocity.real, self._control.velocity.imag)

    def reported(self, measured: Measurement, now_s: float) -> None:
        """Update the estimate by a report of the drone."""
        if measured.is_flying is False:
            self.grounded(now_s)
        elif motion := measured.motion:
            self.measured(motion, now_s)

    def measured(self, motion: Motion, now_s: float) -> None:
        """Update the estimate by a measurement of the drone in flight."""
        self._is_on_ground = False
        if self._reported is None or motion != self._reported[0]:
            self._reported, self._is_repeated = (motion, self._commanded or Shares()), False
        changes = (abs(now - then) for now, then in zip(self._commanded or Shares(), self._reported[1], strict=True))
        self._is_repeated |= max(changes) > _CHANGED_SHARE
        if self._is_repeated:
            return
        self._observer.observe(motion, now_s)
        self._newest = self._observer.believed(motion), now_s

    def grounded(self, now_s: float) -> None:
        """Reset the estimate while the drone is not in flight. The references restart when it flies."""
        if not self._is_on_ground:
            self._observer.begin()
            self._reported, self._is_repeated, self._is_stuck = None, False, False
        self._is_on_ground = True
        self._newest = None

    def decide(self, now_s: float) -> Decision[Shares]:
        """Return the arbiter's decision for now, with shares."""
        return Decision(self.arbiter.rank(now_s), self.shares(now_s))

    def shares(self, now_s: float, *, is_overruled: bool = False) -> Shares | None:
        """Return the shares to send now. None is the drone's own neutral command, which `is_overruled` forces."""
        step_s, self._stepped_s = max(now_s - self._stepped_s, _SHORTEST_STEP_S), now_s
        is_stale = self._newest is None or now_s - self._newest[1] > FEEDBACK_TIMEOUT_S
        self._is_stuck = is_stale and self._is_repeated
        wanted = None if is_overruled else self.arbiter.decide(now_s).command
        if wanted is None and not (self._hovers or is_stale or is_overruled):
            wanted = STILL
        self.is_estimating = False
        self.is_drifting = wanted is None and not self._hovers and self._newest is not None
        shares = None if isinstance(wanted, BodyVelocity) else wanted
        if isinstance(wanted, BodyVelocity):
            shares = self._flown(wanted, step_s, is_stale=is_stale)
            is_blind = is_stale or not self._observer.trust.speed
            if is_blind and self._hovers and wanted == STILL:  # it hovers better than by an estimate
                shares, self.is_estimating = None, False
        if shares is None or shares is wanted:
            self._control.restart()
            self._seen = None
        self._observer.commanded(shares, wanted, now_s)
        self._commanded = shares
        return shares

    def _flown(self, wanted: BodyVelocity, step_s: float, *, is_stale: bool) -> Shares:
        """Return the shares that fly a velocity, by the newest report that is not stale."""
        newest, trust = self._newest, self._observer.trust
        if newest and newest is not self._seen and not is_stale:
            self._seen = newest
            self._control.measure(newest[0], trust)
        is_believed = trust.speed and not self._is_stuck
        if self._was_believed and not is_believed:
            self._control.set_estimate(self._observer.speed.velocity, 0j)
        self._was_believed = is_believed
        if self._is_on_ground:
            self._control.restart()
        shares = self._control.command(wanted, step_s, is_blind=is_stale)
        self.is_estimating = is_stale and not self._is_on_ground
        if self._is_on_ground and wanted.up < 0.0 and not self._hovers:
            return Shares(thrust=-1.0)  # so that it stops its motors
        return shares
