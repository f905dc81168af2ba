# SPDX-License-Identifier: Apache-2.0
"""What a bridge knows of how its vehicle moves, from what the vehicle itself has told."""

import time
from collections.abc import Callable
from typing import NamedTuple

Triple = tuple[float, float, float]

#: Older measurements say nothing about now, s.
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


class ObservedMotion:
    """The newest measurement, which is replaced as one: any thread may read it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.newest: Motion | None = None

    def measured(self, yaw: float | None, position: Triple | None = None, velocity: Triple | None = None) -> None:
        """Note what the vehicle has just told; see `Motion`."""
        self.newest = Motion(self._clock(), yaw, position, velocity)

    @property
    def age_s(self) -> float:
        """For how long the vehicle has told nothing; infinite if it never has."""
        newest = self.newest
        return self._clock() - newest.measured_s if newest else float("inf")

    @property
    def yaw(self) -> float | None:
        """The heading, rad; None if it is not known now."""
        newest = self.newest
        return newest.yaw if newest and self._clock() - newest.measured_s <= FRESH_S else None
