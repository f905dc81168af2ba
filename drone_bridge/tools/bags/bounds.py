# SPDX-License-Identifier: Apache-2.0
"""Bounds for MCAP files of strangers: 33 kB can unpack to 1 GiB, claim any size, or name one chunk a thousand times.

Or they have topics of other encodings beside those of ROS 2, as Foxglove's tools write them. rosbags asks a table for
the function that unpacks a chunk, and has no public way to bound it, nor to pass over a schema that it does not know.
The entries are replaced here, once, for the whole process.
"""

import struct
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from lz4.frame import LZ4FrameDecompressor
from rosbags.interfaces import MessageDefinition, MessageDefinitionFormat
from rosbags.rosbag2 import ReaderError, storage_mcap

# The standard library's from Python 3.14 on, else a package that rosbags needs.
zstd = storage_mcap.zstd  # type: ignore[attr-defined]

#: A chunk is larger than a few MiB only where one message is, such as a picture of 40 megapixels.
MAX_CHUNK_BYTES = 128 * 2**20
#: Of the chunks that have messages of one moment: rosbags unpacks all of these at once.
MAX_OVERLAPPING_BYTES = 512 * 2**20
#: Beyond this ratio, it is looked whether the messages of a chunk can be what was recorded: however alike they are,
#: their times take a byte of the packed chunk each.
_SUSPICIOUS_RATIO = 100
_RECORD = struct.Struct("<BQ")  # kind, length of what follows (bytes)


def check_index(storages: Iterable[Any]) -> None:
    """Refuse opened storages of rosbags whose index asks for more than is bearable. Raises ReaderError."""
    for storage in storages:
        chunks = getattr(storage, "chunks", ())  # sqlite3 has none
        if sum(chunk.compressed_size for chunk in chunks) > storage.path.stat().st_size:
            raise ReaderError("its index names more than the file holds.")
        changes = [(chunk.message_start_time, chunk.uncompressed_size) for chunk in chunks]
        changes += [(chunk.message_end_time + 1, -chunk.uncompressed_size) for chunk in chunks]
        overlapping = 0
        for _, change in sorted(changes):
            overlapping += change
            if overlapping > MAX_OVERLAPPING_BYTES:
                raise ReaderError(f"more than {MAX_OVERLAPPING_BYTES} bytes are unpacked for one moment.")


def _bounded(unpack: Callable[[bytes, int], bytes]) -> Callable[[bytes, int], bytes]:
    def bounded(packed: bytes, size: int) -> bytes:
        if size > MAX_CHUNK_BYTES:
            raise ReaderError(f"A chunk unpacks to {size} bytes; {MAX_CHUNK_BYTES} are allowed.")
        unpacked = unpack(packed, size + 1)  # rosbags compares the sizes
        if size > _SUSPICIOUS_RATIO * len(packed):
            _check_count(unpacked, len(packed))
        return unpacked

    return bounded


def _check_count(chunk: bytes, most: int) -> None:
    at = count = 0
    while at + _RECORD.size <= len(chunk):
        at += _RECORD.size + _RECORD.unpack_from(chunk, at)[1]
        count += 1
        if count > most:
            raise ReaderError(f"A chunk of {most} bytes has more messages than that.")


storage_mcap.DECOMPRESSORS["zstd"] = _bounded(lambda packed, most: zstd.ZstdDecompressor().decompress(packed, most))
storage_mcap.DECOMPRESSORS["lz4"] = _bounded(
    lambda packed, most: bytes(LZ4FrameDecompressor().decompress(packed, max_length=most))
)


_get_definition = storage_mcap.get_msgdef
#: Of schemas, those that rosbags knows.
_KNOWN_SCHEMAS = ("ros2msg", "ros2idl", "omgidl", "")


def _definition(schema: Any) -> MessageDefinition:
    if schema is not None and schema.encoding not in _KNOWN_SCHEMAS:
        return MessageDefinition(MessageDefinitionFormat.NONE, "")
    return _get_definition(schema)


def _read_string(bio: BinaryIO) -> str:
    """Return the next text, also where it is none, as the schemas of protobuf."""
    (size,) = struct.unpack("<I", storage_mcap.read_exact(bio, 4))
    return storage_mcap.read_exact(bio, size).decode(errors="replace")


storage_mcap.get_msgdef = _definition
storage_mcap.read_string = _read_string
