# SPDX-License-Identifier: Apache-2.0
"""drone-bridge recover: recover the intact part of an .mcap file after its recorder was killed.

The new file has an index, so that all commands and other programs read it. The damaged file is not changed.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from drone_bridge.tools.command_parser import AS_WRITTEN, CommandParser
from drone_bridge.tools.recover.indexing import IndexedCopy


def main(argv: Sequence[str]) -> int:
    """Write the complete file. Return the exit status."""
    parser = CommandParser(prog="drone-bridge recover", description=__doc__, formatter_class=AS_WRITTEN)
    parser.add_argument("file", type=Path, help="an .mcap file")
    parser.add_argument("output", type=Path, help="the new file")
    options = parser.parse_args(argv)
    try:
        with options.file.open("rb") as damaged, ExitStack() as undo:
            complete = undo.enter_context(options.output.open("xb"))
            undo.callback(options.output.unlink)  # the file that was just created, not one that existed
            copy = recover(damaged, complete)
            complete.close()  # which may fail for lack of room
            undo.pop_all()
    except OSError as error:
        print(f"drone-bridge recover: {error.filename or options.output}: {error.strerror}.", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"drone-bridge recover: '{options.file}' {error}.", file=sys.stderr)
        return 1
    print(
        f"{options.output} has {copy.message_count} messages ({options.output.stat().st_size / 1e6:.1f} MB). It lacks "
        f"the last {copy.lost_bytes} bytes of the file, and the messages that its recorder had not written yet (up to "
        "1 s with drone_bridge)."
    )
    if copy.damaged_bytes:
        print(f"It also lacks {copy.damaged_bytes} damaged bytes, and messages that need them.")
    return 0


def recover(damaged: IO[bytes], complete: IO[bytes]) -> IndexedCopy:
    """Copy the intact messages, and write an index. Return the copy with what it lacks.

    Raises OSError, and ValueError with the reason if there is nothing to recover.
    """
    copy = IndexedCopy()
    copy.write(damaged, complete)
    if not copy.message_count:
        raise ValueError("contains no complete message")
    return copy
