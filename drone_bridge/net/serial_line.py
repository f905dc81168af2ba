# SPDX-License-Identifier: Apache-2.0
"""SerialLine: serial link for a LinkLoop, reopened when its device has disappeared. POSIX only."""

import contextlib
import os
import select
import termios
import tty
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import (
    RECEIVED,
    SENT,
    Cancellation,
    LinkClosedError,
    LinkError,
    MakeTap,
    Retrying,
    Selectable,
    Tap,
)
from drone_bridge.net.link_loop import Connected, Disconnected, Received

READ_BYTES = 65536
#: Capacity of the send queue of a slow line. Packets beyond it are dropped.
MAX_UNSENT_BYTES = 16384
#: How long sending the last packets of a session may take.
LEAVING_S = 0.5


class _Device(NamedTuple):
    """Open device."""

    descriptor: int

    def fileno(self) -> int:
        return self.descriptor


class SerialLine(Retrying):
    """Serial link to one peer, connected while the device is open. Eight data bits, no parity, one stop bit."""

    port = 0

    def __init__(
        self,
        path: str,
        baud: int,
        on_failure: Callable[[LinkError, float], None],
        *,
        wire_log: MakeTap | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """`on_failure` gets the error of each failed attempt to open, and the delay until the next one, s.

        Raises ValueError for a baud rate that the system does not support.
        """
        super().__init__(on_failure, cancellation=cancellation)
        self._path, self._wire_log = path, wire_log
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise ValueError(f"baud is {baud}, and has to be one of those that serial lines have, such as 115200.")
        self._speed: int = speed
        self._device: _Device | None = None
        self._tap: Tap | None = None
        self._is_new = False
        self._unsent: deque[bytes] = deque()  # packets, the first perhaps sent in part

    def open(self) -> None:
        """Open the device, with retries. Raises LinkCancelledError."""
        self._device, self._is_new = self._retried(self._opened), True
        self._tap = self._wire_log("serial", self._path, self._path) if self._wire_log else None

    def files(self) -> Sequence[Selectable]:
        return (self._device,) if self._device else ()

    def receive(self) -> Received | Connected | Disconnected | None:
        """See Link. Raises LinkClosedError once the device has disappeared or was closed."""
        if self._device is None:
            raise LinkClosedError(f"{self._path} is closed.")
        if self._is_new:
            self._is_new = False
            return Connected(self._path)
        try:
            self._flush()
            data = os.read(self._device.descriptor, READ_BYTES)
            reason = "" if data else "it has hung up"
        except BlockingIOError:
            return None
        except OSError as error:
            data, reason = b"", str(error.strerror)
        if reason:
            self._close_device()
            return Disconnected(self._path, f"{self._path} can't be used any more: {reason}.")
        if self._tap:
            self._tap(RECEIVED, data)
        return Received(data, self._path)

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Queue a packet. Raises LinkError if the device is closed, or if the queue of a slow line is full."""
        if self._device is None:
            raise LinkError(f"Nothing can be sent to {self._path}: it is closed.")
        if sum(map(len, self._unsent)) + len(data) > MAX_UNSENT_BYTES:
            raise LinkError(f"{self._path} is too slow for what is sent: a packet was dropped.")
        self._unsent.append(bytes(data))
        if self._tap:
            self._tap(SENT, data)
        with contextlib.suppress(OSError):  # reported by the next read
            self._flush()

    def disconnect(self, peer: Any) -> None:
        """Close the device after the queue is sent, or after LEAVING_S."""
        end_s = elapsed_s() + LEAVING_S
        with contextlib.suppress(OSError):
            while self._device and self._unsent and (left_s := end_s - elapsed_s()) > 0:
                poll = select.poll()
                poll.register(self._device, select.POLLOUT)
                poll.poll(left_s * 1000)
                self._flush()
        self._close_device()

    def disconnect_all(self) -> None:
        self.disconnect(None)

    def close(self) -> None:
        self.disconnect(None)
        super().close()

    def _opened(self) -> _Device:
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise LinkError(f"{self._path} can't be opened: {error.strerror}.") from error
        try:
            tty.setraw(descriptor, termios.TCSANOW)
            attributes = termios.tcgetattr(descriptor)
            attributes[2] |= termios.CLOCAL | termios.CREAD
            attributes[4] = attributes[5] = self._speed
            termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
            termios.tcflush(descriptor, termios.TCIFLUSH)  # earlier input is stale
        except termios.error as error:
            os.close(descriptor)
            raise LinkError(f"{self._path} is no serial line: {error.args[-1]}.") from error
        return _Device(descriptor)

    def _flush(self) -> None:
        """Write as much of the queue as the device accepts. Raises OSError."""
        with contextlib.suppress(BlockingIOError):
            while self._device and self._unsent:
                written = os.write(self._device.descriptor, self._unsent[0])
                rest = self._unsent.popleft()[written:]
                if rest:
                    self._unsent.appendleft(rest)

    def _close_device(self) -> None:
        if self._device:
            os.close(self._device.descriptor)
            if self._tap:
                self._tap(RECEIVED, b"")
        self._device = None
        self._unsent.clear()
