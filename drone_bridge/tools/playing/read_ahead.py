# SPDX-License-Identifier: Apache-2.0
"""Read the next messages before they are due, in a thread of its own, bounded in bytes."""

import threading
from collections import deque
from collections.abc import Iterator

from drone_bridge.tools.bags.bag import BagError, BagMessage

MAX_BYTES = 64 * 1024 * 1024
MAX_MESSAGES = 10_000


class ReadAhead:
    """An iterator over messages that are read in the background. To be closed."""

    def __init__(self, messages: Iterator[BagMessage]) -> None:
        self._messages = messages
        self._waiting: deque[BagMessage] = deque()
        self._bytes = 0
        self._error: BagError | None = None
        self._is_over = self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._read, name="read ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()

    def next(self) -> BagMessage | None:
        """Return the next message, waiting for the disk if it must; None when there is no more. Raises BagError."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            if not self._waiting:
                if self._error:
                    raise self._error
                return None
            message = self._waiting.popleft()
            self._bytes -= len(message.data)
            self._changed.notify_all()
            return message

    def _read(self) -> None:
        try:
            for message in self._messages:
                with self._changed:
                    self._changed.wait_for(self._has_room)
                    if self._is_closed:
                        break
                    self._waiting.append(message)
                    self._bytes += len(message.data)
                    self._changed.notify_all()
        except BagError as error:
            self._error = error
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def _has_room(self) -> bool:
        """A single message always has room, however large."""
        is_within_limits = self._bytes < MAX_BYTES and len(self._waiting) < MAX_MESSAGES
        return is_within_limits or not self._waiting or self._is_closed
