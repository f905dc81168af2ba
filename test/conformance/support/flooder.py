# SPDX-License-Identifier: Apache-2.0
"""Flood a TCP server with the same bytes on several connections, without reading: flooder.py PORT HEX."""

import contextlib
import os
import signal
import socket
import sys
import threading

CONNECTIONS = 5
CHUNK_BYTES = 64 * 1024
PAUSE_S = 0.5  # before it reconnects: the server may be down or full


@contextlib.contextmanager
def flooding(port, message):
    """Flood a server by a separate process."""
    from processes import Process  # not needed by the flooding process

    with Process(sys.executable, __file__, str(port), message.hex()) as flooder:
        flooder.wait_for_line("at it")
        yield


def flood(port, chunk):
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connected:
            print("at it", flush=True)
            while True:
                connected.sendall(chunk)
        threading.Event().wait(PAUSE_S)


if __name__ == "__main__":
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(0))
    chunk = bytes.fromhex(sys.argv[2])
    chunk *= max(1, CHUNK_BYTES // len(chunk))
    for _ in range(CONNECTIONS):
        threading.Thread(target=flood, args=(int(sys.argv[1]), chunk)).start()
    while True:
        signal.pause()
