# SPDX-License-Identifier: Apache-2.0
"""The folder of a wire log: names its files, and bounds their number and what they occupy."""

import contextlib
import errno
import fcntl
import json
import mmap
import os
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Final

from drone_bridge.net.connector import LinkError

FILES_PER_LOG: Final = 8  # a file ends, and is continued in another one, at this share of what the log may occupy
MAX_FILES: Final = 256


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


# One MCAP file with the bytes of one connection, written chunk by chunk.


MAGIC: Final = b"\x89MCAP0\r\n"
HEADER, FOOTER, CHANNEL, MESSAGE, CHUNK, METADATA, DATA_END = 0x01, 0x02, 0x04, 0x05, 0x06, 0x0C, 0x0F
#: A record that readers skip, as the specification has them do with an application's own.
PADDING: Final = 0x80
RECORD: Final = struct.Struct("<BQ")  # kind, length of what follows (bytes)
MESSAGE_FIELDS: Final = struct.Struct("<HIQQ")  # channel, sequence, log time (ns), publish time (ns)
CHUNK_FIELDS: Final = struct.Struct("<QQQI")  # first and last time (ns), uncompressed bytes, their CRC or 0
_MESSAGE_HEAD: Final = struct.Struct("<BQHIQQ")  # both of the above in one
_LENGTH: Final = struct.Struct("<Q")
#: The name of the metadata record that says whose bytes these are.
CONNECTION: Final = "drone_bridge.connection"
PROFILE: Final = ""
LIBRARY: Final = "drone_bridge wire log"

CHUNK_BYTES: Final = 1 << 20  # the memory of a chunk; above the caches' size everything takes longer
MESSAGE_BYTES: Final = 256 << 10  # the most in one message, so that a chunk has room for any
#: The beginning of an LZ4 frame: independent blocks of at most 4 MiB, compressed or as they were, without checksums.
_LZ4_FRAME: Final = bytes.fromhex("04224d18607073")
_LZ4_BLOCK: Final = struct.Struct("<I")  # its bytes, and whether they are as they were
_LZ4_AS_IT_WAS: Final = 1 << 31
_LZ4_END: Final = bytes(4)
_BLOCK_BYTES: Final = 4096  # of disks: O_DIRECT writes begin and end with one
_DIRECT_BYTES: Final = 128 << 10  # from this size on, chunks bypass the page cache


class Chunk:
    """Messages that are written together, laid out as in the file, in memory that is reused.

    Allocating a page can cost more than filling it, so nothing is allocated per message.
    """

    def __init__(self, is_lz4: bool) -> None:
        """With `is_lz4` messages can be added compressed."""
        self._compression = _string("lz4" if is_lz4 else "")
        self._is_lz4 = is_lz4
        self._memory = memoryview(mmap.mmap(-1, CHUNK_BYTES))  # page-aligned, as O_DIRECT requires
        self._begin = RECORD.size + CHUNK_FIELDS.size + len(self._compression) + _LENGTH.size  # of the messages
        self.clear()

    def clear(self) -> None:
        self.channels: set[int] = set()
        self._size = self._begin  # of what has been put into the memory
        self._plain_bytes = 0  # before compression
        self._first_ns = self._last_ns = 0
        self._block: int | None = None  # where the block begins that is not compressed, and can be added to
        if self._is_lz4:
            self._put(_LZ4_FRAME)

    def add(
        self, channel: int, sequence: int, time_ns: int, data: bytes | memoryview, compressed: bytes | None = None
    ) -> bool:
        """Add a message of at most MESSAGE_BYTES; return False when there is no room.

        Args:
            channel: its number.
            sequence: the message's number.
            time_ns: when it was, since 1970.
            data: the bytes.
            compressed: the same as one block of LZ4, if that is worthwhile.
        """
        stored = data if compressed is None else compressed
        # 64: heads of the message and of two blocks, and the end.
        if self._size + len(stored) + 64 + _BLOCK_BYTES > CHUNK_BYTES:
            return False
        if not self.channels:
            self._first_ns = self._last_ns = time_ns
        elif time_ns < self._first_ns:
            self._first_ns = time_ns
        elif time_ns > self._last_ns:
            self._last_ns = time_ns
        self.channels.add(channel)
        if self._is_lz4 and self._block is None:
            self._block = self._size
            self._size += _LZ4_BLOCK.size
        length, number = MESSAGE_FIELDS.size + len(data), sequence & 0xFFFFFFFF
        _MESSAGE_HEAD.pack_into(self._memory, self._size, MESSAGE, length, channel, number, time_ns, time_ns)
        self._size += _MESSAGE_HEAD.size
        if compressed is not None:
            self._end_block()
            self._put(_LZ4_BLOCK.pack(len(compressed)))
        self._put(stored)
        self._plain_bytes += _MESSAGE_HEAD.size + len(data)
        return True

    @property
    def size(self) -> int:
        """Its approximate size in the file, bytes."""
        return self._size

    def finish(self, is_padded: bool) -> memoryview:
        """Return the whole record, padded to blocks of the disk or not; nothing can be added until it is cleared."""
        self._end_block()
        if self._is_lz4:
            self._put(_LZ4_END)
        RECORD.pack_into(self._memory, 0, CHUNK, self._size - RECORD.size)
        CHUNK_FIELDS.pack_into(self._memory, RECORD.size, self._first_ns, self._last_ns, self._plain_bytes, 0)
        after = RECORD.size + CHUNK_FIELDS.size
        self._memory[after : self._begin] = self._compression + _LENGTH.pack(self._size - self._begin)
        if is_padded:
            self._put(_padding(self._size))
        return self._memory[: self._size]

    def _end_block(self) -> None:
        if self._block is not None:
            size = self._size - self._block - _LZ4_BLOCK.size
            _LZ4_BLOCK.pack_into(self._memory, self._block, size | _LZ4_AS_IT_WAS)
            self._block = None

    def _put(self, data: bytes | memoryview) -> None:
        end = self._size + len(data)
        self._memory[self._size : end] = data
        self._size = end


class WireFile:
    """A file being written. All methods raise OSError if the disk does."""

    def __init__(self, path: Path, connection: Mapping[str, str]) -> None:
        """Create the file, with facts about the connection."""
        self.path = path
        self.size = 0  # bytes
        self._channels: set[int] = set()
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        self._can_pass_the_cache = hasattr(os, "O_DIRECT")
        header = _record(HEADER, _string(PROFILE) + _string(LIBRARY))
        self._write(MAGIC + header + _record(METADATA, _string(CONNECTION) + _map(connection)))

    def add_channel(self, number: int, topic: str, metadata: Mapping[str, str]) -> None:
        """Declare a channel, unless it is declared."""
        if number not in self._channels:
            encoding = _string("")  # of the messages: bytes
            no_schema = 0
            fields = struct.pack("<HH", number, no_schema) + _string(topic) + encoding + _map(metadata)
            self._write(_record(CHANNEL, fields))
            self._channels.add(number)

    def add_chunk(self, chunk: Chunk) -> None:
        """Write pieces, at least one, completely or, with OSError, not at all."""
        # To take new pages for what is written is what costs most, and they would push out what others need.
        if chunk.size < _DIRECT_BYTES or not self._can_pass_the_cache:
            self._write(chunk.finish(is_padded=False))
            return
        if self.size % _BLOCK_BYTES:
            self._write(_padding(self.size))
        record = chunk.finish(is_padded=True)
        try:
            with _past_the_page_cache(self._file):
                self._write(record)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            self._can_pass_the_cache = False  # as with some file systems, or blocks of a larger size
            self._write(record)

    def close(self) -> None:
        """Write the index. The file is readable without it."""
        try:
            no_index = struct.pack("<QQI", 0, 0, 0)
            self._write(_record(DATA_END, struct.pack("<I", 0)) + _record(FOOTER, no_index) + MAGIC)
        finally:
            os.close(self._file)

    def abandon(self) -> None:
        """Close without an index."""
        os.close(self._file)

    def _write(self, data: bytes | memoryview) -> None:
        whole = memoryview(data)
        written = 0
        try:
            while written < len(whole):
                written += os.write(self._file, whole[written:])
        except OSError:
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            raise
        self.size += len(whole)


@contextlib.contextmanager
def _past_the_page_cache(file: int) -> Iterator[None]:
    """Write whole blocks from page-aligned memory. Raises OSError, with EINVAL where that is not supported."""
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    fcntl.fcntl(file, fcntl.F_SETFL, flags | os.O_DIRECT)
    try:
        yield
    finally:
        fcntl.fcntl(file, fcntl.F_SETFL, flags)


def _padding(size: int) -> bytes:
    """Return what makes something of this size end with a block of the disk."""
    missing = -(size + RECORD.size) % _BLOCK_BYTES
    return RECORD.pack(PADDING, missing) + bytes(missing)


def _record(kind: int, fields: bytes) -> bytes:
    return RECORD.pack(kind, len(fields)) + fields


def _string(text: str) -> bytes:
    data = text.encode(errors="replace")
    return struct.pack("<I", len(data)) + data


def _map(entries: Mapping[str, str]) -> bytes:
    data = b"".join(_string(key) + _string(value) for key, value in entries.items())
    return struct.pack("<I", len(data)) + data


# Logs the bytes of every connection with directions and times, in files of bounded size and number.


FLUSH_PERIOD_S: Final = 0.75
QUEUED_CHUNKS: Final = 32  # by which a slow disk may lag behind; beyond that bytes are dropped, and the log says so
SPARE_CHUNKS: Final = 4  # whose memory is kept for what comes next
SMALL_BYTES: Final = 1024  # up to this size messages are queued, and added to a chunk many at once, which costs less
MAX_SMALL: Final = 256  # that wait
LARGE_BYTES: Final = 16 << 10  # from this size on a message may be compressed instead of copied
WORTHWHILE_RATIO: Final = 4  # to which a message has to shrink: LZ4 then is about as fast as a copy
LEFT_AS_THEY_ARE: Final = 63  # large messages, after one that did not shrink so much
MAX_CHANNELS: Final = 64  # of one file: a direction each, for each peer of a UDP port; further peers share the last two
STOP_TIMEOUT_S: Final = 2.0

#: The topics of the channels: what came, what was sent, and what the log has to say itself.
RECEIVED: Final = "received"
SENT: Final = "sent"
NOTES: Final = "notes"
#: Ends the topics that say where pixels are left out: each message is their number of bytes, in decimal digits.
PIXELS: Final = "_pixels"
OTHERS: Final = "others"
_NOTES_NUMBER: Final = 0  # of the channel, in every file
_PIXELS_NUMBER: Final = 1 << 15  # added to a channel's number: the channel that says where its pixels are left out


@dataclass(frozen=True, slots=True)
class Channel:
    """A direction, and whose bytes it carries."""

    topic: str
    peer: str


class ConnectionLog:
    """The log of one connection or UDP port. Never blocks, never raises."""

    def __init__(self, log: "WireLog", facts: Mapping[str, str]) -> None:
        self.facts = dict(facts)
        self.started = datetime.now(timezone.utc)
        self.part = 0  # of the file that is being written, from 1
        self.file: WireFile | None = None  # of the writer's thread
        self.channels = [Channel(NOTES, facts["peer"])]  # by number
        self.chunk: Chunk | None = None  # what is being added to
        self.is_closed = False
        #: To be put into a chunk: channel, time (ns), and bytes, before which so many of pixels are left out.
        self.small: deque[tuple[int, int, bytes, int]] = deque()
        self.messages = 0  # in chunks so far
        self.lost_bytes = 0  # since the log could not keep up
        self._log = log
        self._numbers = {(NOTES, ""): _NOTES_NUMBER}  # of channels, by topic and peer
        self._left_as_they_are = 0  # large messages that are not worth the attempt to compress them

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
        if not self.is_closed:
            self._log.end(self)

    def _put(self, topic: str, data: memoryview, peer: str, left_out: int = 0) -> None:
        if self.is_closed:
            return
        number = self._numbers.get((topic, peer))
        if number is None:
            number = self._number(topic, peer)
        if len(data) <= SMALL_BYTES and len(self.small) < MAX_SMALL and not self.lost_bytes:
            self.small.append((number, time.time_ns(), bytes(data), left_out))
            return
        for begin in range(0, max(1, len(data)), MESSAGE_BYTES):
            part = data[begin : begin + MESSAGE_BYTES]
            compressed = self._compressed(part) if len(part) >= LARGE_BYTES else None
            self._log.add(self, number, part, 0 if begin else left_out, compressed)

    def _compressed(self, data: memoryview) -> bytes | None:
        """Return one block of LZ4, if worthwhile: compressing a flat image costs less than copying and writing it."""
        if self._left_as_they_are:
            self._left_as_they_are -= 1
            return None
        if not (compress := self._log.compress):
            return None
        block = compress(data)
        if len(block) * WORTHWHILE_RATIO <= len(data):
            return block
        self._left_as_they_are = LEFT_AS_THEY_ARE
        return None

    def _number(self, topic: str, peer: str) -> int:
        if (topic, peer) in self._numbers:
            return self._numbers[topic, peer]
        if len(self.channels) > MAX_CHANNELS and peer != OTHERS:
            return self._number(topic, OTHERS)
        self.channels.append(Channel(topic, peer or self.facts["peer"]))
        number = self._numbers[topic, peer] = len(self.channels) - 1
        return number


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
        self.compress = _lz4()
        self._queue: deque[tuple[ConnectionLog, Chunk | None]] = deque()  # to be written; None ends the connection
        self._connections: list[ConnectionLog] = []  # that have not ended
        self._spare: list[Chunk] = []
        self._lock = threading.Lock()
        self._wakeup = threading.Event()
        self._has_failed = False
        self._is_closing = False
        self._open: set[ConnectionLog] = set()  # of the writer's thread: those with a file
        self._thread = threading.Thread(target=self._run, name="wire log", daemon=True)
        self._thread.start()

    def open(self, transport: str, own: str, peer: str) -> ConnectionLog:
        """Return the log of a connection between two addresses; `peer` is empty for a port that serves anybody."""
        connection = ConnectionLog(self, {**self._facts, "transport": transport, "own": own, "peer": peer})
        with self._lock:
            if not self._has_failed:
                self._connections.append(connection)
        return connection

    def close(self) -> bool:
        """Write what is queued and end all files; return whether that took less than STOP_TIMEOUT_S."""
        with self._lock:
            self._is_closing = True
        self._wakeup.set()
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()

    def add(
        self, connection: ConnectionLog, channel: int, data: memoryview, left_out: int, compressed: bytes | None
    ) -> None:
        """Copy a message of at most MESSAGE_BYTES, or the same compressed, after what waits outside the chunks.

        Before its bytes, `left_out` of pixels are left out.
        """
        with self._lock:
            if not self._has_failed and not self._is_closing:
                self._put_small(connection)
                self._put(connection, channel, time.time_ns(), data, left_out, compressed=compressed)

    def end(self, connection: ConnectionLog) -> None:
        """End the file of a connection, when all of it is written."""
        with self._lock:
            connection.is_closed = True
            if not self._has_failed:
                self._put_small(connection)
                self._note_loss(connection)
                self._queue_chunk(connection)
                self._queue.append((connection, None))
                self._connections.remove(connection)

    # With the lock held.

    def _put_small(self, connection: ConnectionLog) -> None:
        small = connection.small
        while small:
            self._put(connection, *small.popleft())

    def _put(
        self,
        connection: ConnectionLog,
        channel: int,
        time_ns: int,
        data: bytes | memoryview,
        left_out: int = 0,
        *,
        compressed: bytes | None = None,
    ) -> None:
        """Put a message into the connection's chunk; while the disk is behind, only count its bytes as lost."""
        if left_out:
            self._put(connection, channel + _PIXELS_NUMBER, time_ns, b"%d" % left_out)
            if not data:
                return
        if connection.lost_bytes and len(self._queue) <= QUEUED_CHUNKS // 2:
            self._note_loss(connection)
        if connection.lost_bytes or not self._put_into_chunk(connection, channel, time_ns, data, compressed):
            connection.lost_bytes += len(data)

    def _note_loss(self, connection: ConnectionLog) -> None:
        """Note what is missing, if anything is."""
        if connection.lost_bytes:
            sentence = f"The disk was too slow: {connection.lost_bytes} bytes are missing here."
            if self._put_into_chunk(connection, _NOTES_NUMBER, time.time_ns(), sentence.encode(), None):
                connection.lost_bytes = 0

    def _put_into_chunk(
        self,
        connection: ConnectionLog,
        channel: int,
        time_ns: int,
        data: bytes | memoryview,
        compressed: bytes | None,
    ) -> bool:
        message = channel, connection.messages, time_ns, data, compressed
        chunk = connection.chunk
        if chunk is None or not chunk.add(*message):
            if len(self._queue) >= QUEUED_CHUNKS:
                return False
            if chunk is not None:
                self._queue.append((connection, chunk))
                self._wakeup.set()
            chunk = connection.chunk = self._spare.pop() if self._spare else Chunk(self.compress is not None)
            chunk.add(*message)
        connection.messages += 1
        return True

    def _queue_chunk(self, connection: ConnectionLog) -> None:
        if connection.chunk is not None:
            self._queue.append((connection, connection.chunk))
            connection.chunk = None

    # The writer's thread.

    def _run(self) -> None:
        due_s = time.monotonic() + FLUSH_PERIOD_S
        try:
            while not self._is_closing:
                self._wakeup.wait(max(0.0, due_s - time.monotonic()))
                self._wakeup.clear()
                if time.monotonic() >= due_s:
                    self._queue_all()
                    due_s = time.monotonic() + FLUSH_PERIOD_S
                self._write_queued()
            self._queue_all()
            self._write_queued()
            for connection in list(self._open):
                self._end(connection)
        except OSError as error:
            with self._lock:
                self._has_failed = True
                self._queue.clear()
                for connection in self._connections:
                    connection.chunk = None
                self._connections.clear()
            for connection in self._open:
                if connection.file:
                    connection.file.abandon()
            self._on_failure(
                f"The wire log ends: nothing more can be written to {self._folder.path}: {error.strerror}."
            )

    def _queue_all(self) -> None:
        with self._lock:
            for connection in self._connections:
                self._put_small(connection)
                self._queue_chunk(connection)

    def _write_queued(self) -> None:
        while self._queue:
            connection, chunk = self._queue[0]  # and it stays there, as it takes memory until it is written
            if chunk is None:
                self._end(connection)
            else:
                self._write(connection, chunk)
                chunk.clear()
            with self._lock:
                self._queue.popleft()
                if chunk is not None and len(self._spare) < SPARE_CHUNKS:
                    self._spare.append(chunk)

    def _write(self, connection: ConnectionLog, chunk: Chunk) -> None:
        if connection.file and connection.file.size >= self._folder.file_bytes:
            connection.file.close()
            connection.file = None
        if connection.file is None:
            connection.file = self._new_file(connection)
            self._open.add(connection)
        for number in sorted(chunk.channels):
            channel = connection.channels[number % _PIXELS_NUMBER]
            topic = channel.topic if number < _PIXELS_NUMBER else channel.topic + PIXELS
            connection.file.add_channel(number, topic, {"peer": channel.peer})
        connection.file.add_chunk(chunk)

    def _end(self, connection: ConnectionLog) -> None:
        self._open.discard(connection)
        if connection.file:
            connection.file.close()
            connection.file = None

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


def _lz4() -> Callable[[memoryview], bytes] | None:
    """Return what compresses a block, or None. Only a bridge that writes a log imports it."""
    try:
        from lz4.block import compress
    except ImportError:  # rosbags brings it; without it the files are larger and cost more to write
        return None
    return partial(compress, mode="fast", store_size=False)
