# SPDX-License-Identifier: Apache-2.0
"""Waits for sockets by `select.poll`, and by `select.select` where the system has no other, as Windows."""

import select
from typing import Protocol

POLLIN: int = getattr(select, "POLLIN", 1)
POLLOUT: int = getattr(select, "POLLOUT", 4)
_POLLERR: int = getattr(select, "POLLERR", 8)


class Selectable(Protocol):
    """Anything with a descriptor for select and poll."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable."""


class Poll(Protocol):
    """What is used of `select.poll`."""

    def register(self, file: Selectable | int, events: int, /) -> None:
        """Wait for these events, and for errors, of a file from now on."""

    def poll(self, timeout_ms: float | None, /) -> list[tuple[int, int]]:
        """Wait for an event or the timeout; return descriptors with what has happened."""


class SelectPoll:
    """`select.poll` by `select.select`. That a peer has gone is seen by reading only."""

    def __init__(self) -> None:
        self._events: dict[int, int] = {}

    def register(self, file: Selectable | int, events: int, /) -> None:
        self._events[file if isinstance(file, int) else file.fileno()] = events

    def poll(self, timeout_ms: float | None, /) -> list[tuple[int, int]]:
        reading = [number for number, events in self._events.items() if events & POLLIN]
        writing = [number for number, events in self._events.items() if events & POLLOUT]
        # Windows reports here, and not as writable, that a connection was refused.
        found = select.select(reading, writing, list(self._events), None if timeout_ms is None else timeout_ms / 1000)
        happened = dict.fromkeys(self._events, 0)
        for numbers, event in zip(found, (POLLIN, POLLOUT, _POLLERR), strict=True):
            for number in numbers:
                happened[number] |= event
        return [(number, events) for number, events in happened.items() if events]


def make_poll() -> Poll:
    """Return the best that the system has."""
    return select.poll() if hasattr(select, "poll") else SelectPoll()
