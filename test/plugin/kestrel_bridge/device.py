# SPDX-License-Identifier: Apache-2.0
"""Behaviour of the drone's end: one request at a time, `hello` first, and state to the last client that sent it."""

from collections.abc import Callable
from typing import Any, Protocol

from kestrel_bridge.codec import WORDS, Answer, DroneConnection, Hello, State, Steer


class Drone(Protocol):
    """Interface of the vehicle."""

    def ask(self, name: str, finish: Callable[[bool, str], None]) -> None:
        """Take off or land, and call `finish` with the success and the reason of a failure."""

    def follow(self, steer: Steer) -> None:
        """Follow the axes from now on."""


class DroneSide:
    """Drone's end of the protocol. One thread calls `receive`; a request may end in another thread."""

    def __init__(self, drone: Drone, send: Callable[[bytes, Any], object]) -> None:
        """Take the vehicle, and a function that sends a datagram to a socket address."""
        self._drone, self._send = drone, send
        self._protocol = DroneConnection()
        self._is_busy = False
        self.client: Any = None  # the address for state

    def receive(self, data: bytes, source: Any) -> Any:
        """Handle a datagram, and return its event. Raises RemoteProtocolError."""
        self._protocol.receive_data(data)
        event = self._protocol.next_event()
        if isinstance(event, Hello):
            self.client = source
            self._answer(source, "hello")
        elif isinstance(event, Steer):
            if self.client is not None:
                self._drone.follow(event)
        elif self.client is None:
            self._answer(source, WORDS[type(event)], "say hello first")
        elif self._is_busy:
            self._answer(source, WORDS[type(event)], "busy")
        else:
            self._is_busy = True
            name = WORDS[type(event)]

            def finish(is_ok: bool, reason: str) -> None:
                self._is_busy = False
                self._answer(source, name, None if is_ok else reason)

            self._drone.ask(name, finish)
        return event

    def state(self, state: State) -> bytes:
        """Return a datagram. Raises LocalProtocolError."""
        return self._protocol.send(state)

    def _answer(self, source: Any, name: str, fault: str | None = None) -> None:
        words = " ".join((fault or "").encode("ascii", "replace").decode().split())[:200]
        self._send(self._protocol.send(Answer(name, fault is None, words)), source)
