# SPDX-License-Identifier: Apache-2.0
"""Runtime of programs: signals, exit code, output, and trajectory file."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import csv
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

from drone_bridge.net.connector import Cancellation, LinkError, LinkInUseError
from drone_bridge.standard_files import open_closed_files
from drone_bridge.stop_signals import handle_stop_signals, ignore_stop_signals
from drone_bridge.wire.events import ProtocolError

CANNOT_START = 2  # exit code, the same as that of argparse
WARNING_PERIOD_S = 1.0
#: Time of failing connection attempts until advice is printed.
ADVICE_AFTER_S = 5.0
_CLEAR = "\r\x1b[K"  # overwrites the current line


class _Status:
    is_wanted = True


#: Main function: runs until it ends or is cancelled, and returns the exit code. It puts open resources on the stack.
Program = Callable[[argparse.Namespace, Cancellation, contextlib.ExitStack], int]


def run_program(name: str, program: Program, options: argparse.Namespace) -> int:
    """Run a program until it ends or a signal cancels it. Return its exit code. Prints startup errors."""
    open_closed_files()
    _Status.is_wanted = not getattr(options, "ends_launch", False)
    cancellation = Cancellation()
    try:
        with contextlib.ExitStack() as stack:
            stack.enter_context(cancelled_by_signals(cancellation))
            return program(options, cancellation, stack)
    except (ValueError, OSError, LinkError, ProtocolError) as error:
        if isinstance(error, LinkInUseError):
            given = {each.replace("_", "-"): value for each, value in vars(options).items()}
            error.advise(given, "--{}", name * getattr(options, "ends_launch", False))
        said = f"{error.filename}: {error.strerror}." if isinstance(error, OSError) and error.filename else error
        _print(f"{name}: {said}", sys.stderr)
        return CANNOT_START


async def cancelled_or_after(cancellation: Cancellation, duration_s: float | None) -> None:
    """Wait until cancelled, or for the duration if given."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    # The descriptor stays readable once cancelled. It carries no data.
    loop.add_reader(cancellation.fileno(), ended.set)
    try:
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(ended.wait(), duration_s)
    finally:
        loop.remove_reader(cancellation.fileno())


@contextlib.contextmanager
def cancelled_by_signals(cancellation: Cancellation) -> Iterator[None]:
    """Cancel on a stop signal. These are ignored afterwards, while the program ends."""
    handle_stop_signals(cancellation.cancel)
    try:
        yield
    finally:
        ignore_stop_signals()


def print_event(text: str) -> None:
    """Print one event. If stdout is closed, the program continues silently."""
    _print(text, sys.stdout)


def print_status(text: str) -> None:
    """Print the progress: one overwritten line on a terminal, and none under a launch file."""
    if _Status.is_wanted:
        _print(text, sys.stdout, changes=True)


class Retries:
    """Reporter of connection failures: prints new errors, and advice once after ADVICE_AFTER_S."""

    def __init__(self) -> None:
        self._last, self._failed_s, self._advice_s = "", -math.inf, math.inf

    def __call__(self, failure: LinkError, delay_s: float) -> None:
        """Print the failure of an attempt unless it repeats. `delay_s`: time until the next one."""
        now_s = time.monotonic()
        begins = str(failure) != self._last or now_s - self._failed_s > ADVICE_AFTER_S + delay_s
        self._last, self._failed_s = str(failure), now_s
        if begins:
            self._advice_s = now_s + ADVICE_AFTER_S
            print_event(f"{failure} Trying again.")
        elif now_s >= self._advice_s:
            self._advice_s = math.inf
            print_event(f"{failure} Is it running? --host and --port name another address.")


#: Reporter for the only link of a program.
print_retry = Retries()


class LimitedReports:
    """Rate-limited reporter of peers' errors: at most one per WARNING_PERIOD_S."""

    _next_s = 0.0

    def print(self, sentence: str) -> None:
        if time.monotonic() >= self._next_s:
            print_event(sentence)
            self._next_s = time.monotonic() + WARNING_PERIOD_S


def _print(text: str, file: TextIO, *, changes: bool = False) -> None:
    try:
        is_terminal = file.isatty()
        text = text[: shutil.get_terminal_size().columns - 1] if is_terminal and changes else text
        print(
            f"{_CLEAR if is_terminal else ''}{text}", file=file, end="" if is_terminal and changes else "\n", flush=True
        )
    except OSError:
        # Redirect permanently. Flushing the buffer would fail again, at interpreter exit at the latest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())


class TrajectoryFile:
    """CSV file with one row per state."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str]) -> None:
        """Create or overwrite the file, and write its header. Raises OSError."""
        # Line-buffered, so that readers can follow the file while the vehicle moves.
        self._file = open(path, "w", newline="", encoding="utf-8", buffering=1)  # noqa: SIM115 - closed in __exit__
        self._writer = csv.writer(self._file)
        self._columns = columns
        self.restart()

    def __enter__(self) -> TrajectoryFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @classmethod
    def wanted(cls, path: str | None, columns: Sequence[str], stack: contextlib.ExitStack) -> TrajectoryFile | None:
        """Return a file that the stack closes, or None without a path. Raises OSError."""
        return stack.enter_context(cls(path, columns)) if path else None

    def restart(self) -> None:
        """Truncate the file and write the header."""
        self._file.seek(0)
        self._file.truncate()
        self._writer.writerow(self._columns)

    def write(self, values: Iterable[float | str]) -> None:
        """Append a state, with values in the order of the columns."""
        self._writer.writerow([value if isinstance(value, str) else f"{value:.6g}" for value in values])
