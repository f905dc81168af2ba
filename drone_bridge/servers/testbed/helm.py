# SPDX-License-Identifier: Apache-2.0
"""Passes an operator's commands on, and a neutral one when the operator falls silent."""

import threading
from collections.abc import Callable


class Helm:
    """Passes commands on; when none has come for a time, the neutral one follows, once, and then nothing.

    For any thread; times are passed in. Commands and the neutral one never overtake each other.
    """

    def __init__(self, be_neutral: Callable[[], None]) -> None:
        """`be_neutral` publishes the neutral command."""
        self._lock = threading.Lock()
        self._be_neutral = be_neutral
        self._steered_s: float | None = None  # when the last command was given; None: it was the neutral one

    @property
    def is_steered(self) -> bool:
        """Whether another command than the neutral one was the last."""
        return self._steered_s is not None

    def steer(self, give_command: Callable[[], None], now_s: float) -> None:
        """Pass a command on."""
        with self._lock:
            give_command()
            self._steered_s = now_s

    def watch(self, now_s: float, timeout_s: float) -> bool:
        """Leave the neutral command if the last one is `timeout_s` old; return whether that was so."""
        with self._lock:
            if self._steered_s is None or now_s - self._steered_s < timeout_s:
                return False
            self._let_go()
            return True

    def let_go(self) -> None:
        """Leave the neutral command, unless it was the last one anyway."""
        with self._lock:
            if self._steered_s is not None:
                self._let_go()

    def _let_go(self) -> None:
        self._steered_s = None
        self._be_neutral()
