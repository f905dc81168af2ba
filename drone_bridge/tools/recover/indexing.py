# SPDX-License-Identifier: Apache-2.0
"""IndexedCopy: copy of an MCAP file with a chunk index, statistics and a summary.

Readers sort the messages of a recording by its chunk index. Without one, they read messages in the order of the file,
and rosbags refuses a recording whose topics are not in the order of time. The copy is written in one pass, and its
memory does not depend on the number of messages: a chunk of 1 MiB at a time, and an entry for each chunk.
"""

import os
from io import BytesIO
from typing import IO, Any

from mcap.exceptions import EndOfFile
from mcap.opcode import Opcode
from mcap.reader import SeekingReader
from mcap.records import Attachment, Channel, Chunk, Header, Message, Metadata, Schema
from mcap.stream_reader import StreamReader, breakup_chunk
from mcap.writer import CompressionType, Writer

from drone_bridge.tools.shared.mcap_records import MAGIC, UNREADABLE, whole_records
from drone_bridge.tools.shared.progress import Progress

_COMPRESSIONS = {"zstd": CompressionType.ZSTD, "lz4": CompressionType.LZ4}


def has_index(file: IO[bytes]) -> bool:
    """Return whether a file has an end, and a summary that lists its channels and chunks, or no messages."""
    file.seek(0)
    try:
        summary = SeekingReader(file).get_summary()
    except (EndOfFile, *UNREADABLE):
        return False
    if summary is None:
        return False
    is_empty = summary.statistics is not None and not summary.statistics.message_count
    return is_empty or bool(summary.channels and summary.chunk_indexes)


class IndexedCopy:
    """Copy of the intact records of a file. Messages are packed into new chunks, with the compression of the file."""

    def __init__(self) -> None:
        self.message_count = 0
        #: Bytes at the end of the file that are left out.
        self.lost_bytes = 0
        #: Bytes of damaged records, which are left out.
        self.damaged_bytes = 0
        self._writer: Any = None  # its methods are untyped
        self._header = Header(profile="ros2", library="")
        self._compression = CompressionType.NONE
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._metadata: list[Metadata] = []
        self._numbers: dict[tuple[type, int], int] = {}  # of schemas and channels in the copy, by those in the file

    def write(self, source: IO[bytes], target: IO[bytes]) -> None:
        """Copy `source`, which may end anywhere, up to the first unreadable record.

        Raises OSError, and ValueError with the reason if `source` is no MCAP file.
        """
        size = source.seek(0, os.SEEK_END)
        source.seek(0)
        if source.read(len(MAGIC)) != MAGIC:
            raise ValueError("does not begin like an MCAP file")
        progress, copied = Progress("recovering", size), len(MAGIC)
        for record in whole_records(source):
            copied += len(record)
            if record[0] == Opcode.DATA_END:  # followed by the index only
                copied = size
                break
            for each in self._contents(record):
                self._add(each, target)
            progress.show(copied)
        progress.end()
        self.lost_bytes = size - copied
        writer = self._begun(target)
        for number in self._channels:
            self._channel(number)
        for each in self._metadata:
            writer.add_metadata(each.name, each.metadata)
        writer.finish()

    def _contents(self, record: bytes) -> list[Any]:
        """Return a record as an object, or those of a chunk. A damaged one is left out and counted."""
        try:
            found = next(StreamReader(BytesIO(record), skip_magic=True, emit_chunks=True).records)
            if not isinstance(found, Chunk):
                return [found]
            contents = breakup_chunk(found, validate_crc=True)
        except EndOfFile:  # of an unknown kind
            return []
        except Exception:  # each decompressor raises its own
            self.damaged_bytes += len(record)
            return []
        self._compression = _COMPRESSIONS.get(found.compression, CompressionType.NONE)
        return contents

    def _add(self, record: Any, target: IO[bytes]) -> None:
        if isinstance(record, Header):
            self._header = record
        elif isinstance(record, Schema):
            self._schemas.setdefault(record.id, record)
        elif isinstance(record, Channel):
            self._channels.setdefault(record.id, record)
        elif isinstance(record, Message):
            if record.channel_id in self._channels:  # its definition may be in a damaged chunk
                writer, channel = self._begun(target), self._channel(record.channel_id)
                writer.add_message(channel, record.log_time, record.data, record.publish_time, record.sequence)
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
            schema = self._schemas.get(channel.schema_id)
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
