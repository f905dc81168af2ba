# SPDX-License-Identifier: Apache-2.0
"""DriveCommands: repeats speeds while the robot moves, since drivers send only changes, and repeats stops."""

import math
from collections.abc import Callable

from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.session.session import next_due

#: Number of times that a stop is published, since messages may be lost.
STOPS = 3
#: Minimum time between published changes of speed. A stop is never delayed.
LEAST_GAP_S = 0.01
#: Repeat rate while the robot moves, Hz.
COMMAND_RATE = 20.0


class DriveCommands:
    """Speeds in force. Times are seconds of the session's clock."""

    def __init__(self, publish: Callable[[Speeds], None]) -> None:
        self._publish = publish
        self._speeds = STOPPED
        self._left = 0  # remaining repeats of a stop
        self._published_s = -math.inf
        #: Time of the next `tick`.
        self.due_s = math.inf

    @property
    def is_moving(self) -> bool:
        """Whether the last command was not a stop."""
        return self._speeds != STOPPED

    def drive(self, speeds: Speeds, now_s: float) -> None:
        """Apply speeds."""
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
        """Publish due repeats and changes."""
        if now_s < self.due_s:
            return
        self._published_s = now_s
        self._left -= not self.is_moving
        self.due_s = next_due(self.due_s, 1 / COMMAND_RATE, now_s) if self._left else math.inf
        self._publish(self._speeds)
