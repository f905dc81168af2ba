# SPDX-License-Identifier: Apache-2.0
"""whole_records: records of MCAP files that may be truncated anywhere."""

import contextlib
import os
import struct
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

from mcap.exceptions import EndOfFile, McapError
from mcap.opcode import Opcode
from mcap.stream_reader import StreamReader

MAGIC = b"\x89MCAP0\r\n"
#: Exceptions for an unreadable record. lz4 raises RuntimeError.
UNREADABLE = (McapError, ValueError, KeyError, OverflowError, RuntimeError, struct.error)
_HEAD = struct.Struct("<BQ")  # head of a record: its kind, and the number of bytes that follow


def whole_records(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the bytes of each complete record. The file's position stays before an incomplete one."""
    while True:
        begin, head = file.tell(), file.read(_HEAD.size)
        kind, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (0, 0)
        # Kind 0 is invalid: after a power failure, a file can end in gigabytes of zeros.
        if kind and size <= os.fstat(file.fileno()).st_size - file.tell():
            yield head + file.read(size)
            if kind == Opcode.FOOTER:
                return
        else:
            file.seek(begin)
            return


def parsed(record: bytes) -> Iterator[Any]:
    """Yield a record as an object of mcap, or all records of a chunk. Raises UNREADABLE."""
    with contextlib.suppress(EndOfFile):
        yield from StreamReader(BytesIO(record), skip_magic=True, validate_crcs=True).records
