# SPDX-License-Identifier: Apache-2.0
"""Faults that an emulator makes on purpose, once, so that clients can be tried on them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from drone_bridge.emulators.program import count, read_by

KindT = TypeVar("KindT", bound=Enum)


@dataclass(frozen=True, slots=True)
class Fault(Generic[KindT]):
    """What goes wrong, and when: emulators differ in what they can break and in what they count, from 0."""

    kind: KindT
    at: int


def fault_of(kinds: type[KindT]) -> Callable[[str], Fault[KindT]]:
    """Return what reads an option such as 'truncate@3', and refuses what is none of these kinds with a sentence."""
    shapes = [f"{kind.value}@N" for kind in kinds]

    def parse(text: str) -> Fault[KindT]:
        kind, _, number = text.partition("@")
        return Fault(kinds(kind), count(number))

    return read_by(parse, f"{', '.join(shapes[:-1])} or {shapes[-1]}")
