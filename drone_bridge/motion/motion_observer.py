# SPDX-License-Identifier: Apache-2.0
"""MotionObserver: plausibility check of the motion reported by a tilt-controlled drone. Pure, with time as an input.

Theory of operation:

Reports are believed only if a body with the drone's tilt, drag and wind can move like that. Four quantities are judged,
each by its Belief. A quantity is *believed*, or *doubted* once it has contradicted the model for DOUBT_S, until it has
agreed for AGREEMENT_S, or longer after a relapse. A single measurement can be *refused*; the model's value then
replaces it.

| quantity | model | contradiction |
|---|---|---|
| speed (JudgedSpeed) | acceleration by the reported tilt, drag, slowly changing wind | a jump; a velocity that does \
not follow from the tilt, such as one of the wrong sign or unit; one that is repeated to the last digit |
| height, heading (JudgedLevel) | the commanded rate | a jump, unless it persists: then it is a new level; no movement \
in spite of a command |
| time | the reported tilt follows the commanded one | it follows more than LATE_S later |

Four situations resemble wrong measurements. *Gusts* accelerate a drone independently of its tilt. They change over
seconds, and their recent strength sets the allowed difference between model and measurement. *A wall* stops a drone:
ProvenWind bounds the tilt, and reports it. *A hand* carries the drone. Its tilt then differs from the commanded one, as
in autonomous hover, and any movement is plausible; `held_up_in` bounds the tilt meanwhile. *A simulator* may pause, or
run at SLOWEST_TIME. In a step longer than LONGEST_STEP_S, a drone may therefore not have moved, and delays are not
judged for EFFECT_S afterwards.

The tilt is compared with the commands of the last seconds, at each of DELAYS_S. Either it follows them within LATE_S,
or with a longer delay, or something else tilts the drone. If the tilt is not reported, the commanded one replaces it.

A doubted speed is not used for control: the tilt is bounded, and the model's velocity is used. A doubted height or
heading is not held. Neither triggers a landing.
"""

from __future__ import annotations

import math
from collections import deque
from itertools import pairwise
from typing import NamedTuple

from drone_bridge.motion.belief import LONGEST_STEP_S, Belief
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.judged_level import MEMORY_S, JudgedLevel
from drone_bridge.motion.judged_speed import JudgedSpeed
from drone_bridge.motion.tilted_drone import GRAVITY, Motion, Shares, TiltedDrone, direction_of, pull_of

#: A longer gap between measurements restarts the observer, s.
LONGEST_GAP_S = 1.0
#: Jumps, and commanded movements that must show, of height, m, and heading, rad.
HEIGHT_JUMP_M, LEAST_CLIMB_M = 0.2, 0.4
YAW_JUMP_RAD, LEAST_TURN_RAD = 0.15, 0.5
#: Allowed difference between the climb by height and by vertical speed, m; and the slowest simulation, in simulated
#: seconds per second.
CLIMBS_APART_M, SLOWEST_TIME = 0.6, 0.5
#: Largest usable delay of measurements, s; and the delays between commands and tilt that are compared, s.
LATE_S = 0.45
DELAYS_S = tuple(0.1 * number for number in range(31))
KEPT_EVERY_S = 0.03
#: Time within which a command takes effect, unless measurements are late, s.
EFFECT_S = 0.6
#: A velocity is frozen if it repeats for longer, s, while the acceleration by tilt changes by this, m/s^2. If it has
#: changed by less than FINE_M_S, m/s, before, it is not rounded, and half of that is enough for twice the time. If it
#: is rounded, the tilt must also have bent the course of the velocity by more than its least change.
FROZEN_S, FROZEN_PULL, FINE_M_S = 0.4, 0.3, 0.01
#: Reports are clamped to this, m and m/s, since squares of larger numbers may overflow.
BEYOND_ALL = 1e6
#: Time over which tilts are compared, s.
COMPARED_S = 0.6
#: Time constant of a lasting difference of tilts, such as a tilted trim, s.
OFFSET_S = 3.0
#: Share of the time that counts as agreement while no delay could show.
QUIET_SHARE = 0.25
#: How long a drone counts as carried after its tilt differed from the commanded one, s.
STRANGE_S = 2.0
#: Differences of tilts, as shares of the full tilt: the least that reveals a delay; the largest of equal tilts; the
#: least of different ones. And the largest ratio of mean squares, with and without a delay, that proves the delay.
TELLING_SHARE, SAME_SHARE, STRANGE_SHARE, BETTER_SHARE = 0.1, 0.2, 0.35, 0.3


class Trust(NamedTuple):
    """Measurements that may be used for control."""

    speed: bool = True
    height: bool = True
    climb: bool = True
    heading: bool = True
    is_settled: bool = True  # false for a while after a doubt of the speed or the time


class _TimedCommand(NamedTuple):
    """Command at a time."""

    at_s: float
    pull: complex | None  # by the lagged tilt, forward + j left, m/s^2; None in autonomous hover
    climb: float  # m/s
    yaw_rate: float  # rad/s


class MotionObserver:
    """Observer of one drone. Call `commanded` for each command, and `observe` for each measurement."""

    def __init__(self, drone: TiltedDrone) -> None:
        self._drone = drone
        self._full_pull = GRAVITY * math.tan(drone.max_tilt)
        self.restart()

    def restart(self) -> None:
        """Reset for another drone."""
        self.speed = JudgedSpeed(self._drone.drag)
        self.height = JudgedLevel("height", HEIGHT_JUMP_M, LEAST_CLIMB_M)
        self.heading = JudgedLevel("heading", YAW_JUMP_RAD, LEAST_TURN_RAD)
        self._time, self._climb = Belief(), Belief()
        self._history: deque[_TimedCommand] = deque(maxlen=128)
        self._newest = _NOTHING
        self._finest = math.inf  # least change of a component of the velocity, m/s
        self._pulls: deque[tuple[float, complex]] = deque(maxlen=128)  # with times, since the velocity repeats
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement. Doubts stay."""
        self._measured_s: float | None = None
        self._yaw = 0.0  # last reported, continuous, rad
        self._pull = 0j  # m/s^2
        self._strange_until_s = -math.inf  # until then its tilt counts as not commanded
        self._repeated: tuple[float, float] | None = None  # velocity
        self._repeated_since_s = self._tilted = 0.0
        self._pulled = 0j
        self._climbed_m = 0.0, 0.0  # by vertical speed and by height, in the last MEMORY_S
        self._compared_from_s = -math.inf  # from then on, the tilt is compared with commands
        self._errors = [0.0] * len(DELAYS_S)  # mean squares without the mean, (m/s^2)^2
        self._offsets = [0j] * len(DELAYS_S)  # means of the differences, m/s^2
        for judged in (self.speed, self.height, self.heading):
            judged.begin()

    # Beliefs.

    @property
    def reasons(self) -> list[str]:
        """Reasons for doubts, as sentences without a full stop; empty while all measurements are believed."""
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
            self.speed.belief.is_settled and self._time.is_settled,
        )

    @property
    def held_up_in(self) -> float | None:
        """Acceleration by wind, m/s^2, while a hand carries the drone, or its reports are late.

        None otherwise.
        """
        is_strange = self._measured_s is not None and self._measured_s < self._strange_until_s
        return abs(self.speed.wind) if is_strange else None

    def believed(self, motion: Motion) -> Motion:
        """Return the motion that was just observed, without jumps. The model's velocity replaces a refused one."""
        velocity = complex(motion.forward, motion.left)
        if self.speed.is_refused:
            velocity = self.speed.velocity / direction_of(self.heading.value)
        return motion._replace(
            forward=velocity.real, left=velocity.imag, height=self.height.value, yaw=self.heading.value
        )

    # Inputs.

    def commanded(self, shares: Shares | None, wanted: BodyVelocity | Shares | None, now_s: float) -> None:
        """Update the model by a sent command. `shares` is None in autonomous hover; `wanted` is None for a stop."""
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
        self._newest = _TimedCommand(now_s, pull, climb, yaw_rate)
        if not self._history or now_s - self._history[-1].at_s > KEPT_EVERY_S:
            self._history.append(self._newest)

    def observe(self, motion: Motion, now_s: float) -> None:
        """Judge a new measurement."""
        if self._measured_s is None or now_s - self._measured_s > LONGEST_GAP_S:
            self.begin()
            self._measured_s, self._yaw = now_s, motion.yaw
        step_s, self._measured_s = max(now_s - self._measured_s, 1e-3), now_s
        before, now, (late,) = self._pull, self._newest, self._commanded_at(now_s - EFFECT_S)
        self._pull = (now.pull or 0j) if motion.pull is None else motion.pull
        is_free = self._compare_tilts(now_s, step_s, is_reported=motion.pull is not None)
        motion = motion._replace(**{name: _bounded(getattr(motion, name)) for name in ("forward", "left", "height")})
        self._yaw += math.remainder(motion.yaw - self._yaw, math.tau)
        self.heading.observe(self._yaw, now.yaw_rate, late.yaw_rate, step_s, is_free=is_free)
        is_first, height = not self.height.is_known, self.height.value
        self.height.observe(motion.height, now.climb, late.climb, step_s, is_free=is_free)
        if not is_first:
            self._compare_climbs(motion.up, self.height.value - height, step_s)
        direction = direction_of(self.heading.value)
        velocity = complex(motion.forward, motion.left) * direction
        pull, is_frozen = 0.5 * (before + self._pull) * direction, self._is_frozen(motion, now_s)
        self.speed.observe(velocity, pull, step_s, is_free=is_free, is_frozen=is_frozen)

    # Judgement.

    def _compare_tilts(self, now_s: float, step_s: float, *, is_reported: bool) -> bool:
        """Judge the delay of the tilt. Return True if the tilt does not follow commands: something else moves it."""
        if not is_reported or self._newest.pull is None:
            self._strange_until_s = -math.inf
            self._time.judge("", step_s)  # nothing can be compared: a doubt has to end
            return self._newest.pull is None
        if step_s > LONGEST_STEP_S:  # a simulator may have paused: the next tilts are by commands before that
            self._compared_from_s = now_s + EFFECT_S
        if now_s < self._compared_from_s:
            return now_s < self._strange_until_s
        commands = self._commanded_at(*(now_s - delay_s for delay_s in DELAYS_S))
        differences = [None if each.pull is None else self._pull - each.pull for each in commands]
        worst = max((each for each in differences if each is not None), key=abs, default=0j)  # if a command is unknown
        share, slowly = -math.expm1(-step_s / COMPARED_S), -math.expm1(-step_s / OFFSET_S)
        for number, each in enumerate(differences):
            missed = worst if each is None else each
            self._offsets[number] += slowly * (missed - self._offsets[number])  # a tilted trim is not a delay
            self._errors[number] += share * (abs(missed - self._offsets[number]) ** 2 - self._errors[number])
        in_time = min(error for error, delay_s in zip(self._errors, DELAYS_S, strict=True) if delay_s < LATE_S)
        least, full = min(self._errors), self._full_pull**2
        is_told = in_time > TELLING_SHARE**2 * full and least < SAME_SHARE**2 * full
        late_s = DELAYS_S[self._errors.index(least)]
        is_late = is_told and least < BETTER_SHARE * in_time
        shows = max(self._errors) > TELLING_SHARE**2 * full  # so that a delay would show
        step_s *= 1.0 if is_late or shows or not self._time.reason else QUIET_SHARE
        self._time.judge(f"its reports are late, by some {late_s:.1f} s" if is_late else "", step_s)
        self._strange_until_s = now_s + STRANGE_S if in_time > STRANGE_SHARE**2 * full else self._strange_until_s
        return now_s < self._strange_until_s

    def _is_frozen(self, motion: Motion, now_s: float) -> bool:
        """Return whether a velocity is repeated to the last digit although the tilt changes, which is impossible."""
        velocity = motion.forward, motion.left
        if velocity != self._repeated:
            for now, before in zip(velocity, self._repeated or velocity, strict=True):
                self._finest = min(self._finest, abs(now - before) or math.inf)
            self._repeated, self._repeated_since_s, self._pulled, self._tilted = velocity, now_s, self._pull, 0.0
            self._pulls.clear()
        if not self._pulls or now_s - self._pulls[-1][0] > KEPT_EVERY_S:
            self._pulls.append((now_s, self._pull))
        self._tilted = max(self._tilted, abs(self._pull - self._pulled))
        repeated_s = now_s - self._repeated_since_s
        if repeated_s <= FROZEN_S:
            return False
        lasting = FROZEN_S / repeated_s if self._finest < FINE_M_S else 1.0
        is_rounded = FINE_M_S <= self._finest < math.inf
        return self._tilted > FROZEN_PULL * lasting and not (is_rounded and self._bent() <= self._finest)

    def _bent(self) -> float:
        """Return how far tilt has moved the velocity from that of its mean, m/s, lately and while it repeats.

        A constant wind does not matter. A velocity that is only rounded has moved by less than its least change.
        """
        began_s, pushed, course = self._pulls[0][0], 0j, [(0.0, 0j)]
        for (before_s, before), (at_s, pull) in pairwise(self._pulls):
            pushed += 0.5 * (before + pull) * min(at_s - before_s, LONGEST_STEP_S)
            course.append((at_s - began_s, pushed))
        mean = pushed / max(course[-1][0], KEPT_EVERY_S)
        return max(abs(each - mean * since_s) for since_s, each in course)

    def _compare_climbs(self, up: float | None, climbed: float, step_s: float) -> None:
        """Judge the vertical speed, if it is reported, by the height.

        Steps with a refused height are not compared, nor long ones, in which a simulator may have paused.
        """
        if up is None or self.height.is_refused or step_s > LONGEST_STEP_S:
            return
        kept = math.exp(-step_s / MEMORY_S)
        by_speed, by_height = (
            kept * before + more for before, more in zip(self._climbed_m, (up * step_s, climbed), strict=True)
        )
        self._climbed_m = by_speed, by_height
        least, most = sorted((by_speed, SLOWEST_TIME * by_speed))
        is_apart = not least - CLIMBS_APART_M <= by_height <= most + CLIMBS_APART_M
        self._climb.judge(
            "its own vertical speed can't be right: its height changes otherwise" if is_apart else "", step_s
        )

    def _commanded_at(self, *times_s: float) -> list[_TimedCommand]:
        """Return the commands at times, the latest first; _NOTHING for one that is unknown."""
        earlier, found = reversed((_NOTHING, *self._history)), []
        command = next(earlier)
        for at_s in times_s:
            while command.at_s > at_s:
                command = next(earlier)
            found.append(command)
        return found


_NOTHING = _TimedCommand(-math.inf, None, 0.0, 0.0)


def _bounded(value: float) -> float:
    return max(-BEYOND_ALL, min(BEYOND_ALL, value))
