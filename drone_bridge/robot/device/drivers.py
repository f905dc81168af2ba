# SPDX-License-Identifier: Apache-2.0
"""Driver: a connected driver, and whether what it says after a silence is old.

A driver is heard or halted (silent for too long, or this process stood still: its motors are stopped until its next
update). After a silence its updates wait, by its Backlog, for a keep-alive that is not late.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drone_bridge.robot import codec
from drone_bridge.wire.printable import printable


class HangUpError(Exception):
    """The robot closes the connection to this driver; the text is the reason."""


class Instant(NamedTuple):
    """A point in time, by two clocks."""

    steady_s: float  # by a monotonic clock
    wall_ms: int  # since 1970


#: A keep-alive is late if it took longer than the quickest of the last ones by more than this.
LATE_S = 0.3
#: A driver whose keep-alives are late for longer after a silence has set its clock.
BACKLOG_S = 2.0
#: Keep-alives carry the driver's time, as milliseconds since 1970; some programs write other numbers.
_EARLIEST_MS = 10**12


class Backlog:
    """Whether a driver that was silent says what it had to say meanwhile, judged by the stamps of its keep-alives."""

    def __init__(self) -> None:
        self._delays_s: deque[float] = deque(maxlen=16)  # clocks differ: only their differences mean anything
        self._since_s: float | None = None  # when it was heard again; None before that

    def begin(self) -> bool:
        """Note that the driver is silent; return whether its next words may be old."""
        self._since_s = None
        return bool(self._delays_s)

    def is_late(self, time_ms: int, now_s: float) -> bool:
        """Take a keep-alive; return whether it waited on its way, of a driver that was silent before."""
        if time_ms < _EARLIEST_MS:
            return False
        self._since_s = now_s if self._since_s is None else self._since_s
        delay_s = now_s - time_ms / 1000
        is_late = bool(self._delays_s) and delay_s - min(self._delays_s) > LATE_S
        if is_late and now_s - self._since_s <= BACKLOG_S:
            return True
        if is_late:
            self._delays_s.clear()
        self._delays_s.append(delay_s)
        return False


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: Any  # whose text is its name until it has registered
    send: Callable[[codec.FromRobot], None]
    last_heard_s: float  # by a monotonic clock
    name: str | None = None  # None before it has registered
    has_backlog: bool = False  # after a silence: its updates wait for a keep-alive that is not late
    is_halted: bool = False  # its motors were stopped for its silence, until its next update
    backlog: Backlog = field(default_factory=Backlog)
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)  # speeds by subsystem, until it is up to date
    order: int = field(default_factory=itertools.count().__next__)  # of connection

    def __str__(self) -> str:
        return printable(self.name) if self.name else str(self.peer)
