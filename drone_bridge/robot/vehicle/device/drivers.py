# SPDX-License-Identifier: Apache-2.0
"""Driver: a connected driver."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from drone_bridge.robot import codec
from drone_bridge.wire.printable import printable


class Instant(NamedTuple):
    """A point in time, on two clocks."""

    steady_s: float  # of a monotonic clock
    wall_ms: int  # ms since 1970


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: Any  # its text is the driver's name until registration
    send: Callable[[codec.FromRobot], None]
    last_received_s: float  # by a monotonic clock
    name: str | None = None  # None before registration
    is_halted: bool = False  # its motors were stopped for its silence or a stall, until its next update
    is_warned: bool = False  # that it updates what it has not bound
    order: int = field(default_factory=itertools.count().__next__)  # of connection

    def __str__(self) -> str:
        return printable(self.name) if self.name else str(self.peer)
