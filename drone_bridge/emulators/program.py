# SPDX-License-Identifier: Apache-2.0
"""What every emulator needs to be a well-behaved program: its options, its output, its end."""

from __future__ import annotations

import argparse
import contextlib
import csv
import math
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from types import TracebackType
from typing import Final, TypeVar

from drone_bridge.links.cancellation import Cancellation

T = TypeVar("T")
KindT = TypeVar("KindT", bound=Enum)

STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextlib.contextmanager
def cancelled_by_signals(cancellation: Cancellation) -> Iterator[None]:
    """Let SIGINT and SIGTERM cancel; afterwards, as the program is about to end, ignore them.

    The interpreter gives handled signals back their deadly default on its way out, but leaves ignored ones alone: so
    the second Ctrl-C of an impatient user does not change the exit code.
    """
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: cancellation.cancel())
    try:
        yield
    finally:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_IGN)


def say(text: str) -> None:
    """Report one event."""
    print(text, flush=True)


class TrajectoryFile:
    """A CSV file with one row per state."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        """Create or overwrite the file. Raises OSError."""
        # Line by line, so that it can be followed while the vehicle moves.
        self._file = open(path, "w", newline="", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed in __exit__
        self._writer = csv.writer(self._file)
        self._columns = columns

    def __enter__(self) -> TrajectoryFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()

    def restart(self) -> None:
        """Forget the states before, and begin with the header."""
        self._file.seek(0)
        self._file.truncate()
        self._writer.writerow(self._columns)

    def write(self, values: Iterable[float | str]) -> None:
        """Append a state, in the order of the columns."""
        self._writer.writerow([value if isinstance(value, str) else f"{value:.6g}" for value in values])


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
