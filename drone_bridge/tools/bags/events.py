# SPDX-License-Identifier: Apache-2.0
"""events: warnings, silences, takeoffs and landings in a bag, with their times."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from drone_bridge.tools.bags.bag import NANOSECONDS_PER_SECOND, BagReader, BagReadError

MAX_EVENTS = 500
#: A regular topic is silent after this multiple of its mean period, and at least this time.
SILENT_PERIODS, SILENT_S = 10, 1.0
LEAST_MESSAGES = 20
_LOG, _DIAGNOSTICS, _BOOL = "rcl_interfaces/msg/Log", "diagnostic_msgs/msg/DiagnosticArray", "std_msgs/msg/Bool"
_CONTROLLER = "drone_bridge/msg/ControllerState"
_WARNING, _ERROR = 30, 40
#: Texts for changes of a Bool to true and to false, by the last part of its name.
_BOOLS = {"landed": ("landed", "took off"), "flying": ("took off", "landed"), "held": ("held", "no longer held")}


@dataclass(frozen=True, slots=True)
class Event:
    """Event, such as a warning or a takeoff."""

    time_ns: int
    kind: str
    """warning, error, silence or state"""
    text: str


@dataclass(slots=True)
class _Pace:
    """Reception times of a topic's messages."""

    count: int = 0
    first_ns: int = 0
    last_ns: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def note(self, time_ns: int) -> None:
        if not self.count:
            self.first_ns = time_ns
        elif (gap := time_ns - self.last_ns) > SILENT_S * NANOSECONDS_PER_SECOND and len(self.gaps) < MAX_EVENTS:
            self.gaps.append((self.last_ns, gap))
        self.count += 1
        self.last_ns = time_ns

    def silences(self) -> list[tuple[int, int]]:
        """Return the silences of the topic as begin and duration, ns."""
        if self.count < LEAST_MESSAGES:
            return []
        longest = SILENT_PERIODS * (self.last_ns - self.first_ns) / (self.count - 1)
        return [(begin, gap) for begin, gap in self.gaps if gap > longest]


def events(bag: BagReader) -> list[Event]:
    """Return the events of a bag in order of time. Raises BagReadError."""
    found: list[Event] = []
    paces: dict[str, _Pace] = {}
    changes = _Changes()
    for message in bag.messages():
        topic, type_name = message.topic.name, message.topic.type_name
        paces.setdefault(topic, _Pace()).note(message.time_ns)
        if changes.may_report(type_name) and len(found) < MAX_EVENTS:
            try:
                content = bag.deserialize(message)
            except BagReadError:  # skip this message
                continue
            found += [Event(message.time_ns, kind, text) for kind, text in changes.by(topic, type_name, content)]
    for topic, pace in paces.items():
        for begin_ns, gap_ns in pace.silences():
            found.append(Event(begin_ns, "silence", f"{topic} silent for {gap_ns / NANOSECONDS_PER_SECOND:.1f} s"))
    return sorted(found, key=lambda event: event.time_ns)[:MAX_EVENTS]


class _Changes:
    """Detector of changes between messages."""

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}
        self._readers: dict[str, Callable[[str, Any], Iterator[tuple[str, str]]]] = {
            _LOG: self._log,
            _DIAGNOSTICS: self._diagnostics,
            _BOOL: self._bool,
            _CONTROLLER: self._controller,
        }

    def may_report(self, type_name: str) -> bool:
        """Return whether messages of this type can contain an event."""
        return type_name in self._readers

    def by(self, topic: str, type_name: str, content: Any) -> Iterator[tuple[str, str]]:
        """Yield kind and text of the events in a message."""
        return self._readers[type_name](topic, content)

    def _has_changed(self, key: str, value: Any) -> bool:
        last, self._before[key] = self._before.get(key), value
        return last is not None and bool(last != value)

    def _log(self, _: str, content: Any) -> Iterator[tuple[str, str]]:
        level = int(content.level)
        if level >= _WARNING:
            yield "error" if level >= _ERROR else "warning", f"{content.name}: {content.msg}"

    def _diagnostics(self, _: str, content: Any) -> Iterator[tuple[str, str]]:
        for each in content.status:
            level = int(each.level)
            if self._has_changed(f"status {each.name}", level):
                kind = "error" if level > 1 else "warning" if level else "state"
                yield kind, f"{each.name}: {each.message}"

    def _controller(self, topic: str, content: Any) -> Iterator[tuple[str, str]]:
        if self._has_changed(topic, content.state):
            yield "state", f"{content.behaviour}: {content.state}, {content.reason}"

    def _bool(self, topic: str, content: Any) -> Iterator[tuple[str, str]]:
        folder, _, name = topic.rpartition("/")
        if name == "landed" and f"{folder}/flying" in self._before:
            return  # a duplicate of flying
        words = _BOOLS.get(name)
        if words and self._has_changed(topic, bool(content.data)):
            yield "state", f"{words[0] if content.data else words[1]} ({topic})"
