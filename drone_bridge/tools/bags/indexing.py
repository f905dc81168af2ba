# SPDX-License-Identifier: Apache-2.0
"""IndexedCopy: copy of an MCAP file with a chunk index, statistics and a summary.

Readers sort the messages of a recording by its chunk index. Without one, they read messages in the order of the file,
and rosbags refuses a recording whose topics are not in the order of time. The copy is written in one pass, and its
memory does not depend on the number of messages: a chunk of 1 MiB at a time, and an entry for each chunk.
"""

import errno
import os
import re
import struct
import zlib
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
_CHUNK = struct.Struct("<BQQQQII")  # kind, size, begin, end, uncompressed size, checksum, length of the next name
_COMPRESSION_NAMES = (b"", *(name.encode() for name in _COMPRESSIONS))
#: Kind of a chunk, where the length and the name of a compression follow at their place.
_CHUNK_BEGIN = re.compile(
    b"%c(?=.{%d}(?:%b))"
    % (
        Opcode.CHUNK,
        _CHUNK.size - 1 - 4,
        b"|".join(re.escape(struct.pack("<I", len(name)) + name) for name in _COMPRESSION_NAMES),
    ),
    re.DOTALL,
)
_DATA_END_BYTES = 13
_KINDS = frozenset(Opcode)
#: Part of a file that is searched for a chunk at a time, bytes.
_SEARCHED_BYTES = 2**20
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
    """Return whether all messages of a file with an index can be read by it; its beginning and summary are intact."""
    file.seek(0)
    if file.read(len(MAGIC)) != MAGIC or not isinstance(_parsed(next(whole_records(file), b"")), Header):
        return False
    if not _has_intact_summary(file):
        return False
    file.seek(0)  # where SeekingReader expects the magic
    reader = SeekingReader(file, validate_crcs=True)
    try:
        count = sum(1 for _ in reader.iter_messages(log_time_order=False))
        summary = reader.get_summary()
    except Exception:  # each decompressor raises its own
        return False
    return not summary or not summary.statistics or count == summary.statistics.message_count


def _has_intact_summary(file: IO[bytes]) -> bool:
    """Return whether the summary of a complete file has the checksum in the footer, if that has one."""
    footer_at = file.seek(-_FOOTER.size - len(MAGIC), os.SEEK_END)
    footer = file.read(_FOOTER.size)
    _, _, begin, _, checksum = _FOOTER.unpack(footer)
    file.seek(begin)
    return not checksum or zlib.crc32(file.read(footer_at - begin) + footer[:-4]) == checksum


def _is_data_end(record: bytes) -> bool:
    return len(record) == _DATA_END_BYTES and record[0] == Opcode.DATA_END


def _parsed(record: bytes) -> Any:
    """Return a record as an object of mcap; None if its kind is unknown, it is unreadable, or its size is wrong."""
    if record[:1] == bytes([Opcode.CHUNK]) and _chunk_bytes(record, 0) != len(record):
        return None
    try:
        found: Any = next(StreamReader(BytesIO(record), skip_magic=True, emit_chunks=True).records)
    except (EndOfFile, *UNREADABLE):
        return None
    if isinstance(found, Header):
        texts = (found.profile.encode(), found.library.encode())
        return found if len(record) == 9 + sum(4 + len(each) for each in texts) else None
    return found


def _chunk_bytes(data: bytes, at: int) -> int:
    """Return the size of the chunk that begins there, or 0 if none does: the sizes in its fields contradict."""
    if len(data) - at < _CHUNK.size + _LENGTH.size:
        return 0
    kind, size, _, _, _, _, name_length = _CHUNK.unpack_from(data, at)
    name_at = at + _CHUNK.size
    contents_at = name_at + name_length + _LENGTH.size
    if (
        kind != Opcode.CHUNK
        or data[name_at : name_at + name_length] not in _COMPRESSION_NAMES
        or contents_at > len(data)
    ):
        return 0
    (contents,) = _LENGTH.unpack_from(data, name_at + name_length)
    whole = 1 + _LENGTH.size + size
    return whole if whole == contents_at - at + contents else 0


def _next_chunk(file: IO[bytes], begin: int, end: int) -> int:
    """Return the position of the first whole chunk that begins in a part of a file, or `end` if none does."""
    size = file.seek(0, os.SEEK_END)
    block_at = begin
    while (block_at := _data_after(file, block_at, size)) < end:
        file.seek(block_at)
        searched = min(_SEARCHED_BYTES, end - block_at)
        block = file.read(searched + _CHUNK.size + max(map(len, _COMPRESSION_NAMES)) + _LENGTH.size)
        for begin_of_one in _CHUNK_BEGIN.finditer(block):
            at = begin_of_one.start()
            if at >= searched:
                break
            if 0 < _chunk_bytes(block, at) <= size - block_at - at:
                return block_at + at
        block_at += _SEARCHED_BYTES
    return end


def _data_after(file: IO[bytes], at: int, end: int) -> int:
    """Return the position behind the hole that begins there, if any: `end` for one up to the end of the file.

    A power failure can leave gigabytes of holes.
    """
    if not hasattr(os, "SEEK_DATA"):
        return at
    descriptor = file.fileno()
    before = os.lseek(descriptor, 0, os.SEEK_CUR)
    try:
        return os.lseek(descriptor, at, os.SEEK_DATA)
    except OSError as error:
        return end if error.errno == errno.ENXIO else at
    finally:
        os.lseek(descriptor, before, os.SEEK_SET)  # as `file` expects


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
        self._header = Header(profile="ros2", library="")  # unless the file has one
        self._compression = CompressionType.NONE
        self._schemas: dict[int, Schema] = {}
        self._channels: dict[int, Channel] = {}
        self._in_summary: dict[tuple[type, int], Any] = {}  # schemas and channels, for those of damaged records
        self._metadata: list[Metadata] = []
        self._numbers: dict[tuple[type, int], int] = {}  # of schemas and channels in the copy, by those in the file

    def write(self, source: IO[bytes], target: IO[bytes], work: str) -> None:
        """Copy `source`, which may end anywhere. `work` names the task in the progress line.

        After damage that hides where the next record begins, the copy continues with the next chunk.

        Raises OSError, and ValueError with the reason if `source` is no MCAP file.
        """
        size = source.seek(0, os.SEEK_END)
        if has_end(source):
            self._read_summary(source)
        source.seek(0)
        begins_well = source.read(len(MAGIC)) == MAGIC
        progress = Progress(work, size)
        copied = len(MAGIC)
        while copied < size:
            record = next(whole_records(source), b"")
            if _is_data_end(record):  # followed by the index only
                copied = size
                break
            parsed = _parsed(record)
            end = copied + len(record) if record else size
            # Another record with a damaged size, such as a message index, contains the next chunks.
            may_hide = not isinstance(parsed, (Chunk, Message, Attachment))
            if may_hide and (found := _next_chunk(source, copied + 1, end)) < end:
                self.damaged_bytes += found - copied
                copied = found
            elif not record:
                break
            else:
                for each in self._contents(record, parsed):
                    self._add(each, target)
                copied = end
            source.seek(copied)
            progress.show(copied)
        progress.end()
        if not begins_well and not self.message_count:
            raise ValueError("does not begin like an MCAP file")
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

    def _contents(self, record: bytes, found: Any) -> Iterator[Any]:
        """Yield a parsed record, or those of a chunk. A damaged one is left out and counted."""
        if found is None:
            self.damaged_bytes += len(record) if record[0] in _KINDS else 0
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
