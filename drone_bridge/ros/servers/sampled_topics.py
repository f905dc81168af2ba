# SPDX-License-Identifier: Apache-2.0
"""SampledTopics: topics of a server's vehicle, whose newest messages the link's thread samples at a fixed rate.

A server that sends at a fixed rate needs one message of each topic per period, independent of the topic's rate. An
executor would wake for every message, see `streams`. A message may have arrived at any time since the previous sample.
Its age counts from that sample, so it is never underestimated.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

from drone_bridge.net.link_loop import Intake
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.streams import PolledCallbackGroup, newest_of, subscribe_to_stream
from drone_bridge.ros.topics.table import Topic
from drone_bridge.session.session import next_due


class SampledTopics(Intake):
    """Topics of a table that are sampled at `rate`, Hz, while there is a link."""

    def __init__(
        self,
        node: ProtocolNode,
        rows: Iterable[Topic],
        topics: TopicSubscriptions,
        rate: float,
        on_taken: Callable[[], object],
    ) -> None:
        """Subscribe. `topics` stores the messages. `on_taken` is called after each sample with a new message."""
        self._topics, self._period_s, self._on_taken = topics, 1 / rate, on_taken
        group = PolledCallbackGroup()
        self._streams: list[tuple[str, Any]] = [
            (row.name, subscription)
            for row in rows
            for subscription in subscribe_to_stream(node, row.message, row.name, group)
        ]
        self._taken_s = self._due_s = -math.inf

    @property
    def due_s(self) -> float:
        return self._due_s

    def after_turn(self, now_s: float) -> None:
        """Take the newest message of each topic if due."""
        if now_s < self._due_s:
            return
        self._due_s = next_due(self._due_s, self._period_s, now_s)
        before_s, self._taken_s = self._taken_s, now_s
        has_taken = False
        for topic, subscription in self._streams:
            if (message := newest_of(subscription)) is not None:
                self._topics.put(topic, message, before_s)
                has_taken = True
        if has_taken:
            self._on_taken()
