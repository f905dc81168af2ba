# SPDX-License-Identifier: Apache-2.0
"""Forwards an operator's commands, and a neutral one when they stop."""

import threading
from collections.abc import Callable


class CommandWatchdog:
    """Forwards commands, and publishes the neutral one once after a timeout.

    Thread-safe, in that commands and the neutral one never overtake each other. Times are passed in.
    """

    def __init__(self, publish_neutral: Callable[[], None]) -> None:
        """`publish_neutral` publishes the neutral command."""
        self._lock = threading.Lock()
        self._publish_neutral = publish_neutral
        self._forwarded_s: float | None = None  # when the last command was forwarded; None after the neutral one

    @property
    def is_active(self) -> bool:
        """Whether the last command was not the neutral one."""
        return self._forwarded_s is not None

    def forward(self, publish_command: Callable[[], None], now_s: float) -> None:
        with self._lock:
            publish_command()
            self._forwarded_s = now_s

    def check(self, now_s: float, timeout_s: float) -> bool:
        """Publish the neutral command if the last one is `timeout_s` old; return whether it was."""
        with self._lock:
            if self._forwarded_s is None or now_s - self._forwarded_s < timeout_s:
                return False
            self._release()
            return True

    def release(self) -> None:
        """Publish the neutral command, unless it was the last one."""
        with self._lock:
            if self._forwarded_s is not None:
                self._release()

    def _release(self) -> None:
        self._forwarded_s = None
        self._publish_neutral()
