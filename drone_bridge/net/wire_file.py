# SPDX-License-Identifier: Apache-2.0
"""One MCAP file with the bytes of one connection, written chunk by chunk.

Whatever happens, the file ends with a complete chunk, so that a reader that does not need the index can read all of it.
The few record types are written here, without a library, as every byte that a bridge receives goes through them. See
https://mcap.dev/spec.
"""

import contextlib
import errno
import fcntl
import mmap
import os
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

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
