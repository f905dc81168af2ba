# SPDX-License-Identifier: Apache-2.0
"""The transports of documents to and from an operator: UDP datagrams, or text on topics."""

from collections.abc import Callable
from typing import Protocol

from std_msgs.msg import String

from drone_bridge.net.connector import Backoff, Cancellation, LinkCancelledError, LinkTimeoutError
from drone_bridge.telemetry.topics import COMMAND_TOPIC, DRONE_TOPIC, ROVER_TOPIC


class Stream(Protocol):
    """The connection to one operator, by UDP or topics."""

    @property
    def peer(self) -> str:
        """The peer's name for logs and diagnostics."""

    def send(self, document: bytes) -> None:
        """Send without blocking. Raises LinkError."""

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Wait for a document. Raises LinkError, LinkTimeoutError and LinkCancelledError."""

    def close(self) -> None:
        """Close at once."""


class TopicStream:
    """Documents as text on topics; commands arrive by subscriptions, in the executor."""

    peer = COMMAND_TOPIC

    def __init__(self, cancellation: Cancellation, publish: Callable[[str, String], None]) -> None:
        """`publish` publishes a document on a topic."""
        self._cancellation = cancellation
        self._publish = publish

    def send(self, document: bytes) -> None:
        """Publish: a document with an imu is the drone's."""
        text = document.decode()
        self._publish(DRONE_TOPIC if '"imu"' in text[:64] else ROVER_TOPIC, String(data=text))

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Wait for cancellation, as commands arrive by subscriptions."""
        if self._cancellation.wait(timeout_s):
            raise LinkCancelledError("Waiting was cancelled.")
        raise LinkTimeoutError("Nothing comes by topics here.")

    def close(self) -> None:
        """Do nothing."""


class TopicEndpoint:
    """The endpoint of the one stream over topics."""

    port = 0

    def __init__(self, stream: TopicStream) -> None:
        self.backoff = Backoff()
        self._stream = stream

    def open(self) -> TopicStream:
        return self._stream

    def close(self) -> None:
        """Do nothing."""
