# SPDX-License-Identifier: Apache-2.0
"""Requests from services in the executor to the link's thread, and their results, without blocking either."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from rclpy.node import Node
from rclpy.task import Future

MAX_UNANSWERED = 100  # requests; more are refused

TaskT = TypeVar("TaskT")


class ServiceResult(NamedTuple):
    """The result of a service."""

    success: bool
    message: str


def complete(node: Node, future: "Future[Any]", result: Any) -> None:
    """Complete a future that a callback of the node awaits. Thread-safe."""
    future.set_result(result)
    if executor := node.executor:  # which would not notice completion by another thread
        executor.wake()


@dataclass(slots=True, eq=False)
class LinkRequest(Generic[TaskT]):
    """A request from the executor to the link's thread."""

    task: TaskT
    result: "Future[Any]"
    is_settled: threading.Event = field(default_factory=threading.Event)


class LinkRequests(Generic[TaskT]):
    """The requests to the link's thread, each of which gets a result, even if the link ends."""

    def __init__(self, node: Node, peer: str) -> None:
        """`peer` names the other side in errors."""
        self._node = node
        self._peer = peer
        self._lock = threading.Lock()
        self._waiting: list[LinkRequest[TaskT]] = []
        self._taken: set[LinkRequest[TaskT]] = set()  # and not answered yet
        self._is_open = False

    def open(self) -> None:
        """Accept requests, as there is a link."""
        with self._lock:
            self._is_open = True

    def close(self, reason: str) -> None:
        """Accept no more requests, and fail all pending ones."""
        with self._lock:
            self._is_open = False
            unfinished, self._waiting = [*self._taken, *self._waiting], []
        for request in unfinished:
            self.finish(request, ServiceResult(False, reason))

    def submit(self, task: TaskT) -> LinkRequest[TaskT]:
        """Submit a request, in the executor. Raises ValueError with a sentence if it can't be accepted."""
        with self._lock:
            if not self._is_open:
                raise ValueError(f"There is no connection to the {self._peer} now.")
            if len(self._waiting) + len(self._taken) >= MAX_UNANSWERED:
                raise ValueError(f"{MAX_UNANSWERED} requests have no answer yet.")
            request = LinkRequest(task, Future(executor=self._node.executor))
            self._waiting.append(request)
            return request

    async def run(self, task: TaskT, wake: Callable[[], None], patience_s: float) -> Any:
        """Submit a request, wake the link's thread and wait for the result. Raises ValueError as `submit` does.

        For the first `patience_s` this blocks the executor: resuming a coroutine later takes two of its iterations, a
        millisecond or two. Who waits longer needs a callback group that lets others run meanwhile.
        """
        request = self.submit(task)
        wake()
        if request.is_settled.wait(patience_s):
            return request.result.result()
        return await request.result

    def take(self) -> list[LinkRequest[TaskT]]:
        """Return the new requests, in the link's thread."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            self._taken.update(taken)
            return taken

    def finish(self, request: LinkRequest[TaskT], result: Any) -> None:
        """Deliver a result to the caller."""
        with self._lock:
            self._taken.discard(request)
        complete(self._node, request.result, result)
        request.is_settled.set()
