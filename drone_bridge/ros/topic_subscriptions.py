# SPDX-License-Identifier: Apache-2.0
"""TopicSubscriptions: the topics of a table that a server takes.

Written in the executor, or for sampled topics in the link's thread, and read by any thread without a lock: the newest
message of a topic, with its time, is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.topics import Topic

if TYPE_CHECKING:
    from drone_bridge.ros.protocol_node import ProtocolNode


class TopicSubscriptions:
    """The newest message of each topic that a server takes."""

    def __init__(
        self,
        node: ProtocolNode,
        table: Sequence[Topic],
        translation: Any,
        take: Callable[[str, Any], None] | None = None,
        *,
        sampled: Collection[str] = (),
    ) -> None:
        """Subscribe, in the order of the table, which the executor keeps to.

        `take` gets topic and message where these are to be looked at before `put` keeps them, which it has to call.
        `sampled` are topics whose messages only come by `put`, see `SampledTopics`.
        """
        self._node, self._translation = node, translation
        self._rows = {row.name: row for row in table if row.from_ros}
        self._received: dict[str, tuple[Any, float]] = {}  # the message and when it came, by topic
        for row in self._rows.values():
            if row.name in sampled:
                continue
            node.make_subscription(row.message, row.name, partial(take or self.put, row.name), row.requested())

    def message(self, topic: str) -> Any:
        """Return the newest message of a topic while it counts, or None."""
        message, came_s = self._received.get(topic, (None, 0.0))
        row = self._rows.get(topic)
        if message is None or (row and row.lasts):
            return message
        allowed_s = row.fresh_s if row and row.fresh_s else self._node.parameters["source_timeout"]
        return message if elapsed_s() - came_s <= allowed_s else None

    def value(self, topic: str) -> Any:
        """Return what the newest message of a topic says on the wire, or None."""
        message, row = self.message(topic), self._rows.get(topic)
        if message is None or row is None or row.from_ros is None:
            return None
        return row.from_ros(self._translation, message)

    def put(self, topic: str, message: Any, came_s: float | None = None) -> None:
        """Replace the message of a topic, which came at a time by `elapsed_s`, now by default."""
        self._received[topic] = message, elapsed_s() if came_s is None else came_s
