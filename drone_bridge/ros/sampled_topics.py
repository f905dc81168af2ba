# SPDX-License-Identifier: Apache-2.0
"""SampledTopics: measurements of a server's vehicle, of which the link's thread takes the newest at its own rate.

What a server sends at a fixed rate needs one message of each topic per period, however fast these are published; an
executor would wake for every one of them, see `streams`. A message may have come at any time since the take before, so
its age counts from there: it is never held to be fresher than it is.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

from drone_bridge.net.link_loop import Intake
from drone_bridge.ros.protocol_node import ProtocolNode
from drone_bridge.ros.streams import Polled, newest_of, subscribe_to_stream
from drone_bridge.ros.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.topics import Topic
from drone_bridge.session.session import next_due


class SampledTopics(Intake):
    """Topics of a table that are taken `rate` times per second while there is a link."""

    def __init__(
        self,
        node: ProtocolNode,
        rows: Iterable[Topic],
        topics: TopicSubscriptions,
        rate: float,
        on_taken: Callable[[], object],
    ) -> None:
        """Subscribe. `topics` keeps the messages, and `on_taken` is called after each take that had one."""
        self._topics, self._period_s, self._on_taken = topics, 1 / rate, on_taken
        group = Polled()
        self._streams: list[tuple[str, Any]] = [
            (row.name, subscription)
            for row in rows
            for subscription in subscribe_to_stream(node, row.message, row.name, group)
        ]
        self._taken_s = self._due_s = -math.inf

    @property
    def due_s(self) -> float:
        return self._due_s

    def look(self, now_s: float) -> None:
        """Take the newest message of each topic if that is due."""
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
