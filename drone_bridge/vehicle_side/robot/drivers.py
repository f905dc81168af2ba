# SPDX-License-Identifier: Apache-2.0
"""Connected drivers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from drone_bridge.protocols.robot import FromRobot
from drone_bridge.protocols.text import printable


class HangUpError(Exception):
    """The robot closes the connection to this driver; the text is the reason."""


class Instant(NamedTuple):
    """A point in time, by two clocks."""

    steady_s: float  # by a monotonic clock
    wall_ms: int  # since 1970


@dataclass(slots=True, eq=False)
class Driver:
    """A connected client."""

    peer: str
    send: Callable[[FromRobot], None]
    close: Callable[[], None]
    last_heard_s: float  # by a monotonic clock
    name: str | None = None  # None before it has registered
    drop_reason: str = ""  # set when the robot ends the connection
    is_halted: bool = False  # its motors were stopped for its silence, until its next update
    order: int = field(default_factory=itertools.count().__next__)  # of connection

    def __str__(self) -> str:
        return printable(self.name) if self.name else self.peer

    def drop(self, reason: str) -> None:
        self.drop_reason = self.drop_reason or reason
        self.close()
