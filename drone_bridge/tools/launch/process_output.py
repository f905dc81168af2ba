# SPDX-License-Identifier: Apache-2.0
"""ProcessOutput: output of the processes as complete lines with the process's label, in bounded memory.

The runner never stops reading, so that no process blocks on its output. While a screen is blocked (a terminal after
Ctrl-S, a full pipe), the oldest lines are dropped and counted: see `Sink`.
"""

import os
from asyncio import AbstractEventLoop, TimerHandle
from collections.abc import Callable
from typing import IO

from drone_bridge.ros.process.log_writer import LINE_LIMIT, Sink

_READ_SIZE = 64 * 1024  # bytes
_DRAIN_LIMIT = 1024 * 1024  # bytes read from a process that has ended, more than any pipe holds


class ProcessOutput:
    """Forwarder of one pipe of a process to a screen."""

    def __init__(
        self, pipe: IO[bytes], screen: Sink, label: str, loop: AbstractEventLoop, on_end: Callable[[], None]
    ) -> None:
        """Start forwarding. `on_end` is called at the end of the output."""
        self._prefix = f"[{label}] ".encode()
        self._pipe = pipe
        self._screen = screen
        self._loop = loop
        self._on_end = on_end
        self._closing: TimerHandle | None = None
        self._partial = b""
        self.last = b""  # last line shown
        os.set_blocking(pipe.fileno(), False)
        loop.add_reader(pipe, self._read)

    @property
    def has_ended(self) -> bool:
        return self._pipe.closed

    def drain(self) -> None:
        """Read the output that is available now."""
        left = _DRAIN_LIMIT
        while left > 0 and (count := self._read()):
            left -= count

    def close_after(self, delay_s: float) -> None:
        """Close at the end of the output, or after a delay if another process keeps it open."""
        if not self.has_ended and not self._closing:
            self._closing = self._loop.call_later(delay_s, self.close)

    def close(self) -> None:
        """Read the output that is available now, show an incomplete last line, and close."""
        self.drain()
        self._end()

    def _end(self) -> None:
        if self.has_ended:
            return
        if self._closing:
            self._closing.cancel()
        self._loop.remove_reader(self._pipe)
        self._pipe.close()
        if self._partial:
            self._show([self._partial])
            self._partial = b""
        self._on_end()

    def _read(self) -> int:
        """Read and show some of the available output. Return the number of bytes."""
        if self._pipe.closed:
            return 0
        try:
            data = os.read(self._pipe.fileno(), _READ_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self._end()
            return 0
        *lines, self._partial = (self._partial + data).split(b"\n")
        while len(self._partial) > LINE_LIMIT:
            lines.append(self._partial[:LINE_LIMIT])
            self._partial = self._partial[LINE_LIMIT:]
        self._show(lines)
        return len(data)

    def _show(self, lines: list[bytes]) -> None:
        said = (line for line in reversed(lines) if line.strip() and not line.startswith(b"[log] "))
        self.last = next(said, self.last)
        if lines:
            self._screen.put(b"".join(b"%s%s\n" % (self._prefix, line.rstrip(b"\r")) for line in lines))
