# SPDX-License-Identifier: Apache-2.0
"""MotionObserver: refuses motion that no healthy drone that is commanded by tilt reports. Pure, with time as an input.

The speed has a Belief (see JudgedSpeed): it is *believed*, or *doubted* once it has contradicted for DOUBT_S, until it
has agreed for AGREEMENT_S. A contradiction is a leap; the same number to the last digit while the tilt changes; or a
growth against the tilt, as of a speed of the wrong sign. A single measurement can be *refused*.

Gusts, walls, hands, ceilings, lost or late reports, and simulators that pause or run slowly cause none of these. If the
tilt is not reported, the commanded one replaces it.

A doubted speed is not used for control: the drone goes back to level, and flies gently by what is commanded. A height
or heading that does not follow is not held. Neither triggers a landing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.judged_level import JudgedLevel
from drone_bridge.motion.judged_speed import JudgedSpeed
from drone_bridge.motion.tilted_drone import Motion, Shares, TiltedDrone, direction_of, pull_of

#: A longer gap between measurements restarts the observer, s.
LONGEST_GAP_S = 1.0
#: Leaps of height, m, and heading, rad, beyond what twice the fastest rates explain; and movements that must show.
HEIGHT_LEAP_M, LEAST_CLIMB_M = 0.3, 0.2
YAW_LEAP_RAD, LEAST_TURN_RAD = 0.3, 0.25
#: A velocity is frozen if it repeats for longer, s, while the acceleration by tilt changes by this, m/s^2. If it has
#: changed by less than FINE_M_S, m/s, before, half of that is enough for twice the time. If it has only changed by
#: more, it is rounded, and may repeat.
FROZEN_S, FROZEN_PULL, FINE_M_S = 0.4, 0.3, 0.01
#: Reports are clamped to this, m and m/s, since squares of larger numbers may overflow.
BEYOND_ALL = 1e6


class Trust(NamedTuple):
    """Measurements that may be used for control."""

    speed: bool = True
    height: bool = True
    heading: bool = True
    is_settled: bool = True  # false for a while after a doubt of the speed


class MotionObserver:
    """Observer of one drone. Call `commanded` for each command, and `observe` for each measurement."""

    def __init__(self, drone: TiltedDrone) -> None:
        self._drone = drone
        self.restart()

    def restart(self) -> None:
        """Reset for another drone."""
        self.speed = JudgedSpeed(self._drone.drag)
        self.height = JudgedLevel(HEIGHT_LEAP_M, LEAST_CLIMB_M, 2.0 * self._drone.max_climb)
        self.heading = JudgedLevel(YAW_LEAP_RAD, LEAST_TURN_RAD, 2.0 * self._drone.max_yaw_rate)
        self._finest = math.inf  # least change of a component of the velocity, m/s
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement. Doubts stay."""
        self._measured_s: float | None = None
        self._commanded, self._commanded_s = 0j, -math.inf  # pull by the commanded tilt, m/s^2
        self._rates = 0.0, 0.0  # commanded climb, m/s, and turn, rad/s
        self._yaw = 0.0  # last reported, continuous, rad
        self._pull = 0j  # m/s^2
        self._repeated: tuple[float, float] | None = None  # velocity
        self._repeated_since_s = self._tilted = 0.0
        self._pulled = 0j
        for judged in (self.speed, self.height, self.heading):
            judged.begin()

    # Beliefs.

    @property
    def reasons(self) -> list[str]:
        """Reasons for doubts, as sentences without a full stop; empty while all measurements are believed."""
        return [self.speed.belief.reason] if self.speed.belief.reason else []

    @property
    def trust(self) -> Trust:
        speed = self.speed.belief
        return Trust(not speed.reason, self.height.is_followed, self.heading.is_followed, speed.is_settled)

    def believed(self, motion: Motion) -> Motion:
        """Return the motion that was just observed, without leaps. The last velocity replaces a refused one."""
        velocity = complex(motion.forward, motion.left)
        if self.speed.is_refused:
            velocity = self.speed.velocity / direction_of(self.heading.value)
        return motion._replace(
            forward=velocity.real, left=velocity.imag, height=self.height.value, yaw=self.heading.value
        )

    # Inputs.

    def commanded(self, shares: Shares | None, wanted: BodyVelocity | Shares | None, now_s: float) -> None:
        """Record sent shares. None: the drone hovers by itself. `wanted` is what they fly; None for a stop."""
        self._rates = 0.0, 0.0
        if isinstance(wanted, BodyVelocity):
            self._rates = wanted.up, wanted.turn
        elif wanted is not None:
            self._rates = wanted.thrust * self._drone.max_climb, wanted.yaw * self._drone.max_yaw_rate
        kept, drone = math.exp(-max(now_s - self._commanded_s, 0.0) / self._drone.tilt_lag), self._drone
        full = pull_of(shares.roll * drone.max_tilt, shares.pitch * drone.max_tilt) if shares else 0j
        self._commanded, self._commanded_s = full + kept * (self._commanded - full), now_s

    def observe(self, motion: Motion, now_s: float) -> None:
        """Judge a new measurement."""
        if self._measured_s is None or now_s - self._measured_s > LONGEST_GAP_S:
            self.begin()
            self._measured_s, self._yaw = now_s, motion.yaw
        step_s, self._measured_s = max(now_s - self._measured_s, 1e-3), now_s
        before, self._pull = self._pull, self._commanded if motion.pull is None else motion.pull
        motion = motion._replace(**{name: _bounded(getattr(motion, name)) for name in ("forward", "left", "height")})
        self._yaw += math.remainder(motion.yaw - self._yaw, math.tau)
        self.heading.observe(self._yaw, self._rates[1], step_s)
        self.height.observe(motion.height, self._rates[0], step_s)
        direction = direction_of(self.heading.value)
        velocity = complex(motion.forward, motion.left) * direction
        pull, is_frozen = 0.5 * (before + self._pull) * direction, self._is_frozen(motion, now_s)
        self.speed.observe(velocity, pull, step_s, is_frozen=is_frozen)

    # Judgement.

    def _is_frozen(self, motion: Motion, now_s: float) -> bool:
        """Return whether a velocity is repeated to the last digit although the tilt changes, which is impossible."""
        velocity = motion.forward, motion.left
        if velocity != self._repeated:
            for now, before in zip(velocity, self._repeated or velocity, strict=True):
                self._finest = min(self._finest, abs(now - before) or math.inf)
            self._repeated, self._repeated_since_s, self._pulled, self._tilted = velocity, now_s, self._pull, 0.0
        self._tilted = max(self._tilted, abs(self._pull - self._pulled))
        repeated_s, is_fine = now_s - self._repeated_since_s, self._finest < FINE_M_S
        if repeated_s <= FROZEN_S or FINE_M_S <= self._finest < math.inf:
            return False
        return self._tilted > FROZEN_PULL * (FROZEN_S / repeated_s if is_fine else 1.0)


def _bounded(value: float) -> float:
    return max(-BEYOND_ALL, min(BEYOND_ALL, value))
