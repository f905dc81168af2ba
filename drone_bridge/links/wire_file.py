# SPDX-License-Identifier: Apache-2.0
"""One MCAP file with the bytes of one connection, written chunk by chunk.

Whatever happens, the file ends with a whole chunk: a reader that can do without the index at the end reads all of it.
The few records are written here, without a library, as every byte that a bridge receives goes through them.
See https://mcap.dev/spec.
"""

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

MAGIC: Final = b"\x89MCAP0\r\n"
HEADER, FOOTER, CHANNEL, MESSAGE, CHUNK, METADATA, DATA_END = 0x01, 0x02, 0x04, 0x05, 0x06, 0x0C, 0x0F
RECORD: Final = struct.Struct("<BQ")  # kind, length of what follows (bytes)
MESSAGE_FIELDS: Final = struct.Struct("<HIQQ")  # channel, sequence, log time (ns), publish time (ns)
CHUNK_FIELDS: Final = struct.Struct("<QQQI")  # first and last time (ns), uncompressed bytes, their CRC or 0
#: The name of the metadata record that says whose bytes these are.
CONNECTION: Final = "drone_bridge.connection"
PROFILE: Final = ""
LIBRARY: Final = "drone_bridge wire log"
_LZ4_LEVEL: Final = -8  # fast: of what hardly compresses, as noisy images, little is lost


class Piece(NamedTuple):
    """What was read or sent in one go."""

    channel: int
    time_ns: int  # since 1970
    data: bytes


class WireFile:
    """A file that is being written. Everything raises OSError when the disk does not take it."""

    def __init__(self, path: Path, connection: Mapping[str, str]) -> None:
        """Create it, with what there is to know of the connection."""
        self.path = path
        self.size = 0  # bytes
        self._sequence = 0
        self._channels: set[int] = set()
        self._file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        header = _record(HEADER, _string(PROFILE) + _string(LIBRARY))
        self._write([MAGIC, header, _record(METADATA, _string(CONNECTION) + _map(connection))])

    def add_channel(self, number: int, topic: str, metadata: Mapping[str, str]) -> None:
        """Declare a channel, unless the file has it."""
        if number not in self._channels:
            encoding = _string("")  # of the messages: bytes
            no_schema = 0
            fields = struct.pack("<HH", number, no_schema) + _string(topic) + encoding + _map(metadata)
            self._write([_record(CHANNEL, fields)])
            self._channels.add(number)

    def add_chunk(self, pieces: list[Piece]) -> None:
        """Write these, at least one, so that all of them are on the disk, or with OSError none."""
        compressor = _compressor()
        parts: list[bytes] = [compressor.begin()] if compressor else []
        size = 0
        for piece in pieces:
            self._sequence += 1
            fields = MESSAGE_FIELDS.pack(piece.channel, self._sequence & 0xFFFFFFFF, piece.time_ns, piece.time_ns)
            head = RECORD.pack(MESSAGE, len(fields) + len(piece.data)) + fields
            size += len(head) + len(piece.data)
            parts += (compressor.compress(head), compressor.compress(piece.data)) if compressor else (head, piece.data)
        if compressor:
            parts.append(compressor.flush())
        times = [piece.time_ns for piece in pieces]
        stored = sum(map(len, parts))
        fields = CHUNK_FIELDS.pack(min(times), max(times), size, 0) + _string("lz4" if compressor else "")
        fields += stored.to_bytes(8, "little")
        self._write([RECORD.pack(CHUNK, len(fields) + stored), fields, *parts])

    def close(self) -> None:
        """Write the end. The file is readable without it."""
        try:
            no_index = struct.pack("<QQI", 0, 0, 0)
            self._write([_record(DATA_END, struct.pack("<I", 0)), _record(FOOTER, no_index), MAGIC])
        finally:
            os.close(self._file)

    def abandon(self) -> None:
        """Close without an end."""
        os.close(self._file)

    def _write(self, parts: Iterable[bytes]) -> None:
        whole = memoryview(b"".join(parts))
        written = 0
        try:
            while written < len(whole):
                written += os.write(self._file, whole[written:])
        except OSError:
            os.ftruncate(self._file, self.size)
            os.lseek(self._file, self.size, os.SEEK_SET)
            raise
        self.size += len(whole)


def _record(kind: int, fields: bytes) -> bytes:
    return RECORD.pack(kind, len(fields)) + fields


def _string(text: str) -> bytes:
    data = text.encode(errors="replace")
    return struct.pack("<I", len(data)) + data


def _map(entries: Mapping[str, str]) -> bytes:
    data = b"".join(_string(key) + _string(value) for key, value in entries.items())
    return struct.pack("<I", len(data)) + data


def _compressor() -> Any:
    """Return what compresses a chunk, or None. It is imported by the first chunk: most bridges write none."""
    try:
        from lz4.frame import LZ4FrameCompressor
    except ImportError:  # rosbags brings it; without it the files are larger and cost more to write
        return None
    return LZ4FrameCompressor(compression_level=_LZ4_LEVEL)
