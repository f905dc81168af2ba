# SPDX-License-Identifier: Apache-2.0
"""How a thread of ours answers a service that waits in the executor, without keeping it from other work."""

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.task import Future

MAX_WAITING: Final = 16  # errands that the link's thread has not looked at; more are refused
MAX_UNANSWERED: Final = 100  # errands altogether

TaskT = TypeVar("TaskT")


class Answer(NamedTuple):
    """What a service answers."""

    success: bool
    message: str


class Answers:
    """Completes futures in the executor, which would not notice that another thread did.

    Services that await them need a callback group that lets others run meanwhile.
    """

    def __init__(self, node: Node, group: CallbackGroup) -> None:
        self._given: deque[tuple[Future[Any], Any]] = deque()  # as many as services wait
        self._guard = node.create_guard_condition(self._deliver, callback_group=group)

    def give(self, future: "Future[Any]", answer: Any) -> None:
        """Complete a future. May be called from any thread."""
        self._given.append((future, answer))
        try:
            self._guard.trigger()
        except InvalidHandle:
            return  # the node is gone, and nobody waits any more

    def _deliver(self) -> None:
        while self._given:
            future, answer = self._given.popleft()
            if not future.done():
                future.set_result(answer)


@dataclass(slots=True, eq=False)
class Errand(Generic[TaskT]):
    """Something that the executor asks of the link's thread."""

    task: TaskT
    answer: "Future[Any]" = field(default_factory=Future)
    _is_awaited: bool = True
    _settled: "queue.SimpleQueue[Any]" = field(default_factory=queue.SimpleQueue)


class Errands(Generic[TaskT]):
    """What the link's thread has been asked to do. Each errand is answered, whatever happens to the link."""

    def __init__(self, answers: Answers, peer: str) -> None:
        """`peer` is what to call the other side."""
        self._answers = answers
        self._peer = peer
        self._lock = threading.Lock()
        self._waiting: list[Errand[TaskT]] = []
        self._taken: set[Errand[TaskT]] = set()  # and not answered yet
        self._is_open = False

    def open(self) -> None:
        """Take errands from now on: there is a link."""
        with self._lock:
            self._is_open = True

    def close(self, reason: str) -> None:
        """Take no more errands, and answer all that have no answer yet."""
        with self._lock:
            self._is_open = False
            unanswered, self._waiting = [*self._taken, *self._waiting], []
        for errand in unanswered:
            self.answer(errand, Answer(False, reason))

    def submit(self, task: TaskT, *, is_awaited: bool = True) -> Errand[TaskT]:
        """Leave an errand, in the executor. Raises ValueError with a sentence when nobody can do it.

        Its answer comes by the future if that `is_awaited`.
        """
        with self._lock:
            if not self._is_open:
                raise ValueError(f"There is no connection to the {self._peer} now.")
            if len(self._waiting) >= MAX_WAITING:
                raise ValueError(f"{MAX_WAITING} requests are waiting already.")
            if len(self._waiting) + len(self._taken) >= MAX_UNANSWERED:
                raise ValueError(f"{MAX_UNANSWERED} requests have no answer yet.")
            errand = Errand(task, _is_awaited=is_awaited)
            self._waiting.append(errand)
            return errand

    async def run(self, task: TaskT, wake: Callable[[], None], patience_s: float) -> Any:
        """Leave an errand and wait for its answer, in the executor. Raises ValueError as `submit` does.

        An answer within `patience_s` is waited for on the spot, which keeps the executor. To come back to it later
        takes two turns of the executor, a millisecond or two.
        """
        errand = self.submit(task, is_awaited=False)
        wake()
        with contextlib.suppress(queue.Empty):
            return errand._settled.get(timeout=patience_s)
        with self._lock:
            errand._is_awaited = True
        with contextlib.suppress(queue.Empty):  # it may have come meanwhile
            return errand._settled.get_nowait()
        return await errand.answer

    def take(self) -> list[Errand[TaskT]]:
        """Return what is to be done, in the link's thread."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            self._taken.update(taken)
            return taken

    def answer(self, errand: Errand[TaskT], answer: Any) -> None:
        """Say what has come of an errand; Answer(False, ...) is what `close` says."""
        with self._lock:
            self._taken.discard(errand)
            if not errand._is_awaited:
                errand._settled.put(answer)
                return
        self._answers.give(errand.answer, answer)
