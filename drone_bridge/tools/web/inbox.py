# SPDX-License-Identifier: Apache-2.0
"""Inbox: work for the executor's thread, queued by other threads."""

import asyncio
import contextlib
import queue
from collections.abc import Callable

from rclpy.node import Node

DONE_TIMEOUT_S = 1.0


class Inbox:
    """Runs queued callbacks in order on the executor's thread."""

    def __init__(self, node: Node) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._logger = node.get_logger()
        self._condition = node.create_guard_condition(self._run)

    def put(self, work: Callable[[], None]) -> None:
        self._work.put(work)
        self._condition.trigger()

    async def done(self) -> None:
        """Wait until all earlier work has run, for DONE_TIMEOUT_S at most, because a stopped executor runs nothing."""
        loop, is_done = asyncio.get_running_loop(), asyncio.Event()

        def report() -> None:
            with contextlib.suppress(RuntimeError):  # the event loop has ended
                loop.call_soon_threadsafe(is_done.set)

        self.put(report)
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(is_done.wait(), DONE_TIMEOUT_S)

    def _run(self) -> None:
        """Run the work that was queued before. Later work waits for the other callbacks of the executor."""
        for _ in range(self._work.qsize()):
            work = self._work.get()
            try:
                work()
            except Exception as error:  # an invalid request of a viewer must not end the node
                self._logger.error(f"A viewer's request failed: {error!r}.")
        if not self._work.empty():
            self._condition.trigger()
