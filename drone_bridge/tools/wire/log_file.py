# SPDX-License-Identifier: Apache-2.0
"""Reading the files of a wire log, whole or without an end, and while they are being written."""

import os
import struct
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO

from drone_bridge.net.wire_log import CHUNK_BYTES, CONNECTION, MESSAGE_BYTES, NOTES, PIXELS, RECEIVED, SENT, WireFile
from drone_bridge.tools.wire.conversation import Connection, Entry, WireError

# The records of MCAP that a wire log has, see mcap.dev/spec.
MAGIC = b"\x89MCAP0\r\n"
FOOTER, CHANNEL, MESSAGE, CHUNK, METADATA = 0x02, 0x04, 0x05, 0x06, 0x0C
RECORD = struct.Struct("<BQ")  # kind, length of what follows (bytes)
MESSAGE_FIELDS = struct.Struct("<HIQQ")  # channel, sequence, log time (ns), publish time (ns)
CHUNK_FIELDS = struct.Struct("<QQQI")  # first and last time (ns), uncompressed bytes, their CRC or 0
_LENGTH = struct.Struct("<I")
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
        self._file = path.open("rb")
        self.has_ended = False  # as far as it has been read: nothing more will be written
        self._channels: dict[int, tuple[str, str]] = {}  # topic and peer
        connection = None
        try:
            if self._file.read(len(MAGIC)) != MAGIC:
                raise WireError(f"{path} is not a wire log: it does not begin like an MCAP file.")
            for kind, data in _records(self._file):
                if kind == METADATA:
                    fields = BytesIO(data)
                    if _read_string(fields) == CONNECTION:
                        connection = Connection.from_facts(_read_map(fields))
                        break
        except (struct.error, UnicodeDecodeError) as error:
            raise WireError(f"{path} is damaged in its first records: {error}.") from error
        finally:
            if connection is None:
                self._file.close()
        if connection is None:
            raise WireError(f"{path} is not a wire log: it does not say whose bytes it holds.")
        self.connection = connection

    def entries(self) -> Iterator[Entry]:
        """Yield what has not been read yet, as far as it is whole. Raises WireError."""
        try:
            for kind, data in _records(self._file):
                if kind == CHUNK:
                    yield from self._chunk(data)
                elif kind in (CHANNEL, MESSAGE):
                    yield from self._record(kind, data)
                elif kind == FOOTER:
                    self.has_ended = True
        except (struct.error, ValueError, KeyError, OverflowError, RuntimeError) as error:
            where = f"{self.path} is damaged before byte {self._file.tell()} and can't be read any further"
            raise WireError(f"{where} ({type(error).__name__}: {error}).") from error

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> "LogFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _chunk(self, data: bytes) -> Iterator[Entry]:
        fields = BytesIO(data[CHUNK_FIELDS.size :])
        compression = _read_string(fields)
        (length,) = struct.unpack("<Q", fields.read(8))
        records = fields.read(length)
        if compression:
            records = _decompressed(compression, records)
        for kind, record in _records(BytesIO(records)):
            yield from self._record(kind, record)

    def _record(self, kind: int, data: bytes) -> Iterator[Entry]:
        if kind == CHANNEL:
            (number,) = struct.unpack_from("<H", data)
            fields = BytesIO(data[4:])
            topic, _ = _read_string(fields), _read_string(fields)
            self._channels[number] = (topic, _read_map(fields).get("peer", ""))
        elif kind == MESSAGE:
            number, _, time_ns, _ = MESSAGE_FIELDS.unpack_from(data)
            topic, peer = self._channels[number]
            content = data[MESSAGE_FIELDS.size :]
            if topic not in _MEANINGS:
                yield Entry(time_ns, None, peer, content)
                return
            is_ours, is_left_out = _MEANINGS[topic]
            sender = self.connection.side if is_ours else self.connection.side.other
            if not is_left_out:
                yield Entry(time_ns, sender, peer, content)
                return
            size = int(content)
            if not 0 <= size <= _MAX_LEFT_OUT_BYTES:
                raise ValueError(f"{size} bytes of pixels are left out; {_MAX_LEFT_OUT_BYTES} are allowed")
            for begin in range(0, size, len(_ZEROS)):
                yield Entry(time_ns, sender, peer, _ZEROS[: size - begin], is_left_out)


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


def _records(file: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield whole records, and stay before the first one that is not."""
    while True:
        begin = file.tell()
        head = file.read(RECORD.size)
        if len(head) < RECORD.size or head.startswith(MAGIC):
            break
        kind, length = RECORD.unpack(head)
        end = file.seek(0, os.SEEK_END)
        if begin + RECORD.size + length > end:  # also what keeps a broken length from being allocated
            break
        file.seek(begin + RECORD.size)
        yield kind, file.read(length)
    file.seek(begin)


def _decompressed(compression: str, data: bytes) -> bytes:
    if compression != "lz4":
        raise WireError(f"The log is compressed with {compression}, and only lz4 is known here.")
    try:
        import lz4.frame
    except ImportError:
        raise WireError("The log is compressed: install lz4 (pip install lz4) to read it.") from None
    plain = bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, max_length=_MAX_CHUNK_BYTES + 1))
    if len(plain) > _MAX_CHUNK_BYTES:
        raise ValueError(f"a chunk unpacks to more than {_MAX_CHUNK_BYTES} bytes")
    return plain


def _read_string(fields: IO[bytes]) -> str:
    (length,) = _LENGTH.unpack(fields.read(_LENGTH.size))
    return fields.read(length).decode()


def _read_map(fields: IO[bytes]) -> dict[str, str]:
    (length,) = _LENGTH.unpack(fields.read(_LENGTH.size))
    end = fields.tell() + length
    found = {}
    while fields.tell() < end:
        key = _read_string(fields)
        found[key] = _read_string(fields)
    return found
