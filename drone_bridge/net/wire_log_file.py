# SPDX-License-Identifier: Apache-2.0
"""WireLogFile: the MCAP file of a wire log. See docs/bags.md."""

import json
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from drone_bridge.net.connector import RECEIVED, SENT, LinkError
from drone_bridge.net.disk_space import growth_error, shortage

#: Name of the metadata record about the node.
FACTS = "drone_bridge.wire_log"
#: Topic of the connections: number, transport and addresses of each, as JSON, before its first bytes. The topics
#: RECEIVED and SENT hold the bytes, with that number in place of MCAP's sequence number.
CONNECTIONS = "connections"
#: Topic of bytes that are not kept: direction and number, as JSON. A gap ends anywhere in a message.
OMITTED = "omitted"
#: Steady and other time, ns, topic, number of the connection, and data. For bytes that are not kept, their number,
#: which is negative for a gap. A tuple, as Python's garbage collector then ignores it.
Entry = tuple[int, int, str, int, bytes | int]
#: Room on the disk that remains beside what is written next.
_SPARE_BYTES = 1 << 20


class WireLogFile:
    """File of one node. Single-threaded."""

    def __init__(self, folder: Path, name: str, facts: Mapping[str, str], min_free_mb: float) -> None:
        """Create it, for the arguments of WireLog. Raises LinkError."""
        try:
            from mcap.writer import CompressionType, IndexType, Writer  # slow to import; rosdep has no key for it

            make: Any = Writer
            make.flush  # noqa: B018 - older ones than 1.5 have none
        except (ImportError, AttributeError):
            raise LinkError("The wire log needs the Python package mcap, 1.5 or later: pip install mcap.") from None
        self._min_free_mb = min_free_mb
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if problem := shortage(folder, min_free_mb):
                raise LinkError(f"The wire log can't be written to {folder}: {problem}")
            self.path = folder / f"{name}-{datetime.now(timezone.utc):%Y%m%dT%H%M%S.%f}.mcap"
            self._file = self.path.open("xb")
            # No index: no reader seeks in it, and a file without an end stays as readable.
            options: dict[str, Any] = {"index_types": IndexType.NONE, "use_statistics": False}
            self._writer = make(self._file, compression=CompressionType.LZ4, **options)
            self._writer.start(library="drone_bridge wire log")
            self._writer.add_metadata(FACTS, dict(facts))
            self._channels = {
                topic: self._writer.register_channel(topic, encoding, 0)
                for topic, encoding in ((CONNECTIONS, "json"), (RECEIVED, ""), (SENT, ""), (OMITTED, "json"))
            }
            self._writer.flush()
        except OSError as error:
            raise LinkError(f"The wire log can't be written to {folder}: {error.strerror}.") from error

    def write(self, entries: Iterable[Entry], most_bytes: int) -> str:
        """Write entries. Return why the file ends now, a sentence, or "". Raises OSError.

        It does at `most_bytes`, and if too little space would be free.
        """
        entries = list(entries)
        size = sum(len(data) for *_, data in entries if isinstance(data, bytes))
        error = growth_error(self._file, size + _SPARE_BYTES)
        if problem := f"{error.strerror}." if error else shortage(self.path.parent, self._min_free_mb, size):
            return problem
        for _, time_ns, topic, connection, data in entries:
            if self._file.tell() >= most_bytes:
                return f"It has {most_bytes >> 20} MiB, half of the limit of a node."
            if isinstance(data, bytes):
                said = topic, data
            else:
                omitted = {"direction": topic, "bytes": abs(data), "gap": data < 0}
                said = OMITTED, json.dumps(omitted).encode()
            self._writer.add_message(self._channels[said[0]], time_ns, said[1], time_ns, connection)
        self._writer.flush()
        return ""

    def close(self, *, is_whole: bool = True) -> None:
        """End the file. Raises OSError."""
        with self._file:
            if is_whole:
                self._writer.finish()


def make_room(folder: Path, pattern: str, most_bytes: float, most_files: float) -> None:
    """Remove the oldest files until the rest are within both limits. Raises OSError."""
    kept_bytes = 0
    files = [(path, path.stat().st_size) for path in folder.glob(pattern)]
    # The names end with the times.
    for number, (path, size) in enumerate(sorted(files, key=lambda each: each[0].stem[-22:], reverse=True)):
        kept_bytes += size
        if kept_bytes > most_bytes or number >= most_files:
            path.unlink(missing_ok=True)
