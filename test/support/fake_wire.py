# SPDX-License-Identifier: Apache-2.0
"""FakeWire: connected socket with a limit of the bytes that it accepts."""

import socket

PLENTY = 1 << 20


class FakeWire:
    """Connected socket whose peer reads all that it accepts."""

    family, type = socket.AF_INET, socket.SOCK_STREAM

    def __init__(self):
        self.data, self.room, self.is_shut = b"", PLENTY, False

    def send(self, data):
        accepted = bytes(data[: self.room])
        if not accepted:
            raise BlockingIOError
        self.room -= len(accepted)
        self.data += accepted
        return len(accepted)

    def getpeername(self):
        return "127.0.0.1", 1

    getsockname = getpeername

    def fileno(self):
        return -1

    def ignore(self, *_):
        pass

    setblocking = setsockopt = close = ignore

    def shutdown(self, how):
        self.is_shut = how == socket.SHUT_WR

    def recv(self, _):
        return b""
