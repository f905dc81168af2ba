# SPDX-License-Identifier: Apache-2.0
"""TopicTable: topics of a protocol, one row for each.

Bridge (`topic_publishers`), server (`topic_subscriptions`), reference page and tests use the same table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile

from drone_bridge.ros.qos import latched, queued, sensor_data


class MissingTopicError(ValueError):
    """Missing value without which no wire message can be created. The text names the missing topic."""


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic of a protocol. A name beginning with / is global, others are relative to the vehicle's namespace.

    A name with {name} in it is a pattern, for topics that depend on the vehicle's equipment.
    """

    name: str
    message: type[Any]
    of: type[Any]
    """Wire message of the topic. All rows of one wire message are converted first, then published together."""
    to_ros: Callable[[Any, Any, Time], Any] | None = None
    """Converts (translation, wire message, stamp) to a message, or to None for no message.

    It is called only while the topic has subscribers, so it must not keep state for later calls. Sessions keep state.
    """
    from_ros: Callable[[Any, Any], Any] | None = None
    """Converts (translation, message) to a value of the wire message, or to None for no value."""
    qos: Callable[[], QoSProfile] = queued
    requested: Callable[[], QoSProfile] = sensor_data
    if_parameter: str = ""
    """Parameter of the bridge that enables the topic; empty: always enabled."""
    is_slow: bool = False
    """Whether it is converted after all others have been published."""
    only_changes: bool = False
    lasts: bool = False
    """Whether a server uses the last message without a timeout."""
    fresh_s: float | None = None
    """Timeout of a message at a server, s; None: `source_timeout`."""
    count: str = ""
    """Counter of the messages in diagnostics; empty: none."""
    meaning: str = ""
    needed: str = ""
    """Effect of a missing publisher on a server; empty: only its values are omitted from messages to the
    operator."""
    instead: tuple[str, ...] = ()
    """Alternative topics, one of which is enough."""


#: Row of a state: published when it changes, also to late subscribers, and valid at a server until it changes.
state_topic = partial(Topic, qos=latched, requested=latched, only_changes=True, lasts=True)


@dataclass(frozen=True, slots=True)
class TopicTable:
    """Table of a protocol: its rows, a default translation, and the assembly of wire messages from several topics."""

    rows: tuple[Topic, ...]
    make_translation: Callable[[], Any]
    assembled: dict[type[Any], Callable[[Any, Callable[[str], Any], Time], Any]]
    """By wire message: function of (translation, getter of a topic's value or None, stamp) that returns it."""
    parts: Callable[[Any, Any], Iterable[tuple[str, Any]]] = lambda translation, wire: ()
    """Converts (translation, wire message) to the topics of pattern rows, each with the source of its message."""
    samples: Callable[[], Iterable[Any]] = tuple
    """Returns further wire messages, as read, which a vehicle does not send in its conversation."""

    def row(self, topic: str) -> Topic:
        """Return the row of a topic, which may be a pattern. Raises KeyError."""
        for row in self.rows:
            before, is_pattern, after = row.name.partition("{name}")
            if topic == row.name or (is_pattern and topic.startswith(before) and topic.endswith(after)):
                return row
        raise KeyError(topic)
