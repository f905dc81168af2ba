# SPDX-License-Identifier: Apache-2.0
"""Driver: a connected driver, and whether what it sends after a silence is old.

A driver is heard or halted (silent for too long, or this process stood still: its motors are stopped until its next
update). When it is heard again, its updates wait for BACKLOG_S, and the newest one for a keep-alive after that.
"""

from __future__ import annotations

import itertools
import math
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


#: After a silence, or a stall of this process, what comes from a driver for so long may have been on its way meanwhile.
BACKLOG_S = 0.5


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: Any  # whose text is its name until it has registered
    send: Callable[[codec.FromRobot], None]
    last_heard_s: float  # by a monotonic clock
    name: str | None = None  # None before it has registered
    is_halted: bool = False  # its motors were stopped for its silence, until its next update
    sends_keep_alives: bool = False
    is_behind: bool = False  # what it sends next may be old
    up_to_date_s: float = -math.inf  # when nothing that it sends is old any more
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)  # speeds by subsystem, until then
    order: int = field(default_factory=itertools.count().__next__)  # of connection

    def __str__(self) -> str:
        return printable(self.name) if self.name else str(self.peer)
