# SPDX-License-Identifier: Apache-2.0
"""FileWriter: writes the newest value to a file in a separate thread, since the disk may be slow.

The thread exists only while writing. Its result is in `problem`, a sentence.
"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


class FileWriter(Generic[ValueT]):
    """Background writer of the newest value. Thread-safe."""

    def __init__(self, write: Callable[[ValueT], str], on_problem: Callable[[str], None]) -> None:
        """Start without a value.

        Args:
            write: writes a value, and returns a sentence about an error, or an empty string.
            on_problem: called in the writer's thread when `problem` changes; empty once writing works again.
        """
        #: Why the last write failed; empty if it succeeded.
        self.problem = ""
        self._write, self._on_problem = write, on_problem
        self._lock = threading.Lock()  # guards the two below; held briefly
        self._newest: list[ValueT] = []  # value to write next, if any
        self._thread: threading.Thread | None = None
        self._written = threading.Event()
        self._written.set()

    def keep(self, value: ValueT) -> None:
        """Write a value in the background. Never waits."""
        with self._lock:
            self._newest = [value]
            self._written.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="file writer", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the newest write has ended, successfully or not. Return False on timeout."""
        return self._written.wait(timeout_s)

    def _write_all(self) -> None:
        while True:
            with self._lock:
                newest, self._newest = self._newest, []
                if not newest:
                    self._thread = None
                    self._written.set()
                    return
            problem = self._write(newest[0])
            if problem != self.problem:
                self.problem = problem
                self._on_problem(problem)
