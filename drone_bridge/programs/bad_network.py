# SPDX-License-Identifier: Apache-2.0
"""BadNetwork: emulation of a network that loses and reorders datagrams."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class BadNetwork(Generic[T]):
    """Channel that drops some datagrams, and swaps some with the next one. Reproducible by seed."""

    def __init__(self, loss: float, reorder: float, seed: int) -> None:
        """Initialize. `loss` and `reorder` are probabilities."""
        self._loss = loss
        self._reorder = reorder
        self._random = random.Random(seed)
        self._held: list[T] = []  # at most one

    def carry(self, datagram: T) -> Iterator[T]:
        """Send a datagram. Yield the datagrams that arrive then, in order of arrival."""
        if self._random.random() < self._loss:
            return
        held, self._held = self._held, []
        if not held and self._random.random() < self._reorder:
            self._held = [datagram]
            return
        yield datagram
        yield from held
