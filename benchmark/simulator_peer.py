# SPDX-License-Identifier: Apache-2.0
"""Simulator without activity: it responds to requests, and streams the same states repeatedly.

Each step has the time at which it was sent, so that a receiver knows the age of a state.
"""

import contextlib
import socket
import struct
import threading
import time

from drone_bridge.simulator import codec as simulator
from drone_bridge.simulator.codec import Attribute, AttributeValue, Request, Response, ServerConnection

ENTITIES = 20  # the vehicle is one of them
RATE_HZ = 100.0
TIMEOUT_S = 20.0
_STATE: dict[int, AttributeValue] = {
    Attribute.VELOCITY: (0.12345, -0.01234, 0.23456),
    Attribute.ACCELERATION: (0.01234, 0.02345, -0.03456),
    Attribute.ORIENTATION: (0.8, 0.0, 0.0, 0.6),
    Attribute.ANGULAR_VELOCITY: (0.01234, -0.02345, 0.03456),
    Attribute.CORPOREAL: True,
}
#: North is the time of sending, s of CLOCK_MONOTONIC. East is 1 in the last state of a step whose arrival is reported.
_MARK = (12345.678901, 0.98765432, 1.0)
_MARK_LAYOUT = struct.Struct(">dd")


class _Client:
    """Connection with one thread for responses and another one for streams."""

    def __init__(self, connected: socket.socket) -> None:
        connected.settimeout(TIMEOUT_S)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._sending = threading.Lock()
        self._connection = ServerConnection()
        self._items = 0
        self._streams: list[tuple[bytearray, int]] = []  # message of each stream, and the position of the mark in it

    @property
    def streams(self) -> int:
        """Number of requested streams."""
        return len(self._streams)

    def step(self, is_reported: bool) -> None:
        """Send each message in a separate write, like simulators: TCP decides how many arrive together."""
        with self._sending:
            for number, (message, mark) in enumerate(self._streams, 1):
                is_last = number == len(self._streams)
                _MARK_LAYOUT.pack_into(message, mark, time.monotonic(), float(is_reported and is_last))
                self._socket.sendall(message)

    def serve(self) -> None:
        """Respond to requests until the client closes the connection."""
        self._socket.settimeout(None)
        with contextlib.suppress(ConnectionError), self._socket:
            while data := self._socket.recv(65536):
                self._connection.receive_data(data)
                while isinstance(request := self._connection.next_event(), Request):
                    with self._sending:
                        self._socket.sendall(self._connection.send(self._answer(request)))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def _answer(self, request: Request) -> Response:
        if isinstance(request, simulator.ListEntities):
            return simulator.EntitiesListed(tuple(range(ENTITIES)))
        if isinstance(request, simulator.GetConfig):
            return simulator.Configured(RATE_HZ, 1.0, False, False)
        if isinstance(request, simulator.GetEntity):
            return simulator.EntityGot(request.attribute, _value(request.attribute))
        if request.ANSWER is simulator.Added:
            self._items += 1
            if isinstance(request, simulator.StreamEntity):
                self._stream(request)
            return simulator.Added(int(request.ADDS or 0), self._items)
        return simulator.Ok() if request.ANSWER is simulator.Ok else simulator.Error(0, "It does not exist.")

    def _stream(self, request: simulator.StreamEntity) -> None:
        values = tuple(_value(attribute) for attribute in request.attributes)
        message = simulator.frame(simulator.EntityData(self._items, request.attributes, values))
        self._streams.append((bytearray(message), message.index(_MARK_LAYOUT.pack(*_MARK[:2]))))


class Peer:
    """Listens, and serves all clients."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._clients: list[_Client] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def streams(self) -> int:
        """Number of requested streams of all clients."""
        return sum(client.streams for client in self._clients)

    def step(self, is_reported: bool = False) -> None:
        """Send a step of all streams. The subscriber reports its arrival on request."""
        for client in self._clients:
            client.step(is_reported)

    def close(self) -> None:
        """Close all connections, and stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for client in self._clients:
            client.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client = _Client(self._listener.accept()[0])
                self._clients.append(client)
                threading.Thread(target=client.serve, daemon=True).start()


def _value(attribute: int) -> AttributeValue:
    return _MARK if attribute == Attribute.POSITION else _STATE[attribute]
