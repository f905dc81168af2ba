# SPDX-License-Identifier: Apache-2.0
"""Driving patterns around a rover's starting point: pose in, velocity out."""

import itertools
import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.motion.report_gaps import SHORT_GAP_S, ReportGaps

RANDOM_PERIOD_S = 3.0  # after which a new target is drawn
TURN_GAIN_PER_S = 2.0  # rad/s per rad of heading error
APPROACH_GAIN_PER_S = 2.0  # m/s per m of distance
ASIDE_RAD = 0.3  # with a larger heading error, a rover turns before it drives on
ARRIVED_M = 0.05
CIRCLE_GAIN_PER_M = 1.0  # rad of inward heading per m outside the circle


class PatternLimits(NamedTuple):
    """Size and speed limits of a pattern."""

    speed: float  # m/s
    amplitude: float  # m
    turn_rate: float  # rad/s, the largest


#: Pattern: takes a pose relative to the start, x forward, and a time, s, that never decreases; returns the velocity.
Pattern = Callable[[PlanarPose, float], BodyVelocity]


def circle(limits: PatternLimits, pose: PlanarPose, _: float) -> BodyVelocity:
    """Return the velocity along a circle to the left through the start, with the amplitude as its radius."""
    radius = limits.amplitude
    # Slower if the circle is too small for the rover's turn rate.
    speed = min(limits.speed, radius * limits.turn_rate)
    from_centre_x, from_centre_y = pose.x, pose.y - radius
    outside = math.hypot(from_centre_x, from_centre_y) - radius
    inwards = max(-math.pi / 2, min(math.pi / 2, CIRCLE_GAIN_PER_M * outside))
    heading = math.atan2(from_centre_y, from_centre_x) + math.pi / 2 + inwards
    error = math.remainder(heading - pose.yaw, math.tau)
    turn = _turn(limits, error + speed / radius / TURN_GAIN_PER_S)
    return BodyVelocity(speed * max(0.0, math.cos(error)), turn=turn)


def _turn(limits: PatternLimits, error: float) -> float:
    return max(-limits.turn_rate, min(limits.turn_rate, TURN_GAIN_PER_S * error))


def approach(
    pose: PlanarPose, target: tuple[float, float], limits: PatternLimits, *, may_reverse: bool = False
) -> BodyVelocity:
    """Return the velocity towards a target. With a large heading error, turn on the spot first."""
    aside = math.atan2(target[1] - pose.y, target[0] - pose.x) - pose.yaw
    aside = math.remainder(aside, math.tau)
    direction = 1.0
    if may_reverse and abs(aside) > math.pi / 2:
        aside, direction = math.remainder(aside + math.pi, math.tau), -1.0
    turn = _turn(limits, aside)
    if abs(aside) > ASIDE_RAD:
        return BodyVelocity(turn=turn)
    speed = min(limits.speed, APPROACH_GAIN_PER_S * math.hypot(target[0] - pose.x, target[1] - pose.y))
    return BodyVelocity(direction * speed * math.cos(aside), turn=turn)


def to_targets(
    limits: PatternLimits,
    targets: Iterator[tuple[float, float]],
    *,
    may_reverse: bool = False,
    period_s: float | None = None,
) -> Pattern:
    """Return the pattern of a sequence of targets. The next one follows on arrival, or every `period_s` if given.

    With `may_reverse`, the rover drives backwards to targets behind it.
    """
    target, since_s = next(targets), math.nan  # and the time when it was chosen

    def velocity(pose: PlanarPose, time_s: float) -> BodyVelocity:
        nonlocal target, since_s
        since_s = time_s if math.isnan(since_s) else since_s
        has_arrived = math.dist(target, (pose.x, pose.y)) < ARRIVED_M
        if has_arrived if period_s is None else time_s >= since_s + period_s:
            target, since_s = next(targets), time_s
        if math.dist(target, (pose.x, pose.y)) < ARRIVED_M:
            return STILL
        return approach(pose, target, limits, may_reverse=may_reverse)

    return velocity


def linear(limits: PatternLimits, _: int) -> Pattern:
    """Line along x, to the amplitude on both sides. The rover returns in reverse."""
    ends = itertools.cycle([(limits.amplitude, 0.0), (-limits.amplitude, 0.0)])
    return to_targets(limits, ends, may_reverse=True)


def square(limits: PatternLimits, _: int) -> Pattern:
    """Square with its corners at the amplitude along both axes."""
    a = limits.amplitude
    return to_targets(limits, itertools.cycle([(a, a), (-a, a), (-a, -a), (a, -a)]))


def wandering(limits: PatternLimits, seed: int) -> Pattern:
    """Random targets within the amplitude along both axes, a new one every RANDOM_PERIOD_S."""
    source, a = random.Random(seed), limits.amplitude
    places = ((source.uniform(-a, a), source.uniform(-a, a)) for _ in itertools.count())
    return to_targets(limits, places, period_s=RANDOM_PERIOD_S)


#: Factories of patterns by name. The integer is the random seed.
PATTERNS: dict[str, Callable[[PatternLimits, int], Pattern]] = {
    "stationary": lambda limits, _: lambda pose, time_s: STILL,
    "linear": linear,
    "circular": lambda limits, _: partial(circle, limits),
    "random": wandering,
    "square": square,
}


class PoseEstimate:
    """PlanarPose of the rover relative to the start, by odometry if available, else by dead reckoning."""

    def __init__(self) -> None:
        """Start at the origin, by dead reckoning."""
        self.pose = PlanarPose()
        self._origin = PlanarPose()  # of our frame in the odometry frame
        self._odometry_s = -math.inf
        self._gaps = ReportGaps()

    def follows_odometry(self, now_s: float) -> bool:
        """Return whether odometry has arrived of late."""
        return now_s - self._odometry_s <= self._gaps.longest_s

    def measured(self, odometry: PlanarPose, now_s: float) -> None:
        """Update by odometry, whose frame is arbitrary. After a gap, the pose continues from the estimate."""
        if not self._gaps.is_short(now_s - self._odometry_s):
            # Our origin relative to the estimated pose, applied to the pose in the odometry.
            self._origin = odometry.seeing(PlanarPose().seen_from(self.pose))
        self._odometry_s = now_s
        self.pose = odometry.seen_from(self._origin)

    def commanded(self, seconds: float, velocity: BodyVelocity, now_s: float) -> None:
        """Advance by a command, which bridges follow for SHORT_GAP_S. Ignored while odometry is available."""
        if not self.follows_odometry(now_s):
            self.pose = self.pose.moved(min(seconds, SHORT_GAP_S), velocity.forward, velocity.turn)
