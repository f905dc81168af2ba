# SPDX-License-Identifier: Apache-2.0
"""drone-bridge recover: make a complete file from an .mcap file without an end, as a killed recorder leaves it.

What is whole is copied; the file itself is not changed.
"""

import argparse
import contextlib
import datetime
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mcap.opcode import Opcode
from mcap.records import Chunk, Message

from drone_bridge.tools.mcap_records import END, MAGIC, UNREADABLE, parsed, whole_records

_COPY_BYTES = 1 << 20
_MOST_NS = 2**63  # later times are none


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
            saved = recover(damaged, complete)
    except OSError as error:
        print(f"drone-bridge recover: {error.filename or options.output}: {error.strerror}.", file=sys.stderr)
        return 1
    except ValueError as error:
        options.output.unlink()
        print(f"drone-bridge recover: '{options.file}' {error}.", file=sys.stderr)
        return 1
    print(f"{options.output} ({options.output.stat().st_size / 1e6:.1f} MB): {saved.describe()}")
    return 0


@dataclass(slots=True)
class Saved:
    """What is in the new file, and what is not. Times are the recorder's, ns; those of messages are 0 without any."""

    lost_bytes: int = 0
    start_ns: int = 0
    end_ns: int = 0

    def note(self, start_ns: int, end_ns: int) -> None:
        """Add the times of a chunk or message that is whole."""
        if 0 < start_ns <= end_ns < _MOST_NS:  # a chunk without messages has times of 0 or of the clock's ends
            self.start_ns = min(self.start_ns, start_ns) if self.end_ns else start_ns
            self.end_ns = max(self.end_ns, end_ns)

    def describe(self) -> str:
        """Say how much is there, and how much is missing."""
        if not self.end_ns:
            return f"no message is whole, and the last {self.lost_bytes} bytes are left out."
        end = datetime.datetime.fromtimestamp(self.end_ns / 1e9).astimezone()
        return (
            f"{(self.end_ns - self.start_ns) / 1e9:.1f} s of messages, until {end:%Y-%m-%d %H:%M:%S}. Missing: "
            f"the last {self.lost_bytes} bytes, and what the recorder had not written when it ended (that of "
            "drone_bridge: up to 1 s)."
        )


def recover(damaged: IO[bytes], complete: IO[bytes]) -> Saved:
    """Copy the records that are whole, and end the file.

    Raises OSError, and ValueError if there is nothing to recover.
    """
    size = damaged.seek(0, os.SEEK_END)
    damaged.seek(-min(size, len(MAGIC)), os.SEEK_END)
    has_end = damaged.read() == MAGIC and size > len(MAGIC)
    damaged.seek(0)
    if damaged.read(len(MAGIC)) != MAGIC:
        raise ValueError("does not begin like an MCAP file")
    if has_end:
        raise ValueError("is complete")
    saved, end = Saved(), damaged.tell()
    with contextlib.suppress(*UNREADABLE):  # behind such a record nobody knows where the next one begins
        for whole in whole_records(damaged):
            if whole[0] == Opcode.DATA_END:
                break
            for record in parsed(whole, emit_chunks=True):
                if isinstance(record, Chunk):
                    saved.note(record.message_start_time, record.message_end_time)
                elif isinstance(record, Message):
                    saved.note(record.log_time, record.log_time)
            end = damaged.tell()
    damaged.seek(0)
    for begin in range(0, end, _COPY_BYTES):
        complete.write(damaged.read(min(_COPY_BYTES, end - begin)))
    complete.write(END)
    saved.lost_bytes = size - end
    return saved
