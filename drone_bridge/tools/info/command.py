# SPDX-License-Identifier: Apache-2.0
"""drone-bridge info: the contents of a bag by topic: types, counts, rates, longest gaps. Or the module of a robot."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from drone_bridge.kind import kinds, unloadable
from drone_bridge.tools.columns import in_columns
from drone_bridge.tools.command_parser import CommandParser

if TYPE_CHECKING:
    from drone_bridge.tools.bags.bag import BagMessage, BagReader, BagTopic

#: 2000-01-01, s since 1970. Earlier times are simulated time, which begins at 0.
_EARLIEST_DATE_S = 946_684_800
_NANOSECONDS = 1e9


@dataclass(slots=True)
class TopicRate:
    """Message count, rate and longest gap of a topic, by the recorder's clock."""

    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    longest_gap_ns: int = 0
    gap_began_ns: int = 0

    def note(self, time_ns: int) -> None:
        """Record the time of the next message."""
        if not self.count:
            self.first_ns = time_ns
        elif time_ns - self.last_ns > self.longest_gap_ns:
            self.longest_gap_ns, self.gap_began_ns = time_ns - self.last_ns, self.last_ns
        self.count += 1
        self.last_ns = time_ns

    @property
    def rate_hz(self) -> float | None:
        """Messages per second from the first to the last one, or None for fewer than two."""
        span_ns = self.last_ns - self.first_ns
        return (self.count - 1) / span_ns * _NANOSECONDS if span_ns else None


def topic_rates(messages: "Iterable[BagMessage]") -> "dict[BagTopic, TopicRate]":
    """Return the rate and longest gap of each topic."""
    found: dict[BagTopic, TopicRate] = {}
    for message in messages:
        found.setdefault(message.topic, TopicRate()).note(message.time_ns)
    return found


def main(argv: Sequence[str]) -> int:
    """Print the contents of a bag. Return the exit status."""
    parser = CommandParser(prog="drone-bridge info", description=__doc__)
    parser.add_argument("bag", type=Path, help="a folder with metadata.yaml, an .mcap file, or a robot's name")
    options = parser.parse_args(argv)
    is_bag = options.bag.is_file() or (options.bag / "metadata.yaml").exists()  # `new` makes a folder of a robot's name
    if not is_bag and (kind := kinds().get(str(options.bag))):
        print(f"{kind.name}: {kind.summary}, described by {kind.module}")
        return 0
    if not is_bag and str(options.bag) in unloadable():  # a warning gave the reason
        return 1
    from drone_bridge.tools.bags.bag import run_on_bag

    return run_on_bag("info", options.bag, print_info)


def beginning(bag: "BagReader") -> str:
    """Describe the beginning of a bag, by date and time or by simulated time, or an empty bag."""
    if not bag.count:
        return "empty"
    start_s = bag.start_ns / _NANOSECONDS
    if start_s < _EARLIEST_DATE_S:
        return f"begins at {start_s:.3f} s of simulated time"
    return f"begins at {datetime.datetime.fromtimestamp(start_s).astimezone():%Y-%m-%d %H:%M:%S %Z} ({start_s:.3f})"


def print_info(bag: "BagReader") -> int:
    """Print the contents of a bag, with a table of its topics. Return the exit status."""
    duration_s = (bag.end_ns - bag.start_ns) / _NANOSECONDS
    print(f"{bag.path}: {bag.count} messages in {duration_s:.1f} s, {bag.size_bytes / 1e6:.1f} MB")
    print(beginning(bag))
    by_topic = topic_rates(bag.messages())
    rows = [("topic", "type", "messages", "per second", "longest gap")]
    for topic in bag.topics:
        measured = by_topic.get(topic, TopicRate())
        rate = "-" if measured.rate_hz is None else f"{measured.rate_hz:.1f}"
        began_s = (measured.gap_began_ns - bag.start_ns) / _NANOSECONDS
        gap = f"{measured.longest_gap_ns / _NANOSECONDS:.3f} s at {began_s:.1f} s" if measured.longest_gap_ns else "-"
        rows.append((topic.name, topic.type_name, str(topic.count), rate, gap))
    print(f"\n{in_columns(rows, texts=2)}")
    return 0
