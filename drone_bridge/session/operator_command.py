# SPDX-License-Identifier: Apache-2.0
"""OperatorCommand: the command in force of an operator, with repeats and timeout, for the sessions of servers."""

import math
from collections.abc import Callable
from typing import Any

from drone_bridge.session.session import AFTER_STALLS, Actions, Note, Publish, next_due
from drone_bridge.wire.counters import ProblemCounter

#: Counter of operators that went silent while commanding a motion.
OPERATORS_LOST = ProblemCounter("lost_operators")
#: Delay after the timeout at which `tick` ends a command.
_AFTER_S = 1e-3


class OperatorCommand:
    """Command of an operator: published at once, repeated while it is in force, and followed by the neutral command.

    A command is in force for `timeout_s` after its arrival. The publisher of velocities repeats the neutral command
    afterwards, until another source commands the vehicle.
    """

    def __init__(self, neutral: Any, timeout_s: Callable[[], float], rate: float) -> None:
        """`neutral` is the neutral message, and `rate` the rate of repeats, Hz. `timeout_s` may return new values."""
        self._neutral, self._timeout_s = neutral, timeout_s
        #: Rate of repeats, Hz.
        self.rate = rate
        self._command: Any = None
        self._commanded_s = -math.inf
        #: Time of the next `tick`, s.
        self.due_s = math.inf

    @property
    def is_in_force(self) -> bool:
        """Whether a command is in force."""
        return self._command is not None

    def command(self, command: Any, now_s: float) -> Actions:
        """Publish a new command at once."""
        self._command, self._commanded_s = command, now_s
        self.due_s = now_s + 1 / self.rate
        return [Publish(command)]

    def keep(self, now_s: float) -> None:
        """Keep the command in force: its operator is there, and expects it to last."""
        self._commanded_s = now_s

    def tick(self, operator: str, now_s: float) -> Actions:
        """Repeat the command, or end it when `operator` has timed out."""
        if self._command is None or now_s < self.due_s:
            return []
        silent_s, timeout_s = now_s - self._commanded_s, self._timeout_s()
        if silent_s <= timeout_s:
            self.due_s = min(next_due(self.due_s, 1 / self.rate, now_s), self._commanded_s + timeout_s + _AFTER_S)
            return [Publish(self._command)]
        sentence = f"{operator} was silent for {silent_s:.1f} s: zero was commanded (command_timeout)."
        return self._ended(Note(OPERATORS_LOST, sentence))

    def resume(self, operator: str, now_s: float) -> Actions:
        """End a command that is stale after a stall of this process. This does not count as silence of `operator`."""
        if self._command is None or now_s - self._commanded_s <= self._timeout_s():
            return []
        sentence = f"The process was stalled: commanded zero, because the last command of {operator} is stale."
        return self._ended(Note(AFTER_STALLS, sentence))

    def end(self) -> Actions:
        """End the command in force, and publish the neutral one."""
        if self._command is None:
            return []
        self._command, self.due_s = None, math.inf
        return [Publish(self._neutral)]

    def _ended(self, note: Note) -> Actions:
        """End the command in force, with a note unless it was neutral."""
        notes = [] if self._command == self._neutral else [note]
        return [*self.end(), *notes]
