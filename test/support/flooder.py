# SPDX-License-Identifier: Apache-2.0
"""Floods a TCP server with the same bytes on several connections, from a process of its own: see `flooding`.

python flooder.py PORT HEX CONNECTIONS reads|reads-not
"""

import contextlib
import selectors
import signal
import socket
import sys
from pathlib import Path
from types import SimpleNamespace

CONNECTIONS = 5
_CHUNK_BYTES = 64 * 1024


def flood(port, message, connections, is_reading):
    chunk = message * max(1, _CHUNK_BYTES // len(message))
    with selectors.DefaultSelector() as selector:

        def connect():
            connected = socket.create_connection(("127.0.0.1", port))
            connected.setblocking(False)
            selector.register(connected, selectors.EVENT_READ | selectors.EVENT_WRITE, SimpleNamespace(position=0))

        for _ in range(connections):
            connect()
        print("flooding", flush=True)
        while True:
            for key, _ in selector.select():
                try:
                    with contextlib.suppress(BlockingIOError):
                        key.data.position += key.fileobj.send(chunk[key.data.position % len(chunk) :])
                    with contextlib.suppress(BlockingIOError):
                        if is_reading and not key.fileobj.recv(_CHUNK_BYTES):
                            raise ConnectionError
                except ConnectionError:  # thrown out: once more
                    selector.unregister(key.fileobj)
                    key.fileobj.close()
                    connect()


@contextlib.contextmanager
def flooding(port, message, *, is_reading):
    """Have a server flooded."""
    from processes import Process

    arguments = (port, message.hex(), CONNECTIONS, "reads" if is_reading else "reads-not")
    with Process(sys.executable, str(Path(__file__)), *map(str, arguments)) as flooder:
        flooder.wait_for_line("flooding")
        yield


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, lambda *_: sys.exit(0))
    flood(int(sys.argv[1]), bytes.fromhex(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "reads")
