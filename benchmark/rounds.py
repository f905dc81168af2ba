# SPDX-License-Identifier: Apache-2.0
"""Rounds with alternating measurements of both sides, and the common main program of the benchmarks."""

import argparse
import contextlib
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from children import ChildError, heed_signals
from domains import DOMAINS
from system import Measurement, Place, System
from table import BASELINE, BRIDGE, Samples

TURNS = 4  # parts of each measurement in a round, alternating between the sides

SystemT = TypeVar("SystemT", bound=System)


@contextlib.contextmanager
def systems(make: Callable[[str, Place], SystemT], sides: list[str]) -> Iterator[list[SystemT]]:
    """Start these sides, and stop them at the end."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        started = []
        for side, domain in zip(sides, random.sample(DOMAINS, len(sides)), strict=True):
            system = make(side, Place(domain, Path(scratch)))
            stack.callback(system.stop)
            started.append(system)
        yield started


def take_turns(
    pair: list[SystemT], measure: Callable[[SystemT, Measurement, float], None], seconds: float
) -> dict[str, Measurement]:
    """Measure both sides for the given time each, alternating several times."""
    measurements = {system.side: system.begin() for system in pair}
    for turn in range(TURNS):
        for system in pair if turn % 2 == 0 else reversed(pair):
            measure(system, measurements[system.side], seconds / TURNS)
    return measurements


def make_parser(description: str | None, seconds: float = 2.0) -> argparse.ArgumentParser:
    """Return the common options of benchmarks; `seconds` is the default length of a measurement."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=int, default=5, help="number of measurements of both sides (default 5)")
    parser.add_argument(
        "--seconds", type=float, default=seconds, help=f"length of one measurement (default {seconds:g})"
    )
    parser.add_argument("--quick", action="store_true", help="2 short rounds")
    return parser


def run(
    options: argparse.Namespace,
    samples: Samples,
    measure_round: Callable[[float, list[str]], None],
    finish: Callable[[], None] = lambda: None,
) -> int:
    """Measure all rounds, print the table, finish; return the exit status.

    `measure_round` gets the seconds of each measurement and the order of the sides.
    """
    if options.quick:
        options.rounds, options.seconds = 2, 1.0
    heed_signals()
    began_s = time.monotonic()
    try:
        for number in range(options.rounds):
            sides = [BASELINE, BRIDGE] if number % 2 == 0 else [BRIDGE, BASELINE]
            print(f"round {number + 1} of {options.rounds}: {', then '.join(sides)}", flush=True)
            measure_round(options.seconds, sides)
        print(f"\n{_describe(options)}\n\n{samples.render()}", flush=True)
        finish()
    except ChildError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"\n{time.monotonic() - began_s:.0f} s in all")
    return 0


def _describe(options: argparse.Namespace) -> str:
    """Return a description of the measurement."""
    return (
        f"{options.rounds} interleaved rounds of {options.seconds:g} s per measurement, on {os.cpu_count()} cores of "
        f"{platform.machine()}, Python {platform.python_version()}.\n"
        "Each value is the median of the rounds, with minimum and maximum; each ratio is the median of the ratios "
        "within a round."
    )
