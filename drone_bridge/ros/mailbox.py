# SPDX-License-Identifier: Apache-2.0
"""Passes the newest command from the executor to the link's thread."""

import math
import threading
import time
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from drone_bridge.ros.stall_watch import elapsed_s

CommandT = TypeVar("CommandT")


@dataclass(frozen=True, slots=True)
class Arrival(Generic[CommandT]):
    """A command and its arrival time, by time.monotonic."""

    command: CommandT
    arrived_s: float
    lifespan_s: float = math.inf
    """For how long it holds at most, from then on."""
    taken_s: float = field(default_factory=elapsed_s)
    """When it arrived, by a clock that counts suspension."""

    def is_fresh(self, timeout_s: float) -> bool:
        """Return whether it still holds, where none does for longer than `timeout_s`."""
        return elapsed_s() - self.taken_s <= min(timeout_s, self.lifespan_s)

    def expires_s(self, timeout_s: float) -> float:
        """Return until when it holds, by time.monotonic, where none does for longer than `timeout_s`."""
        return self.arrived_s + min(timeout_s, self.lifespan_s)


class Mailbox(Generic[CommandT]):
    """Holds the newest command while it is fresh. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # Replaced as one: `newest` is asked per frame and needs no lock.
        self._latest: Arrival[CommandT] | None = None
        # The newest one with a stamp: one without does not keep a frame from its answer.
        self._answer: tuple[CommandT | None, tuple[int, int] | None] = (None, None)
        self._is_closed = False

    def put(self, command: CommandT, stamp: tuple[int, int] | None = None, lifespan_s: float = math.inf) -> None:
        """Replace the command. `stamp` is the (sec, nanosec) of the frame that it answers."""
        with self._changed:
            self._latest = Arrival(command, time.monotonic(), lifespan_s)
            if stamp is not None:
                self._answer = command, stamp
            self._changed.notify_all()

    @property
    def has_any(self) -> bool:
        """Whether there is a command, fresh or not."""
        return self._latest is not None

    def newest(self, timeout_s: float) -> Arrival[CommandT] | None:
        """Return the command with its arrival time, if it arrived within the last `timeout_s`."""
        latest = self._latest
        return latest if latest and latest.is_fresh(timeout_s) else None

    def wait_for(self, stamp: tuple[int, int], timeout_s: float) -> CommandT | None:
        """Wait for the command that answers the frame of this stamp; return None after the timeout or on `close`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._answer[1] == stamp, timeout_s)
            command, answered = self._answer
            return command if answered == stamp and not self._is_closed else None

    def has_unstamped(self, timeout_s: float) -> bool:
        """Return whether the newest command is fresh and answers no frame in particular."""
        with self._changed:
            newest = self.newest(timeout_s)
            return newest is not None and newest.command is not self._answer[0]

    def forget(self) -> None:
        """Forget the command."""
        with self._changed:
            self._latest, self._answer = None, (None, None)

    def clear(self) -> None:
        """Forget the command, and allow waiting again after `close`."""
        with self._changed:
            self._latest, self._answer, self._is_closed = None, (None, None), False

    def close(self) -> None:
        """End all waiting."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
