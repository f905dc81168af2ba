# SPDX-License-Identifier: Apache-2.0
"""The bytes of every connection, in both directions and with their times, kept in files of bounded size and number.

The link's thread only copies what it has read or sent; a thread of the log's own writes it, a few times a second. A
process that is killed loses at most the last FLUSH_PERIOD_S. See docs/wire_log.md.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Final

from drone_bridge.links.errors import LinkError
from drone_bridge.links.wire_file import Piece, WireFile

FLUSH_PERIOD_S: Final = 0.5
CHUNK_BYTES: Final = 1 << 20  # as many wake the writer at once
QUEUE_BYTES: Final = 32 << 20  # what a slow disk may lag behind; beyond, bytes are not logged, and the log says so
PIECE_BYTES: Final = 256  # what a queued piece takes beside its bytes, roughly
MAX_CHANNELS: Final = 64  # of one file: a direction each, for each peer of a UDP port; further peers share the last two
FILES_PER_LOG: Final = 8  # a file ends, and is continued in another one, at this share of what the log may occupy
MAX_FILES: Final = 256
STOP_TIMEOUT_S: Final = 2.0

#: The topics of the channels: what came, what was sent, and what the log has to say itself.
RECEIVED: Final = "received"
SENT: Final = "sent"
NOTES: Final = "notes"
OTHERS: Final = "others"


@dataclass(frozen=True, slots=True)
class Channel:
    """A direction, and whose bytes these are."""

    topic: str
    peer: str


class ConnectionLog:
    """The log of one connection, or of one UDP port. It never blocks, and never raises."""

    def __init__(self, log: "WireLog", facts: Mapping[str, str]) -> None:
        self.facts = dict(facts)
        self.started = datetime.now(timezone.utc)
        self.part = 0  # of the file that is being written, from 1
        self.file: WireFile | None = None  # of the writer's thread
        self.channels: list[Channel] = []
        self.is_closed = False
        self._log = log
        self._numbers: dict[Channel, int] = {}
        self._lost_bytes = 0  # since the log could not keep up

    def received(self, buffers: Sequence[memoryview], count: int, peer: str = "") -> None:
        """Log the first `count` bytes of the buffers; none at all is the end of a stream, or an empty datagram."""
        if len(buffers) == 1 or count <= len(buffers[0]):
            self._put(RECEIVED, bytes(buffers[0][:count]), peer)
            return
        for buffer in buffers:
            if count > 0:
                self._put(RECEIVED, bytes(buffer[:count]), peer)
            count -= len(buffer)

    def sent(self, data: bytes | memoryview, peer: str = "") -> None:
        """Log what the system has taken to be sent."""
        self._put(SENT, bytes(data), peer)

    def note(self, sentence: str) -> None:
        """Log a sentence."""
        self._put(NOTES, sentence.encode(), "")

    def close(self) -> None:
        """End the file, when all of it is written."""
        if not self.is_closed:
            self._log.enqueue(self, [*self._confession(), None])

    def _put(self, topic: str, data: bytes, peer: str) -> None:
        if self.is_closed:
            return
        piece = Piece(self._number(topic, peer or self.facts["peer"]), time.time_ns(), data)
        if self._log.enqueue(self, [*self._confession(), piece]):
            self._lost_bytes = 0
        else:
            self._lost_bytes += len(data)

    def _confession(self) -> list[Piece]:
        """Return the note on what is missing, if anything is."""
        if not self._lost_bytes:
            return []
        sentence = f"The disk was too slow: {self._lost_bytes} bytes are missing here."
        return [Piece(self._number(NOTES, ""), time.time_ns(), sentence.encode())]

    def _number(self, topic: str, peer: str) -> int:
        channel = Channel(topic, peer)
        number = self._numbers.get(channel)
        if number is None:
            if len(self.channels) >= MAX_CHANNELS and peer != OTHERS and topic != NOTES:
                return self._number(topic, OTHERS)
            number = self._numbers[channel] = len(self.channels)
            self.channels.append(channel)
        return number


class WireLog:
    """The files of one bridge in a folder. `open` and the logs that it returns are for any thread."""

    def __init__(
        self,
        folder: Path,
        name: str,
        facts: Mapping[str, str],
        total_bytes: int,
        on_failure: Callable[[str], None],
    ) -> None:
        """Start to write into `folder`, which is made if need be.

        Args:
            folder: where the files go.
            name: what their names begin with.
            facts: what each file says of itself; see docs/wire_log.md.
            total_bytes: how much the files of this name may occupy together; the oldest are removed.
            on_failure: gets a sentence, once, when nothing more can be written. Called in the log's thread.

        Raises:
            LinkError: the folder can't be written to.
        """
        try:
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / f".{name}.probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise LinkError(f"The wire log can't be written to {folder}: {error.strerror}.") from error
        self._folder = folder
        self._name = name
        self._facts = dict(facts)
        self._total_bytes = total_bytes
        self._file_bytes = total_bytes // FILES_PER_LOG
        self._on_failure = on_failure
        self._queue: deque[tuple[ConnectionLog, Piece | None]] = deque()
        self._queued_bytes = 0
        self._lock = threading.Lock()
        self._wakeup = threading.Event()
        self._has_failed = False
        self._is_closing = False
        self._open: set[ConnectionLog] = set()  # of the writer's thread: those with a file
        self._thread = threading.Thread(target=self._run, name="wire log", daemon=True)
        self._thread.start()

    def open(self, transport: str, own: str, peer: str) -> ConnectionLog:
        """Return the log of a connection between two addresses; `peer` is empty for a port that takes from anybody."""
        return ConnectionLog(self, {**self._facts, "transport": transport, "own": own, "peer": peer})

    def close(self) -> bool:
        """Write what is queued and end all files; return whether that took less than STOP_TIMEOUT_S."""
        self._is_closing = True
        self._wakeup.set()
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()

    def enqueue(self, connection: ConnectionLog, pieces: Sequence[Piece | None]) -> bool:
        """Leave pieces for the writer, None for the end of the connection; return False when there is no room."""
        size = sum(PIECE_BYTES + (len(piece.data) if piece else 0) for piece in pieces)
        is_end = pieces[-1] is None
        with self._lock:
            if self._has_failed or self._is_closing:
                return True  # nothing is logged any more, and nothing is missing from what is
            if is_end:
                connection.is_closed = True
            elif self._queued_bytes + size > QUEUE_BYTES:
                return False
            self._queue.extend((connection, piece) for piece in pieces)
            self._queued_bytes += size
            is_much = self._queued_bytes >= CHUNK_BYTES
        if is_much and not self._wakeup.is_set():
            self._wakeup.set()
        return True

    # The writer's thread.

    def _run(self) -> None:
        try:
            while not self._is_closing:
                self._wakeup.wait(FLUSH_PERIOD_S)
                self._wakeup.clear()
                self._write_queued()
            self._write_queued()
            for connection in list(self._open):
                self._end(connection)
        except OSError as error:
            with self._lock:
                self._has_failed = True
                self._queue.clear()
            for connection in self._open:
                if connection.file:
                    connection.file.abandon()
            self._on_failure(f"The wire log ends: nothing more can be written to {self._folder}: {error.strerror}.")

    def _write_queued(self) -> None:
        while self._queue:
            chunks: dict[ConnectionLog, list[Piece]] = {}
            size = 0
            while self._queue and size < CHUNK_BYTES:
                connection, piece = self._queue.popleft()
                size += PIECE_BYTES + (len(piece.data) if piece else 0)
                if piece:
                    chunks.setdefault(connection, []).append(piece)
                else:
                    self._write(connection, chunks.pop(connection, []))
                    self._end(connection)
            for connection, pieces in chunks.items():
                self._write(connection, pieces)
            with self._lock:
                self._queued_bytes -= size

    def _write(self, connection: ConnectionLog, pieces: list[Piece]) -> None:
        if not pieces:
            return
        if connection.file and connection.file.size >= self._file_bytes:
            connection.file.close()
            connection.file = None
        if connection.file is None:
            connection.file = self._new_file(connection)
            self._open.add(connection)
        for number in sorted({piece.channel for piece in pieces}):
            channel = connection.channels[number]
            connection.file.add_channel(number, channel.topic, {"peer": channel.peer})
        connection.file.add_chunk(pieces)

    def _end(self, connection: ConnectionLog) -> None:
        self._open.discard(connection)
        if connection.file:
            connection.file.close()
            connection.file = None

    def _new_file(self, connection: ConnectionLog) -> WireFile:
        connection.part += 1
        if connection.part == 1:
            connection.started = self._free_start(connection.started)
        self._make_room()
        facts = {**connection.facts, "started": connection.started.isoformat(), "part": str(connection.part)}
        return WireFile(self._path(connection.started, connection.part), facts)

    def _free_start(self, started: datetime) -> datetime:
        while self._path(started, 1).exists():  # two connections in one microsecond, or a clock that was set back
            started = started.replace(microsecond=(started.microsecond + 1) % 1_000_000)
        return started

    def _path(self, started: datetime, part: int) -> Path:
        return self._folder / f"{self._name}-{started:%Y%m%dT%H%M%S.%f}-{part:04}.mcap"

    def _make_room(self) -> None:
        """Remove the oldest files, but the beginning of no connection that goes on: the rest would not be readable."""
        kept = {connection.file.path for connection in self._open if connection.file}
        kept |= {self._path(connection.started, 1) for connection in self._open}
        found = [(path.stat(), path) for path in self._folder.glob(f"{self._name}-*.mcap")]
        found.sort(key=lambda entry: (entry[0].st_mtime_ns, entry[1].name))
        occupied, count = sum(status.st_size for status, _ in found), len(found)
        for status, path in found:
            if occupied + self._file_bytes + CHUNK_BYTES <= self._total_bytes and count < MAX_FILES:
                return
            if path not in kept:
                path.unlink(missing_ok=True)
                occupied -= status.st_size
                count -= 1


def facts_of(protocol: str, side: str, name: str, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return what a file says of itself, beside its addresses.

    `side` is "operator" for who steers a vehicle and "vehicle" for who is steered.
    """
    return {"protocol": protocol, "side": side, "name": name, "parameters": json.dumps(dict(parameters))}
