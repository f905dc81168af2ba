# SPDX-License-Identifier: Apache-2.0
"""ObservedMotion: a vehicle's motion according to its own reports. Positions are in world axes.

Theory of operation:

- A report may lack any number. Each quantity therefore has the time of its own last report: a report without it changes
  neither its value nor its time. A number that is not finite counts as not reported.
- A report with a velocity but without a position is dead reckoned: from the last position, over the whole gap, by the
  mean of the velocities before and after it. After a gap of more than FRESH_S, the position is uncertain until the
  vehicle reports one. A gap of more than LONGEST_GAP_S counts as that: by then, the vehicle was stopped or carried.
  It does not share `dead_reckoning`, which leaves out the motion in a gap of more than 0.5 s: `odom` may lag behind the
  vehicle, with a larger variance, but a fence may not.
- While reports are doubted, the place of a vehicle that reports no positions is moved by the model's velocity. Once
  they are believed again, two places are known: that one, and the one by the mean velocity over the gap. The farther
  from the start counts.
- A vehicle that reports no positions starts at x = y = 0. Its z is its height above the ground, if it reports that.
- The start is the first position of a configuration. A new link or vehicle forgets the times, and keeps the positions.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeGuard

from drone_bridge.motion.vectors import Triple, added, scaled, subtracted, turned

#: Older measurements are stale, s.
FRESH_S = 1.0
#: Longest duration over which a velocity is integrated, s.
LONGEST_GAP_S = 10.0


class LatestMotion(NamedTuple):
    """Last reported value of each quantity, in world axes (ENU, as in `odom`). None: not reported.

    Times are by the clock of `ObservedMotion`, s; -inf: not reported so far.
    """

    yaw: float | None = None
    """Heading of the body's x axis, rad, 0 along the world's x axis."""
    yaw_at: float = -math.inf
    position: Triple | None = None
    """Position, m, reported or dead reckoned."""
    position_at: float = -math.inf
    velocity: Triple | None = None
    """Velocity, m/s."""
    ground: float | None = None
    """Height of the ground along the world's z, m."""
    ground_at: float = -math.inf
    is_doubted: bool = False
    """Whether the newest reports are implausible. Only the heading and the modelled position are then changed."""
    doubted_from: float = math.inf
    """Time of the first implausible report of a doubt."""
    doubted_at: float = -math.inf
    """Time of the last implausible report."""
    modelled: Triple | None = None
    """Position during a doubt, m: the last believed one, moved by the model's velocity. None: not known."""


class ObservedMotion:
    """Last reported motion. Safe to read from any thread: it is replaced as a whole."""

    def __init__(self, clock: Callable[[], float], settled_at: Callable[[], float] = lambda: -math.inf) -> None:
        """Start without a report.

        Args:
            clock: returns the time, s, of a clock that is never set. Limits use the same clock.
            settled_at: returns the time, s, until which a silence was that of this process, which was stalled.
        """
        self._clock = clock
        self.settled_at = settled_at
        self.newest = LatestMotion()
        #: First position of the configuration, m.
        self.start: Triple | None = None
        #: Longest gap that dead reckoning has bridged since the last reported position, s; 0 if all were short.
        self.uncertain_s = 0.0
        #: Longest way that the vehicle may have moved while its own pose has begun again, m.
        self.unseen_m = 0.0
        self._moved_at = -math.inf  # time of the position, also over connections
        self._has_positions = False

    def restart(self) -> None:
        """Forget the times, for a new link or vehicle: no quantity is reported so far."""
        self.newest = LatestMotion(position=self.newest.position, velocity=self.newest.velocity)

    def moved_unseen(self, way_m: float) -> None:
        """Record a way, m, that the vehicle may have moved before a position that goes on from the last one."""
        self.unseen_m += way_m

    def measured(
        self,
        yaw: float | None = None,
        position: Triple | None = None,
        velocity: Triple | None = None,
        height: float | None = None,
    ) -> None:
        """Update the motion by a report of the vehicle.

        Args:
            yaw: see `LatestMotion`.
            position: see `LatestMotion`.
            velocity: velocity in level axes with the vehicle's heading: forward, left, up, m/s.
            height: height above the ground, m.
        """
        now_s, motion = self._clock(), self.newest._replace(is_doubted=False)
        if yaw is not None and math.isfinite(yaw):
            motion = motion._replace(yaw=yaw, yaw_at=now_s)
        heading = _fresh_yaw(motion, now_s)
        moving = turned(velocity, heading) if _is_known(velocity) and heading is not None else None
        height = height if height is not None and math.isfinite(height) else None
        if _is_known(position):
            if self.start and motion.position and not self._has_positions:
                # Until now the origin of dead reckoning was the start.
                self.start = added(position, subtracted(self.start, motion.position))
            self._has_positions, self.uncertain_s = True, 0.0
        else:
            position = self._dead_reckoned(motion, moving, height, now_s) if moving else None
            if position and self.newest.is_doubted:
                position = self._farther(position)
        if position:
            self.start, self._moved_at = self.start or position, now_s
            motion = motion._replace(position=position, position_at=now_s)
            if height is not None:
                motion = motion._replace(ground=position[2] - height, ground_at=now_s)
        self.newest = motion._replace(velocity=moving) if moving else motion

    def doubted(self, yaw: float | None = None, velocity: tuple[float, float] | None = None) -> None:
        """Mark the motion as doubted after an implausible report of the vehicle.

        Args:
            yaw: its heading, if that is plausible.
            velocity: velocity by a model, in level axes with the vehicle's heading: forward, left, m/s.
        """
        now_s, motion = self._clock(), self.newest
        if yaw is not None and math.isfinite(yaw):
            motion = motion._replace(yaw=yaw, yaw_at=now_s)
        if not motion.is_doubted:
            motion = motion._replace(doubted_from=now_s, modelled=None if self._has_positions else motion.position)
        elif motion.modelled and velocity and motion.yaw is not None:
            way = scaled((velocity[0], velocity[1], 0.0), min(now_s - motion.doubted_at, FRESH_S))
            motion = motion._replace(modelled=added(motion.modelled, turned(way, motion.yaw)))
        self.newest = motion._replace(is_doubted=True, doubted_at=now_s)

    @property
    def yaw(self) -> float | None:
        """Heading, rad; None if it is unknown or stale."""
        return _fresh_yaw(self.newest, self._clock())

    def _dead_reckoned(self, last: LatestMotion, velocity: Triple, height: float | None, now_s: float) -> Triple | None:
        """Return the position after moving to `now_s`; None if the velocities are too large for a float."""
        position = last.position or (0.0, 0.0, 0.0)
        if last.position:
            gap_s = now_s - self._moved_at
            if gap_s > FRESH_S:
                self.uncertain_s = max(self.uncertain_s, gap_s)
            mean = scaled(added(last.velocity or velocity, velocity), 0.5)
            position = added(position, scaled(mean, min(gap_s, LONGEST_GAP_S)))
        if height is not None and not self._has_positions:
            position = (*position[:2], height)
        return position if _is_known(position) else None

    def _farther(self, position: Triple) -> Triple:
        """Return the place after a doubt: `position` or the modelled one, whichever is farther from the start."""
        last, start = self.newest, self.start
        if not start or not last.modelled or last.modelled == last.position:
            return position
        modelled = last.modelled[0], last.modelled[1], position[2]
        return max(position, modelled, key=lambda place: math.dist(place[:2], start[:2]))


def _fresh_yaw(motion: LatestMotion, now_s: float) -> float | None:
    return motion.yaw if now_s - max(motion.yaw_at, motion.doubted_at) <= FRESH_S else None


def _is_known(vector: Triple | None) -> TypeGuard[Triple]:
    return vector is not None and all(map(math.isfinite, vector))
