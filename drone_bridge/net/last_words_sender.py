# SPDX-License-Identifier: Apache-2.0
"""Sender: sends a node's last words, in the child process that also writes the node's log (`ros.log_writer`).

The node keeps them in a file in memory (`net.last_words`), and passes a copy of its link's file by SCM_RIGHTS. They are
sent

- when the node has ended while they are armed: its end of the control socket is closed. Datagrams are sent LATE_S after
  the deadline at the latest, since another bridge may have taken over, which an old number would lock out;
- when the node stalls: their deadline has passed. Only the neutral command is sent then: by datagrams every STALL_GAP_S
  until STALL_LATE_S after the deadline, on a stream once. A node that stalls while it writes a piece of a message would
  write it again behind the completed message: it gets STALL_GAP_S to finish, then the stream is closed for writing.

Nothing is sent while they are not armed: this thread then waits without a timeout, and otherwise until the deadline.

Layout of the memory, little endian. The node writes a slot before its number, so that a slot in use is always whole.

| offset | content |
|---|---|
| WORDS | number of the slot with the armed words, 0 for none |
| ENTRY | number of the slot with the newest entry of the stream |
| BUSY | whether the node is writing a piece of a message on a stream |
| DEADLINE | time in ns of CLOCK_BOOTTIME, or of CLOCK_MONOTONIC if there is none, 8 bytes |
| SAID | how often words were sent in a stall, 8 bytes. Written by this process |
| SPEAKING | whether they are being sent. Written by this process |
| WRITTEN | number of bytes written to streams in stalls, 8 bytes. Written by this process |
| WORDS_SLOTS | two slots of SLOT_BYTES with (number of the file, base, address, neutral, leaves), by `marshal` |
| ENTRY_SLOTS | likewise (position, data, size, whether the message has begun) |

An entry describes what the node is about to write: `data` begin at `position` of the stream, and end with a message.
The kernel's count of written bytes, from `base` on, decides what of them is missing. Without a base (serial lines), the
node has written none of them.

It imports only built-in modules, see `ros.log_writer`.
"""

import _socket
import marshal
import os
import sys
import time

TYPE_CHECKING = False  # importing typing would double the memory of the process
if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS, ENTRY, BUSY, DEADLINE, SAID, SPEAKING, WRITTEN, HEAD_BYTES = 0, 1, 2, 8, 16, 24, 32, 40
SLOT_BYTES = 4096
WORDS_SLOTS, ENTRY_SLOTS = HEAD_BYTES, HEAD_BYTES + 2 * SLOT_BYTES
MEMORY_BYTES = HEAD_BYTES + 4 * SLOT_BYTES
#: Messages on the control socket, each followed by the number of the file: it is attached, the words were armed, close
#: it. The last one is answered.
FILE, ARMED, RELEASE = b"F", b"A", b"R"
NUMBER_BYTES = 4
MESSAGE_BYTES = 1 + NUMBER_BYTES
#: How often datagrams are sent, since they get lost, and their gaps at the end of the node and in a stall.
ROUNDS, END_GAP_S, STALL_GAP_S = 3, 0.02, 0.4
#: Age of the deadline after which datagrams are not sent for an ended node, and for a stalled one.
LATE_S, STALL_LATE_S = 0.5, 1.0
#: How long a stream may take to accept the words, and its peer to close.
ACCEPT_S, LEAVE_S = 0.5, 0.3
_LOOK_S = 0.002
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
# Linux: a socket option, the offset of tcpi_bytes_acked in its value, and the request for the size of the send queue.
_TCP_INFO, _BYTES_ACKED, _SIOCOUTQ = 11, 120, 0x5411


def written_bytes(connected: "_socket.socket") -> int:
    """Return how many bytes were written to a TCP socket, plus a constant. Linux only. Raises OSError."""
    import fcntl  # built-in as well, but needed rarely

    while True:
        before = connected.getsockopt(_socket.IPPROTO_TCP, _TCP_INFO, _BYTES_ACKED + 8)[_BYTES_ACKED:]
        queued = int.from_bytes(fcntl.ioctl(connected.fileno(), _SIOCOUTQ, bytes(4)), sys.byteorder)
        after = connected.getsockopt(_socket.IPPROTO_TCP, _TCP_INFO, _BYTES_ACKED + 8)[_BYTES_ACKED:]
        if before == after:  # nothing was acknowledged in between
            return int.from_bytes(after, sys.byteorder) + queued


class _Words:
    """Armed words at one moment. Falsy if there are none for the open file."""

    def __init__(self, memory: int, number: int) -> None:
        head = os.pread(memory, HEAD_BYTES, 0)
        self.deadline_ns = int.from_bytes(head[DEADLINE : DEADLINE + 8], "little")
        self.is_armed, self.is_busy = head[WORDS] > 0, bool(head[BUSY])
        self.is_complete = False
        if not self.is_armed:
            return
        try:
            slot = os.pread(memory, SLOT_BYTES, WORDS_SLOTS + SLOT_BYTES * (head[WORDS] - 1))
            file, self.base, self.address, self.neutral, self.leaves = marshal.loads(slot)
            slot = os.pread(memory, SLOT_BYTES, ENTRY_SLOTS + SLOT_BYTES * head[ENTRY])
            self.position, self.data, self.size, self.has_begun = marshal.loads(slot)
        except (EOFError, TypeError, ValueError):  # the node is running and has replaced them meanwhile
            return
        self.is_complete = file == number

    def age_s(self) -> float:
        """Return the time since the deadline, s. Negative before it."""
        return (time.clock_gettime_ns(_CLOCK) - self.deadline_ns) / 1e9


class Sender:
    """Sender for one node, run in a separate thread."""

    def __init__(self, control: int, memory: int) -> None:
        """`control` and `memory` are the descriptors of the socket to the node, and of the memory."""
        self._control, self._memory = _socket.socket(fileno=control), memory
        self._file = -1
        self._socket: _socket.socket | None = None  # the same file, unless it is a serial line
        self._number = 0  # of the file
        self._said_ns, self._rounds = 0, 0  # deadline of the current stall, and what was sent since
        self._busy_ns = 0  # deadline of a stall while the node writes a piece
        self._said = int.from_bytes(os.pread(memory, 8, SAID), "little")
        self._written = int.from_bytes(os.pread(memory, 8, WRITTEN), "little")
        os.pwrite(memory, b"\0", SPEAKING)  # perhaps left by a killed sender

    def run(self) -> None:
        """Serve the node until it has ended, and then send its last words."""
        wait_s: float | None = None
        while True:
            self._control.settimeout(wait_s)
            try:
                message, attached, _, _ = self._control.recvmsg(MESSAGE_BYTES, _socket.CMSG_SPACE(4))
            except TimeoutError:
                wait_s = self._check_stall()
                continue
            except OSError:
                break
            if not message:
                break
            if message[:1] == FILE:
                self._close()
                self._open(int.from_bytes(attached[0][2][:4], sys.byteorder) if attached else -1)
                self._number = int.from_bytes(message[1:], "little")
            elif message[:1] == RELEASE:
                self._close()
                try:
                    self._control.send(RELEASE)
                except OSError:
                    break
            wait_s = self._check_stall()
        try:
            self._end()
        finally:
            self._close()

    def _open(self, descriptor: int) -> None:
        self._file = descriptor
        try:
            self._socket = _socket.socket(fileno=descriptor)
        except OSError:
            self._socket = None  # a serial line

    def _close(self) -> None:
        if self._socket:
            self._socket.close()
        elif self._file >= 0:
            os.close(self._file)
        self._file, self._socket = -1, None

    @property
    def _is_stream(self) -> bool:
        return not self._socket or self._socket.type == _socket.SOCK_STREAM

    def _check_stall(self) -> float | None:
        """Send the neutral command if the node stalls. Return the time until the next look, None if nothing is armed.

        The node, when it continues, moves the deadline first, and then waits until this process is not SPEAKING.
        """
        words = _Words(self._memory, self._number)
        if not words.is_armed:
            return None
        if (age_s := words.age_s()) <= 0:
            return _LOOK_S - age_s
        if words.deadline_ns != self._said_ns:
            self._said_ns, self._rounds = words.deadline_ns, 0
        if self._rounds >= 1 if self._is_stream else age_s > STALL_LATE_S:
            return STALL_GAP_S
        time.sleep(_LOOK_S)  # the node may be writing the deadline
        os.pwrite(self._memory, b"\1", SPEAKING)
        try:
            words = _Words(self._memory, self._number)
            if words.deadline_ns == self._said_ns and words.is_complete and words.neutral and self._say_neutral(words):
                self._rounds += 1
        finally:
            os.pwrite(self._memory, b"\0", SPEAKING)
        return STALL_GAP_S

    def _say_neutral(self, words: _Words) -> bool:
        """Send the neutral command of a node that stalls. Return False if it has to wait."""
        rest = self._rest(words)
        if rest is None:
            return False
        is_inside = words.is_busy and self._is_stream
        if is_inside and self._busy_ns != words.deadline_ns:
            self._busy_ns = words.deadline_ns
            return False
        count = self._send_all((rest, *words.neutral), words)
        if is_inside and count and self._socket:
            self._shut(self._socket)
        if self._is_stream:
            if not count:
                return False  # the peer does not read
            self._written += count
            os.pwrite(self._memory, self._written.to_bytes(8, "little"), WRITTEN)
        self._said += 1
        os.pwrite(self._memory, self._said.to_bytes(8, "little"), SAID)
        return True

    def _end(self) -> None:
        """Send all last words of a node that has ended."""
        words = _Words(self._memory, self._number)
        if not words.is_complete:
            return
        if not self._is_stream:
            if words.age_s() <= LATE_S:
                for number in range(ROUNDS):
                    time.sleep(END_GAP_S if number else 0)
                    self._send_all(words.neutral, words)
                self._send_all(words.leaves, words)
            return
        rest = self._rest(words)
        if rest is not None:
            self._send_all((rest, *words.neutral, *words.leaves), words)
        if self._socket:
            self._leave(self._socket)

    def _rest(self, words: _Words) -> "bytes | None":
        """Return what completes the message that the node has begun to write to its stream; None if that is unknown."""
        written = 0
        if words.base is not None and self._socket:
            try:
                written = written_bytes(self._socket) - words.base - words.position
            except OSError:
                return None
        if (written == 0 and not words.has_begun) or written == words.size:
            return b""
        is_known = 0 <= written < words.size == len(words.data)
        return words.data[written:] if is_known else None

    def _send_all(self, pieces: "Iterable[bytes]", words: _Words) -> int:
        """Send datagrams, or pieces of a stream. Return the number of bytes.

        Errors are ignored: they can't be reported to anybody.
        """
        until_s, count = time.monotonic() + ACCEPT_S, 0
        for piece in pieces:
            left, refusals = piece, 0
            while left and refusals < 2 and time.monotonic() < until_s:
                try:
                    sent = self._send(left, words.address)
                    left, count = left[sent:], count + sent
                except BlockingIOError:
                    if len(left) == len(piece) and self._continues(words):
                        return count
                    time.sleep(_LOOK_S)
                except ConnectionRefusedError:  # of an earlier datagram
                    refusals += 1
                except OSError:
                    return count
        return count

    def _continues(self, words: _Words) -> bool:
        """Return whether the node has continued since words were read: it moves the deadline."""
        return _Words(self._memory, self._number).deadline_ns != words.deadline_ns

    def _send(self, piece: bytes, address: "tuple[object, ...] | None") -> int:
        if not self._socket:
            return os.write(self._file, piece)
        return self._socket.sendto(piece, address) if address else self._socket.send(piece)

    def _leave(self, connected: "_socket.socket") -> None:
        """Close a stream for writing, and read until its peer closes: unread data would make the close a reset."""
        until_s = time.monotonic() + LEAVE_S
        self._shut(connected)
        try:
            while time.monotonic() < until_s:
                try:
                    if not connected.recv(65536):
                        return
                except BlockingIOError:
                    time.sleep(_LOOK_S)
        except OSError:
            pass

    @staticmethod
    def _shut(connected: "_socket.socket") -> None:
        """Close a stream for writing."""
        try:
            connected.shutdown(_socket.SHUT_WR)
        except OSError:
            return  # the peer has closed it
