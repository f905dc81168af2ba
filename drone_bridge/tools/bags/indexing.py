# SPDX-License-Identifier: Apache-2.0
"""IndexedCopy: copy of an MCAP file with a chunk index, statistics and a summary.

Readers sort the messages of a recording by its chunk index. Without one, they read messages in the order of the file,
and rosbags refuses a recording whose topics are not in the order of time. The copy is written in one pass, and its
memory does not depend on the number of messages: a chunk of 1 MiB at a time, and an entry for each chunk.
"""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import IO, Any

from mcap.exceptions import EndOfFile
from mcap.opcode import Opcode
from mcap.reader import SeekingReader
from mcap.records import Attachment, Channel, Chunk, Header, Message, Metadata, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import CompressionType, Writer

from drone_bridge.tools.mcap_records import MAGIC, UNREADABLE, whole_records
from drone_bridge.tools.progress import Progress

_COMPRESSIONS = {"zstd": CompressionType.ZSTD, "lz4": CompressionType.LZ4}
_FOOTER = struct.Struct("<BQQQI")  # kind, size, begin of the summary, of its offsets, checksum
_LENGTH = struct.Struct("<Q")
#: Largest chunk that is decompressed, bytes. Larger sizes are those of damaged chunks.
MAX_CHUNK_BYTES = 4 * 2**30


def has_end(file: IO[bytes]) -> bool:
    """Return whether a file ends as an MCAP file, which a killed recorder does not write."""
    if file.seek(0, os.SEEK_END) < 2 * len(MAGIC) + _FOOTER.size:
        return False
    file.seek(-len(MAGIC), os.SEEK_END)
    return file.read() == MAGIC


def has_index(file: IO[bytes]) -> bool:
    """Return whether the summary of a complete file lists its channels and chunks, or that it has no messages."""
    kinds = set()
    for record in _summary(file):
        kinds.add(record[0])
        if record[0] == Opcode.STATISTICS and not any(record[9 : 9 + _LENGTH.size]):
            return True
    return {Opcode.CHANNEL, Opcode.CHUNK_INDEX} <= kinds


def _summary(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the records of the summary of a complete file, up to the footer."""
    footer_at = file.seek(-_FOOTER.size - len(MAGIC), os.SEEK_END)
    kind, _, summary_at, _, _ = _FOOTER.unpack(file.read(_FOOTER.size))
    if kind == Opcode.FOOTER and 0 < summary_at < footer_at:
        file.seek(summary_at)
        yield from whole_records(file)


def is_intact(file: IO[bytes]) -> bool:
    """Return whether all messages of a file with an index can be read by it."""
    try:
        for _ in SeekingReader(file, validate_crcs=True).iter_messages(log_time_order=False):
            pass
    except Exception:  # each decompressor raises its own
        return False
    return True


class IndexedCopy:
    """Copy of the intact records of a file. Messages are packed into new chunks, with the compression of the file."""

    def __init__(self) -> None:
        self.message_count = 0
        #: Bytes at the end of the file that are left out.
        self.lost_bytes = 0
        #: Bytes of damaged records, which are left out.
        self.damaged_bytes = 0
        #: Messages that are left out, since a damaged record had the only definition of their topic.
        self.undefined_count = 0
        self._writer: Any = None  # its methods are untyped
        self._header = Header(profile="", library="")
        self._compression = CompressionType.NONE
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._in_summary: dict[tuple[type, int], Any] = {}  # schemas and channels, for those of damaged records
        self._metadata: list[Metadata] = []
        self._numbers: dict[tuple[type, int], int] = {}  # of schemas and channels in the copy, by those in the file

    def write(self, source: IO[bytes], target: IO[bytes], work: str) -> None:
        """Copy `source`, which may end anywhere. `work` names the task in the progress line.

        Raises OSError, and ValueError with the reason if `source` is no MCAP file.
        """
        size = source.seek(0, os.SEEK_END)
        if has_end(source):
            self._read_summary(source)
        source.seek(0)
        if source.read(len(MAGIC)) != MAGIC:
            raise ValueError("does not begin like an MCAP file")
        progress = Progress(work, size)
        copied = len(MAGIC)
        for record in whole_records(source):
            copied += len(record)
            if record[0] == Opcode.DATA_END:  # followed by the index only
                copied = size
                break
            for each in self._parsed(record):
                self._add(each, target)
            progress.show(copied)
        progress.end()
        self.lost_bytes = max(0, size - copied)
        writer = self._begun(target)
        for number in self._channels:
            self._channel(number)
        for each in self._metadata:
            writer.add_metadata(each.name, each.metadata)
        writer.finish()

    def _read_summary(self, source: IO[bytes]) -> None:
        for record in _summary(source):
            with suppress(EndOfFile, *UNREADABLE):
                found: Any = next(StreamReader(BytesIO(record), skip_magic=True, emit_chunks=True).records)
                if isinstance(found, (Schema, Channel)):
                    self._in_summary[type(found), found.id] = found

    def _parsed(self, record: bytes) -> Iterator[Any]:
        """Yield a record, or those of a chunk. A damaged one is left out and counted."""
        try:
            found: Any = next(StreamReader(BytesIO(record), skip_magic=True, emit_chunks=True).records)
        except EndOfFile:
            return  # of an unknown kind
        except UNREADABLE:
            self.damaged_bytes += len(record)
            return
        if not isinstance(found, Chunk):
            yield found
            return
        try:
            if found.uncompressed_size > MAX_CHUNK_BYTES:
                raise ValueError
            contents = breakup_chunk(found, validate_crc=True)
        except Exception:  # each decompressor raises its own
            self.damaged_bytes += len(record)
            return
        self._compression = _COMPRESSIONS.get(found.compression, CompressionType.NONE)
        yield from contents

    def _add(self, record: Any, target: IO[bytes]) -> None:
        if isinstance(record, Header):
            self._header = record
        elif isinstance(record, Schema):
            self._schemas.setdefault(record.id, record)
        elif isinstance(record, Channel):
            self._channels.setdefault(record.id, record)
        elif isinstance(record, Message):
            writer = self._begun(target)
            if record.channel_id not in self._channels:
                if not (channel := self._in_summary.get((Channel, record.channel_id))):
                    self.undefined_count += 1
                    return
                self._channels[record.channel_id] = channel
            writer.add_message(
                self._channel(record.channel_id), record.log_time, record.data, record.publish_time, record.sequence
            )
            self.message_count += 1
        elif isinstance(record, Metadata):
            self._metadata.append(record)
        elif isinstance(record, Attachment):
            self._begun(target).add_attachment(
                record.create_time, record.log_time, record.name, record.media_type, record.data
            )

    def _begun(self, target: IO[bytes]) -> Any:
        """Return the writer, after the header. The first chunk has shown the compression."""
        if not self._writer:
            self._writer = Writer(target, compression=self._compression)
            self._writer.start(self._header.profile, self._header.library)
        return self._writer

    def _channel(self, number: int) -> int:
        """Return the number of a channel in the copy. Its first use adds it, and its schema."""
        if (Channel, number) not in self._numbers:
            channel = self._channels[number]
            schema = self._schemas.get(channel.schema_id) or self._in_summary.get((Schema, channel.schema_id))
            if schema and (Schema, schema.id) not in self._numbers:
                added = self._writer.register_schema(schema.name, schema.encoding, schema.data)
                self._numbers[Schema, schema.id] = added
            self._numbers[Channel, number] = self._writer.register_channel(
                channel.topic,
                channel.message_encoding,
                self._numbers.get((Schema, channel.schema_id), 0),
                channel.metadata,
            )
        return self._numbers[Channel, number]
