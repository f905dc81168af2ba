# SPDX-License-Identifier: Apache-2.0
"""NoteQueue: logging in a separate thread, so that a log that blocks never delays a command."""

import contextlib
import threading
from collections import deque
from collections.abc import Callable

from drone_bridge.session.session import Note

#: Capacity of the queue while the log blocks. If it is full, the oldest notes are only counted.
MAX_WAITING = 200
#: How long `finish` waits for the last notes.
FINISH_S = 0.5


class NoteQueue:
    """Queue of notes with a logging thread. Single producer; before `start`, `put` logs at once."""

    def __init__(self, do: Callable[[Note], None], name: str) -> None:
        """`do` counts and logs a note. `name` names the thread."""
        self._do = do
        self._waiting: deque[Note] = deque()
        self._changed = threading.Semaphore(0)
        self._is_finishing = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the logging thread."""
        self._thread.start()

    def put(self, note: Note) -> None:
        """Queue a note, without waiting."""
        if self._thread.is_alive():
            if len(self._waiting) >= MAX_WAITING:
                with contextlib.suppress(IndexError):  # the thread has just emptied the queue
                    self._do(Note(self._waiting.popleft().counter))
            self._waiting.append(note)
            self._changed.release()
        else:
            self._do(note)

    def finish(self) -> None:
        """Log the last notes and join the thread, for FINISH_S at most. Do nothing if it was not started."""
        self._is_finishing = True
        self._changed.release()
        if self._thread.is_alive():
            self._thread.join(FINISH_S)

    def _run(self) -> None:
        while self._changed.acquire():
            try:
                note = self._waiting.popleft()
            except IndexError:  # the note was only counted, or `finish` was called
                if self._is_finishing:
                    return
                continue
            with contextlib.suppress(Exception):  # a log that fails has nowhere to report to
                self._do(note)
