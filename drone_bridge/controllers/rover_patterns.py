# SPDX-License-Identifier: Apache-2.0
"""Patterns for a rover around its starting point, as velocities that depend on its pose."""

import itertools
import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.ros.wheel_odometry import Pose

RANDOM_PERIOD_S = 3.0  # after which a new target is drawn
TURN_GAIN_PER_S = 2.0  # rad/s for each rad that the rover looks aside
APPROACH_GAIN_PER_S = 2.0  # m/s for each m that a target is away
ASIDE_RAD = 0.3  # looking aside further than that, a rover turns before it drives on
ARRIVED_M = 0.05
CIRCLE_GAIN_PER_M = 1.0  # rad to be looked inwards for each m that a circle is inside


class Limits(NamedTuple):
    """Size and speed limits of a pattern."""

    speed: float  # m/s
    amplitude: float  # m
    turn_rate: float  # rad/s, the largest


class Pattern(ABC):
    """A pattern. Poses are relative to the start, with x ahead."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    @abstractmethod
    def velocity(self, pose: Pose, time_s: float) -> BodyVelocity:
        """Return the velocity at a pose. `time_s` never decreases."""

    def _turn(self, error: float) -> float:
        limit = self._limits.turn_rate
        return max(-limit, min(limit, TURN_GAIN_PER_S * error))


class Stationary(Pattern):
    """Stand still."""

    def velocity(self, pose: Pose, time_s: float) -> BodyVelocity:
        return STILL


class Circular(Pattern):
    """A circle to the left, whose radius is the amplitude; the rover starts on it."""

    def velocity(self, pose: Pose, time_s: float) -> BodyVelocity:
        """Return the velocity along the circle, or back to it."""
        radius = self._limits.amplitude
        # Slower, if the rover can't turn fast enough for so small a circle.
        speed = min(self._limits.speed, radius * self._limits.turn_rate)
        from_centre_x, from_centre_y = pose.x, pose.y - radius
        outside = math.hypot(from_centre_x, from_centre_y) - radius
        inwards = max(-math.pi / 2, min(math.pi / 2, CIRCLE_GAIN_PER_M * outside))
        heading = math.atan2(from_centre_y, from_centre_x) + math.pi / 2 + inwards
        error = math.remainder(heading - pose.yaw, math.tau)
        turn = self._turn(error + speed / radius / TURN_GAIN_PER_S)
        return BodyVelocity(speed * max(0.0, math.cos(error)), turn=turn)


def approach(pose: Pose, target: tuple[float, float], limits: Limits, *, may_reverse: bool = False) -> BodyVelocity:
    """Return the velocity towards a place, by a turn on the spot where that is far aside."""
    aside = math.atan2(target[1] - pose.y, target[0] - pose.x) - pose.yaw
    aside = math.remainder(aside, math.tau)
    direction = 1.0
    if may_reverse and abs(aside) > math.pi / 2:
        aside, direction = math.remainder(aside + math.pi, math.tau), -1.0
    turn = max(-limits.turn_rate, min(limits.turn_rate, TURN_GAIN_PER_S * aside))
    if abs(aside) > ASIDE_RAD:
        return BodyVelocity(turn=turn)
    speed = min(limits.speed, APPROACH_GAIN_PER_S * math.hypot(target[0] - pose.x, target[1] - pose.y))
    return BodyVelocity(direction * speed * math.cos(aside), turn=turn)


class ToTargets(Pattern):
    """Drives from one target to the next: when it has arrived, or every `period_s`."""

    def __init__(
        self,
        limits: Limits,
        targets: Iterator[tuple[float, float]],
        *,
        may_reverse: bool = False,
        period_s: float | None = None,
    ) -> None:
        """With `may_reverse`, a target behind is driven to backwards."""
        super().__init__(limits)
        self._targets, self._may_reverse, self._period_s = targets, may_reverse, period_s
        self._target = next(targets)
        self._since_s: float | None = None  # when the target was chosen

    def velocity(self, pose: Pose, time_s: float) -> BodyVelocity:
        """Return the velocity towards the current target."""
        self._since_s = time_s if self._since_s is None else self._since_s
        if self._period_s is None:
            is_over = self._distance(pose) < ARRIVED_M
        else:
            is_over = time_s >= self._since_s + self._period_s
        if is_over:
            self._target, self._since_s = next(self._targets), time_s
        return self._approach(pose)

    def _distance(self, pose: Pose) -> float:
        return math.hypot(self._target[0] - pose.x, self._target[1] - pose.y)

    def _approach(self, pose: Pose) -> BodyVelocity:
        if self._distance(pose) < ARRIVED_M:
            return STILL
        return approach(pose, self._target, self._limits, may_reverse=self._may_reverse)


def linear(limits: Limits, _: int) -> Pattern:
    """Back and forth along x, up to the amplitude on both sides; back in reverse."""
    ends = itertools.cycle([(limits.amplitude, 0.0), (-limits.amplitude, 0.0)])
    return ToTargets(limits, ends, may_reverse=True)


def square(limits: Limits, _: int) -> Pattern:
    """A square whose corners are the amplitude away along both axes."""
    a = limits.amplitude
    return ToTargets(limits, itertools.cycle([(a, a), (-a, a), (-a, -a), (a, -a)]))


def wandering(limits: Limits, seed: int) -> Pattern:
    """Random targets within the amplitude along both axes, a new one every RANDOM_PERIOD_S."""
    source, a = random.Random(seed), limits.amplitude
    places = ((source.uniform(-a, a), source.uniform(-a, a)) for _ in itertools.count())
    return ToTargets(limits, places, period_s=RANDOM_PERIOD_S)


#: Each makes a pattern; the number is the seed of what is random.
PATTERNS: dict[str, Callable[[Limits, int], Pattern]] = {
    "stationary": lambda limits, _: Stationary(limits),
    "linear": linear,
    "circular": lambda limits, _: Circular(limits),
    "random": wandering,
    "square": square,
}


class PoseEstimate:
    """The rover's pose relative to the start: by odometry if available, otherwise by dead reckoning."""

    def __init__(self, odometry_timeout_s: float) -> None:
        """`timeout_s` is the time without odometry after which dead reckoning takes over."""
        self._odometry_timeout_s = odometry_timeout_s
        self.pose = Pose()
        self._origin = Pose()  # of our frame, in that of the odometry
        self._odometry_s = -math.inf

    def follows_odometry(self, now_s: float) -> bool:
        """Return whether odometry has arrived within its time-out."""
        return now_s - self._odometry_s <= self._odometry_timeout_s

    def measured(self, odometry: Pose, now_s: float) -> None:
        """Set the pose in an arbitrary frame. After a gap it continues from the estimate."""
        if not self.follows_odometry(now_s):
            # The pose of our origin as seen from the rover, put where the odometry has the rover.
            self._origin = odometry.seeing(Pose().seen_from(self.pose))
        self._odometry_s = now_s
        self.pose = odometry.seen_from(self._origin)

    def commanded(self, seconds: float, velocity: BodyVelocity, now_s: float) -> None:
        """Advance with a commanded velocity, which counts only without odometry."""
        if not self.follows_odometry(now_s):
            self.pose = self.pose.moved(seconds, velocity.forward, velocity.turn)
