# SPDX-License-Identifier: Apache-2.0
"""Work for the executor's thread, queued by other threads."""

import queue
from collections.abc import Callable

from rclpy.node import Node


class Inbox:
    """Runs what other threads put into it, in order, in the executor's thread."""

    def __init__(self, node: Node) -> None:
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._logger = node.get_logger()
        self._condition = node.create_guard_condition(self._run)

    def put(self, work: Callable[[], None]) -> None:
        self._work.put(work)
        self._condition.trigger()

    def _run(self) -> None:
        while not self._work.empty():
            work = self._work.get()
            try:
                work()
            except Exception as error:  # a viewer's request that ROS can't serve must not end the node
                self._logger.error(f"A viewer's request failed: {error!r}.")
