# SPDX-License-Identifier: Apache-2.0
"""NoteQueue: hands sentences for the log to a thread of their own, so that a log that blocks delays no command."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable

from drone_bridge.session.session import Note

#: Notes that wait while the log blocks; of more, the oldest are only counted.
MAX_WAITING = 200
#: How long the end of a link waits for its last notes.
FINISH_S = 0.5


class NoteQueue:
    """Logs in a thread; before `start`, at once. For one thread that puts."""

    def __init__(self, do: Callable[[Note], None], name: str) -> None:
        """`do` counts and logs a note. `name` is the thread's."""
        self._do = do
        self._waiting: deque[Note] = deque()
        self._changed = threading.Semaphore(0)
        self._is_finishing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Log in a thread from now on."""
        self._thread.start()

    def put(self, note: Note) -> None:
        """Count and log soon; never waits."""
        if self._thread.is_alive():
            if len(self._waiting) >= MAX_WAITING:
                with contextlib.suppress(IndexError):  # the thread has just taken them
                    self._do(Note(self._waiting.popleft().counter))
            self._waiting.append(note)
            self._changed.release()
        else:
            self._do(note)

    def finish(self) -> None:
        """Wait until the last notes are logged, for FINISH_S at most."""
        self._is_finishing = True
        self._changed.release()
        self._thread.join(FINISH_S)

    def _run(self) -> None:
        while self._changed.acquire():
            try:
                note = self._waiting.popleft()
            except IndexError:  # counted already, or there is nothing more to come
                if self._is_finishing:
                    return
                continue
            with contextlib.suppress(Exception):  # of a log there is nowhere to complain
                self._do(note)
