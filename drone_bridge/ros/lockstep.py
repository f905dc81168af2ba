# SPDX-License-Identifier: Apache-2.0
"""Lockstep: waits for the command that answers a frame, by its stamp."""

import threading
from typing import Generic, TypeVar

from drone_bridge.session.arbiter import Arbiter, Arrival

CommandT = TypeVar("CommandT")


class Lockstep(Generic[CommandT]):
    """Waits for the commands of an arbiter. `look` is for the executor, the rest for the link's thread and its end."""

    def __init__(self, arbiter: Arbiter[CommandT]) -> None:
        self._arbiter = arbiter
        self._changed = threading.Condition()
        # The newest one with a stamp: one without does not keep a frame from its answer.
        self._answer: Arrival[CommandT] | None = None
        self._is_closed = False

    def look(self) -> None:
        """Take the arbiter's newest command, or that there is none any more."""
        newest = self._arbiter.newest
        with self._changed:
            if newest is None or newest.stamp is not None:
                self._answer = newest
            self._changed.notify_all()

    def wait_for(self, stamp: tuple[int, int], timeout_s: float) -> Arrival[CommandT] | None:
        """Wait for the command that answers the frame of this stamp; return None after the timeout or on `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._answers(stamp), timeout_s)
            return self._answer if self._answers(stamp) and not self._is_closed else None

    def _answers(self, stamp: tuple[int, int]) -> bool:
        return self._answer is not None and self._answer.stamp == stamp

    def restart(self) -> None:
        """Forget the commands, and allow waiting again after `close`."""
        with self._changed:
            self._answer, self._is_closed = None, False

    def close(self) -> None:
        """End all waiting."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
