# SPDX-License-Identifier: Apache-2.0
"""LastWordsKeeper: keeps a session's last words where a child process can send them if this one is killed or stalls.

A killed process sends no neutral command, and neither does one that stalls (SIGSTOP, swap, a debugger, C code that
holds Python's lock). The node's child process (`net.last_words_sender`) therefore has a copy of the link's file, and
reads the last words in shared memory. They are armed while a moving command is in force: written before the command is
sent, and disarmed after a neutral one was. The link's loop moves their deadline on.
"""

import contextlib
import marshal
import mmap
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from drone_bridge.net.clock import STEADY_CLOCK
from drone_bridge.net.connector import Selectable
from drone_bridge.net.last_words_sender import (
    ARMED,
    BUSY,
    DEADLINE,
    ENTRY,
    ENTRY_SLOTS,
    FILE,
    MEMORY_BYTES,
    NUMBER_BYTES,
    RELEASE,
    SAID,
    SLOT_BYTES,
    SPEAKING,
    WORDS,
    WORDS_SLOTS,
    WRITTEN,
    written_bytes,
)
from drone_bridge.net.python_child import memory_file
from drone_bridge.net.send_queue import SendQueue, StreamEntry
from drone_bridge.session.session import LastWords
from drone_bridge.session.stall_detector import StallDetector

#: How long a loop may stall beyond the lifetime of a command.
STALL_S = 0.2
#: Lifetime of a command that counts at least, s: the loop has to detect each stall in which words are sent, also one
#: that begins when it has just waited.
LEAST_LIFETIME_S = StallDetector.STALL_S + StallDetector.PERIOD_S - STALL_S + 0.05
#: How long the child may take to close its copy of a file. A port can't be bound again before that.
RELEASE_S = 0.1
#: Longest data of an entry: longer ones are not completed.
ENTRY_BYTES = SLOT_BYTES - 64
_NUMBER = struct.Struct("<q")


class Outlet(NamedTuple):
    """File through which a link sends to a peer."""

    file: Selectable
    address: Any = None
    """Destination, for a socket that is not connected."""
    queue: SendQueue | None = None
    """Queue of a stream."""
    connection: socket.socket | None = None
    """Socket of a TCP connection."""


class LastWordsKeeper:
    """The node's side, for the thread of one LinkLoop. `reconnect` is thread-safe."""

    def __init__(self, memory: int, control: socket.socket) -> None:
        """`memory` is the descriptor of the shared file, `control` the socket to the child."""
        self._memory = mmap.mmap(memory, MEMORY_BYTES)
        self._control = control
        self._next_control: socket.socket | None = None
        #: Returns the lifetime of a command, s.
        self.command_timeout: Callable[[], float] = lambda: 0.5
        self._number = 0  # of the passed file
        self._outlet: Outlet | None = None
        self._base: int | None = None  # the kernel's count of written bytes at the beginning of the stream
        self._words: LastWords | None = None
        self._said = self._written = 0  # as last read from the memory

    @property
    def peer(self) -> Any:
        """Peer of the armed words, as the link identifies it."""
        return self._words.to if self._words else None

    def keep(self, words: LastWords, outlet: Outlet) -> None:
        """Arm words, or replace armed ones."""
        if self._next_control or self._outlet is None or outlet.file is not self._outlet.file:
            self._pass(outlet)
        elif words == self._words:
            return
        was_armed, self._words = self._words is not None, words
        if not was_armed:
            self.moved_on()
        told = (self._number, self._base, outlet.address, words.neutral, words.leaves)
        if not self._put(WORDS, WORDS_SLOTS, told, first=1):
            self.disarm()
        elif not was_armed:
            self._send(ARMED)

    def disarm(self) -> None:
        """Disarm: the vehicle is neutral."""
        self._memory[WORDS] = 0
        self._words = None

    def moved_on(self) -> None:
        """Move the deadline on: the loop runs."""
        if self._words is None:
            return
        if self._next_control and self._outlet:
            self.keep(self._words, self._outlet)
        patience_ns = int((self.command_timeout() + STALL_S) * 1e9)
        _NUMBER.pack_into(self._memory, DEADLINE, time.clock_gettime_ns(STEADY_CLOCK) + patience_ns)

    def is_writing(self, rest: bytes | None) -> None:
        """Begin writing a piece with this rest of its message, or end with None."""
        queue = self._outlet.queue if self._outlet else None
        self._memory[BUSY] = rest is not None and (bool(rest) or (queue is not None and queue.begun is not None))

    def was_written(self) -> float | None:
        """Return when the neutral command was sent since the last call, s; None if it was not.

        Waits until the child has finished. The stream continues behind what the child has written to it.
        """
        (due_ns,) = _NUMBER.unpack_from(self._memory, DEADLINE)
        self.moved_on()
        end_s = time.monotonic() + RELEASE_S
        while self._memory[SPEAKING] and time.monotonic() < end_s:
            time.sleep(0.001)
        wrote, (self._written,) = self._written, _NUMBER.unpack_from(self._memory, WRITTEN)
        if self._written != wrote and self._outlet and self._outlet.queue is not None:
            self._outlet.queue.written_by_child(self._written - wrote)
        before, (self._said,) = self._said, _NUMBER.unpack_from(self._memory, SAID)
        return due_ns / 1e9 if self._said != before else None

    def release(self) -> None:
        """Disarm, and make the child close its copy of the file. Waits for that, for RELEASE_S at most."""
        self.disarm()
        if self._outlet is None:
            return
        if self._outlet.queue is not None:
            self._outlet.queue.on_write = None
        self._outlet = None
        self._send(RELEASE)
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        if poll.poll(RELEASE_S * 1000):
            with contextlib.suppress(OSError):
                self._control.recv(16)

    def reconnect(self, control: socket.socket) -> None:
        """Replace the socket to the child by that to a new child, which gets the file with the next command or turn."""
        self._next_control = control

    def close(self) -> None:
        """Disarm, and close the socket: this process ends in order."""
        self.disarm()
        self._control.close()

    def _pass(self, outlet: Outlet) -> None:
        """Pass a file to the child, before words for it are armed."""
        if self._next_control:
            self._control.close()
            self._control, self._next_control = self._next_control, None
            self._memory[WORDS], self._words = 0, None
        elif self._outlet:
            self.release()
        self._outlet = outlet
        self._number += 1
        self._send(FILE, outlet.file.fileno())
        self._base = None
        entry = StreamEntry(0, b"", False)
        if (queue := outlet.queue) is not None:
            entry = queue.next_entry()
            if outlet.connection and sys.platform == "linux":
                self._base = written_bytes(outlet.connection) - entry.position
            queue.on_write = self._write
        self._write(entry)

    def _write(self, entry: StreamEntry) -> None:
        data = entry.data if len(entry.data) <= ENTRY_BYTES else b""
        self._put(ENTRY, ENTRY_SLOTS, (entry.position, data, len(entry.data), entry.has_begun), first=0)

    def _put(self, selected: int, slots: int, content: Any, *, first: int) -> bool:
        """Write the slot that is not selected, then select it. Return False if the content is too long."""
        data = marshal.dumps(content)
        if len(data) > SLOT_BYTES:
            return False
        slot = 1 if self._memory[selected] == first else 0
        start = slots + SLOT_BYTES * slot
        self._memory[start : start + len(data)] = data
        self._memory[selected] = first + slot
        return True

    def _send(self, message: bytes, *files: int) -> None:
        message += self._number.to_bytes(NUMBER_BYTES, "little")
        with contextlib.suppress(OSError):  # the child was killed: there are no last words until it is restarted
            socket.send_fds(self._control, [message], files, socket.MSG_DONTWAIT)


def shared_memory() -> int:
    """Return the descriptor of a file in memory for last words."""
    return memory_file("last_words", MEMORY_BYTES)
