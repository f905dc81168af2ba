# SPDX-License-Identifier: Apache-2.0
"""The sources of conversations: files of a wire log, with those that they continue, and captures of tcpdump."""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from drone_bridge.kind import kinds
from drone_bridge.programs.options import port
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError
from drone_bridge.tools.wire.log_file import LogFile, next_part, parts_before
from drone_bridge.tools.wire.pcap import PcapOptions, read_pcap

FOLLOW_PERIOD_S = 0.2
PCAP_SUFFIXES = (".pcap", ".pcapng", ".cap")


@dataclass(frozen=True, slots=True)
class Section:
    """A connection, from the first of its files that there is."""

    connection: Connection
    entries: Iterator[Entry]
    has_beginning: bool = True

    @property
    def is_legible(self) -> bool:
        """Whether it is known where a message begins."""
        return self.has_beginning or not self.connection.is_stream


def add_pcap_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options for captures on other than the usual ports."""
    group = parser.add_argument_group("captures of tcpdump")
    group.add_argument("--protocol", choices=kinds(), default="", help="the protocol (default: by the port)")
    group.add_argument("--port", type=port, default=0, metavar="N", help="the listening port")
    group.add_argument("--reversed", action="store_true", help="the side that usually connects listens on it")


def pcap_options(options: argparse.Namespace) -> PcapOptions:
    """Return the options for captures."""
    return PcapOptions(options.protocol, options.port, options.reversed)


def sections(path: Path, pcap: PcapOptions, *, follow: bool = False) -> list[Section]:
    """Return the connections in a file. Raises WireError and OSError, also while their entries are read.

    A file that continues another one is read from the first one on. With `follow` the entries go on with what is
    being written, until the connection ends.
    """
    if path.suffix in PCAP_SUFFIXES:
        return [Section(connection, iter(entries)) for connection, entries in read_pcap(path, pcap)]
    with LogFile(path) as file:
        connection = file.connection
    files = [*parts_before(path, connection), path]
    return [Section(connection, _entries(files, follow), has_beginning=_part(files[0]) == 1)]


def only_section(path: Path, pcap: PcapOptions) -> Section:
    """Return the one connection in a file. Raises WireError when there are more."""
    found = sections(path, pcap)
    if len(found) != 1:
        raise WireError(f"{path} holds {len(found)} connections: choose one by --port, or import it and take one file.")
    return found[0]


def _entries(files: list[Path], follow: bool) -> Iterator[Entry]:
    last: Path | None = files[-1]
    for path, previous in zip(files, [None, *files], strict=False):
        yield from _part_entries(path, _part(path) - _part(previous) - 1 if previous else 0, follow and path == last)
    while follow and last and (last := next_part(last)):
        yield from _part_entries(last, 0, follow)


def _part(path: Path) -> int:
    with LogFile(path) as file:
        return file.connection.part


def _part_entries(path: Path, missing: int, follow: bool) -> Iterator[Entry]:
    """Yield the entries of a file, after a note if files before it are `missing`."""
    with LogFile(path) as file:
        while True:
            for entry in file.entries():
                if missing:
                    yield Entry(entry.time_ns, None, "", b"%d of the connection's files no longer exist." % missing)
                    missing = 0
                yield entry
            if not follow or file.has_ended:
                return
            time.sleep(FOLLOW_PERIOD_S)
