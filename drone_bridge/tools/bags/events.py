# SPDX-License-Identifier: Apache-2.0
"""What happened in a bag: warnings, silences, take-offs and landings, with their times."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, Bag, BagError

MAX_EVENTS = 500
#: A topic that came regularly is silent after so many of its periods, and at least so long.
SILENT_PERIODS, SILENT_S = 10, 1.0
LEAST_MESSAGES = 20
_PERIODS = 200  # of which the median is taken
_LOG, _DIAGNOSTICS, _BOOL = "rcl_interfaces/msg/Log", "diagnostic_msgs/msg/DiagnosticArray", "std_msgs/msg/Bool"
_CONTROLLER = "drone_bridge/msg/ControllerState"
_WARNING, _ERROR = 30, 40
#: What a change of a Bool says, by the end of its name: when it becomes true, when false.
_BOOLS = {"landed": ("landed", "took off"), "flying": ("took off", "landed"), "held": ("held", "no longer held")}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened."""

    time_ns: int
    kind: str
    """warning, error, silence or state"""
    text: str


@dataclass(slots=True)
class _Pace:
    """When the messages of a topic came."""

    count: int = 0
    last_ns: int = 0
    periods: deque[int] = field(default_factory=lambda: deque(maxlen=_PERIODS))
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def note(self, time_ns: int) -> None:
        if self.count:
            gap = time_ns - self.last_ns
            if gap > SILENT_S * NANOSECONDS_PER_SECOND and len(self.gaps) < MAX_EVENTS:
                self.gaps.append((self.last_ns, gap))
            else:
                self.periods.append(gap)
        self.count += 1
        self.last_ns = time_ns

    def silences(self) -> list[tuple[int, int]]:
        """Return when it fell silent, and for how long, in ns."""
        if self.count < LEAST_MESSAGES or not self.periods:
            return []
        longest = SILENT_PERIODS * median(self.periods)
        return [(begin, gap) for begin, gap in self.gaps if gap > longest]


def events(bag: Bag) -> list[Event]:
    """Return what happened in a bag, in order. Raises BagError."""
    found: list[Event] = []
    paces: dict[str, _Pace] = {}
    before: dict[str, Any] = {}
    for message in bag.messages():
        topic, type_name = message.topic.name, message.topic.type_name
        paces.setdefault(topic, _Pace()).note(message.time_ns)
        if type_name in (_LOG, _DIAGNOSTICS, _BOOL, _CONTROLLER) and len(found) < MAX_EVENTS:
            try:
                content = bag.deserialize(message)
            except BagError:  # of this one message: the others tell more
                continue
            found += [Event(message.time_ns, kind, text) for kind, text in _told(topic, type_name, content, before)]
    for topic, pace in paces.items():
        for begin_ns, gap_ns in pace.silences():
            found.append(Event(begin_ns, "silence", f"{topic} silent for {gap_ns / NANOSECONDS_PER_SECOND:.1f} s"))
    return sorted(found, key=lambda event: event.time_ns)[:MAX_EVENTS]


def _told(topic: str, type_name: str, content: Any, before: dict[str, Any]) -> list[tuple[str, str]]:
    """Return kind and text of what a message tells, given what was told `before`, which is updated."""

    def has_changed(key: str, value: Any) -> bool:
        last, before[key] = before.get(key), value
        return last is not None and bool(last != value)

    if type_name == _LOG:
        level = int(content.level)
        kind = "error" if level >= _ERROR else "warning"
        return [(kind, f"{content.name}: {content.msg}")] if level >= _WARNING else []
    if type_name == _DIAGNOSTICS:
        changed = [each for each in content.status if has_changed(f"status {each.name}", int(each.level))]
        return [
            (
                "error" if int(each.level) > 1 else "warning" if int(each.level) else "state",
                f"{each.name}: {each.message}",
            )
            for each in changed
        ]
    if type_name == _CONTROLLER:
        is_new = has_changed(topic, content.state)
        return [("state", f"{content.behaviour}: {content.state}, {content.reason}")] if is_new else []
    words = _BOOLS.get(topic.rpartition("/")[2])
    if words and has_changed(topic, bool(content.data)):
        return [("state", f"{words[0] if content.data else words[1]} ({topic})")]
    return []
