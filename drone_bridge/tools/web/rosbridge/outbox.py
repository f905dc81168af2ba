# SPDX-License-Identifier: Apache-2.0
"""RosbridgeOutbox: messages that wait for a client, limited in bytes. A slow client loses messages of topics."""

import json
import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rclpy.serialization import deserialize_message

from drone_bridge.tools.web.rosbridge.json_messages import plain
from drone_bridge.wire.json_text import to_json

MAX_WAITING_BYTES = 8 * 2**20
"""Maximum size of serialized messages of topics that wait for a client, except a single larger one."""
MAX_ANSWER_BYTES = 4 * 2**20
"""Maximum size of other messages that wait for a client. More are dropped."""
MAX_QUEUE_LENGTH = 100


@dataclass(eq=False, slots=True)
class TopicQueue:
    """Newest messages of a topic, serialized."""

    topic: str
    """Its name as the client wrote it."""
    message_class: Any
    endpoints: list[Any] = field(default_factory=list)
    """Its subscriptions."""
    users: dict[Any, tuple[float, int]] = field(default_factory=dict)
    """Minimum period (s) and queue length of each request to subscribe, by id. The least and the largest count."""
    waiting: deque[bytes] = field(default_factory=deque)
    due_s: float = -math.inf
    """Earliest time of the next message."""

    @property
    def length(self) -> int:
        return max((length for _, length in self.users.values()), default=1)

    def text(self, data: bytes) -> str:
        """Return the message of the protocol, or a status if it is invalid."""
        try:
            message = plain(deserialize_message(data, self.message_class))
            return to_json({"op": "publish", "topic": self.topic, "msg": message}).decode()
        except Exception as error:  # type supports raise various exceptions for invalid bytes
            sentence = f"Dropped an invalid message of {self.topic}: {error}"
            return json.dumps({"op": "status", "level": "error", "msg": sentence})


class RosbridgeOutbox:
    """Answers, and a queue for each topic. Thread-safe. `wake` is called when there is a message."""

    def __init__(self, wake: Callable[[], object]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._answers: deque[str] = deque()
        self._queues: dict[TopicQueue, None] = {}  # the one that was served longest ago first
        self._answer_bytes = self._bytes = 0

    def put(self, text: str) -> None:
        """Add an answer."""
        with self._lock:
            if self._answer_bytes + len(text) <= MAX_ANSWER_BYTES:
                self._answers.append(text)
                self._answer_bytes += len(text)
        self._wake()

    def put_message(self, queue: TopicQueue, data: bytes) -> None:
        """Add a message of a topic. Older ones are dropped if there is no room, and then this one."""
        with self._lock:
            self._queues.setdefault(queue)
            queue.waiting.append(data)
            self._bytes += len(data)
            while queue.waiting and (len(queue.waiting) > queue.length or len(data) < self._bytes > MAX_WAITING_BYTES):
                self._bytes -= len(queue.waiting.popleft())
        self._wake()

    def remove(self, queue: TopicQueue) -> None:
        """Drop a topic."""
        with self._lock:
            self._queues.pop(queue, None)
            self._bytes -= sum(map(len, queue.waiting))
            queue.waiting.clear()

    def pop(self, now_s: float) -> tuple[str | tuple[TopicQueue, bytes] | None, float | None]:
        """Return the next answer or message, or None and the time until one is due, None if there is none."""
        with self._lock:
            if self._answers:
                self._answer_bytes -= len(self._answers[0])
                return self._answers.popleft(), None
            waiting = [each for each in self._queues if each.waiting]
            for queue in waiting:
                if queue.due_s <= now_s:
                    queue.due_s = now_s + min((period_s for period_s, _ in queue.users.values()), default=0.0)
                    self._queues[queue] = self._queues.pop(queue)
                    data = queue.waiting.popleft()
                    self._bytes -= len(data)
                    return (queue, data), None
            return None, min((each.due_s - now_s for each in waiting), default=None)
