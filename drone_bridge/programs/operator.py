# SPDX-License-Identifier: Apache-2.0
"""Operator: base class of the scripted operators, with the loop that receives, steers along a plan, and leaves.

    class Client(Operator):
        def listen(self, timeout_s): ...    # receive and handle one message
        def steer(self, leg): ...           # send the leg's command
        def leave(self): ...                # send the last, neutral command

    Client(plan, cancellation).run()

It uses one thread, and only `listen` blocks. A protocol that sends in response to messages, not at a steady rate,
overrides `next_turn`. A protocol whose plan uses another clock than the wall clock overrides `elapsed_s`.
"""

from __future__ import annotations

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable

from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkTimeoutError
from drone_bridge.programs.plan import Leg, Plan
from drone_bridge.programs.program import print_event

REPORT_PERIOD_S = 1.0


class Operator(ABC):
    """Base class for clients that prepare a vehicle, follow a plan, and always leave the vehicle neutral."""

    #: Period of commands, s.
    period_s = 0.05

    def __init__(self, plan: Plan, cancellation: Cancellation, clock: Callable[[], float] = elapsed_s) -> None:
        """Initialize. `clock` returns seconds since any epoch."""
        self.plan, self.cancellation, self.now_s = plan, cancellation, clock
        self._began_s: float | None = None
        self._reported_s = -math.inf

    @property
    def elapsed_s(self) -> float:
        """Time since the beginning of the plan, s; 0 before it."""
        return 0.0 if self._began_s is None else self.now_s() - self._began_s

    def run(self) -> bool:
        """Prepare, follow the plan, and leave. Return False if cancelled.

        Raises LinkError and ProtocolError, and ValueError for a vehicle that must not be steered.
        """
        try:
            with contextlib.suppress(LinkCancelledError):
                self.prepare()
                self.follow()
                self.finish()
                return True
            return False
        finally:
            self.leave()

    def follow(self) -> None:
        """Steer along the plan to its end. Raises the errors of `steer` and `listen`."""
        self._began_s = self.now_s()
        announced: Leg | None = None
        while (elapsed := self.elapsed_s) < self.plan.duration_s:
            leg = self.plan.leg_at(elapsed)
            command = self.steer(leg)
            if leg is not announced:
                announced = leg
                print_event(f"leg {leg}: {command}")
            self.next_turn()
        print_event(self.result())

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Receive for some time or until a condition is met. Return whether it is. Raises the errors of `listen`."""
        end_s = self.now_s() + seconds
        while not until() and (left_s := end_s - self.now_s()) > 0:
            with contextlib.suppress(LinkTimeoutError):
                self.listen(left_s)
        return until()

    def is_report_due(self) -> bool:
        """Return True once per REPORT_PERIOD_S. Limits the lines about received data."""
        if (now_s := self.now_s()) < self._reported_s + REPORT_PERIOD_S:
            return False
        self._reported_s = now_s
        return True

    # Methods that a protocol defines.

    @abstractmethod
    def listen(self, timeout_s: float) -> None:
        """Wait for one message, and handle it. Raises LinkTimeoutError, LinkCancelledError and LinkError."""

    @abstractmethod
    def steer(self, leg: Leg) -> str:
        """Send a leg's command, and return it as text. Raises LinkError."""

    @abstractmethod
    def leave(self) -> None:
        """Send the neutral command, and end the session. Called once, also after an error."""

    def prepare(self) -> None:  # noqa: B027 - optional
        """Wait until the vehicle can be steered."""

    def next_turn(self) -> None:
        """Wait until the next command is due."""
        self.wait(self.period_s)

    def result(self) -> str:
        """Return the end of the plan as text."""
        return "the plan is done"

    def finish(self) -> None:  # noqa: B027 - optional
        """Perform actions after the plan, such as landing."""
