# SPDX-License-Identifier: Apache-2.0
"""Reading the files of a wire log, whole or without an end, and while they are being written."""

import contextlib
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from mcap.exceptions import InvalidMagic
from mcap.records import Channel, Chunk, Footer, Message, Metadata

from drone_bridge.net.wire_log import CHUNK_BYTES, CONNECTION, MESSAGE_BYTES, NOTES, PIXELS, RECEIVED, SENT, WireFile
from drone_bridge.tools.mcap_records import UNREADABLE, whole_records
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError

#: Of bytes by whether we sent them, and whether they are pixels that are left out.
_TOPICS = {
    (False, False): RECEIVED,
    (True, False): SENT,
    (False, True): RECEIVED + PIXELS,
    (True, True): SENT + PIXELS,
}
_MEANINGS = {topic: meaning for meaning, topic in _TOPICS.items()}
_MAX_LEFT_OUT_BYTES = 2**32  # in one message of a log; more would be shown for minutes
_MAX_CHUNK_BYTES = 256 * CHUNK_BYTES  # lz4 makes nothing smaller than a 255th
_ZEROS = memoryview(bytes(1 << 20))  # in place of pixels; more come in several entries


class LogFile:
    """One file. Call `entries` again for what was written meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open it and read its metadata. Raises WireError and OSError."""
        self.path = path
        self.has_ended = False  # as far as it has been read: nothing more will be written
        self._file = path.open("rb")
        self._channels: dict[int, Channel] = {}
        with contextlib.ExitStack() as after_failure:
            after_failure.callback(self._file.close)
            self.connection = self._read_connection()
            after_failure.pop_all()

    def _read_connection(self) -> Connection:
        try:
            for record in whole_records(self._file):
                if isinstance(record, Metadata) and record.name == CONNECTION:
                    return Connection.from_facts(record.metadata)
        except InvalidMagic as error:
            raise WireError(f"{self.path} is not a wire log: it does not begin like an MCAP file.") from error
        except UNREADABLE as error:
            raise WireError(f"{self.path} is damaged in its first records: {error}.") from error
        raise WireError(f"{self.path} is not a wire log: it does not say whose bytes it holds.")

    def entries(self) -> Iterator[Entry]:
        """Yield what has not been read yet, as far as it is whole. Raises WireError."""
        try:
            for record in whole_records(self._file):
                if isinstance(record, Chunk):
                    for each in whole_records(BytesIO(_unpacked(record)), has_magic=False):
                        yield from self._entries_of(each)
                else:
                    yield from self._entries_of(record)
                    self.has_ended |= isinstance(record, Footer)
        except UNREADABLE as error:
            where = f"{self.path} is damaged before byte {self._file.tell()} and can't be read any further"
            raise WireError(f"{where} ({type(error).__name__}: {error}).") from error

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _entries_of(self, record: Any) -> Iterator[Entry]:
        if isinstance(record, Channel):
            self._channels[record.id] = record
        if not isinstance(record, Message):
            return
        channel = self._channels[record.channel_id]
        peer = channel.metadata.get("peer", "")
        if channel.topic not in _MEANINGS:
            yield Entry(record.log_time, None, peer, record.data)
            return
        is_ours, is_left_out = _MEANINGS[channel.topic]
        sender = self.connection.side if is_ours else self.connection.side.other
        if not is_left_out:
            yield Entry(record.log_time, sender, peer, record.data)
            return
        size = int(record.data)
        if not 0 <= size <= _MAX_LEFT_OUT_BYTES:
            raise ValueError(f"{size} bytes of pixels are left out; {_MAX_LEFT_OUT_BYTES} are allowed")
        for begin in range(0, size, len(_ZEROS)):
            yield Entry(record.log_time, sender, peer, _ZEROS[: size - begin], is_left_out)


def _unpacked(chunk: Chunk) -> bytes:
    """Return the records of a chunk. mcap's own way has no bound."""
    if chunk.compression == "":
        return chunk.data
    if chunk.compression != "lz4":
        raise WireError(f"The log is compressed with {chunk.compression}, and only lz4 is known here.")
    from lz4.frame import LZ4FrameDecompressor

    plain = bytes(LZ4FrameDecompressor().decompress(chunk.data, max_length=_MAX_CHUNK_BYTES + 1))
    if len(plain) > _MAX_CHUNK_BYTES:
        raise ValueError(f"a chunk unpacks to more than {_MAX_CHUNK_BYTES} bytes")
    return plain


def parts_before(path: Path, connection: Connection) -> list[Path]:
    """Return the files that the one at `path` continues, in order, as far as they still exist."""
    stem, _, _ = path.stem.rpartition("-")
    parts = [path.with_name(f"{stem}-{part:04}{path.suffix}") for part in range(1, connection.part)]
    return [part for part in parts if part.exists()]


def next_part(path: Path) -> Path | None:
    """Return the file that continues the one at `path`, if there is one."""
    stem, _, part = path.stem.rpartition("-")
    following = path.with_name(f"{stem}-{int(part) + 1:04}{path.suffix}") if part.isdecimal() else path
    return following if following != path and following.exists() else None


def write_log(path: Path, connection: Connection, entries: list[Entry]) -> None:
    """Write a whole log. Raises OSError."""
    file = WireFile(path, connection.facts())
    for sequence, entry in enumerate(entries):
        topic = NOTES if entry.sender is None else _TOPICS[entry.sender is connection.side, entry.is_left_out]
        data = b"%d" % len(entry.data) if entry.is_left_out else bytes(entry.data)
        for begin in range(0, max(1, len(data)), MESSAGE_BYTES):
            file.add(topic, entry.peer, sequence, entry.time_ns, data[begin : begin + MESSAGE_BYTES])
    file.close()
