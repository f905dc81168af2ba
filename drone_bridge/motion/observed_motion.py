# SPDX-License-Identifier: Apache-2.0
"""ObservedMotion: how a vehicle moves, by its own account. Positions are in the world's axes; times are passed in."""

from collections.abc import Callable
from typing import NamedTuple

Triple = tuple[float, float, float]

#: Older measurements say nothing about now, s; and nobody knows how far a vehicle went in a longer gap between two.
FRESH_S = 1.0


class Motion(NamedTuple):
    """A measurement in the world's axes (ENU, as in `odom`). What the vehicle does not tell is None."""

    measured_s: float
    """When it arrived, by the clock of `ObservedMotion`."""
    yaw: float | None = None
    """Of the body's x axis, rad, 0 along the world's x axis."""
    position: Triple | None = None
    """m."""
    velocity: Triple | None = None
    """m/s."""
    ground: float | None = None
    """Where the ground is along the world's z, m."""
    is_doubted: bool = False
    """Whether what the vehicle reports since can't be right: then the rest is older."""


class ObservedMotion:
    """The newest measurement, which is replaced as one: any thread may read it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """`clock` returns the time, s, of a clock that is never set; that of limits is the same."""
        self._clock = clock
        self.newest: Motion | None = None
        #: The first position, m.
        self.start: Triple | None = None

    def measured(
        self,
        yaw: float | None,
        position: Triple | None = None,
        velocity: Triple | None = None,
        height: float | None = None,
    ) -> None:
        """Note what the vehicle has just reported; see `Motion`.

        Without a position, velocities are added up to one. `height` is above the ground, m, and then z is, too.
        """
        now_s = self._clock()
        if position is None and velocity is not None:
            position = self._dead_reckoned(velocity, 0.0 if height is None else height, now_s)
        self.start = self.start or position
        self.newest = Motion(now_s, yaw, position, velocity, None if height is None else 0.0)

    def doubted(self) -> None:
        """Note that the vehicle has just reported what can't be right."""
        if self.newest:
            self.newest = self.newest._replace(measured_s=self._clock(), is_doubted=True)

    @property
    def yaw(self) -> float | None:
        """The heading, rad; None if it is not known now."""
        newest = self.newest
        return newest.yaw if newest and self._clock() - newest.measured_s <= FRESH_S else None

    def _dead_reckoned(self, velocity: Triple, height: float, now_s: float) -> Triple:
        """Return where a velocity (m/s) has led since the last measurement."""
        before = self.newest
        if before is None or before.position is None:
            return 0.0, 0.0, height
        step_s = min(now_s - before.measured_s, FRESH_S)
        return before.position[0] + velocity[0] * step_s, before.position[1] + velocity[1] * step_s, height
