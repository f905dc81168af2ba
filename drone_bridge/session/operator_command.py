# SPDX-License-Identifier: Apache-2.0
"""OperatorCommand: an operator's command for as long as it is in force, for the sessions of servers."""

import math
from collections.abc import Callable
from typing import Any

from drone_bridge.session.session import AFTER_STALLS, Actions, Note, Publish, next_due

#: The counter of operators that fell silent while commanding a motion.
OPERATORS_LOST = "operators_gone"
#: How soon after its time-out a command ends.
_AFTER_S = 1e-3


class OperatorCommand:
    """Publishes each command at once, repeats it while it is in force, and then publishes the neutral one.

    A command is in force for `timeout_s` after it arrived. The neutral one that follows is repeated by the publisher of
    velocities, for as long as nobody else commands the vehicle.
    """

    def __init__(self, neutral: Any, timeout_s: Callable[[], float], rate: float) -> None:
        """`neutral` is the message that moves nothing, and `rate` that of repeats, Hz; `timeout_s` may change."""
        self._neutral, self._timeout_s = neutral, timeout_s
        #: Of repeats, Hz.
        self.rate = rate
        self._command: Any = None
        self._commanded_s = -math.inf
        #: When `tick` is wanted.
        self.due_s = math.inf

    @property
    def is_in_force(self) -> bool:
        """Whether there is a command that was not ended."""
        return self._command is not None

    def command(self, command: Any, now_s: float) -> Actions:
        """Take a command that has just arrived."""
        self._command, self._commanded_s = command, now_s
        self.due_s = now_s + 1 / self.rate
        return [Publish(command)]

    def tick(self, operator: str, now_s: float) -> Actions:
        """Repeat the command, or end it when `operator` has been silent for too long."""
        if self._command is None or now_s < self.due_s:
            return []
        silent_s, timeout_s = now_s - self._commanded_s, self._timeout_s()
        if silent_s <= timeout_s:
            self.due_s = min(next_due(self.due_s, 1 / self.rate, now_s), self._commanded_s + timeout_s + _AFTER_S)
            return [Publish(self._command)]
        return self._ended(Note(OPERATORS_LOST, f"{operator} was silent for {silent_s:.1f} s: zero was commanded."))

    def resume(self, operator: str, now_s: float) -> Actions:
        """End a command that is too old after this process stood still, which is no silence of `operator`."""
        if self._command is None or now_s - self._commanded_s <= self._timeout_s():
            return []
        sentence = f"This process stood still: zero was commanded instead of what {operator} wanted before."
        return self._ended(Note(AFTER_STALLS, sentence))

    def end(self) -> Actions:
        """Publish the neutral command if another one is in force."""
        if self._command is None:
            return []
        self._command, self.due_s = None, math.inf
        return [Publish(self._neutral)]

    def _ended(self, note: Note) -> Actions:
        """End the command in force; the note is about one that moved something."""
        notes = [] if self._command == self._neutral else [note]
        return [*self.end(), *notes]
