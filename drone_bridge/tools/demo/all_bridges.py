# SPDX-License-Identifier: Apache-2.0
"""All bridges at once: does every topic arrive, at the expected rate?"""

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import rclpy

from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.demo.rates import RateMeter
from drone_bridge.tools.demo.systems import SYSTEMS, TOPICS

START_TIMEOUT_S: Final = 60.0
#: Less than this share of the expected rate is a failure.
ENOUGH: Final = 0.8


def show(folder: Path, duration_s: float) -> int:
    """Run all bridges, print the table, and return 0 if every topic arrived at its expected rate."""
    isolate_ros_graph()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "all.txt"
    began_s = time.monotonic()
    composition = Composition(
        "all.launch.xml",
        log,
        emulate=True,
        control=True,
        **{name: free_port() for system in SYSTEMS for name in system.ports},
    )
    rclpy.init()
    meter = RateMeter([topic for topics in TOPICS.values() for topic in topics])
    try:
        print(f"{len(TOPICS)} nodes and their peers are started and then watched for {duration_s:g} s.", flush=True)
        meter.wait_for_all(START_TIMEOUT_S, lambda: composition.is_running)
        with Progress(total=round(duration_s)) as progress:
            watched_since_s = time.monotonic()

            def keep_going() -> bool:
                progress.show("watching", int(time.monotonic() - watched_since_s))
                return composition.is_running

            meter.measure(duration_s, keep_going)
    finally:
        meter.destroy_node()
        rclpy.shutdown()
        ended_well = composition.stop()
    took_s = time.monotonic() - began_s
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _print_table(list(rows_of(meter)))
    print(f"All processes used {(used.ru_utime + used.ru_stime) / took_s:.2f} processor cores, including startup.")
    problems = list(problems_of(meter))
    if not ended_well:
        problems.append(f"not every process exited cleanly; the complete output is in {log}")
    for problem in problems:
        print(f"{problem[0].upper()}{problem[1:]}.", file=sys.stderr)
    return 1 if problems else 0


def rows_of(meter: RateMeter) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table, header first."""
    yield "topic", "type", "expected", "measured", "dropped"
    for node, topics in TOPICS.items():
        dropped = meter.diagnostics.get(f"{node}: link", {}).get("dropped messages", "-")
        for topic in topics:
            if topic.rate_hz:
                rates = (f"{topic.rate_hz:.1f} Hz", f"{meter.rate_hz(topic):.1f} Hz")
            else:
                rates = ("latched", "received" if meter.counts[topic.name] else "missing")
            yield (topic.name, topic.type_name, *rates, dropped)


def problems_of(meter: RateMeter) -> Iterator[str]:
    """Yield a sentence for each topic that is missing or too slow."""
    for topic in (topic for topics in TOPICS.values() for topic in topics):
        if not meter.counts[topic.name]:
            yield f"{topic.name} was not received"
        elif topic.rate_hz and meter.rate_hz(topic) < ENOUGH * topic.rate_hz:
            yield f"{topic.name} came {meter.rate_hz(topic):.1f} times per second instead of {topic.rate_hz:g}"


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, kind, *numbers in rows:
        cells = [name.ljust(widths[0]), kind.ljust(widths[1])]
        cells += [number.rjust(width) for number, width in zip(numbers, widths[2:], strict=True)]
        print("  ".join(cells))
