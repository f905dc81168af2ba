# SPDX-License-Identifier: Apache-2.0
"""SerialLine: serial link for a LinkLoop, reopened when its device has disappeared. PseudoTerminal: a device for one.

POSIX only.

One program uses a line at a time. It holds the line's flock, as pyserial with `exclusive` does, and excludes programs
that ask for no lock, unless they are root's (TIOCEXCL). The system ends both with the program.
"""

import contextlib
import errno
import fcntl
import grp
import math
import os
import stat
import struct
import termios
import time
import tty
from collections.abc import Callable, Sequence
from glob import glob
from typing import Any, NamedTuple

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import (
    RECEIVED,
    SENT,
    Cancellation,
    LinkClosedError,
    LinkError,
    LinkInUseError,
    MakeTap,
    RetryingLink,
    Selectable,
    no_log,
)
from drone_bridge.net.file_users import users_of
from drone_bridge.net.last_words import Outlet
from drone_bridge.net.link_loop import Connected, Disconnected, ReceivedData
from drone_bridge.net.send_queue import SendQueue
from drone_bridge.session.obstacles import Obstacle

READ_BYTES = 65536
#: Packets that a slow or stalled line has kept waiting for longer are stale, and dropped. The system's buffer gets no
#: more than the line sends in that time, so a neutral command is never far behind.
STALE_S = 0.25
#: How long sending the last packets of a session may take, and the polling period of that.
LEAVING_S = 0.5
DRAIN_PERIOD_S = 0.005
#: Bits on the line per byte: a start bit, eight data bits and a stop bit.
BITS_PER_BYTE = 10
#: Limit of unread bytes of a pseudo-terminal, less than its buffer has.
UNREAD_BYTES = 2048


class _Device(NamedTuple):
    """Open device."""

    descriptor: int

    def fileno(self) -> int:
        return self.descriptor

    @property
    def backlog(self) -> int:
        """Bytes in the system's buffer that are not on the line yet; 0 for a pseudo-terminal. Raises OSError."""
        [count] = struct.unpack("i", fcntl.ioctl(self.descriptor, termios.TIOCOUTQ, struct.pack("i", 0)))
        return int(count)


class SerialLine(RetryingLink):
    """Serial link to one peer, connected while the device is open.

    Eight data bits, no parity, one stop bit, no flow control. No call blocks, but `disconnect` for LEAVING_S.
    """

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
        self._path, self._wire_log = path, wire_log or no_log
        speed = getattr(termios, f"B{baud}", None)
        if speed is None:
            raise ValueError(f"baud is {baud} but must be one of those that serial lines have, such as 115200.")
        self._speed: int = speed
        self._max_backlog = STALE_S * baud / BITS_PER_BYTE
        self._device: _Device | None = None
        self._tap = no_log("", "", "")
        self._is_new = False
        self._unsent = SendQueue()
        self._dropped = 0  # packets since the last report

    def open(self) -> None:
        """Open the device, with retries. Raises LinkCancelledError."""
        self._device, self._is_new = self._retried(self._opened), True
        self._tap = self._wire_log("serial", self._path, self._path)

    def files(self) -> Sequence[Selectable]:
        return (self._device,) if self._device else ()

    def receive(self) -> ReceivedData | Connected | Disconnected | None:
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
        self._tap(RECEIVED, data)
        return ReceivedData(data, self._path)

    def outlet_to(self, to: Any) -> Outlet | None:
        """See OutletLink."""
        return Outlet(self._device, queue=self._unsent) if self._device else None

    def send(
        self,
        data: bytes | memoryview,
        to: Any,
        rest: bytes = b"",
        until_s: float | None = None,
        decided: Callable[[bool], None] | None = None,
    ) -> None:
        """Send a packet, or queue it while the line is busy.

        Raises LinkError if the device is closed, or to report stale packets that were dropped before this one.
        """
        decided = decided or (lambda is_sent: None)
        if self._device is None:
            decided(False)
            raise LinkError(f"Can't send to {self._path}: it is closed.")
        self._unsent.put(bytes(data), rest, since_s=elapsed_s(), until_s=until_s, decided=decided)
        with contextlib.suppress(OSError):  # reported by the next read
            self._flush()
        self._tap(SENT, data)
        if dropped := self._dropped:
            self._dropped = 0
            raise LinkError(f"{self._path} is too slow or stalled: {dropped} stale packets were dropped.")

    def disconnect(self, peer: Any) -> None:
        """Close the device after the queued packets are on the line, or after LEAVING_S."""
        end_s = elapsed_s() + LEAVING_S
        with contextlib.suppress(OSError):
            self._flush(is_leaving=True)
            while self._device and (self._unsent.pieces or self._device.backlog) and elapsed_s() < end_s:
                time.sleep(DRAIN_PERIOD_S)
                self._flush(is_leaving=True)
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
            if error.errno == errno.EBUSY:
                raise self._in_use() from error
            raise LinkError(_denied(self._path, error)) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(descriptor)
            raise self._in_use() from error
        try:
            if not _is_pseudo_terminal(self._path):
                fcntl.ioctl(descriptor, termios.TIOCEXCL)
            tty.setraw(descriptor, termios.TCSANOW)
            attributes = termios.tcgetattr(descriptor)
            attributes[2] &= ~(termios.CSTOPB | termios.CRTSCTS)
            attributes[2] |= termios.CLOCAL | termios.CREAD
            attributes[2] &= ~termios.HUPCL  # closing must not reset the board
            attributes[4] = attributes[5] = self._speed
            termios.tcsetattr(descriptor, termios.TCSANOW, attributes)
            termios.tcflush(descriptor, termios.TCIFLUSH)  # earlier input is stale
        except (OSError, termios.error) as error:
            os.close(descriptor)
            raise LinkError(f"{self._path} is no serial line: {error.args[-1]}.") from error
        return _Device(descriptor)

    def _in_use(self) -> LinkInUseError:
        users = users_of(self._path)  # now: they may end before the next attempt
        return LinkInUseError(self._path, self._path, lambda: users, self._path)

    def _flush(self, *, is_leaving: bool = False) -> None:
        """Write as much of the queue as the device accepts, STALE_S ahead of the line at most. Raises OSError.

        Packets that have waited for STALE_S are dropped, except for those that the device gets when it is closed.
        """
        with contextlib.suppress(BlockingIOError):
            while self._device:
                now_s = elapsed_s()
                oldest_s = -math.inf if is_leaving else now_s - STALE_S
                self._dropped += self._unsent.drop_stale(now_s, oldest_s=oldest_s, is_leaving=is_leaving)
                if not self._unsent.pieces or self._device.backlog > self._max_backlog:
                    break
                self._unsent.written(os.write(self._device.descriptor, self._unsent.pieces[0].data))

    def _close_device(self) -> None:
        if self._device:
            with contextlib.suppress(OSError, termios.error):  # of a device that has disappeared
                if self._device.backlog:  # closing would wait for a stalled line, on Linux for 30 s
                    termios.tcflush(self._device.descriptor, termios.TCOFLUSH)
            with contextlib.suppress(OSError):  # explicitly, since copies of the descriptor would keep both
                fcntl.flock(self._device.descriptor, fcntl.LOCK_UN)
                fcntl.ioctl(self._device.descriptor, termios.TIOCNXCL)
            os.close(self._device.descriptor)
            self._tap(RECEIVED, b"")
        self._device = None
        self._unsent.clear()
        self._dropped = 0


class PseudoTerminal(SerialLine):
    """Link of an emulated device to the program that opens a pseudo-terminal, whose symbolic link has a path."""

    def __init__(self, path: str, baud: int) -> None:
        """Create both. A dangling link, as a killed program leaves it, is replaced. Raises LinkError."""
        super().__init__(path, baud, lambda error, delay_s: None)
        self._read_s = -math.inf  # time at which few bytes were unread
        is_dangling = os.path.islink(path) and not os.path.exists(path)  # before the new one may have its number
        self._end, self._line = os.openpty()  # the line stays open, so that its closing is no hangup
        tty.setraw(self._line)
        try:
            if is_dangling:
                os.unlink(path)
            os.symlink(os.ttyname(self._line), path)
        except OSError as error:
            os.close(self._end)
            os.close(self._line)
            raise LinkError(f"{path} can't be linked to a pseudo-terminal: {error.strerror}.") from error

    def send(self, data: bytes | memoryview, to: Any, *options: Any) -> None:
        """See Link. Bytes that no program has read for STALE_S are dropped: the next one would read stale ones."""
        [unread] = struct.unpack("i", fcntl.ioctl(self._line, termios.FIONREAD, struct.pack("i", 0)))
        if unread <= min(self._max_backlog, UNREAD_BYTES):
            self._read_s = elapsed_s()
        elif elapsed_s() - self._read_s > STALE_S:
            termios.tcflush(self._line, termios.TCIFLUSH)
        super().send(data, to, *options)

    def close(self) -> None:
        super().close()
        with contextlib.suppress(OSError):  # it was removed, or replaced by a file
            if os.readlink(self._path) == os.ttyname(self._line):
                os.unlink(self._path)
        os.close(self._end)
        os.close(self._line)

    def _opened(self) -> _Device:
        os.set_blocking(self._end, False)
        return _Device(os.dup(self._end))


def _denied(path: str, error: OSError) -> str:
    """Return why a device can't be opened, with the remedy if it is not there, or only its group may."""
    if error.errno == errno.ENOENT:
        found = " and ".join(sorted(glob("/dev/tty[AU][CS][BM]*"))) or "none"
        return Obstacle.NO_DEVICE.sentence(path=path, found=found)
    if error.errno == errno.EACCES:
        with contextlib.suppress(OSError, KeyError):  # it has disappeared; a group without a name
            status = os.stat(path)
            if status.st_gid not in (0, *os.getgroups()) and status.st_mode & stat.S_IRGRP:
                return Obstacle.DENIED.sentence(path=path, group=grp.getgrgid(status.st_gid).gr_name)
    return f"{path} can't be opened: {error.strerror}."


def _is_pseudo_terminal(path: str) -> bool:
    """Return whether a path is a pseudo-terminal on Linux or macOS.

    It remains excluded by TIOCEXCL after its program was killed, for as long as its other end is open.
    """
    return os.path.realpath(path).startswith(("/dev/pts/", "/dev/ttys"))
