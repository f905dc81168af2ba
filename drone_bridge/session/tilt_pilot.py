# SPDX-License-Identifier: Apache-2.0
"""TiltPilot: flies what an arbiter decides with a drone that is steered by tilt. Pure, with the time handed in.

Velocities are held by the drone's feedback, raw shares are sent as they are. What is measured on the ground, or before
FEEDBACK_TIMEOUT_S, is not flown by: then velocities are flown by an estimate, and `is_estimating` says so. Neither are
measurements that can't be right (see MotionObserver): `doubts` has the reasons. References begin anew with each flight,
and whenever something else than a velocity was sent.

Neutral is the drone's own hover where it has one. A drone without flies a velocity of zero while it is in the air and
its feedback is fresh and believed, so that it stops and holds its place; otherwise it is kept level, and `is_drifting`
says so.
"""

from __future__ import annotations

import math

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.motion_observer import MotionObserver
from drone_bridge.motion.tilt_control import TiltControl
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone
from drone_bridge.session.arbiter import Arbiter

#: What was measured before that is not flown by.
FEEDBACK_TIMEOUT_S = 0.2
#: The count of velocities that were flown without feedback, and the sentence about them.
ESTIMATED = "commands_flown_by_an_estimate"
ESTIMATES = (
    f"The drone has not reported how it moves for {FEEDBACK_TIMEOUT_S:g} s: velocities are estimated from the "
    "commanded tilt, and it drifts with the wind."
)
_SHORTEST_STEP_S = 1e-3


class TiltPilot:
    """Turns what is decided into shares, for one thread."""

    def __init__(self, arbiter: Arbiter[Shares], drone: TiltedDrone, *, hovers: bool) -> None:
        """`hovers` says whether the drone stops by itself when it gets its neutral command."""
        self.arbiter = arbiter
        #: Whether what was sent last is a velocity that is flown without feedback.
        self.is_estimating = False
        #: Whether what was sent last is a neutral command that leaves the flying drone level, and drifting.
        self.is_drifting = False
        self._hovers = hovers
        self._control, self._observer = TiltControl(drone), MotionObserver(drone)
        self._was_believed = True
        self._newest: tuple[Motion, float] | None = None  # with the time of its arrival
        self._seen: tuple[Motion, float] | None = None  # which the control has taken
        self._stepped_s = -math.inf
        self._is_on_ground = False

    def restart(self, now_s: float) -> None:
        """Forget the drone, which may be another one, and the commands for it."""
        self.arbiter.forget()
        self._control.restart()
        self._observer.restart()
        self._newest, self._stepped_s, self._is_on_ground = None, now_s, False
        self.is_estimating = self.is_drifting = False

    @property
    def doubts(self) -> list[str]:
        """Why measurements are not believed, as sentences without full stop. For any thread."""
        return self._observer.reasons

    def measured(self, motion: Motion, now_s: float) -> None:
        """Take what the drone in the air measures of itself."""
        self._is_on_ground = False
        self._observer.observe(motion, now_s)
        self._newest = self._observer.believed(motion), now_s

    def stands(self) -> None:
        """Note that the drone is on the ground, or not in flight yet: references begin when it flies."""
        if not self._is_on_ground:
            self._observer.restart()
        self._is_on_ground = True
        self._newest = None

    def shares(self, now_s: float, *, is_overruled: bool = False) -> Shares | None:
        """Return what to send now. None is the drone's own neutral command, which `is_overruled` asks for."""
        step_s, self._stepped_s = max(now_s - self._stepped_s, _SHORTEST_STEP_S), now_s
        newest, trust = self._newest, self._observer.trust
        is_stale = newest is None or now_s - newest[1] > FEEDBACK_TIMEOUT_S
        is_blind = is_stale or not trust.speed
        shares, wanted = None, None if is_overruled else self.arbiter.decide(now_s).command
        if wanted is None and not self._hovers and not is_blind and not is_overruled:
            wanted = STILL
        self.is_estimating, self.is_drifting = False, wanted is None and not self._hovers and newest is not None
        if isinstance(wanted, BodyVelocity):
            if newest and newest is not self._seen and not is_stale:
                self._seen = newest
                self._control.measure(newest[0], trust)
            if self._was_believed and not trust.speed:
                self._control.set_estimate(self._observer.speed.velocity, self._observer.speed.wind)
            self._was_believed = trust.speed
            if self._is_on_ground:
                self._control.restart()
            shares = self._control.command(wanted, step_s, is_blind=is_stale, held_up_in=self._observer.held_up_in)
            if self._is_on_ground and wanted.up < 0.0 and not self._hovers:
                shares = Shares(thrust=-1.0)  # for it to stop its motors
            self.is_estimating = is_stale and not self._is_on_ground
        if not isinstance(wanted, BodyVelocity) or (is_blind and self._hovers and wanted == STILL):
            self._control.restart()
            self._seen, self.is_estimating = None, False
            shares = None if isinstance(wanted, BodyVelocity) else wanted
        self._observer.commanded(shares, wanted, now_s)
        return shares
