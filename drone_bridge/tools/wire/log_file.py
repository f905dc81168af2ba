# SPDX-License-Identifier: Apache-2.0
"""LogFile: reader of a wire log. The file may have no end."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from mcap.records import Channel, Message, Metadata

from drone_bridge.kind import ProtocolKind, Side, kinds
from drone_bridge.net.connector import RECEIVED, SENT
from drone_bridge.net.wire_log_file import CONNECTIONS, FACTS, OMITTED
from drone_bridge.tools.shared.mcap_records import MAGIC, UNREADABLE, parsed, whole_records


class WireError(ValueError):
    """Failure of a request, with a sentence as its text."""


@dataclass(frozen=True, slots=True)
class LogSource:
    """Node that wrote a log."""

    kind: ProtocolKind
    side: Side
    name: str
    parameters: Mapping[str, Any]

    def role(self, side: Side) -> str:
        """Return the protocol's name of a side."""
        return self.kind.role(side).name


#: Largest piece that a log leaves out, such as a picture, which is replayed as zeros, and most bytes of a gap.
MOST_OMITTED, MOST_MISSING = 1 << 26, 1 << 60
#: Transports that carry the protocol's messages.
TRANSPORTS = ("tcp", "udp", "serial")


class LoggedConnection(NamedTuple):
    """Stream, or datagrams by udp. Other transports than TRANSPORTS carry video."""

    number: int
    transport: str
    own: str  # addresses
    peer: str
    time_ns: int  # begin, since 1970

    @property
    def is_stream(self) -> bool:
        return not self.transport.startswith("udp")

    @property
    def is_conversation(self) -> bool:
        """Whether the connection carries the protocol's messages, not video."""
        return self.transport in TRANSPORTS


class LogEntry(NamedTuple):
    """Piece of a stream, or datagram, as transmitted."""

    time_ns: int  # since 1970
    connection: LoggedConnection
    sender: Side
    data: bytes  # empty: end of the stream, or omitted
    omitted: int = 0
    """Number of bytes that were not kept"""
    is_gap: bool = False
    """Whether messages may begin and end in those."""


def is_log(path: Path) -> bool:
    """Return whether a file begins like a wire log. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class LogFile:
    """Wire log at a path, for a single reader."""

    def __init__(self, path: Path) -> None:
        """Open the file. Raises WireError and OSError."""
        self._path, self._file = path, path.open("rb")
        self._records = self._read()
        self._channels: dict[int, str] = {}  # topics
        self._connections: dict[int, LoggedConnection] = {}
        #: Node that wrote the log.
        self.source = self._find_source()

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def entries(self) -> Iterator[LogEntry]:
        """Yield the entries that have not been read yet and are complete. Raises WireError."""
        for record in self._records:
            if isinstance(record, Channel):
                self._channels[record.id] = record.topic
            elif isinstance(record, Message):
                yield from self._take(record)

    def _find_source(self) -> LogSource:
        for record in self._records:
            if isinstance(record, Metadata) and record.name == FACTS:
                facts = record.metadata
                if facts.get("protocol") not in kinds():
                    raise WireError(
                        f"{self._path} is of the protocol {facts.get('protocol')!r}, which is not installed."
                    )
                try:
                    side, parameters = Side(facts["side"]), json.loads(facts["parameters"])
                    return LogSource(kinds()[facts["protocol"]], side, facts["name"], parameters)
                except (KeyError, ValueError) as error:
                    raise WireError(f"{self._path} has no complete record of its source: {error!r}.") from error
        raise WireError(f"{self._path} is not a wire log: it has no record of its source.")

    def _take(self, message: Any) -> Iterator[LogEntry]:
        topic, number = self._channels.get(message.channel_id), message.sequence
        try:
            if topic == CONNECTIONS:
                said = json.loads(message.data)
                transport, own, peer = (str(said[name]) for name in ("transport", "own", "peer"))
                self._connections[number] = LoggedConnection(number, transport, own, peer, message.log_time)
            elif topic in (RECEIVED, SENT, OMITTED):
                said = json.loads(message.data) if topic == OMITTED else {"direction": topic}
                sender = self.source.side if said["direction"] == SENT else self.source.side.other
                omitted, is_gap = int(said.get("bytes", 0)), bool(said.get("gap"))
                if not 0 <= omitted <= (MOST_MISSING if is_gap else MOST_OMITTED):
                    raise ValueError(f"{omitted} bytes are missing")
                data = b"" if topic == OMITTED else message.data
                yield LogEntry(message.log_time, self._connections[number], sender, data, omitted, is_gap)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise WireError(f"{self._path} is damaged: connection {number} has no valid entry ({error!r}).") from error

    def _read(self) -> Iterator[Any]:
        """Yield MCAP records. Raises WireError."""
        if self._file.read(len(MAGIC)) != MAGIC:
            raise WireError(f"{self._path} is not a wire log: it does not begin like an MCAP file.")
        try:
            for record in whole_records(self._file):
                yield from parsed(record)
        except UNREADABLE as error:
            where = f"{self._path} is damaged before byte {self._file.tell()}, and can't be read any further"
            raise WireError(f"{where} ({type(error).__name__}: {error}).") from error
