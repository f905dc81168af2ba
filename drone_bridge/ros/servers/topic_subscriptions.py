# SPDX-License-Identifier: Apache-2.0
"""TopicSubscriptions: subscriptions for a server's rows of a table.

Written in the executor, or for sampled topics in the link's thread. Safe to read from any thread without a lock: the
newest message of a topic, with its time, is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.topics.table import Topic

if TYPE_CHECKING:
    from drone_bridge.ros.node.protocol_node import ProtocolNode


class TopicSubscriptions:
    """Cache of the newest message of each topic of a server."""

    def __init__(
        self,
        node: ProtocolNode,
        table: Sequence[Topic],
        translation: Any,
        take: Callable[[str, Any], None] | None = None,
        *,
        sampled: Collection[str] = (),
    ) -> None:
        """Subscribe in the order of the table, in which the executor serves the topics.

        `take` is an optional callback for topic and message, which has to call `put`. The default is `put`.
        `sampled` are topics without a subscription, whose messages are passed to `put`, see `SampledTopics`.
        """
        self._node, self._translation = node, translation
        self._rows = {row.name: row for row in table if row.from_ros}
        self._received: dict[str, tuple[Any, float]] = {}  # message and arrival time, by topic
        for row in self._rows.values():
            if row.name in sampled:
                continue
            node.make_subscription(row.message, row.name, partial(take or self.put, row.name), row.requested())

    def message(self, topic: str) -> Any:
        """Return the newest message of a topic, or None if it is stale."""
        message, came_s = self._received.get(topic, (None, 0.0))
        row = self._rows.get(topic)
        if message is None or (row and row.lasts):
            return message
        allowed_s = row.fresh_s if row and row.fresh_s else self._node.parameters["source_timeout"]
        return message if elapsed_s() - came_s <= allowed_s else None

    def value(self, topic: str) -> Any:
        """Return the wire value of a topic's newest message, or None."""
        message, row = self.message(topic), self._rows.get(topic)
        if message is None or row is None or row.from_ros is None:
            return None
        return row.from_ros(self._translation, message)

    def put(self, topic: str, message: Any, came_s: float | None = None) -> None:
        """Store the newest message of a topic. `came_s` is its arrival time by `elapsed_s`, by default now."""
        self._received[topic] = message, elapsed_s() if came_s is None else came_s
