# SPDX-License-Identifier: Apache-2.0
"""The records of MCAP files that may be cut anywhere, or still grow."""

import contextlib
import os
import struct
import time
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

from mcap.data_stream import RecordBuilder
from mcap.exceptions import EndOfFile, McapError
from mcap.opcode import Opcode
from mcap.records import DataEnd, Footer
from mcap.stream_reader import StreamReader

MAGIC = b"\x89MCAP0\r\n"
FOLLOW_PERIOD_S = 0.2
#: What is raised for a record that can't be understood, RuntimeError by lz4.
UNREADABLE = (McapError, ValueError, KeyError, OverflowError, RuntimeError, struct.error)
_HEAD = struct.Struct("<BQ")  # of a record: its kind, and how many bytes follow


def _end() -> bytes:
    builder: Any = RecordBuilder()  # whose methods have no types
    DataEnd(data_section_crc=0).write(builder)
    Footer(summary_start=0, summary_offset_start=0, summary_crc=0).write(builder)
    return bytes(builder.end()) + MAGIC


#: What a file ends with that has no index: readers scan it instead.
END = _end()


def whole_records(file: IO[bytes], *, follow: bool = False) -> Iterator[bytes]:
    """Yield the bytes of each record from the file's position on, and leave that before one that is not whole.

    With `follow`, wait for the rest of it, until the file has an end.
    """
    while True:
        begin, head = file.tell(), file.read(_HEAD.size)
        kind, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        # A power failure can leave gigabytes of zeros.
        if kind and size <= os.fstat(file.fileno()).st_size - file.tell():
            yield head + file.read(size)
            if kind == Opcode.FOOTER:
                return
        else:
            file.seek(begin)
            if not follow:
                return
            time.sleep(FOLLOW_PERIOD_S)


def parsed(record: bytes) -> Iterator[Any]:
    """Yield a record as mcap has it, or those in a chunk. Raises UNREADABLE."""
    with contextlib.suppress(EndOfFile):
        yield from StreamReader(BytesIO(record), skip_magic=True).records
