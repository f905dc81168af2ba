# SPDX-License-Identifier: Apache-2.0
"""LoopThread: thread of a LinkLoop, which waits between its turns for files, a time, or a wake-up."""

import contextlib
import os
import select
import threading
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from drone_bridge.net.connector import Selectable
from drone_bridge.net.thread_end import STOP_TIMEOUT_S, ends_within


class Wait(NamedTuple):
    """Wait between two turns."""

    files: Sequence[Selectable]
    """Files that become readable when data arrive."""
    longest_s: float


class Runner(Protocol):
    """Executor of a loop's turns. Tests have one in virtual time."""

    def start(self, turns: Iterable[Wait]) -> None:
        """Execute turns, with the wait after each."""

    def wake(self) -> None:
        """End the current wait, or else the next one. Thread-safe, and without effect in the loop's thread."""

    def join(self) -> bool:
        """Wait for the end of the turns, for a timeout. Return True if they have ended."""


class LoopThread:
    """Runner in a thread. The only lock guards the closing of the pipe that wakes it."""

    def __init__(self, name: str) -> None:
        """`name` is the thread's."""
        self._closing, self._is_closed = threading.Lock(), False  # guards the pipe against a concurrent wake-up
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        self._turns: Iterable[Wait] = ()
        self._files: Sequence[Selectable] = ()
        self._poll = self._make_poll()
        # `join` joins it. A daemon, so that it can't keep the process alive if it hangs.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self, turns: Iterable[Wait]) -> None:
        """See Runner."""
        self._turns = turns
        self._thread.start()

    def wake(self) -> None:
        """See Runner."""
        if threading.current_thread() is self._thread:  # it looks for posted work before it waits
            return
        with self._closing, contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            if not self._is_closed:
                os.write(self._waking, b"w")

    def join(self) -> bool:
        """See Runner. Closes the pipe."""
        if not ends_within(self._thread, STOP_TIMEOUT_S):
            return False
        with self._closing:
            self._is_closed = True
            os.close(self._waking)
            os.close(self._woken)
        return True

    def wait(self, files: Sequence[Selectable], longest_s: float) -> None:
        """Wait until a file is readable, for a wake-up, or for a time, s."""
        if files != self._files:  # files may be added or replaced
            self._files, self._poll = files, self._make_poll(*files)
        if (self._woken, select.POLLIN) in self._poll.poll(longest_s * 1000):
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 4096)

    def _run(self) -> None:
        for files, longest_s in self._turns:
            self.wait(files, longest_s)

    def _make_poll(self, *files: Selectable) -> select.poll:
        poll = select.poll()
        for number in (self._woken, *(file.fileno() for file in files)):
            poll.register(number, select.POLLIN)
        return poll
