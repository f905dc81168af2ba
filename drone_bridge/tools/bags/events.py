# SPDX-License-Identifier: Apache-2.0
"""events: warnings, takeoffs and landings in a bag, with their times."""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from drone_bridge.tools.bags.bag import BagReader, BagReadError

MAX_EVENTS = 500
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
    """warning, error or state"""
    text: str


def events(bag: BagReader) -> list[Event]:
    """Return the first MAX_EVENTS events of a bag in order of time. Raises BagReadError."""
    found: list[Event] = []
    changes = _Changes()
    for message in bag.messages([topic for topic in bag.topics if topic.type_name in changes.readers]):
        topic, type_name = message.topic.name, message.topic.type_name
        with contextlib.suppress(BagReadError):  # skip this message
            content = bag.deserialize(message)
            found += [Event(message.time_ns, kind, text) for kind, text in changes.readers[type_name](topic, content)]
        if len(found) >= MAX_EVENTS:
            break
    return found[:MAX_EVENTS]


class _Changes:
    """Detector of changes between messages."""

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}
        #: By type: yields kind and text of the events in a message of a topic.
        self.readers: dict[str, Callable[[str, Any], Iterator[tuple[str, str]]]] = {
            _LOG: self._log,
            _DIAGNOSTICS: self._diagnostics,
            _BOOL: self._bool,
            _CONTROLLER: self._controller,
        }

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
