# SPDX-License-Identifier: Apache-2.0
"""Procedures: requests in progress, each a generator that yields the conditions that it waits for. Pure.

A procedure yields an Until. It is resumed with the current time when the condition holds, or after the deadline: it
checks itself which of them it was. It returns the sentence of its success, or raises ValueError with a sentence.
"""

import math
from collections.abc import Callable, Generator, Iterator
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

    def __iter__(self) -> Iterator[Request]:
        """Return the requests in progress."""
        return iter([each.request for each in self._running])

    def start(self, request: Request, steps: Procedure) -> None:
        """Run a procedure up to its first wait, which it must have. Raises ValueError with a sentence if refused."""
        self._running.append(_Running(request, steps, next(steps)))

    def turn(self, now_s: float) -> None:
        """Resume each procedure whose condition holds, or whose deadline has passed."""
        for each in tuple(self._running):
            while each in self._running and (now_s >= each.awaited.until_s or each.awaited.holds()):
                self._resume(each, now_s)

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

    def extend(self, until_s: float) -> None:
        """Extend all deadlines to at least this time, such as after a stall of this process."""
        for each in self._running:
            each.awaited = each.awaited._replace(until_s=max(each.awaited.until_s, until_s))
