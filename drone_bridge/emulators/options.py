# SPDX-License-Identifier: Apache-2.0
"""What the options of emulators are read by; each raises what argparse makes a message of."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import TypeVar

T = TypeVar("T")
KindT = TypeVar("KindT", bound=Enum)


def port(text: str) -> int:
    """Read a port number."""
    value = count(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"must be at most 65535, not {text}")
    return value


def count(text: str) -> int:
    """Read a whole number that is not below 0."""
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"must not be below 0, not {text}")
    return value


def triple(text: str) -> tuple[float, float, float]:
    """Read 'x y z'."""
    try:
        x, y, z = map(float, text.split())
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"must be three numbers, not {text!r}") from error
    if not all(map(math.isfinite, (x, y, z))):
        raise argparse.ArgumentTypeError(f"must be finite, not {text!r}")
    return x, y, z


def read_by(parse: Callable[[str], T], shape: str) -> Callable[[str], T]:
    """Return what reads an option's text by `parse`, and names the expected shape when that raises ValueError."""

    def read(text: str) -> T:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"must be {shape}: {error}") from error

    return read


def one_of(kinds: type[KindT]) -> Callable[[str], KindT]:
    """Return what reads an option's text as the value of one of these, and names all of them when it is none."""

    def read(text: str) -> KindT:
        for kind in kinds:
            if kind.value == text:
                return kind
        raise argparse.ArgumentTypeError(f"must be {alternatives([kind.value for kind in kinds])}, not {text!r}")

    return read


def alternatives(words: Sequence[str]) -> str:
    """Return two words or more as 'a, b or c'."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def not_negative(text: str) -> float:
    """Read a finite number that is not below 0."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be finite and not below 0, not {text}")
    return value


def positive(text: str) -> float:
    """Read a finite number above 0."""
    value = not_negative(text)
    if not value:
        raise argparse.ArgumentTypeError("must be above 0")
    return value


def probability(text: str) -> float:
    """Read a number from 0 to 1."""
    value = not_negative(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"must be from 0 to 1, not {text}")
    return value
