# SPDX-License-Identifier: Apache-2.0
"""Faults that an emulator injects once, on request, to test clients."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from drone_bridge.programs.options import alternatives

KindT = TypeVar("KindT", bound=Enum)


@dataclass(frozen=True, slots=True)
class Fault(Generic[KindT]):
    """Which fault to inject, and when, counted from 0; kinds and what is counted depend on the emulator."""

    kind: KindT
    at: int


def fault_of(kinds: type[KindT]) -> Callable[[str], Fault[KindT]]:
    """Return a parser for an option such as 'truncate@3', whose errors name all kinds."""

    def read(text: str) -> Fault[KindT]:
        name, _, number = text.partition("@")
        for kind in kinds:
            if kind.value == name and number.isdecimal():
                return Fault(kind, int(number))
        shapes = alternatives([f"{kind.value}@N" for kind in kinds])
        raise argparse.ArgumentTypeError(f"must be {shapes}, N from 0, not {text!r}")

    return read
