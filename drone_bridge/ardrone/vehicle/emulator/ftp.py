# SPDX-License-Identifier: Apache-2.0
"""VersionServer: the FTP server of a drone, of which programs read version.txt before they fly (RFC 959, passive only).

It serves one client at a time, in a thread of its own, and drops one that is silent for SILENCE_S.
"""

import contextlib
import socket
import threading
from collections.abc import Iterator

from drone_bridge.net.tcp import listening_socket

NAME = "version.txt"
SILENCE_S = 5.0
MAX_LINE_BYTES = 512
_ANSWERS = {"PASS": "230 Logged in", "TYPE": "200 Done", "CWD": "250 Done", "PWD": '257 "/"', "QUIT": "221 Goodbye"}


class VersionServer:
    """FTP server with one file."""

    def __init__(self, host: str, port: int, version: str) -> None:
        """Listen. Raises LinkError."""
        self._text = f"{version}\n".encode()
        self._listening = listening_socket(host, port, backlog=4)
        threading.Thread(target=self._serve, name="ftp", daemon=True).start()

    def close(self) -> None:
        """Accept no more clients."""
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._listening.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client = self._listening.accept()[0]
                with client, contextlib.suppress(OSError):
                    client.settimeout(SILENCE_S)
                    client.sendall(b"220 Ready\r\n")
                    for answer in self._answers(client):
                        client.sendall(answer.encode() + b"\r\n")

    def _answers(self, client: socket.socket) -> Iterator[str]:
        """Yield the answers to a client's commands."""
        host = client.getsockname()[0]
        with contextlib.ExitStack() as stack, client.makefile("rb") as lines:
            data: socket.socket | None = None  # listens for the next transfer
            while line := lines.readline(MAX_LINE_BYTES):
                name, _, argument = line.decode("latin-1").strip().partition(" ")
                name, is_file = name.upper(), argument.strip("./") == NAME
                if name in ("PASV", "EPSV"):
                    stack.close()
                    data = stack.enter_context(listening_socket(host, 0, backlog=1))
                    data.settimeout(SILENCE_S)
                    port = data.getsockname()[1]
                    numbers = f"{host.rpartition(':')[2].replace('.', ',')},{port >> 8},{port & 255}"
                    yield f"227 Passive ({numbers})" if name == "PASV" else f"229 Passive (|||{port}|)"
                elif name == "RETR" and is_file and data:
                    yield "150 Here it comes"
                    with data, data.accept()[0] as transfer:
                        transfer.sendall(self._text)
                    data = None
                    yield "226 Done"
                elif name == "USER":
                    yield "230 Logged in" if argument == "anonymous" else "331 Any password"
                elif name == "SIZE" and is_file:
                    yield f"213 {len(self._text)}"
                else:
                    yield _ANSWERS.get(name, f"550 This drone has only {NAME}, by passive transfers")
