# SPDX-License-Identifier: Apache-2.0
"""drone-bridge recover: recover the intact part of an .mcap file after its recorder was killed.

The new file has an index, so that all commands and other programs read it. The damaged file is not changed.
"""

import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from mcap.records import Attachment, Channel, Message, Metadata, Schema
from mcap.stream_reader import StreamReader
from mcap.writer import Writer

from drone_bridge.tools.command_parser import AS_WRITTEN, CommandParser
from drone_bridge.tools.shared.mcap_records import UNREADABLE, parsed, whole_records


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
            report = recover(damaged, complete)
            complete.close()  # which may fail for lack of room
            undo.pop_all()
    except (OSError, ValueError) as error:
        reason = f"{error.filename or options.output}: {error.strerror}" if isinstance(error, OSError) else error
        print(f"drone-bridge recover: {reason}.", file=sys.stderr)
        return 1
    print(f"{options.output} has {report}. It lacks what was not written yet (up to 1 s with drone_bridge).")
    return 0


def recover(damaged: IO[bytes], complete: IO[bytes]) -> str:
    """Copy the intact records of a file that may end anywhere, and write an index. Return a report in words.

    Readers need the index: rosbags refuses a recording without one if its topics are not in the order of time. Raises
    OSError, and ValueError with the reason if there is nothing to recover.
    """
    writer: Any = Writer(complete)  # its methods are untyped
    schemas, channels = {0: 0}, dict[int, int]()  # numbers in the copy by those in the file
    count = unreadable_bytes = 0
    try:
        header: Any = next(StreamReader(damaged, emit_chunks=True).records)
        writer.start(header.profile, header.library)
    except (AttributeError, *UNREADABLE) as error:
        raise ValueError(f"'{damaged.name}' does not begin like an MCAP file") from error
    for record in whole_records(damaged):
        contents = []
        with suppress(Exception):  # each decompressor raises its own
            contents = [*parsed(record)]
        unreadable_bytes += 0 if contents else len(record)
        for each in contents:
            if isinstance(each, Schema) and each.id not in schemas:
                schemas[each.id] = writer.register_schema(each.name, each.encoding, each.data)
            elif isinstance(each, Channel) and each.id not in channels:
                schema = schemas.get(each.schema_id, 0)
                channels[each.id] = writer.register_channel(each.topic, each.message_encoding, schema, each.metadata)
            elif isinstance(each, Message) and (number := channels.get(each.channel_id)):
                writer.add_message(number, each.log_time, each.data, each.publish_time, each.sequence)
                count += 1
            elif isinstance(each, Metadata):
                writer.add_metadata(each.name, each.metadata)
            elif isinstance(each, Attachment):
                writer.add_attachment(each.create_time, each.log_time, each.name, each.media_type, each.data)
    if not count:
        raise ValueError(f"'{damaged.name}' contains no complete message")
    writer.finish()
    size = Path(damaged.name).stat().st_size
    return f"{count} messages of the first {damaged.tell()} of {size} bytes, of which {unreadable_bytes} are unreadable"
