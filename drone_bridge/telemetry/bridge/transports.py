# SPDX-License-Identifier: Apache-2.0
"""The transports of telemetry and commands: datagrams, or text on topics."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from std_msgs.msg import String

from drone_bridge.links.backoff import Backoff
from drone_bridge.links.cancellation import Cancellation
from drone_bridge.links.errors import LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.links.udp import Datagram, UdpListener, name
from drone_bridge.telemetry.topics.parameters import COMMAND_TOPIC


class Drone(NamedTuple):
    """The peer, for as long as the node is active."""

    peer: str

    def close(self) -> None:
        """Do nothing, as the transport is closed with the node."""


class Transport(Protocol):
    """The transport to and from the drone; an endpoint for LinkNode."""

    @property
    def backoff(self) -> Backoff:
        """How long to wait after a failure."""

    @property
    def port(self) -> int:
        """The port in use, 0 when there is none."""

    def open(self) -> Drone:
        """Wait for a drone. Raises LinkCancelledError."""

    def receive_until(self, due_s: float) -> None:
        """Receive until a time of time.monotonic. Raises LinkCancelledError."""

    def send(self, document: bytes) -> None:
        """Send to the drone, even if cancelled. Raises LinkError."""

    def close(self) -> None:
        """Release its resources."""


class UdpTransport:
    """Datagrams from any sender to one port, and to `drone`."""

    def __init__(
        self,
        listener: UdpListener,
        cancellation: Cancellation,
        take: Callable[[Datagram], None],
        on_failure: Callable[[str, float], None],
    ) -> None:
        """`take` gets each datagram, and sets `drone` to the source that is to be commanded.

        `on_failure` gets a sentence about a port that nothing can be received from, and when it is tried again.
        """
        self.drone: Any = None  # an address, as sockets have it
        self.backoff = listener.backoff
        self._listener = listener
        self._cancellation = cancellation
        self._take = take
        self._on_failure = on_failure

    @property
    def port(self) -> int:
        return self._listener.port

    def open(self) -> Drone:
        """Wait for a drone's telemetry. Raises LinkCancelledError."""
        while self.drone is None:
            self._receive(None)
        return Drone(name(self.drone))

    def receive_until(self, due_s: float) -> None:
        while (left_s := due_s - time.monotonic()) > 0:
            self._receive(left_s)

    def send(self, document: bytes) -> None:
        """See Transport. Thread-safe."""
        self._listener.send(document, self.drone)

    def close(self) -> None:
        self._listener.close()

    def _receive(self, timeout_s: float | None) -> None:
        try:
            datagram = self._listener.receive(timeout_s)
        except LinkTimeoutError:
            return
        except LinkCancelledError:
            raise
        except LinkError as error:
            delay_s = self.backoff.next_delay_s()
            self._on_failure(str(error), delay_s)
            self._cancellation.wait(delay_s)
            return
        self._take(datagram)


class TopicTransport:
    """Commands as text on a topic. Telemetry arrives by subscriptions, in the executor."""

    def __init__(self, cancellation: Cancellation, publish: Callable[[String], None]) -> None:
        """`publish` publishes a command and never raises."""
        self.backoff = Backoff()
        self.port = 0
        self._cancellation = cancellation
        self._publish = publish

    def open(self) -> Drone:
        """Return at once, as topics have no peer to wait for."""
        return Drone(COMMAND_TOPIC)

    def receive_until(self, due_s: float) -> None:
        """Wait, as telemetry arrives by subscriptions."""
        if self._cancellation.wait(max(0.0, due_s - time.monotonic())):
            raise LinkCancelledError("Waiting was cancelled.")

    def send(self, document: bytes) -> None:
        self._publish(String(data=document.decode()))

    def close(self) -> None:
        """Do nothing."""
