# SPDX-License-Identifier: Apache-2.0
"""CommandWatchdog: when a vehicle whose operator does not answer gets the neutral command. Pure."""

import math


class CommandWatchdog:
    """Whether the last command moved the vehicle, and until when the next one has to come."""

    def __init__(self, *, is_lockstep: bool) -> None:
        """Begin with nothing commanded.

        With `is_lockstep` the time runs from each frame instead of each command, as the vehicle waits for the command
        to its frame, and the neutral command may be that command.
        """
        self._is_lockstep = is_lockstep
        self._forwarded_s: float | None = None  # when the last command was forwarded; None after the neutral one
        self._asked_s: float | None = None  # when the frame was sent whose command is awaited

    @property
    def is_active(self) -> bool:
        """Whether the last command was not the neutral one."""
        return self._forwarded_s is not None

    def ask(self, now_s: float) -> None:
        """Note that a frame was sent, so that a command is expected."""
        self._asked_s = now_s

    def forward(self, now_s: float) -> bool:
        """Note a command that is to be forwarded; return false if its frame has had the neutral one instead."""
        if self._is_lockstep and self._asked_s is None:
            return False
        self._forwarded_s, self._asked_s = now_s, None
        return True

    def due_s(self, timeout_s: float) -> float:
        """Return when the vehicle is to have the neutral command."""
        since_s = self._asked_s if self._is_lockstep else self._forwarded_s
        return math.inf if self._forwarded_s is None or since_s is None else since_s + timeout_s

    def release(self) -> bool:
        """Note that the vehicle gets the neutral command; return false if it was the last one anyway."""
        was_active, self._forwarded_s, self._asked_s = self.is_active, None, None
        return was_active
