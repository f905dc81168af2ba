# SPDX-License-Identifier: Apache-2.0
"""The output of the processes: whole lines, each with the process's label, in bounded memory.

A screen that does not take more (a full pipe, say) makes the runner stop reading, so that the processes wait, as
they would for that screen itself; the runner goes on to answer signals.
"""

import os
import select
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import IO

LINE_LIMIT = 16 * 1024  # bytes; a longer line is cut into several
_READ_SIZE = 64 * 1024  # bytes
_SCREEN_LIMIT = 256 * 1024  # bytes that wait for the screen, above which reading stops
_DRAIN_LIMIT = 1024 * 1024  # bytes read from a process that has ended; no pipe holds more


class Screen:
    """One file descriptor that people look at."""

    def __init__(self, descriptor: int, loop: AbstractEventLoop, on_broken: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._loop = loop
        self._on_broken = on_broken
        self._pending = bytearray()
        self._waiting: set[Lines] = set()
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        self._is_broken = False

    @property
    def is_full(self) -> bool:
        """Whether so much is waiting that nothing more should be read."""
        return len(self._pending) > _SCREEN_LIMIT

    def put(self, lines: bytes) -> None:
        """Show whole lines, now or as soon as the descriptor takes them."""
        if not self._is_broken:
            self._pending += lines
            self._write()

    def resume_when_drained(self, lines: "Lines") -> None:
        """Call `lines.resume()` once all has been shown."""
        self._waiting.add(lines)

    def close(self) -> None:
        """Show what can be shown without waiting for long."""
        while self._pending and self._poll.poll(200):
            self._write()
        self._loop.remove_writer(self._descriptor)

    def _write(self) -> None:
        try:
            while self._pending:
                if not self._poll.poll(0):
                    self._loop.add_writer(self._descriptor, self._write)
                    return
                # As much as a pipe that is ready takes without blocking.
                written = os.write(self._descriptor, self._pending[: select.PIPE_BUF])
                del self._pending[:written]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._write)
            return
        except OSError:
            self._is_broken = True
            self._pending.clear()
            self._on_broken()
        self._loop.remove_writer(self._descriptor)
        for lines in self._waiting:
            lines.resume()
        self._waiting.clear()


class Lines:
    """One pipe of a process, on its way to a screen."""

    def __init__(self, pipe: IO[bytes], screen: Screen, label: str, loop: AbstractEventLoop) -> None:
        self._prefix = f"[{label}] ".encode()
        self._pipe = pipe
        self._screen = screen
        self._loop = loop
        self._partial = b""
        self.last = b""  # line that was shown
        os.set_blocking(pipe.fileno(), False)
        self.resume()

    def resume(self) -> None:
        """Read whenever output is available."""
        if not self._pipe.closed:
            self._loop.add_reader(self._pipe, self._read)

    def drain(self) -> None:
        """Read the output that is available now."""
        left = _DRAIN_LIMIT
        while left > 0 and (count := self._read()):
            left -= count

    def close(self) -> None:
        """Read what is there, show an unfinished line as well, and be done."""
        self.drain()
        if not self._pipe.closed:
            self._loop.remove_reader(self._pipe)
            self._pipe.close()
        if self._partial:
            self._show([self._partial])
            self._partial = b""

    def _read(self) -> int:
        """Read and show some of the available output; return the number of bytes."""
        if self._pipe.closed:
            return 0
        try:
            data = os.read(self._pipe.fileno(), _READ_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self._loop.remove_reader(self._pipe)
            self._pipe.close()
            return 0
        *lines, self._partial = (self._partial + data).split(b"\n")
        while len(self._partial) > LINE_LIMIT:
            lines.append(self._partial[:LINE_LIMIT])
            self._partial = self._partial[LINE_LIMIT:]
        self._show(lines)
        if self._screen.is_full:
            self._loop.remove_reader(self._pipe)
            self._screen.resume_when_drained(self)
        return len(data)

    def _show(self, lines: list[bytes]) -> None:
        self.last = next((line for line in reversed(lines) if line.strip()), self.last)
        self._screen.put(b"".join(b"%s%s\n" % (self._prefix, line.rstrip(b"\r")) for line in lines))
