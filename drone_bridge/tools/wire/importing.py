# SPDX-License-Identifier: Apache-2.0
"""drone-bridge wire import: a wire log from captures of tcpdump, or from one file of bytes per direction.

Such files have neither times nor an order between the directions. The conversation is reconstructed by the rules of the
protocol: each message follows the one that it answers, 10 ms later.
"""

import argparse
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from drone_bridge.kind import Side, kinds, load
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError
from drone_bridge.tools.wire.decoding import Decoder, Message, Violation
from drone_bridge.tools.wire.log_file import write_log
from drone_bridge.tools.wire.sources import add_pcap_options, pcap_options, sections

STEP_NS = 10_000_000


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Declare the command."""
    parser = commands.add_parser("import", help="convert other captures to a wire log", description=__doc__)
    parser.add_argument("capture", type=Path, nargs="?", help="a capture of tcpdump")
    parser.add_argument(
        "--operator",
        type=Path,
        metavar="FILE",
        help="bytes sent by the operator: autopilot, controller, client or driver",
    )
    parser.add_argument("--vehicle", type=Path, metavar="FILE", help="bytes sent by the vehicle")
    parser.add_argument("--attitude-layout", default="pitch_yaw", help="of a testbed's frames (%(default)s)")
    parser.add_argument("--output", "-o", type=Path, required=True, help="the .mcap file, or for a capture the folder")
    add_pcap_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the log; return the exit status. Raises WireError and OSError."""
    if options.capture:
        _import_capture(options)
    elif options.protocol and (options.operator or options.vehicle):
        _import_directions(options)
    else:
        raise WireError("Name a capture, or --protocol with --operator or --vehicle or both.")
    return 0


def _import_capture(options: argparse.Namespace) -> None:
    """Write a file for each connection in a capture of tcpdump."""
    options.output.mkdir(parents=True, exist_ok=True)
    for number, section in enumerate(sections(options.capture, pcap_options(options)), 1):
        path = options.output / f"{options.capture.stem}-{section.connection.protocol}-{number}.mcap"
        write_log(path, section.connection, list(section.entries))
        print(path)


def _import_directions(options: argparse.Namespace) -> None:
    """Write a file from the bytes of each direction."""
    is_datagrams = not kinds()[options.protocol].is_stream
    files = {Side.OPERATOR: options.operator, Side.VEHICLE: options.vehicle}
    sent = {side: path.read_bytes() if path else b"" for side, path in files.items()}
    newest_s = max(path.stat().st_mtime for path in files.values() if path)
    parameters = {"attitude_layout": options.attitude_layout}
    connection = Connection(
        options.protocol,
        "udp" if is_datagrams else "tcp",
        Side.OPERATOR,
        name="imported",
        started=datetime.fromtimestamp(newest_s, timezone.utc).isoformat(),
        parameters=parameters,
    )
    entries = _datagrams(sent) if is_datagrams else interleave(connection, sent)
    start_ns = int(newest_s) * 1_000_000_000
    times = (start_ns + number * STEP_NS for number in range(1 << 62))
    timed = [Entry(time_ns, side, "", data) for time_ns, (side, data) in zip(times, entries, strict=False)]
    write_log(options.output, connection, timed)
    print(options.output)


def _datagrams(sent: dict[Side, bytes]) -> Iterator[tuple[Side, bytes]]:
    for side, data in sent.items():
        for line in data.splitlines():
            if line.strip():
                yield side, line


def interleave(connection: Connection, sent: dict[Side, bytes]) -> Iterator[tuple[Side, bytes]]:
    """Yield the messages of both streams, each after what it answers. Raises WireError for what is no conversation."""
    splitter = _Splitter(connection, sent)
    answer_to = load(connection.kind.recorded)(connection.kind, connection.parameters).answer_to
    if opening := answer_to(None):
        yield from splitter.until(Side.VEHICLE, opening)
    while splitter.has_more(Side.OPERATOR):
        question, data = splitter.message(Side.OPERATOR)
        yield Side.OPERATOR, data
        if answer := answer_to(question):
            yield from splitter.until(Side.VEHICLE, answer)
    yield from splitter.until(Side.VEHICLE, lambda event: False)


class _Splitter:
    """Cuts two streams into messages, byte by byte, as only the codecs know where one ends."""

    def __init__(self, connection: Connection, sent: dict[Side, bytes]) -> None:
        self._decoder = Decoder(connection)
        self._sent = sent
        self._read = dict.fromkeys(Side, 0)

    def has_more(self, side: Side) -> bool:
        return self._read[side] < len(self._sent[side])

    def message(self, side: Side) -> tuple[Any, bytes]:
        begin, data = self._read[side], self._sent[side]
        while self.has_more(side):
            end = self._read[side] = self._read[side] + 1
            for outcome in self._decoder.feed(Entry(0, side, "", data[end - 1 : end])):
                if isinstance(outcome, Message) and outcome.sender is side:
                    return outcome.event, data[begin:end]
                if isinstance(outcome, Violation):
                    raise WireError(f"At byte {end} of the {side.value}'s bytes: {outcome.sentence}")
        return None, data[begin:]

    def until(self, side: Side, is_last: Callable[[Any], bool]) -> Iterator[tuple[Side, bytes]]:
        """Yield messages, up to one that is the last or the end of the stream."""
        while self.has_more(side):
            event, data = self.message(side)
            yield side, data
            if is_last(event):
                return
