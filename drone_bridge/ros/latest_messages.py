# SPDX-License-Identifier: Apache-2.0
"""The newest message of each topic, while it is fresh."""

import time
from typing import Any, NamedTuple

from drone_bridge.ros.link_node import LinkNode


class _Received(NamedTuple):
    message: Any
    received_s: float


class LatestMessages:
    """Keeps the newest message of each topic. Written in the executor, read by any thread."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self._received: dict[str, _Received] = {}  # by topic

    def put(self, topic: str, message: Any) -> None:
        """Replace the message of a topic."""
        self._received[topic] = _Received(message, time.monotonic())

    def last(self, topic: str) -> Any:
        """Return the last message of a topic, however old, or None."""
        received = self._received.get(topic)
        return received.message if received else None

    def fresh(self, topic: str, timeout_s: float | None = None) -> Any:
        """Return the last message of a topic if it is no older than `timeout_s` (by default `source_timeout`)."""
        received = self._received.get(topic)
        allowed_s = timeout_s or self._node.parameters["source_timeout"]
        return received.message if received and time.monotonic() - received.received_s <= allowed_s else None
