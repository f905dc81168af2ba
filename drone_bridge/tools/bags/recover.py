# SPDX-License-Identifier: Apache-2.0
"""drone-bridge recover: recover the intact part of an .mcap file after its recorder was killed.

The damaged file is not changed.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from mcap.opcode import Opcode

from drone_bridge.tools.mcap_records import END, MAGIC, whole_records
from drone_bridge.tools.progress import Progress


def main(argv: Sequence[str]) -> int:
    """Write the complete file. Return the exit status."""
    parser = argparse.ArgumentParser(
        prog="drone-bridge recover", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="an .mcap file")
    parser.add_argument("output", type=Path, help="the new file")
    options = parser.parse_args(argv)
    try:
        with options.file.open("rb") as damaged, options.output.open("xb") as complete:
            lost = recover(damaged, complete)
    except OSError as error:
        print(f"drone-bridge recover: {error.filename or options.output}: {error.strerror}.", file=sys.stderr)
        return 1
    except ValueError as error:
        options.output.unlink()
        print(f"drone-bridge recover: '{options.file}' {error}.", file=sys.stderr)
        return 1
    print(
        f"{options.output} ({options.output.stat().st_size / 1e6:.1f} MB) lacks the last {lost} bytes of the file, and "
        "the messages that its recorder had not written yet (up to 1 s with drone_bridge)."
    )
    return 0


def recover(damaged: IO[bytes], complete: IO[bytes]) -> int:
    """Copy the intact records, and write the end of the file. Return the number of bytes left out at the end.

    Raises OSError, and ValueError with half a sentence if there is nothing to recover.
    """
    size = damaged.seek(0, os.SEEK_END)
    damaged.seek(-min(size, len(MAGIC)), os.SEEK_END)
    has_end = damaged.read() == MAGIC and size > len(MAGIC)
    damaged.seek(0)
    if damaged.read(len(MAGIC)) != MAGIC:
        raise ValueError("does not begin like an MCAP file")
    if has_end:
        raise ValueError("is complete")
    complete.write(MAGIC)
    copied = len(MAGIC)
    has_messages = False
    progress = Progress("recovering", size)
    for record in whole_records(damaged):
        if record[0] == Opcode.DATA_END:  # followed by the index
            break
        has_messages |= record[0] in (Opcode.CHUNK, Opcode.MESSAGE)
        complete.write(record)
        copied += len(record)
        progress.show(copied)
    progress.end()
    if not has_messages:
        raise ValueError("contains no complete message")
    complete.write(END)
    return size - copied
