# SPDX-License-Identifier: Apache-2.0
"""Forwards an operator's commands, and a neutral one when they stop."""

import threading
from collections.abc import Callable


class CommandWatchdog:
    """Forwards commands, and publishes the neutral one once after a timeout.

    Thread-safe: a command and the neutral one never overtake each other. Times are passed in.
    """

    def __init__(self, publish_neutral: Callable[[], None], *, is_lockstep: bool = False) -> None:
        """Prepare to forward.

        Args:
            publish_neutral: publishes the neutral command.
            is_lockstep: the timeout runs from each frame instead of each command, as the vehicle waits for the command
                to its frame, and the neutral command may be that command.
        """
        self._lock = threading.Lock()
        self._publish_neutral = publish_neutral
        self._is_lockstep = is_lockstep
        self._forwarded_s: float | None = None  # when the last command was forwarded; None after the neutral one
        self._asked_s: float | None = None  # when the frame was sent whose command is awaited

    @property
    def is_active(self) -> bool:
        """Whether the last command was not the neutral one."""
        return self._forwarded_s is not None

    def ask(self, now_s: float) -> None:
        """Note that a frame was sent, so that a command is expected."""
        with self._lock:
            self._asked_s = now_s

    def forward(self, publish_command: Callable[[], None], now_s: float) -> bool:
        """Publish a command, unless the neutral one was published instead; return whether it was published."""
        with self._lock:
            if self._is_lockstep and self._asked_s is None:
                return False
            publish_command()
            self._forwarded_s, self._asked_s = now_s, None
            return True

    def check(self, now_s: float, timeout_s: float) -> bool:
        """Publish the neutral command if none has come for `timeout_s`; return whether it was published."""
        with self._lock:
            since_s = self._asked_s if self._is_lockstep else self._forwarded_s
            if self._forwarded_s is None or since_s is None or now_s - since_s < timeout_s:
                return False
            self._release()
            return True

    def release(self) -> None:
        """Publish the neutral command, unless it was the last one."""
        with self._lock:
            if self._forwarded_s is not None:
                self._release()

    def _release(self) -> None:
        self._forwarded_s = self._asked_s = None
        self._publish_neutral()
