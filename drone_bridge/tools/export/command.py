# SPDX-License-Identifier: Apache-2.0
"""drone-bridge export: the topics of a bag as tables for pandas and spreadsheets, with numbers, texts and times."""

import csv
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import is_dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

from drone_bridge.tools.bags.bag import (
    NANOSECONDS_PER_SECOND,
    BagMessage,
    BagReader,
    BagReadError,
    field_names,
    run_on_bag,
)
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.shared.interfaces import BULKY_TYPES
from drone_bridge.tools.shared.progress import counted

MAX_ARRAY = 36  # numbers, the size of a covariance; longer arrays, such as images, are left out


def main(argv: Sequence[str]) -> int:
    """Write the tables. Return the exit status."""
    parser = CommandParser(prog="drone-bridge export", description=__doc__)
    parser.add_argument("bag", type=Path, help="a folder with metadata.yaml, or an .mcap file")
    parser.add_argument("--output", "-o", type=Path, help="the folder for the files (csv in the bag's folder)")
    options = parser.parse_args(argv)
    return run_on_bag("export", options.bag, lambda bag: _export(bag, options.output))


def _export(bag: BagReader, output: Path | None) -> int:
    beside = bag.path if bag.path.is_dir() else bag.path.parent
    counts = export(bag, output or beside / "csv")
    for path, count in counts.items():
        print(f"{path}: {count} rows")
    if not counts:
        raise BagReadError(f"'{bag.path}' has nothing that fits into a table.")
    return 0


def export(bag: BagReader, folder: Path) -> dict[Path, int]:
    """Write the files. Return the number of rows by file. Raises BagReadError and OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    counts: dict[Path, int] = {}
    writers: dict[str, Any] = {}
    with ExitStack() as files:
        for name, row in _rows(bag):
            if name not in writers:
                path = folder / (re.sub(r"[^\w-]+", ".", name).strip(".") + ".csv")
                file = files.enter_context(path.open("w", encoding="utf-8", newline=""))
                writers[name] = path, csv.writer(file, lineterminator="\n")
                counts[path] = -1  # the header is not counted
            path, writer = writers[name]
            writer.writerow(row)
            counts[path] += 1
    return counts


def _decoded(bag: BagReader, doing: str) -> Iterator[tuple[str, BagMessage, Any]]:
    """Yield table name, message and decoded message, for messages that have a table."""
    types = Counter(topic.name for topic in bag.topics)
    tables = {
        topic: topic.name if types[topic.name] == 1 else f"{topic.name}.{topic.type_name}"
        for topic in bag.topics
        if topic.type_name not in BULKY_TYPES
    }
    total = sum(topic.count for topic in tables)
    for message in counted(bag.messages(list(tables)), doing, total):
        if message.topic not in tables:
            continue
        try:
            decoded = bag.deserialize(message)
        except BagReadError as error:
            del tables[message.topic]
            print(f"'{message.topic.name}' is left out from there on: {error}", file=sys.stderr)
            continue
        yield tables[message.topic], message, decoded


def _rows(bag: BagReader) -> Iterator[tuple[str, list[Any]]]:
    tables: dict[str, _Columns] = {}
    for name, _, decoded in _decoded(bag, "measuring"):
        for part in _parts(decoded):
            tables.setdefault(name, _Columns(part)).measure(part)
    for name, columns in tables.items():
        for cut in columns.too_long:
            print(f"{name}: {cut} is left out, as it has more than {MAX_ARRAY} values.", file=sys.stderr)
        yield name, ["time", *columns.names]
    for name, message, decoded in _decoded(bag, "exporting"):
        for part in _parts(decoded):
            yield name, [_received(message), *tables[name].values(part)]


def _parts(message: Any) -> Sequence[Any]:
    """Return the entries of a message that is a list, else the message."""
    name = _list_in(message)
    return getattr(message, name) if name else [message]


def _list_in(message: Any) -> str:
    """Return the field whose list is the whole message, such as `transforms` of tf. Each entry becomes a row."""
    names = [name for name in field_names(message) if name != "header"]
    value = getattr(message, names[0]) if len(names) == 1 else None
    return names[0] if isinstance(value, list) and all(map(is_dataclass, value)) else ""


class _Columns:
    """Columns of a message type: times, numbers and texts, with names such as `pose.pose.position.x`."""

    def __init__(self, sample: Any) -> None:
        leaves = list(_leaves(sample))
        times = [name for name, value in leaves if is_dataclass(value)]
        plain = [name for name, value in leaves if isinstance(value, bool | int | float | str)]
        self._scalars = [*times, *plain]
        self._times, self._plain = _getter(times), _getter(plain)
        self._lists = {
            name: attrgetter(name) for name, value in leaves if hasattr(value, "__len__") and name not in plain
        }
        self._sizes = dict.fromkeys(self._lists, 0)
        #: Names of lists that are left out.
        self.too_long: list[str] = []

    @property
    def names(self) -> list[str]:
        return [*self._scalars, *(f"{name}[{i}]" for name, size in self._sizes.items() for i in range(size))]

    def measure(self, message: Any) -> None:
        """Note the lengths of a message's lists."""
        for name, get in tuple(self._lists.items()):
            found = get(message)
            if len(found) > MAX_ARRAY:
                self.too_long.append(name)
            if len(found) > MAX_ARRAY or (len(found) and is_dataclass(found[0])):  # messages in a list have no columns
                del self._lists[name], self._sizes[name]
            else:
                self._sizes[name] = max(self._sizes[name], len(found))

    def values(self, message: Any) -> Iterator[Any]:
        for time in self._times(message):
            yield _seconds(time.sec, time.nanosec)
        yield from self._plain(message)
        for name, get in self._lists.items():
            found = get(message)
            yield from getattr(found, "tolist", lambda found=found: found)()
            yield from [""] * (self._sizes[name] - len(found))


def _leaves(message: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name in field_names(message):
        value = getattr(message, name)
        if is_dataclass(value) and not hasattr(value, "nanosec"):
            yield from _leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _getter(names: Sequence[str]) -> Callable[[Any], Sequence[Any]]:
    """Return a fast getter by attrgetter, which itself returns a sequence for more than one name only."""
    get = attrgetter(*names) if names else None
    if get is None:
        return lambda message: ()
    return get if len(names) > 1 else lambda message: (get(message),)


def _received(message: BagMessage) -> str:
    return _seconds(*divmod(message.time_ns, NANOSECONDS_PER_SECOND))


def _seconds(seconds: int, nanoseconds: int) -> str:
    """Return seconds with all digits. A float has a resolution of 0.2 us for current times."""
    return f"{seconds}.{nanoseconds:09}"
