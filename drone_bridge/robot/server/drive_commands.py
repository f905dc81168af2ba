# SPDX-License-Identifier: Apache-2.0
"""Schedules the publication of drivers' commands. Times are passed in, in s of a monotonic clock."""

import math
from collections.abc import Callable
from typing import Final

from drone_bridge.robot.topics.translation import STOPPED, Speeds

#: How often a stop is published, as messages may be lost.
STOPS: Final = 3
#: Minimum time between published changes of speed; stopping is never delayed.
LEAST_GAP_S: Final = 0.01


class DriveCommands:
    """Repeats speeds while the robot moves, as drivers only send changes, and a stop a few times."""

    def __init__(self, period_s: float, publish: Callable[[Speeds], None]) -> None:
        """`period_s`: between repetitions."""
        self._period_s = period_s
        self._publish = publish
        self._speeds = STOPPED
        self._left = 0  # stops to publish
        self._published_s = -math.inf
        #: When `tick` is due.
        self.due_s = math.inf

    @property
    def is_moving(self) -> bool:
        """Whether the last command was anything but a stop."""
        return self._speeds != STOPPED

    def drive(self, speeds: Speeds, now_s: float) -> None:
        if speeds == self._speeds and self.due_s < math.inf:
            return
        self._speeds, self._left = speeds, STOPS
        self.due_s = now_s if speeds == STOPPED else max(now_s, self._published_s + LEAST_GAP_S)
        self.tick(now_s)

    def stop(self, now_s: float) -> None:
        """Stop if the robot moves."""
        if self.is_moving:
            self.drive(STOPPED, now_s)

    def tick(self, now_s: float) -> None:
        """Publish what is due."""
        if now_s < self.due_s:
            return
        self._published_s = now_s
        self._left -= not self.is_moving
        self.due_s = now_s + self._period_s if self._left else math.inf
        self._publish(self._speeds)
