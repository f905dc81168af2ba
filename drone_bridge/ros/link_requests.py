# SPDX-License-Identifier: Apache-2.0
"""Requests from services in the executor to the link's thread, and their results, without blocking either."""

import contextlib
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.task import Future

MAX_WAITING: Final = 16  # requests that the link's thread has not taken yet; more are refused
MAX_UNANSWERED: Final = 100  # requests altogether

TaskT = TypeVar("TaskT")


class ServiceResult(NamedTuple):
    """The result of a service."""

    success: bool
    message: str


class FutureCompleter:
    """Completes futures in the executor, which would not notice completion by another thread.

    Services that await them need a callback group that lets others run meanwhile.
    """

    def __init__(self, node: Node, group: CallbackGroup) -> None:
        self._completed: deque[tuple[Future[Any], Any]] = deque()  # as many as services wait
        self._guard = node.create_guard_condition(self._deliver, callback_group=group)

    def complete(self, future: "Future[Any]", result: Any) -> None:
        """Complete a future. Thread-safe."""
        self._completed.append((future, result))
        try:
            self._guard.trigger()
        except InvalidHandle:
            return  # the node is gone, and nobody waits any more

    def _deliver(self) -> None:
        while self._completed:
            future, result = self._completed.popleft()
            if not future.done():
                future.set_result(result)


@dataclass(slots=True, eq=False)
class LinkRequest(Generic[TaskT]):
    """A request from the executor to the link's thread."""

    task: TaskT
    result: "Future[Any]" = field(default_factory=Future)
    _is_awaited: bool = True
    _settled: "queue.SimpleQueue[Any]" = field(default_factory=queue.SimpleQueue)


class LinkRequests(Generic[TaskT]):
    """The requests to the link's thread, each of which gets a result, even if the link ends."""

    def __init__(self, completer: FutureCompleter, peer: str) -> None:
        """`peer` names the other side in errors."""
        self._completer = completer
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

    def submit(self, task: TaskT, *, is_awaited: bool = True) -> LinkRequest[TaskT]:
        """Submit a request, in the executor. Raises ValueError with a sentence if it can't be accepted.

        Its result comes by the future if that `is_awaited`.
        """
        with self._lock:
            if not self._is_open:
                raise ValueError(f"There is no connection to the {self._peer} now.")
            if len(self._waiting) >= MAX_WAITING:
                raise ValueError(f"{MAX_WAITING} requests are waiting already.")
            if len(self._waiting) + len(self._taken) >= MAX_UNANSWERED:
                raise ValueError(f"{MAX_UNANSWERED} requests have no answer yet.")
            request = LinkRequest(task, _is_awaited=is_awaited)
            self._waiting.append(request)
            return request

    async def run(self, task: TaskT, start: Callable[[], None], patience_s: float) -> Any:
        """Submit a request, start it and wait for its result, in the executor. Raises ValueError as `submit` does.

        `start` starts new requests, at once or by waking the link's thread. For the first `patience_s` this blocks the
        executor: resuming a coroutine later takes two of its iterations, a millisecond or two.
        """
        deadline_s = time.monotonic() + patience_s
        request = self.submit(task, is_awaited=False)
        start()
        with contextlib.suppress(queue.Empty):
            return request._settled.get(timeout=max(0.0, deadline_s - time.monotonic()))
        with self._lock:
            request._is_awaited = True
        with contextlib.suppress(queue.Empty):  # it may have come meanwhile
            return request._settled.get_nowait()
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
            if not request._is_awaited:
                request._settled.put(result)
                return
        self._completer.complete(request.result, result)
