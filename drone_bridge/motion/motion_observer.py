# SPDX-License-Identifier: Apache-2.0
"""MotionObserver: what is believed of the motion that a drone steered by tilt reports. Pure, with the time handed in.

Theory of operation:

A drone's reports are believed only as far as a body with its tilt, drag and wind can move like that. Four quantities
are judged, each by its Belief: it is *believed*; *doubted*, once it has contradicted the model for DOUBT_S, until it
has agreed with it for AGREEMENT_S, longer after a relapse; or a single measurement is *refused*, and the model's value
is used instead.

| quantity | the model | contradicts it |
|---|---|---|
| speed (JudgedSpeed) | the reported tilt pulls, the air drags, wind changes slowly | a jump; a velocity that does not \
follow from the tilt, as one of the wrong sign or unit; one that is repeated to the last digit |
| height, heading (JudgedLevel) | the commanded rate | a jump, unless it persists: then it is a new level; no movement \
although it was commanded |
| time | the reported tilt follows the commanded one | it follows more than LATE_S later |

Three things look like wrong measurements and are none. *Gusts* move a drone beside its tilt: they change over seconds,
and how strong they were sets how far model and measurement may be apart. *An obstacle* stops a drone: one that has
measured its motion before, and stands still although it is pushed, is held up for HELD_UP_S without being doubted; its
tilt is bounded meanwhile. *A hand* carries it: then its tilt is not the commanded one, as while it hovers by itself,
and any movement is right.

The tilt is compared with the commands of the last seconds, at each of DELAYS_S: it follows them within LATE_S, or at a
longer delay, or something else tilts the drone. Where the tilt is not reported, the commanded one is taken for it.

Doubted speed is not flown by: the tilt is bounded, and the velocity is the model's. Doubted height and heading are not
held. Neither begins a landing.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

from drone_bridge.motion.belief import Belief
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.judged_level import MEMORY_S, JudgedLevel
from drone_bridge.motion.judged_speed import JudgedSpeed
from drone_bridge.motion.tilted_drone import GRAVITY, Motion, Shares, TiltedDrone, pull_of

#: After a longer gap between measurements all is observed anew, s.
LONGEST_GAP_S = 1.0
#: Jumps, and movements that have to show, of height, m, and heading, rad.
HEIGHT_JUMP_M, LEAST_CLIMB_M = 0.2, 0.4
YAW_JUMP_RAD, LEAST_TURN_RAD = 0.15, 0.5
#: By how much two ways to measure a climb may differ, m.
CLIMBS_APART_M = 0.6
#: The latest measurement that is flown by, s; and between commands and their effect in tilt, for which they are kept.
LATE_S = 0.45
DELAYS_S = tuple(0.1 * number for number in range(31))
KEPT_EVERY_S = 0.03
#: A command has its effect within this, or its measurements are late, s.
EFFECT_S = 0.6
#: A velocity that is repeated for longer, s, although tilt pulls otherwise by this, m/s^2, is frozen.
FROZEN_S, FROZEN_PULL = 0.4, 0.3
#: What is reported beyond that is taken for it, m and m/s, as squares of larger numbers are infinite.
BEYOND_ALL = 1e6
#: Over how long tilts are compared, s.
COMPARED_S = 0.6
#: For how long a drone counts as carried after its tilt was not the commanded one, s.
STRANGE_S = 2.0
#: Differences of tilts, as shares of the full one: those that tell a delay; the largest of tilts that are the same; of
#: those that are not. And how much better a delay has to explain the tilt than none, as a share of mean squares.
TELLING_SHARE, SAME_SHARE, STRANGE_SHARE, BETTER_SHARE = 0.1, 0.2, 0.35, 0.3


class Trust(NamedTuple):
    """Which measurements may be flown by."""

    speed: bool = True
    height: bool = True
    climb: bool = True
    heading: bool = True


class _Commanded(NamedTuple):
    """What was commanded at a time."""

    at_s: float
    pull: complex | None  # by the tilt after its lag, forward + j left, m/s^2; None where it hovers by itself
    climb: float  # m/s
    yaw_rate: float  # rad/s


class MotionObserver:
    """Judges the measurements of one drone. Call `commanded` for each command, and `observe` for each measurement."""

    def __init__(self, drone: TiltedDrone) -> None:
        self._drone = drone
        self._full_pull = GRAVITY * math.tan(drone.max_tilt)
        self.restart()

    def restart(self) -> None:
        """Begin with another drone."""
        self.speed = JudgedSpeed(self._drone.drag)
        self.height = JudgedLevel("height", HEIGHT_JUMP_M, LEAST_CLIMB_M)
        self.heading = JudgedLevel("heading", YAW_JUMP_RAD, LEAST_TURN_RAD)
        self._time, self._climb = Belief(), Belief()
        self._history: deque[_Commanded] = deque(maxlen=128)
        self._newest = _NOTHING
        self._begin()

    def _begin(self) -> None:
        self._measured_s: float | None = None
        self._yaw = 0.0  # reported last, rad
        self._pull = 0j  # m/s^2
        self._strange_until_s = -math.inf  # its tilt is not the commanded one
        self._repeated: tuple[float, float] | None = None  # velocity
        self._repeated_since_s = self._tilted = 0.0
        self._pulled = 0j
        self._apart_m = 0.0  # climbed by its vertical speed, but not by its height
        self._errors = [0.0] * len(DELAYS_S)  # mean squares, (m/s^2)^2
        for judged in (self.speed, self.height, self.heading):
            judged.begin()

    # What is believed.

    @property
    def reasons(self) -> list[str]:
        """Why measurements are doubted, as sentences without full stop; none while all are believed."""
        beliefs = (self.speed.belief, self._time, self.height.belief, self._climb, self.heading.belief)
        return [belief.reason for belief in beliefs if belief.reason]

    @property
    def trust(self) -> Trust:
        is_in_time = not self._time.reason
        return Trust(
            is_in_time and not self.speed.belief.reason,
            is_in_time and self.height.is_followed,
            is_in_time and self.height.is_followed and not self._climb.reason,
            is_in_time and self.heading.is_followed,
        )

    @property
    def held_up_in(self) -> float | None:
        """The acceleration by wind, m/s^2, in which an obstacle or a hand holds the drone up, or its reports are late.

        None if nothing does.
        """
        is_strange = self._measured_s is not None and self._measured_s < self._strange_until_s
        return abs(self.speed.wind) if is_strange or self.speed.is_held_up else None

    def believed(self, motion: Motion) -> Motion:
        """Return the motion that was just observed, continuous, and with the model's velocity for a refused one."""
        velocity = complex(motion.forward, motion.left)
        if self.speed.is_refused:
            velocity = self.speed.velocity / _direction(self.heading.value)
        return motion._replace(
            forward=velocity.real, left=velocity.imag, height=self.height.value, yaw=self.heading.value
        )

    # What happens.

    def commanded(self, shares: Shares | None, wanted: BodyVelocity | Shares | None, now_s: float) -> None:
        """Take what is sent now, None where the drone hovers by itself, and what was wanted; None is to stop."""
        pull, before, drone = None, self._newest, self._drone
        climb = yaw_rate = 0.0
        if isinstance(wanted, BodyVelocity):
            climb, yaw_rate = wanted.up, wanted.turn
        elif wanted is not None:
            climb, yaw_rate = wanted.thrust * drone.max_climb, wanted.yaw * drone.max_yaw_rate
        if shares is not None:
            kept = math.exp(-max(now_s - before.at_s, 0.0) / drone.tilt_lag)
            full = pull_of(shares.roll * drone.max_tilt, shares.pitch * drone.max_tilt)
            pull = full + kept * ((self._pull if before.pull is None else before.pull) - full)
        self._newest = _Commanded(now_s, pull, climb, yaw_rate)
        if not self._history or now_s - self._history[-1].at_s > KEPT_EVERY_S:
            self._history.append(self._newest)

    def observe(self, motion: Motion, now_s: float) -> None:
        """Judge a measurement that has just arrived."""
        if self._measured_s is None or now_s - self._measured_s > LONGEST_GAP_S:
            self._begin()
            self._measured_s, self._yaw = now_s, motion.yaw
        step_s, self._measured_s = max(now_s - self._measured_s, 1e-3), now_s
        before, now, late = self._pull, self._newest, self._commanded_at(now_s - EFFECT_S)
        self._pull = (now.pull or 0j) if motion.pull is None else motion.pull
        is_free = self._compare_tilts(now_s, step_s, is_reported=motion.pull is not None)
        motion = motion._replace(**{name: _bounded(getattr(motion, name)) for name in ("forward", "left", "height")})
        self._yaw += math.remainder(motion.yaw - self._yaw, math.tau)
        self.heading.observe(self._yaw, now.yaw_rate, late.yaw_rate, step_s, is_free=is_free)
        is_first, height = not self.height.is_known, self.height.value
        self.height.observe(motion.height, now.climb, late.climb, step_s, is_free=is_free)
        if not is_first:
            self._compare_climbs(motion.up, self.height.value - height, step_s)
        direction = _direction(self.heading.value)
        velocity = complex(motion.forward, motion.left) * direction
        pull, is_frozen = 0.5 * (before + self._pull) * direction, self._is_frozen(motion, now_s)
        self.speed.observe(velocity, pull, step_s, is_free=is_free, is_frozen=is_frozen)

    # How it is judged.

    def _compare_tilts(self, now_s: float, step_s: float, *, is_reported: bool) -> bool:
        """Judge how late the tilt follows the commands; return whether it does not, so that something else moves it."""
        if not is_reported or self._newest.pull is None:
            self._strange_until_s = -math.inf
            return self._newest.pull is None
        pulls = [self._commanded_at(now_s - delay_s).pull for delay_s in DELAYS_S]
        missed = [None if pull is None else abs(self._pull - pull) ** 2 for pull in pulls]
        worst = max((each for each in missed if each is not None), default=0.0)  # what is not known explains nothing
        share = -math.expm1(-step_s / COMPARED_S)
        for number, each in enumerate(missed):
            self._errors[number] += share * ((worst if each is None else each) - self._errors[number])
        in_time = min(error for error, delay_s in zip(self._errors, DELAYS_S, strict=True) if delay_s < LATE_S)
        least, full = min(self._errors), self._full_pull**2
        is_told = in_time > TELLING_SHARE**2 * full and least < SAME_SHARE**2 * full
        late_s = DELAYS_S[self._errors.index(least)]
        is_late = is_told and least < BETTER_SHARE * in_time
        self._time.judge(f"its reports are late, by some {late_s:.1f} s" if is_late else "", step_s)
        self._strange_until_s = now_s + STRANGE_S if in_time > STRANGE_SHARE**2 * full else self._strange_until_s
        return now_s < self._strange_until_s

    def _is_frozen(self, motion: Motion, now_s: float) -> bool:
        """Return whether a velocity is repeated to the last digit although the tilt changes, which no body does."""
        velocity = motion.forward, motion.left
        if velocity != self._repeated:
            self._repeated, self._repeated_since_s, self._pulled, self._tilted = velocity, now_s, self._pull, 0.0
        self._tilted = max(self._tilted, abs(self._pull - self._pulled))
        return now_s - self._repeated_since_s > FROZEN_S and self._tilted > FROZEN_PULL

    def _compare_climbs(self, up: float | None, climbed: float, step_s: float) -> None:
        """Judge the vertical speed by the height, where it is reported."""
        if up is None:
            return
        self._apart_m = math.exp(-step_s / MEMORY_S) * self._apart_m + up * step_s - climbed
        is_apart = abs(self._apart_m) > CLIMBS_APART_M
        self._climb.judge(
            "its own vertical speed can't be right: its height changes otherwise" if is_apart else "", step_s
        )

    def _commanded_at(self, at_s: float) -> _Commanded:
        """Return what was commanded at a time, or nothing where that is not known."""
        return next((each for each in reversed(self._history) if each.at_s <= at_s), _NOTHING)


_NOTHING = _Commanded(-math.inf, None, 0.0, 0.0)


def _bounded(value: float) -> float:
    return max(-BEYOND_ALL, min(BEYOND_ALL, value))


def _direction(yaw: float) -> complex:
    return complex(math.cos(yaw), math.sin(yaw))
