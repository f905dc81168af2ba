# SPDX-License-Identifier: Apache-2.0
"""Strangers who connect to a program on this machine and misbehave, until SIGINT or SIGTERM.

python attacker.py PORT reads|reads-not|idles|looks|datagrams HEX

They flood it with these bytes, reading what it answers or not; open many connections and say nothing on every other
one, and these bytes once on the rest; look at all topics of a page and stop reading; or flood it with datagrams.
"""

import contextlib
import json
import selectors
import signal
import socket
import sys
import threading
import time
from typing import Any

HOST = "127.0.0.1"
FLOODING = 5  # connections
IDLE = 64
LOOKING = 8
PAUSE_S = 0.5
DATAGRAMS_PAUSE_S = 0.0001
_CHUNK_BYTES = 64 * 1024


class Flood:
    """Connections on which the same bytes are sent for ever; each is made again when it is thrown out."""

    def __init__(self, port: int, message: bytes, is_reading: bool) -> None:
        self._port, self._is_reading = port, is_reading
        self._chunk = message * max(1, _CHUNK_BYTES // len(message))
        self._selector = selectors.DefaultSelector()
        self._positions: dict[Any, int] = {}

    def run(self) -> None:
        for _ in range(FLOODING):
            self._connect()
        _say_so()
        while True:
            for key, _ in self._selector.select():
                try:
                    self._turn(key.fileobj)
                except ConnectionError:
                    self._selector.unregister(key.fileobj)
                    self._positions.pop(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
                    self._connect()

    def _connect(self) -> None:
        connected = _connected(self._port)
        connected.setblocking(False)
        self._positions[connected] = 0
        self._selector.register(connected, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def _turn(self, end: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            self._positions[end] += end.send(self._chunk[self._positions[end] % len(self._chunk) :])
        with contextlib.suppress(BlockingIOError):
            if self._is_reading and not end.recv(_CHUNK_BYTES):
                raise ConnectionError


def _connected(port: int) -> socket.socket:
    """Connect, however often it takes: it may be down, or have no place."""
    while True:
        try:
            return socket.create_connection((HOST, port))
        except OSError:
            time.sleep(PAUSE_S)


def _idle(port: int, message: bytes) -> None:
    idle = [_connected(port) for _ in range(IDLE)]
    for each in idle[::2]:
        with contextlib.suppress(OSError):
            each.send(message)
    _say_so()
    signal.pause()


def _look(port: int) -> None:
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    with contextlib.ExitStack() as stack:
        for _ in range(LOOKING):
            viewer = stack.enter_context(
                connect(
                    f"ws://{HOST}:{port}",
                    subprotocols=[Subprotocol("foxglove.sdk.v1")],
                    max_size=None,
                    max_queue=1,
                    proxy=None,
                )
            )
            channels: list[Any] = []
            with contextlib.suppress(TimeoutError):
                while isinstance(text := viewer.recv(PAUSE_S), str):
                    channels += json.loads(text).get("channels", ())
            wanted = [{"id": number, "channelId": each["id"]} for number, each in enumerate(channels)]
            viewer.send(json.dumps({"op": "subscribe", "subscriptions": wanted}))
        _say_so()
        threading.Event().wait()


def _send_datagrams(port: int, message: bytes) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sending:
        sending.connect((HOST, port))
        _say_so()
        while True:
            with contextlib.suppress(OSError):
                sending.send(message)
            time.sleep(DATAGRAMS_PAUSE_S)


def _say_so() -> None:
    print("at it", flush=True)


def main() -> None:
    """Misbehave as the command line has it."""
    port, mode, message = int(sys.argv[1]), sys.argv[2], bytes.fromhex(sys.argv[3])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: sys.exit(0))
    if mode == "idles":
        _idle(port, message)
    elif mode == "looks":
        _look(port)
    elif mode == "datagrams":
        _send_datagrams(port, message)
    else:
        Flood(port, message, mode == "reads").run()


if __name__ == "__main__":
    main()
