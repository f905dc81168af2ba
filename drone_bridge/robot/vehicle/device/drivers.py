# SPDX-License-Identifier: Apache-2.0
"""Driver: a connected driver, and whether its packets may be stale after a silence.

A driver is halted when it is silent for too long, or when this process was stalled: its motors are stopped until its
next update. After that, its updates are withheld for BACKLOG_S, and the newest one until a later keep-alive.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drone_bridge.robot import codec
from drone_bridge.wire.printable import printable


class Instant(NamedTuple):
    """A point in time, on two clocks."""

    steady_s: float  # of a monotonic clock
    wall_ms: int  # ms since 1970


#: Time after a silence or stall during which received packets may be stale.
BACKLOG_S = 0.5


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: Any  # its text is the driver's name until registration
    send: Callable[[codec.FromRobot], None]
    last_received_s: float  # by a monotonic clock
    name: str | None = None  # None before registration
    is_halted: bool = False  # its motors were stopped for its silence, until its next update
    sends_keep_alives: bool = False
    is_behind: bool = False  # its next packets may be stale
    up_to_date_s: float = -math.inf  # time from which its packets are current
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)  # withheld speeds by subsystem, until then
    order: int = field(default_factory=itertools.count().__next__)  # of connection

    def __str__(self) -> str:
        return printable(self.name) if self.name else str(self.peer)
