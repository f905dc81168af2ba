# SPDX-License-Identifier: Apache-2.0
"""ObservedMotion: a vehicle's motion according to its own reports. Positions are in world axes."""

from collections.abc import Callable
from typing import NamedTuple

Triple = tuple[float, float, float]

#: Older measurements are stale, s. Dead reckoning covers this much of a gap at most.
FRESH_S = 1.0


class Motion(NamedTuple):
    """Measurement in world axes (ENU, as in `odom`). Values that the vehicle does not report are None."""

    measured_s: float
    """Arrival time, by the clock of `ObservedMotion`, s."""
    yaw: float | None = None
    """Heading of the body's x axis, rad, 0 along the world's x axis."""
    position: Triple | None = None
    """Position, m."""
    velocity: Triple | None = None
    """Velocity, m/s."""
    ground: float | None = None
    """Height of the ground along the world's z, m."""
    is_doubted: bool = False
    """Whether the newest reports are implausible. The other values are older then."""


class ObservedMotion:
    """Newest measurement. Safe to read from any thread: it is replaced as a whole."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns the time, s, of a clock that is never set. Limits use the same clock."""
        self._clock = clock
        self.newest: Motion | None = None
        #: First position, m.
        self.start: Triple | None = None

    def measured(
        self,
        yaw: float | None,
        position: Triple | None = None,
        velocity: Triple | None = None,
        height: float | None = None,
    ) -> None:
        """Handle a report of the vehicle; see `Motion`.

        Without a position, velocities are integrated. With `height` above the ground, m, z is the height as well.
        """
        now_s = self._clock()
        if position is None and velocity is not None:
            position = self._dead_reckoned(velocity, 0.0 if height is None else height, now_s)
        self.start = self.start or position
        self.newest = Motion(now_s, yaw, position, velocity, None if height is None else 0.0)

    def doubted(self) -> None:
        """Handle an implausible report of the vehicle."""
        if self.newest:
            self.newest = self.newest._replace(measured_s=self._clock(), is_doubted=True)

    @property
    def yaw(self) -> float | None:
        """Heading, rad; None if it is unknown or stale."""
        newest = self.newest
        return newest.yaw if newest and self._clock() - newest.measured_s <= FRESH_S else None

    def _dead_reckoned(self, velocity: Triple, height: float, now_s: float) -> Triple:
        """Return the position after moving at `velocity`, m/s, since the last measurement."""
        before = self.newest
        if before is None or before.position is None:
            return 0.0, 0.0, height
        step_s = min(now_s - before.measured_s, FRESH_S)
        return before.position[0] + velocity[0] * step_s, before.position[1] + velocity[1] * step_s, height
