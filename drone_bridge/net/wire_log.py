# SPDX-License-Identifier: Apache-2.0
"""The wire log: the bytes of every connection with directions and times, in MCAP files. See docs/wire_log.md.

Links hand over copies of what they read and sent; a thread of the log writes them. So a disk that is slow, full or gone
never holds up a vehicle's link: what can't be written in time is dropped, and the log says so.
"""

import contextlib
import json
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, NamedTuple

from drone_bridge.net.connector import LinkError

try:
    from mcap.writer import CompressionType, IndexType, Writer
except ImportError:  # rosdep has no key for it
    Writer = None  # type: ignore[assignment,misc]

# The folder: names its files, and bounds their number and what they occupy.


FILES_PER_LOG = 8  # a file ends, and is continued in another one, at this share of what the log may occupy
MAX_FILES = 256


class WireFolder:
    """The files whose names begin with one bridge's."""

    def __init__(self, path: Path, name: str, total_bytes: int) -> None:
        """Create the folder if necessary; the files of this name may occupy `total_bytes` together.

        Raises LinkError if the folder can't be written to.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            probe = path / f".{name}.probe"
            probe.touch()
            probe.unlink()
        except OSError as error:
            raise LinkError(f"The wire log can't be written to {path}: {error.strerror}.") from error
        self.path = path
        #: After how many bytes a file is to end.
        self.file_bytes = total_bytes // FILES_PER_LOG
        self._name = name
        self._total_bytes = total_bytes

    def file(self, started: datetime, part: int) -> Path:
        """Return the path of a connection's file; parts count from 1."""
        return self.path / f"{self._name}-{started:%Y%m%dT%H%M%S.%f}-{part:04}.mcap"

    def free_start(self, started: datetime) -> datetime:
        """Return the start by which to name a connection's files."""
        while self.file(started, 1).exists():  # two connections in one microsecond, or a clock that was set back
            started = started.replace(microsecond=(started.microsecond + 1) % 1_000_000)
        return started

    def make_room(self, kept: Collection[Path]) -> None:
        """Remove the oldest files, except those to be kept, until there is room for another one."""
        found = [(path.stat(), path) for path in self.path.glob(f"{self._name}-*.mcap")]
        found.sort(key=lambda entry: (entry[0].st_mtime_ns, entry[1].name))
        occupied, count = sum(status.st_size for status, _ in found), len(found)
        for status, path in found:
            if occupied + self.file_bytes + CHUNK_BYTES <= self._total_bytes and count < MAX_FILES:
                return
            if path not in kept:
                path.unlink(missing_ok=True)
                occupied -= status.st_size
                count -= 1


# One file, with the bytes of one connection.


#: The name of the metadata record that says whose bytes these are.
CONNECTION = "drone_bridge.connection"
LIBRARY = "drone_bridge wire log"
CHUNK_BYTES = 1 << 20  # the most in one chunk, before compression
MESSAGE_BYTES = 256 << 10  # the most in one message
MAX_CHANNELS = 64  # of one file: a direction each, for each peer of a UDP port; further peers share the last ones
#: The peer of those.
OTHERS = "others"


class WireFile:
    """A file being written. All methods raise OSError if the disk does."""

    def __init__(self, path: Path, connection: Mapping[str, str]) -> None:
        """Create the file, with facts about the connection."""
        self.path = path
        self._numbers: dict[tuple[str, str], int] = {}  # of channels, by topic and peer
        unfinished = path.with_suffix(".new")
        self._file = unfinished.open("wb")
        self._writer = _writer(self._file)
        self._writer.start(library=LIBRARY)
        self._writer.add_metadata(CONNECTION, dict(connection))
        self._file.flush()
        unfinished.rename(path)  # whoever follows the log finds no file without a beginning

    @property
    def size(self) -> int:
        """Its size without the last chunk, bytes."""
        return self._file.tell()

    def add(self, topic: str, peer: str, sequence: int, time_ns: int, data: bytes) -> None:
        """Add a message of at most MESSAGE_BYTES; `time_ns` counts since 1970."""
        number = self._numbers.get((topic, peer))
        if number is None:
            number = self._number(topic, peer)
        self._writer.add_message(number, time_ns, data, time_ns, sequence)

    def flush(self) -> None:
        """Write everything so that it survives this process."""
        self._writer.flush()

    def close(self) -> None:
        try:
            self._writer.finish()
        finally:
            self._file.close()

    def _number(self, topic: str, peer: str) -> int:
        if len(self._numbers) >= MAX_CHANNELS and peer != OTHERS:
            peer = OTHERS
        if (topic, peer) not in self._numbers:
            no_schema = 0
            self._numbers[topic, peer] = self._writer.register_channel(topic, "", no_schema, {"peer": peer})
        return self._numbers[topic, peer]


def _writer(file: IO[bytes]) -> Any:
    """Return mcap's writer, whose methods have no types, or what has to do without it."""
    if not hasattr(Writer, "flush"):  # not there, or from before 1.5
        return _PlainWriter(file)
    return Writer(
        file,
        chunk_size=CHUNK_BYTES - MESSAGE_BYTES,
        compression=CompressionType.LZ4,
        index_types=IndexType.NONE,  # nobody looks for a time in it, and it is as readable without an end
        use_statistics=False,
        enable_crcs=False,
    )


class _PlainWriter:
    """What a log needs of mcap's writer, record by record as mcap.dev/spec has them: no chunks, so not compressed."""

    _MAGIC = b"\x89MCAP0\r\n"

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._channels = 0

    def start(self, library: str) -> None:
        self._file.write(self._MAGIC)
        self._write(0x01, "", library)

    def add_metadata(self, name: str, facts: Mapping[str, str]) -> None:
        self._write(0x0C, name, facts)

    def register_channel(self, topic: str, encoding: str, schema: int, facts: Mapping[str, str]) -> int:
        self._channels += 1
        self._write(0x04, struct.pack("<HH", self._channels, schema), topic, encoding, facts)
        return self._channels

    def add_message(self, channel: int, log_ns: int, data: bytes, publish_ns: int, sequence: int) -> None:
        self._write(0x05, struct.pack("<HIQQ", channel, sequence, log_ns, publish_ns), data)

    def flush(self) -> None:
        self._file.flush()

    def finish(self) -> None:
        self._write(0x0F, bytes(4))  # the end of the data, of no checksum
        self._write(0x02, bytes(20))  # no summary
        self._file.write(self._MAGIC)

    def _write(self, kind: int, *fields: bytes | str | Mapping[str, str]) -> None:
        content = b"".join(map(_encoded, fields))
        self._file.write(struct.pack("<BQ", kind, len(content)) + content)


def _encoded(field: bytes | str | Mapping[str, str]) -> bytes:
    if isinstance(field, bytes):
        return field
    words = (word for fact in field.items() for word in fact) if isinstance(field, Mapping) else ()
    content = field.encode() if isinstance(field, str) else b"".join(map(_encoded, words))
    return struct.pack("<I", len(content)) + content


# The log: queues what links hand over, and writes it in a thread of its own.


FLUSH_PERIOD_S = 0.75
#: By which a slow disk may lag behind; beyond that bytes are dropped, and the log says so.
QUEUED_BYTES = 32 << 20
#: After so many, the thread writes before the period is over.
_WAKING_BYTES = 1 << 20
_ENTRY_BYTES = 256  # what waits with each message, beside its bytes
STOP_TIMEOUT_S = 2.0

#: The topics of the channels: what came, what was sent, and what the log has to say itself.
RECEIVED = "received"
SENT = "sent"
NOTES = "notes"
#: Ends the topics that say where pixels are left out: each message is their number of bytes, in decimal digits.
PIXELS = "_pixels"


class _Entry(NamedTuple):
    """What is to be written, or with an empty topic, the end of a connection."""

    connection: "ConnectionLog"
    topic: str
    peer: str
    time_ns: int
    data: bytes

    @property
    def size(self) -> int:
        """What it occupies while it waits, about, in bytes."""
        return _ENTRY_BYTES + len(self.data)


class ConnectionLog:
    """The log of one connection or UDP port. Never blocks, never raises."""

    def __init__(self, log: "WireLog", facts: Mapping[str, str]) -> None:
        self.facts = dict(facts)
        self.started = datetime.now(timezone.utc)
        self.lost_bytes = 0  # since the log could not keep up
        self._log = log
        self._is_closed = False
        # Of the writer's thread.
        self.part = 0  # of the file that is being written, from 1
        self.file: WireFile | None = None
        self.messages = 0  # so far

    def received(self, buffers: Sequence[memoryview], count: int, peer: str = "", pixel_bytes: int = 0) -> None:
        """Log the first `count` bytes of the buffers; 0 is the end of a stream, or an empty datagram.

        The first `pixel_bytes` of them may be left out.
        """
        begin = left_out = 0 if self._log.has_pixels else min(pixel_bytes, count)
        for buffer in buffers:
            size = len(buffer)
            if begin < size or count <= size:
                self._put(RECEIVED, buffer[begin:count], peer, left_out)
                begin = left_out = 0
            else:
                begin -= size
            count -= size
            if count <= 0:
                break

    def sent(self, data: bytes | memoryview, peer: str = "", *, is_pixels: bool = False) -> None:
        """Log bytes that the system has accepted; pixels may be left out."""
        left_out = len(data) if is_pixels and not self._log.has_pixels else 0
        self._put(SENT, memoryview(data)[left_out:], peer, left_out)

    def note(self, sentence: str) -> None:
        self._put(NOTES, memoryview(sentence.encode()), "")

    def close(self) -> None:
        """End the file once everything is written."""
        if not self._is_closed:
            self._is_closed = True
            self._log.end(self)

    def close_file(self) -> None:
        """End the file that is being written, if there is one. For the writer's thread. Raises OSError."""
        file, self.file = self.file, None
        if file:
            file.close()

    def _put(self, topic: str, data: memoryview, peer: str, left_out: int = 0) -> None:
        if self._is_closed:
            return
        peer, time_ns = peer or self.facts["peer"], time.time_ns()
        if left_out:
            self._log.add(_Entry(self, topic + PIXELS, peer, time_ns, b"%d" % left_out))
            if not data:
                return
        for begin in range(0, max(1, len(data)), MESSAGE_BYTES):
            self._log.add(_Entry(self, topic, peer, time_ns, bytes(data[begin : begin + MESSAGE_BYTES])))


class WireLog:
    """The files of one bridge in a folder. `open` and the logs that it returns are thread-safe."""

    def __init__(
        self,
        folder: Path,
        name: str,
        facts: Mapping[str, str],
        total_bytes: int,
        on_failure: Callable[[str], None],
        *,
        has_pixels: bool = True,
    ) -> None:
        """Start to write into `folder`, which is created if necessary.

        Args:
            folder: where the files go.
            name: what their names begin with.
            facts: what each file says of itself; see docs/wire_log.md.
            total_bytes: how much the files of this name may occupy together; the oldest are removed.
            on_failure: gets a sentence, once, when nothing more can be written. Called in the log's thread.
            has_pixels: whether to log the pixels of images, or only how many bytes of them there were.

        Raises:
            LinkError: the folder can't be written to.
        """
        self._folder = WireFolder(folder, name, total_bytes)
        self._facts = dict(facts)
        self._on_failure = on_failure
        self.has_pixels = has_pixels
        self._lock = threading.Lock()
        self._queue: deque[_Entry] = deque()
        self._queued_bytes = 0  # until they are written
        self._wakeup = threading.Event()
        self._is_over = False  # closed, or nothing more can be written
        self._open: set[ConnectionLog] = set()  # of the writer's thread: those with a file
        self._thread = threading.Thread(target=self._run, name="wire log", daemon=True)
        self._thread.start()

    def open(self, transport: str, own: str, peer: str) -> ConnectionLog:
        """Return the log of a connection between two addresses; `peer` is empty for a port that serves anybody."""
        return ConnectionLog(self, {**self._facts, "transport": transport, "own": own, "peer": peer})

    def close(self) -> bool:
        """Write what is queued and end all files; return whether that took less than STOP_TIMEOUT_S."""
        with self._lock:
            self._is_over = True
        self._wakeup.set()
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()

    def add(self, entry: _Entry) -> None:
        """Queue an entry; while the disk is behind, only count its bytes as lost."""
        with self._lock:
            connection = entry.connection
            if self._is_over:
                return
            if connection.lost_bytes and self._queued_bytes <= QUEUED_BYTES // 2:
                self._note_loss(connection)
            if connection.lost_bytes or self._queued_bytes + entry.size > QUEUED_BYTES:
                connection.lost_bytes += len(entry.data)
                return
            self._enqueue(entry)
            is_much = self._queued_bytes > _WAKING_BYTES
        if is_much:
            self._wakeup.set()

    def end(self, connection: ConnectionLog) -> None:
        """End the file of a connection, when all of it is written."""
        with self._lock:
            if not self._is_over:
                self._note_loss(connection)
                self._enqueue(_Entry(connection, "", "", 0, b""))

    # With the lock held.

    def _enqueue(self, entry: _Entry) -> None:
        self._queue.append(entry)
        self._queued_bytes += entry.size

    def _note_loss(self, connection: ConnectionLog) -> None:
        """Note what is missing, if anything is."""
        if connection.lost_bytes:
            sentence = f"The disk was too slow: {connection.lost_bytes} bytes are missing here."
            peer = connection.facts["peer"]
            self._enqueue(_Entry(connection, NOTES, peer, time.time_ns(), sentence.encode()))
            connection.lost_bytes = 0

    # The writer's thread.

    def _run(self) -> None:
        try:
            is_over = False
            while not is_over:
                self._wakeup.wait(FLUSH_PERIOD_S)
                self._wakeup.clear()
                is_over = self._is_over
                self._write_queued()
                for connection in self._open:
                    if connection.file:
                        connection.file.flush()
            for connection in list(self._open):
                self._end(connection)
        except OSError as error:
            with self._lock:
                self._is_over = True
                self._queue.clear()
            for connection in self._open:
                with contextlib.suppress(OSError):  # of a file without an end
                    connection.close_file()
            self._on_failure(
                f"The wire log ends: nothing more can be written to {self._folder.path}: {error.strerror}."
            )

    def _write_queued(self) -> None:
        while self._queue:
            entry = self._queue.popleft()
            size = entry.size
            while entry.topic.endswith(PIXELS) and self._queue and self._queue[0][:3] == entry[:3]:
                more = self._queue.popleft()  # another read of the same image, and one message says all of it
                size += more.size
                entry = entry._replace(data=b"%d" % (int(entry.data) + int(more.data)))
            if entry.topic:
                self._write(entry)
            else:
                self._end(entry.connection)
            with self._lock:
                self._queued_bytes -= size

    def _write(self, entry: _Entry) -> None:
        connection = entry.connection
        if connection.file and connection.file.size >= self._folder.file_bytes:
            connection.close_file()
        if connection.file is None:
            connection.file = self._new_file(connection)
            self._open.add(connection)
        connection.file.add(entry.topic, entry.peer, connection.messages & 0xFFFFFFFF, entry.time_ns, entry.data)
        connection.messages += 1

    def _end(self, connection: ConnectionLog) -> None:
        self._open.discard(connection)
        connection.close_file()

    def _new_file(self, connection: ConnectionLog) -> WireFile:
        connection.part += 1
        if connection.part == 1:
            connection.started = self._folder.free_start(connection.started)
        # The first file of a connection that is still open is kept, as the rest needs it.
        kept = {self._folder.file(connection.started, 1) for connection in self._open}
        self._folder.make_room(kept | {connection.file.path for connection in self._open if connection.file})
        facts = {**connection.facts, "started": connection.started.isoformat(), "part": str(connection.part)}
        return WireFile(self._folder.file(connection.started, connection.part), facts)


def facts_of(protocol: str, side: str, name: str, parameters: Mapping[str, object]) -> dict[str, str]:
    """Return the facts about a file, without its addresses.

    `side` is "operator" for who steers a vehicle and "vehicle" for who is steered.
    """
    return {"protocol": protocol, "side": side, "name": name, "parameters": json.dumps(dict(parameters))}
