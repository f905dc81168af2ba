# SPDX-License-Identifier: Apache-2.0
"""A network that does to datagrams what UDP allows: it loses some, and lets some be overtaken."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class BadNetwork(Generic[T]):
    """Loses some datagrams, and lets some be overtaken by the next one; which ones repeats with the seed."""

    def __init__(self, loss: float, reorder: float, seed: int) -> None:
        """`loss` and `reorder` are probabilities."""
        self._loss = loss
        self._reorder = reorder
        self._random = random.Random(seed)
        self._held: list[T] = []  # at most one

    def carry(self, datagram: T) -> Iterator[T]:
        """Return what arrives when this one is sent, in the order of arrival."""
        if self._random.random() < self._loss:
            return
        held, self._held = self._held, []
        if not held and self._random.random() < self._reorder:
            self._held = [datagram]
            return
        yield datagram
        yield from held
