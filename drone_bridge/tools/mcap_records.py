# SPDX-License-Identifier: Apache-2.0
"""The records of MCAP files that may be cut anywhere, still growing, or made to harm."""

import os
import struct
from collections.abc import Iterator
from typing import IO, Any

from mcap.data_stream import RecordBuilder
from mcap.exceptions import EndOfFile, McapError, RecordLengthLimitExceeded
from mcap.records import DataEnd, Footer
from mcap.stream_reader import StreamReader

MAGIC = b"\x89MCAP0\r\n"
#: No record is larger but where one message is: a picture of 40 megapixels has half of it.
MAX_RECORD_BYTES = 256 * 2**20
#: For one record: a power failure can leave gigabytes of zeros, which mcap takes for empty records of an unknown kind.
_MAX_READS = 100_000
#: What is raised for a record that can't be understood, RuntimeError by lz4.
UNREADABLE = (McapError, ValueError, KeyError, OverflowError, RuntimeError, struct.error)


def _end() -> bytes:
    builder: Any = RecordBuilder()  # whose methods have no types
    DataEnd(data_section_crc=0).write(builder)
    Footer(summary_start=0, summary_offset_start=0, summary_crc=0).write(builder)
    return bytes(builder.end()) + MAGIC


#: What a file ends with that has no index: readers scan it instead.
END = _end()


class _Whole:
    """Reads all that is requested or, where the file has less, nothing: mcap takes less for all."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._end = file.seek(0, os.SEEK_END)
        self.reads = 0  # since the last record

    def read(self, size: int) -> bytes:
        self.reads += 1
        if self.reads > _MAX_READS or size > self._end - self._file.tell():  # before a wrong length is allocated
            raise EndOfFile
        return self._file.read(size)


def whole_records(file: IO[bytes]) -> Iterator[Any]:
    """Yield the records of mcap from the file's position on, chunks as such, and leave it before one that is not whole.

    Raises UNREADABLE.
    """
    begin = file.tell()
    source: Any = _Whole(file)
    file.seek(begin)
    reader = StreamReader(source, skip_magic=begin > 0, emit_chunks=True, record_size_limit=MAX_RECORD_BYTES)
    try:
        for record in reader.records:
            begin, source.reads = file.tell(), 0
            yield record
    except (EndOfFile, RecordLengthLimitExceeded):
        file.seek(begin)
