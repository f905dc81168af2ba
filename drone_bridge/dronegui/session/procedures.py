# SPDX-License-Identifier: Apache-2.0
"""Procedures: requests in progress, each a generator that yields the conditions that it waits for. Pure.

A procedure yields an Until. It is resumed with the current time when the condition holds, or after the deadline: it
checks itself which of them it was. It returns the sentence of its success, or raises ValueError with a sentence.
"""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import NamedTuple

from drone_bridge.session.session import Request


class Until(NamedTuple):
    """Condition, and deadline."""

    holds: Callable[[], bool]
    until_s: float = math.inf


Procedure = Generator[Until, float, str]
#: Part of a procedure. It returns the time of its end.
Part = Generator[Until, float, float]


@dataclass(slots=True, eq=False)
class _Running:
    request: Request
    steps: Procedure
    awaited: Until


class Procedures:
    """Procedures of one session, in the order of their start."""

    def __init__(self, answer: Callable[[Request, bool, str], None]) -> None:
        """Start without any. `answer` receives each request with its success and sentence."""
        self._answer = answer
        self._running: list[_Running] = []

    def check_not_running(self, *names: str) -> None:
        """Raise ValueError with a sentence while a request of one of these names is in progress."""
        for name in names:
            if self.is_running(name):
                raise ValueError(f"{name} is in progress.")

    def is_running(self, name: str) -> bool:
        """Return whether a request of this name is in progress."""
        return any(each.request.name == name for each in self._running)

    def start(self, request: Request, steps: Procedure) -> None:
        """Run a procedure up to its first wait, which it must have. Raises ValueError with a sentence if refused."""
        self._running.append(_Running(request, steps, next(steps)))

    def turn(self, now_s: float) -> None:
        """Resume each procedure whose condition holds, or whose deadline has passed."""
        for each in tuple(self._running):
            while each in self._running and (now_s >= each.awaited.until_s or each.awaited.holds()):
                self._resume(each, now_s)

    def end(self, why: str, *, but: str = "") -> None:
        """Fail all requests with this sentence, except those of one name."""
        for each in [each for each in self._running if each.request.name != but]:
            self._running.remove(each)
            self._answer(each.request, False, why)

    def _resume(self, running: _Running, now_s: float) -> None:
        try:
            running.awaited = running.steps.send(now_s)
        except StopIteration as end:
            self._running.remove(running)
            self._answer(running.request, True, end.value)
        except ValueError as error:
            self._running.remove(running)
            self._answer(running.request, False, str(error))
        except Exception:
            self._running.remove(running)  # else its next step would look like its success
            raise
