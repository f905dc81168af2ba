# SPDX-License-Identifier: Apache-2.0
"""HoldKeeper: writes the newest reason of a hold to its file in a separate thread, since the disk may be slow.

The thread exists only while writing. Its result is in `problem`, a sentence.
"""

import threading
from collections.abc import Callable

from drone_bridge.ros.hold_file import HoldFile


class HoldKeeper:
    """Background writer of the newest reason. Thread-safe."""

    def __init__(self, file: HoldFile, on_problem: Callable[[str], None]) -> None:
        """`on_problem` is called in the keeper's thread when `problem` changes; empty once writing works again."""
        self.file = file
        #: Why the last write failed; empty if it succeeded.
        self.problem = ""
        self._on_problem = on_problem
        self._lock = threading.Lock()  # guards the two below; held briefly
        self._newest: str | None = None  # reason to write next
        self._thread: threading.Thread | None = None
        self._written = threading.Event()
        self._written.set()

    def keep(self, reason: str) -> None:
        """Write a reason in the background. An empty one removes the file. Never waits."""
        with self._lock:
            self._newest = reason
            self._written.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="hold keeper", daemon=True)
                self._thread.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait until the newest write has ended, successfully or not. Return False on timeout."""
        return self._written.wait(timeout_s)

    def _write_all(self) -> None:
        while True:
            with self._lock:
                reason, self._newest = self._newest, None
                if reason is None:
                    self._thread = None
                    self._written.set()
                    return
            problem = self._problem_of(reason)
            if problem != self.problem:
                self.problem = problem
                self._on_problem(problem)

    def _problem_of(self, reason: str) -> str:
        """Write a reason. Return the error sentence, or an empty string."""
        path = self.file.path
        try:
            if reason:
                self.file.write(reason)
            else:
                self.file.remove()
        except OSError as error:
            if reason:
                return f"If this node is killed, it will not hold again: {path} can't be written ({error})."
            return f"If this node is killed, it will hold again: {path} can't be removed ({error})."
        return ""
