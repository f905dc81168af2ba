# SPDX-License-Identifier: Apache-2.0
"""drone-bridge recover: make a complete file from an .mcap file without an end, as a killed recorder leaves it.

What is whole is copied; the file itself is not changed.
"""

import argparse
import os
import struct
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

#: See https://mcap.dev/spec.
MAGIC: Final = b"\x89MCAP0\r\n"
FOOTER, DATA_END = 0x02, 0x0F
_RECORD: Final = struct.Struct("<BQ")  # kind, length of what follows (bytes)
_DATA_END: Final = struct.pack("<I", 0)  # no CRC
_FOOTER: Final = struct.pack("<QQI", 0, 0, 0)  # no summary, no CRC: readers scan the file instead
_COPY_BYTES: Final = 1 << 20


def main(argv: Sequence[str]) -> int:
    """Write the complete file; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge recover", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an .mcap file")
    parser.add_argument("output", type=Path, help="the new file")
    options = parser.parse_args(argv)
    try:
        with options.file.open("rb") as damaged, options.output.open("xb") as complete:
            lost_bytes = recover(damaged, complete)
    except OSError as error:
        print(f"drone-bridge recover: {error.filename or options.output}: {error.strerror}.", file=sys.stderr)
        return 1
    except ValueError as error:
        options.output.unlink()
        print(f"drone-bridge recover: '{options.file}' {error}.", file=sys.stderr)
        return 1
    print(f"{options.output} ({options.output.stat().st_size / 1e6:.1f} MB), without the last {lost_bytes} bytes")
    return 0


def recover(damaged: IO[bytes], complete: IO[bytes]) -> int:
    """Copy the records that are whole, and end the file; return how many bytes are left out.

    Raises OSError, and ValueError if there is nothing to recover.
    """
    size = damaged.seek(0, os.SEEK_END)
    damaged.seek(-min(size, len(MAGIC)), os.SEEK_END)
    has_end = damaged.read() == MAGIC
    damaged.seek(0)
    if damaged.read(len(MAGIC)) != MAGIC:
        raise ValueError("does not begin like an MCAP file")
    end = damaged.tell()
    if has_end and size > end:
        raise ValueError("is complete")
    while len(head := damaged.read(_RECORD.size)) == _RECORD.size:
        kind, length = _RECORD.unpack(head)
        following = end + _RECORD.size + length
        if kind in (0, DATA_END, FOOTER) or following > size:
            break
        end = damaged.seek(following)
    damaged.seek(0)
    for begin in range(0, end, _COPY_BYTES):
        complete.write(damaged.read(min(_COPY_BYTES, end - begin)))
    for kind, content in ((DATA_END, _DATA_END), (FOOTER, _FOOTER)):
        complete.write(_RECORD.pack(kind, len(content)) + content)
    complete.write(MAGIC)
    return size - end
