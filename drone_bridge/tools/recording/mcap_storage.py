# SPDX-License-Identifier: Apache-2.0
"""The MCAP storage of rosbags, made to survive a full disk: the file always ends with a complete chunk.

The mcap package has a public Writer, but none that can take a chunk back: an error of the disk leaves part of a record
in the file, and the writer with an index and counts of what is not there. It also knows nothing of metadata.yaml, which
rosbag2 wants beside the file and rosbags writes. So this builds on rosbags' own classes, which are pinned by the tests
of the recorder.
"""

import os
import struct
from collections import defaultdict
from dataclasses import dataclass
from io import BufferedWriter, BytesIO, FileIO
from pathlib import Path
from typing import cast

from rosbags.interfaces import Connection, ConnectionExtRosbag2
from rosbags.rosbag2.enums import CompressionMode
from rosbags.rosbag2.storage_mcap import Channel, McapWriter, PendingChunk, write_channel, write_string

MESSAGE_RECORD = 0x05
MESSAGE_HEADER = struct.Struct("<HIQQ")  # channel, sequence, log time (ns), publish time (ns)
RECORD_HEADER = struct.Struct("<BQ")  # kind, length of what follows (bytes)
CHUNK_SIZE = 2**20  # bytes; a chunk is closed when it has grown beyond
LARGE = 2**16  # bytes; what is larger is not copied again
EMPTY_START_NS, EMPTY_END_NS = 2**63 - 1, 0  # what rosbags starts with, so that min() and max() work


class StagedFile:
    """Collects what is written and puts it on the disk in one go: all of it or, after an error, nothing."""

    def __init__(self, path: Path, size: int) -> None:
        """Continue an existing file at `size` bytes, dropping what is behind."""
        self._file = FileIO(path, "r+")
        self._staged: list[bytes | bytearray | memoryview]
        self._size: int
        self._end: int
        self.rewind(size)

    def write(self, data: bytes | memoryview) -> int:
        """Add to what the next commit() writes. Until then the data must not change."""
        last = self._staged[-1]
        if len(data) >= LARGE:
            self._staged.append(data)
        elif isinstance(last, bytearray):
            last += data
        else:
            self._staged.append(bytearray(data))
        self._end += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the offset in bytes at which the next write() will be found in the file."""
        return self._end

    def commit(self) -> None:
        """Put everything on the disk. Raises OSError, and leaves the file as it was, when there is no room."""
        try:
            for piece in self._staged:
                written = 0
                while written < len(piece):
                    written += os.write(self._file.fileno(), memoryview(piece)[written:])
        except OSError:
            self.rewind(self._size)
            raise
        self._staged = [bytearray()]
        self._size = self._end

    def rewind(self, size: int) -> None:
        """Cut the file to its first `size` bytes, and forget what was not committed."""
        self._staged = [bytearray()]
        self._size = self._end = size
        self._file.truncate(size)
        self._file.seek(size)

    def close(self) -> None:
        """Commit and close the file."""
        try:
            self.commit()
        finally:
            self._file.close()


@dataclass(frozen=True, slots=True)
class WrittenChunk:
    """What has to be known to take a chunk back."""

    end: int
    """Offset in the file, bytes."""
    start_ns: int
    end_ns: int
    counts: dict[int, int]
    """Messages by connection id."""


def _empty_chunk() -> PendingChunk:
    return PendingChunk(EMPTY_START_NS, EMPTY_END_NS, BytesIO(), defaultdict(list))


class McapStorage(McapWriter):
    """Writes whole chunks or nothing, keeps both times of a message, and can take back its last chunks."""

    def __init__(self, path: Path, compression: CompressionMode) -> None:
        """Create `path`/<name of path>.mcap. Raises OSError when there is no room for the header."""
        super().__init__(path, compression)
        try:
            self.bio.flush()
            self._header_size = self.bio.tell()
        finally:
            # The raw file: closing the buffered one would try to write its rest again, and fail again.
            self.bio.raw.close()
        self._use(StagedFile(self.path, self._header_size))
        self.written: list[WrittenChunk] = []

    def _use(self, file: StagedFile) -> None:
        self._file = file
        self.bio = cast(BufferedWriter, file)

    def add_connection(self, connection: Connection, offered_qos_profiles: str) -> None:
        """Add a channel with what rosbag2 notes about it."""
        metadata = BytesIO()
        for key, value in (("offered_qos_profiles", offered_qos_profiles), ("topic_type_hash", connection.digest)):
            write_string(metadata, key)
            write_string(metadata, value)
        encoding = cast(ConnectionExtRosbag2, connection.ext).serialization_format
        channel = Channel(connection.id, connection.msgtype, connection.topic, encoding, metadata.getvalue())
        self.channels.append(channel)
        self.channel_stats[connection.id] = 0
        write_channel(self.chunk.bio, channel, self.schemas)

    def write_message(self, connection: Connection, log_ns: int, publish_ns: int, data: bytes) -> None:
        """Write one message. Raises OSError when a chunk did not fit on the disk; its messages are gone then."""
        chunk = self.chunk
        chunk.message_start_time = min(log_ns, chunk.message_start_time)
        chunk.message_end_time = max(log_ns, chunk.message_end_time)
        chunk.msgs[connection.id].append((log_ns, chunk.bio.tell()))
        chunk.bio.write(RECORD_HEADER.pack(MESSAGE_RECORD, MESSAGE_HEADER.size + len(data)))
        chunk.bio.write(MESSAGE_HEADER.pack(connection.id, 0, log_ns, publish_ns))
        chunk.bio.write(data)
        if chunk.bio.tell() > CHUNK_SIZE:
            self.close_chunk()

    def write(self, connection: Connection, timestamp: int, data: bytes | memoryview) -> None:
        """Write one message of which only one time is known."""
        self.write_message(connection, timestamp, timestamp, bytes(data))

    def close_chunk(self) -> None:
        """Put the pending chunk on the disk, if it holds a message. Raises OSError; the chunk is gone then."""
        pending = self.chunk
        if not pending.msgs:
            return
        try:
            super().close_chunk()
        finally:
            self.chunk = _empty_chunk()
        try:
            self._file.commit()
        except OSError:
            self.chunks.pop()
            raise
        counts = {channel: len(messages) for channel, messages in pending.msgs.items()}
        chunk = WrittenChunk(self._file.tell(), pending.message_start_time, pending.message_end_time, counts)
        self.written.append(chunk)
        for channel, count in counts.items():
            self.channel_stats[channel] += count
        self.message_start_time = min(chunk.start_ns, self.message_start_time)
        self.message_end_time = max(chunk.end_ns, self.message_end_time)

    def take_back_chunk(self) -> bool:
        """Make room after close() failed: cut the last chunk off. Returns False when no chunk is left to take."""
        if not self.written:
            return False
        for channel, count in self.written.pop().counts.items():
            self.channel_stats[channel] -= count
        self.chunks.pop()
        self.message_start_time = min((chunk.start_ns for chunk in self.written), default=EMPTY_START_NS)
        self.message_end_time = max((chunk.end_ns for chunk in self.written), default=EMPTY_END_NS)
        self._use(StagedFile(self.path, self.written[-1].end if self.written else self._header_size))
        return True

    def close(self, version: int, metadata: str) -> None:
        """Write summary and footer and close the file. Raises OSError when there is no room for them."""
        if not self.chunk.msgs:
            # Schemas and channels without a message are in the summary.
            self.chunk = _empty_chunk()
            if not self.written:
                self.message_start_time = self.message_end_time = 0  # as the format has it for no messages
        super().close(version, metadata)
