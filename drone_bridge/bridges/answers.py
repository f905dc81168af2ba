# SPDX-License-Identifier: Apache-2.0
"""How a thread of ours answers a service that waits in the executor, without keeping it from other work."""

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Any, Final, Generic, NamedTuple, TypeVar

from rclpy.callback_groups import CallbackGroup
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.task import Future

MAX_WAITING: Final = 16  # errands; more are refused

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


@dataclass(frozen=True, slots=True)
class Errand(Generic[TaskT]):
    """Something that the executor asks of the link's thread."""

    task: TaskT
    answer: "Future[Any]" = field(default_factory=Future)


class Errands(Generic[TaskT]):
    """What the link's thread has been asked to do. Each errand is answered, whatever happens to the link."""

    def __init__(self, answers: Answers, peer: str) -> None:
        """`peer` is what to call the other side."""
        self._answers = answers
        self._peer = peer
        self._lock = threading.Lock()
        self._waiting: list[Errand[TaskT]] = []
        self._is_open = False

    def open(self) -> None:
        """Take errands from now on: there is a link."""
        with self._lock:
            self._is_open = True

    def close(self, reason: str) -> None:
        """Take no more errands, and answer those that wait."""
        with self._lock:
            self._is_open = False
            waiting, self._waiting = self._waiting, []
        for errand in waiting:
            self.answer(errand, Answer(False, reason))

    def submit(self, task: TaskT) -> Errand[TaskT]:
        """Leave an errand, in the executor. Raises ValueError with a sentence when nobody can do it."""
        with self._lock:
            if not self._is_open:
                raise ValueError(f"There is no connection to the {self._peer} now.")
            if len(self._waiting) >= MAX_WAITING:
                raise ValueError(f"{MAX_WAITING} requests are waiting already.")
            errand = Errand(task)
            self._waiting.append(errand)
            return errand

    def take(self) -> list[Errand[TaskT]]:
        """Return what is to be done, in the link's thread."""
        with self._lock:
            taken, self._waiting = self._waiting, []
            return taken

    def answer(self, errand: Errand[TaskT], answer: Any) -> None:
        """Say what has come of an errand; Answer(False, ...) is what `close` says."""
        self._answers.give(errand.answer, answer)
