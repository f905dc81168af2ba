# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire show: a wire log as text, one line per message."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from drone_bridge.kind import Side
from drone_bridge.programs.options import count
from drone_bridge.tools.wire.conversation import Connection, Entry
from drone_bridge.tools.wire.decoding import Decoder, Message, Violation
from drone_bridge.tools.wire.describing import hex_lines
from drone_bridge.tools.wire.sources import Section, add_pcap_options, pcap_options, sections

_NANOSECONDS = 1e9
_AROUND = 64  # bytes shown from the beginning and from the end of those around a violation


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    parser = commands.add_parser("show", help="one line per message", description=__doc__)
    parser.add_argument("file", type=Path, help="a file of a wire log, or a capture of tcpdump (.pcap, .pcapng)")
    parser.add_argument("--raw", action="store_true", help="the bytes of each read and each send, not decoded")
    parser.add_argument(
        "--bytes", type=count, default=256, metavar="N", help="of each, with --raw; 0 for all (default: %(default)s)"
    )
    parser.add_argument("--follow", action="store_true", help="follow a file that is being written, until it ends")
    parser.add_argument(
        "--only", default="", metavar="NAMES", help="messages of these types, or from these roles: SensorUpdate,driver"
    )
    add_pcap_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print a log; return the exit status."""
    only = {name.strip().lower() for name in options.only.split(",") if name.strip()}
    with contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
        for section in sections(options.file, pcap_options(options), follow=options.follow):
            print(_headline(section.connection))
            if not section.has_beginning:
                print("The files that this one continues no longer exist, so it is unknown where a message begins.")
            decoded = _decoded(section, only) if section.is_legible else _sizes(section)
            for line in _raw(section, options.bytes) if options.raw else decoded:
                print(line, flush=options.follow)
        sys.stdout.flush()
    return 0


def _headline(connection: Connection) -> str:
    ours, theirs = connection.role(connection.side), connection.role(connection.side.other)
    own, peer = connection.own or "?", connection.peer or "anybody"
    return f"# {connection.protocol} over {connection.transport}: {ours} {own}, {theirs} {peer}; {connection.started}"


class _Clock:
    """Seconds since the first entry."""

    def __init__(self) -> None:
        self._start_ns: int | None = None

    def text(self, entry: Entry) -> str:
        if self._start_ns is None:
            self._start_ns = entry.time_ns
        return f"{(entry.time_ns - self._start_ns) / _NANOSECONDS:12.6f}"


def _speaker(connection: Connection) -> Callable[[Side], str]:
    width = max(len(connection.role(side)) for side in Side)
    return lambda side: f"{connection.role(side):>{width}} {'->' if side is connection.side else '<-'}"


def _decoded(section: Section, only: set[str]) -> Iterator[str]:
    clock, speaker = _Clock(), _speaker(section.connection)
    decoder = Decoder(section.connection)
    names: set[str] = set()
    is_any_shown = not only
    for entry in section.entries:
        time = clock.text(entry)
        if entry.sender is None:
            yield f"{time}  {entry.note}"
        for outcome in decoder.feed(entry):
            head = f"{time}  {speaker(outcome.sender)}"
            if isinstance(outcome, Message):
                roles = {section.connection.role(outcome.sender), outcome.sender.value}
                names |= {outcome.name, section.connection.role(outcome.sender)}
                if not only or not only.isdisjoint({outcome.name.lower(), *roles}):
                    is_any_shown = True
                    yield f"{head} {outcome.text}"
            elif isinstance(outcome, Violation):
                yield f"{head} BREAKS THE PROTOCOL: {outcome.sentence}"
                yield from _around(outcome)
            elif not only:
                yield f"{head} {outcome.size} bytes that can't be decoded"
    for rest in decoder.unfinished():
        yield f"         end  {speaker(rest.sender)} {rest.sentence}"
        yield from _around(rest)
    if not is_any_shown:
        yield f"No messages of {', '.join(sorted(only))}; the log has: {', '.join(sorted(names)) or 'none'}."


def _sizes(section: Section) -> Iterator[str]:
    """Yield a line for each entry of a stream whose beginning, without which it can't be decoded, is not there."""
    clock, speaker = _Clock(), _speaker(section.connection)
    for entry in section.entries:
        what = f"{speaker(entry.sender)} {_size(entry)}" if entry.sender else entry.note
        yield f"{clock.text(entry)}  {what}"


def _size(entry: Entry) -> str:
    return f"{len(entry.data)} bytes{' of pixels, not logged' if entry.is_left_out else ''}"


def _around(found: Violation) -> Iterator[str]:
    """Yield the bytes from the last good message on; of many, the first and the last."""
    data, offset = found.around, found.offset
    if found.has_zeros_for_pixels:
        yield "    (with zeros in place of pixels, which were not logged)"
    if len(data) <= 2 * _AROUND:
        yield from (f"    {line}" for line in hex_lines(data, offset))
        return
    yield from (f"    {line}" for line in hex_lines(data[:_AROUND], offset))
    yield f"    ... {len(data) - 2 * _AROUND} more bytes"
    yield from (f"    {line}" for line in hex_lines(data[-_AROUND:], offset + len(data) - _AROUND))


def _raw(section: Section, limit: int) -> Iterator[str]:
    clock, speaker = _Clock(), _speaker(section.connection)
    for entry in section.entries:
        time = clock.text(entry)
        if entry.sender is None:
            yield f"{time}  {entry.note}"
            continue
        peer = f" {entry.peer}" if entry.peer != section.connection.peer else ""
        is_end = section.connection.is_stream and not entry.data
        yield f"{time}  {speaker(entry.sender)}{peer} {'the end' if is_end else _size(entry)}"
        if entry.is_left_out:
            continue
        shown = entry.data[: limit or None]
        yield from (f"    {line}" for line in hex_lines(shown))
        if len(shown) < len(entry.data):
            yield f"    ... {len(entry.data) - len(shown)} more bytes (--bytes 0 shows all)"
