# SPDX-License-Identifier: Apache-2.0
"""Hands messages from topics over to an asyncio loop in another thread."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any

#: Messages that wait for the loop; the oldest are dropped.
MAX_QUEUED = 1000


class LoopQueue:
    """Has the loop handle one message at a time, and serve clients in between.

    So a client that was dropped, because it does not read, costs nothing more. `put` may be called from any thread, the
    rest from the loop's.
    """

    def __init__(
        self, handle: Callable[[Callable[..., None], tuple[Any, ...]], None], on_dropped: Callable[[], None]
    ) -> None:
        """`handle` gets what was put; `on_dropped` is called when a message is dropped while there is a loop."""
        self._handle = handle
        self._on_dropped = on_dropped
        self._queued: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque(maxlen=MAX_QUEUED)
        self._is_handling_due = False  # whether the loop was told to handle them
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_attached(self) -> bool:
        """Whether there is a loop."""
        return self._loop is not None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over to this loop from now on."""
        self._loop = loop

    def detach(self) -> None:
        """Hand over to no loop."""
        self._loop = None

    def put(self, take: Callable[..., None], *arguments: Any) -> None:
        """Queue a message and its handler."""
        if len(self._queued) == MAX_QUEUED and self._loop:
            self._on_dropped()
        self._queued.append((take, arguments))
        if not self._is_handling_due and (loop := self._loop):
            self._is_handling_due = True
            with contextlib.suppress(RuntimeError):  # it has just been closed
                loop.call_soon_threadsafe(self.handle_next)

    def handle_next(self) -> None:
        """Handle one message, and leave the others for the next round of the loop."""
        self._is_handling_due = False
        if not self._queued:
            return
        self._handle(*self._queued.popleft())
        if self._queued and not self._is_handling_due and self._loop:
            self._is_handling_due = True
            self._loop.call_soon(self.handle_next)

    def clear(self) -> None:
        """Drop what is queued."""
        self._queued.clear()
