# SPDX-License-Identifier: Apache-2.0
"""TopicTable: what a protocol has on topics, a row for each.

Bridge (`topic_publishers`), server (`topic_subscriptions`), reference page and tests go by the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile

from drone_bridge.ros.qos import queued, sensor_data


class MissingTopicError(ValueError):
    """A value without which no wire message can be made is on no topic; the text says which topic would have it."""


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic of a protocol. A name beginning with / is that of the whole system, others are the vehicle's.

    A name with {name} in it is a pattern, for topics that depend on what the vehicle has.
    """

    name: str
    message: type[Any]
    of: type[Any]
    """The wire message that it comes from. The rows of one are made first, then published together."""
    to_ros: Callable[[Any, Any, Time], Any] | None = None
    """(translation, wire message, stamp) to a message, or None for nothing to say.

    It is called only while the topic has subscribers, so it must not keep state that a later call needs: sessions do.
    """
    from_ros: Callable[[Any, Any], Any] | None = None
    """(translation, message) to a value of the wire message, or None for none."""
    qos: Callable[[], QoSProfile] = queued
    requested: Callable[[], QoSProfile] = sensor_data
    if_parameter: str = ""
    """The parameter of the bridge that has to be true for the topic to be offered."""
    is_slow: bool = False
    """Made after all others have been published."""
    only_changes: bool = False
    lasts: bool = False
    """Whether a server goes on using the last message, instead of while it is fresh."""
    fresh_s: float | None = None
    """For how long a server uses a message, unless that is `source_timeout`."""
    count: str = ""
    """What each message counts as in diagnostics."""
    meaning: str = ""
    needed: str = ""
    """What happens to a server that takes it where nobody publishes it, in a clause; empty: only its values are left
    out of what goes to the operator."""
    instead: tuple[str, ...] = ()
    """Topics one of which is enough instead."""


@dataclass(frozen=True, slots=True)
class TopicTable:
    """All of a protocol: the rows, a translation by the defaults, and how several topics make one wire message."""

    rows: tuple[Topic, ...]
    make_translation: Callable[[], Any]
    assembled: dict[type[Any], Callable[[Any, Callable[[str], Any], Time], Any]]
    """By wire message: (translation, what gives the value of a topic or None, stamp) to it."""
    parts: Callable[[Any, Any], Iterable[tuple[str, Any]]] = lambda translation, wire: ()
    """(translation, wire message) to the topics of rows with patterns, each with what its message is made of."""

    def row(self, topic: str) -> Topic:
        """Return the row of a topic, which may be that of a pattern. Raises KeyError."""
        for row in self.rows:
            before, is_pattern, after = row.name.partition("{name}")
            if topic == row.name or (is_pattern and topic.startswith(before) and topic.endswith(after)):
                return row
        raise KeyError(topic)
