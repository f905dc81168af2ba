# SPDX-License-Identifier: Apache-2.0
"""A deadline for each message as a whole, which a slow trickle of bytes does not extend."""

import time
from typing import Protocol

from drone_bridge.net.errors import LinkTimeoutError


class ByteStream(Protocol):
    """A source of bytes, for instance TcpStream."""

    peer: str

    def receive_into(self, *buffers: memoryview, timeout_s: float | None = None, pixel_bytes: int = 0) -> int:
        """Wait for bytes, the first `pixel_bytes` of which may be pixels, and return their number."""


class MessageDeadline:
    """Receives from a stream, with a time limit for each message that has begun."""

    def __init__(self, stream: ByteStream, timeout_s: float) -> None:
        self._stream = stream
        self._timeout_s = timeout_s
        self._ends_s: float | None = None  # of the message that has begun

    def receive_into(self, *buffers: memoryview, is_inside_message: bool, pixel_bytes: int = 0) -> int:
        """Wait for bytes: between messages without limit, inside one until its time is over.

        Raises LinkTimeoutError then, and what the stream raises.
        """
        if not is_inside_message:
            self._ends_s = None
            return self._stream.receive_into(*buffers, pixel_bytes=pixel_bytes)
        now_s = time.monotonic()
        if self._ends_s is None:
            self._ends_s = now_s + self._timeout_s
        if now_s < self._ends_s:
            try:
                left_s = self._ends_s - now_s
                return self._stream.receive_into(*buffers, timeout_s=left_s, pixel_bytes=pixel_bytes)
            except LinkTimeoutError:
                pass
        raise LinkTimeoutError(f"{self._stream.peer} did not complete a message within {self._timeout_s:g} s.")
