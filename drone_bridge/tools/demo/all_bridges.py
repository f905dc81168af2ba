# SPDX-License-Identifier: Apache-2.0
"""All bridges at once: do messages arrive on every topic, and how many per second?"""

import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile

from drone_bridge.kind import kinds
from drone_bridge.tools.demo.composition import Composition, free_port, isolate_ros_graph, ports_of
from drone_bridge.tools.demo.progress import Progress
from drone_bridge.tools.interfaces import import_interface

LAUNCH_FILE = "all.launch.xml"
START_TIMEOUT_S = 60.0
PERIOD_S = 0.02
STEP_S = 1.0
DROPPED = "dropped messages"
# For what may come within a period, and the latched messages of many nodes at once.
DEPTH = 50
#: The last parts of topics whose messages tell of something that need not happen.
ON_EVENTS = ("transition_event", "attributes", "completed", "item_events", "trigger_events")


@dataclass
class Topic:
    """What is offered under a name, and how much of it has arrived."""

    type_name: str
    node: str
    """Who offers it, with its namespace"""
    is_latched: bool
    subscription: Any
    count: int = 0


class Meter(Node):
    """Counts the messages of all topics that are offered in some namespaces, and keeps the bridges' diagnostics.

    Subscriptions are polled at a fixed period, and messages are not deserialized. rclpy's executor would iterate over
    all of them for every message, which takes a processor core of its own at the rates at which this is used.
    """

    def __init__(self, namespaces: Sequence[str]) -> None:
        super().__init__("meter")
        self.topics: dict[str, Topic] = {}
        self.diagnostics: dict[str, dict[str, str]] = {}  # by the name of the status
        self._namespaces = namespaces
        self._reports = self.create_subscription(DiagnosticArray, "/diagnostics", lambda _: None, DEPTH)
        self._pause = threading.Event()

    @property
    def missing(self) -> list[str]:
        """The namespaces without topics, and the topics without messages."""
        bare = [each for each in self._namespaces if not any(name.startswith(f"/{each}/") for name in self.topics)]
        return bare + [name for name, topic in sorted(self.topics.items()) if not topic.count]

    def look_around(self) -> bool:
        """Subscribe to what is offered by now; return whether that is more than before."""
        before = len(self.topics)
        for name, (type_name, *_) in self.get_topic_names_and_types():
            is_meant = name.split("/")[1] in self._namespaces and name.rpartition("/")[2] not in ON_EVENTS
            offers = self.get_publishers_info_by_topic(name) if is_meant and name not in self.topics else []
            if not offers:
                continue
            is_latched = offers[0].qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
            durability = DurabilityPolicy.TRANSIENT_LOCAL if is_latched else DurabilityPolicy.VOLATILE
            quality = QoSProfile(depth=DEPTH, durability=durability)
            subscription = self.create_subscription(
                import_interface(type_name), name, lambda _: None, quality, raw=True
            )
            node = f"{offers[0].node_namespace}/{offers[0].node_name}".removeprefix("/")
            self.topics[name] = Topic(type_name, node, is_latched, subscription)
        return len(self.topics) > before

    def count(self, duration_s: float) -> float:
        """Count for so long; return how long that was, s."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < duration_s:
            self._pause.wait(PERIOD_S)
            for topic in self.topics.values():
                topic.count += sum(1 for _ in _arrived(topic.subscription, raw=True))
            for report in _arrived(self._reports, raw=False):
                for status in report.status:
                    self.diagnostics[status.name] = {pair.key: pair.value for pair in status.values}
        return time.monotonic() - began_s


def _arrived(subscription: Any, raw: bool) -> Iterator[Any]:
    """Yield what has arrived since the last poll, at most a full queue."""
    with subscription.handle:
        for _ in range(DEPTH):
            taken = subscription.handle.take_message(subscription.msg_type, raw)
            if taken is None:
                return
            yield taken[0]


def show(folder: Path, duration_s: float) -> int:
    """Run all bridges, print the table, and return 0 if messages arrived on every topic."""
    isolate_ros_graph()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "all.txt"
    began_s = time.monotonic()
    composition = Composition(
        LAUNCH_FILE, log, emulate=True, control=True, **{port: free_port() for port in ports_of(LAUNCH_FILE)}
    )
    rclpy.init()
    meter = Meter([kind.launch_file.removesuffix(".launch.xml") for kind in kinds().values()])
    measured_s = 0.0
    try:
        print(f"{len(kinds())} bridges and their peers are started and then watched for {duration_s:g} s.", flush=True)
        while (meter.look_around() or meter.missing) and time.monotonic() < began_s + START_TIMEOUT_S:
            meter.count(STEP_S)
        for topic in meter.topics.values():
            topic.count = topic.count if topic.is_latched else 0
        with Progress() as progress:
            while measured_s < duration_s and composition.is_running:
                progress.show(f"watching, {measured_s:.0f} of {duration_s:g} s")
                measured_s += meter.count(min(STEP_S, duration_s - measured_s))
    finally:
        meter.destroy_node()
        rclpy.shutdown()
        ended_well = composition.stop()
    took_s = time.monotonic() - began_s
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    _print_table(list(rows_of(meter, measured_s)))
    print(f"All processes used {(used.ru_utime + used.ru_stime) / took_s:.2f} processor cores, including startup.")
    problems = [f"nothing was received on {name}" for name in meter.missing]
    if not ended_well:
        problems.append(f"not every process exited cleanly; the complete output is in {log}")
    for problem in problems:
        print(f"{problem[0].upper()}{problem[1:]}.", file=sys.stderr)
    return 1 if problems else 0


def rows_of(meter: Meter, measured_s: float) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table, header first."""
    yield "topic", "type", "measured", "dropped"
    for name, topic in sorted(meter.topics.items()):
        if topic.is_latched:
            measured = "received" if topic.count else "missing"
        else:
            measured = f"{topic.count / measured_s:.1f} Hz"
        yield name, topic.type_name, measured, meter.diagnostics.get(f"{topic.node}: link", {}).get(DROPPED, "-")


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, kind, *numbers in rows:
        cells = [name.ljust(widths[0]), kind.ljust(widths[1])]
        cells += [number.rjust(width) for number, width in zip(numbers, widths[2:], strict=True)]
        print("  ".join(cells))
