# SPDX-License-Identifier: Apache-2.0
"""Counter: a counter of events, declared once, by the module that counts them.

A process has one registry, as that of Prometheus' clients: `/diagnostics` shows every counter that it declares, as a
rate too, or as a warning while it grows.
"""

from typing import ClassVar


class Counter(str):
    """Name of a counter in snake_case. Equal to its text."""

    #: Counters of this process, by name.
    declared: ClassVar[dict[str, "Counter"]] = {}

    def __init__(self, name: str) -> None:
        """Declare it. Raises ValueError for another kind of the same name."""
        if type(self.declared.setdefault(name, self)) is not type(self):
            raise ValueError(f"{name} is declared as a {type(self.declared[name]).__name__}, too.")


class RateCounter(Counter):
    """Counter that is also shown per second."""


class ProblemCounter(Counter):
    """Counter whose growth is a warning."""


class FaultCounter(ProblemCounter):
    """Counter whose growth is a fault of the conversation: the last minute of the wire is saved."""


def rates(*names: str) -> tuple[RateCounter, ...]:
    """Declare rates."""
    return tuple(map(RateCounter, names))


def faults(*names: str) -> tuple[FaultCounter, ...]:
    """Declare faults."""
    return tuple(map(FaultCounter, names))


def problems(*names: str) -> tuple[ProblemCounter, ...]:
    """Declare problems."""
    return tuple(map(ProblemCounter, names))
