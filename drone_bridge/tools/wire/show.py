# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire show: a wire log, or a pcap, as text, one line per message."""

import contextlib
import sys
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path

from drone_bridge.kind import Side, kinds, unloadable
from drone_bridge.programs.options import known
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.wire import keep
from drone_bridge.tools.wire.decoding import NOT_KEPT, DecodedMessage, Decoder, Violation
from drone_bridge.tools.wire.describing import hex_lines
from drone_bridge.tools.wire.log_file import LogEntry, LogFile, LoggedConnection, LogSource, WireError, is_log
from drone_bridge.tools.wire.pcap_file import captured_kind, pcap_entries, pcap_source

_NANOSECONDS = 1e9
_AROUND = 64  # bytes shown at the beginning and the end of the data around a violation


def main(argv: Sequence[str]) -> int:
    """Print a log. Return the exit status."""
    parser = CommandParser(prog="drone-bridge wire", description="Shows wire logs: docs/bags.md.")
    commands = parser.add_subparsers(required=True, metavar="command")
    show = commands.add_parser("show", help="one line per message", description=__doc__)
    show.add_argument("--raw", action="store_true", help="the bytes of each read and each send, not decoded")
    kept = commands.add_parser(
        "keep", help="its last minute without what is private, for others", description=keep.__doc__
    )
    for each in (show, kept):
        each.add_argument("file", type=Path, help="a wire log, or a pcap")
        name = known(kinds(), unloadable())
        each.add_argument("--protocol", type=name, metavar="NAME", help="that of a pcap (default: by its ports)")
    keep.add_options(kept)
    kept.set_defaults(raw=False)
    options = parser.parse_args(argv)
    try:
        with contextlib.ExitStack() as stack, contextlib.suppress(KeyboardInterrupt, BrokenPipeError):
            if is_log(options.file):
                log = stack.enter_context(LogFile(options.file))
                source, entries = log.source, log.entries()
            else:
                kind = kinds()[options.protocol] if options.protocol else captured_kind(options.file)
                source, entries = pcap_source(options.file, kind), pcap_entries(options.file, kind)
            if "name" in options:
                print(*keep.keep(source, entries, options), sep="\n")
                return 0
            lines = Lines(source)
            for line in lines.raw(entries) if options.raw else lines.decoded(entries):
                print(line)
            if lines.start_ns is None:
                raise WireError(f"{options.file} holds no data: nothing was sent, or only its beginning is there.")
            sys.stdout.flush()
    except WireError as error:
        print(error, file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"{error.filename or options.file}: {error.strerror or error}.", file=sys.stderr)
        return REFUSED
    return 0


class Lines:
    """Text of a log: a headline per connection with number and addresses, and a line per message."""

    def __init__(self, source: LogSource) -> None:
        self._source = source
        self._width = max(len(source.role(side)) for side in Side)
        #: Time of the first entry.
        self.start_ns: int | None = None
        self._decoders: dict[int, Decoder] = {}  # by number of the connection

    def decoded(self, entries: Iterator[LogEntry]) -> Iterator[str]:
        """Yield the lines of decoded messages."""
        for entry in entries:
            number = entry.connection.number
            if number not in self._decoders:
                yield self._headline(entry.connection)
                self._decoders[number] = Decoder(self._source, entry.connection)
            for outcome in self._decoders[number].feed(entry):
                head = self._head(self._time(entry), number, outcome.sender)
                if isinstance(outcome, DecodedMessage):
                    yield f"{head} {outcome.text}"
                elif isinstance(outcome, Violation):
                    yield f"{head} BREAKS THE PROTOCOL: {outcome.sentence}"
                    yield from _around(outcome)
                else:
                    yield f"{head} {outcome.size} bytes {outcome.reason}"
        for number, decoder in self._decoders.items():
            for rest in decoder.unfinished():
                yield f"{self._head('end', number, rest.sender)} {rest.sentence}"
                yield from _around(rest)

    def raw(self, entries: Iterator[LogEntry]) -> Iterator[str]:
        """Yield the lines of each read and send, with all bytes."""
        begun: set[LoggedConnection] = set()
        for entry in entries:
            if entry.connection not in begun:
                yield self._headline(entry.connection)
                begun.add(entry.connection)
            is_end = entry.connection.is_stream and not (entry.data or entry.omitted)
            head = self._head(self._time(entry), entry.connection.number, entry.sender)
            size = f"{entry.omitted} bytes {NOT_KEPT}" if entry.omitted else f"{len(entry.data)} bytes"
            yield f"{head} {'the end' if is_end else size}"
            yield from (f"    {line}" for line in hex_lines(entry.data))

    def _headline(self, connection: LoggedConnection) -> str:
        source = self._source
        ours, theirs = source.role(source.side), source.role(source.side.other)
        began = datetime.fromtimestamp(connection.time_ns / _NANOSECONDS, timezone.utc).isoformat()
        ends = f"{ours} {connection.own}, {theirs} {connection.peer}"
        return f"# {connection.number}: {source.kind.name} over {connection.transport}, {ends}; {began}"

    def _head(self, time: str, number: int, sender: Side) -> str:
        arrow = "->" if sender is self._source.side else "<-"
        return f"{time:>12} {number:2} {self._source.role(sender):>{self._width}} {arrow}"

    def _time(self, entry: LogEntry) -> str:
        """Return the time since the first entry, s."""
        if self.start_ns is None:
            self.start_ns = entry.time_ns
        return f"{(entry.time_ns - self.start_ns) / _NANOSECONDS:.6f}"


def _around(found: Violation) -> Iterator[str]:
    """Yield lines of the bytes since the last valid message. Long data is reduced to its beginning and end."""
    data, offset = found.around, found.offset
    if len(data) <= 2 * _AROUND:
        yield from (f"    {line}" for line in hex_lines(data, offset))
        return
    yield from (f"    {line}" for line in hex_lines(data[:_AROUND], offset))
    yield f"    ... {len(data) - 2 * _AROUND} more bytes"
    yield from (f"    {line}" for line in hex_lines(data[-_AROUND:], offset + len(data) - _AROUND))
