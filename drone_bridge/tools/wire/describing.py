# SPDX-License-Identifier: Apache-2.0
"""Text representation of messages and bytes."""

import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

_SHORT_BYTES = 16
_LINE_BYTES = 16
_BINARY = (bytes, bytearray, memoryview, array)


def describe(event: Any) -> str:
    """Return a message on one line: its name and its fields. Large binary fields are shown as a checksum."""
    named = ((field.name, getattr(event, field.name)) for field in fields(event))
    said = " ".join(f"{name}={text_of(value)}" for name, value in named if value is not None)
    return f"{type(event).__name__} {said}".rstrip()


def text_of(value: Any) -> str:
    """Return a readable form of a value, with as few spaces as possible."""
    if isinstance(value, Enum):
        return str(value.name).lower()
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, _BINARY):
        return _checksum(bytes(value))
    if is_dataclass(value) and not isinstance(value, type):
        inside = ",".join(f"{field.name}={text_of(getattr(value, field.name))}" for field in fields(value))
        return f"{type(value).__name__}({inside})"
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{text_of(entry)}" for key, entry in value.items()) + "}"
    is_list = isinstance(value, tuple | list)
    return (
        "[" + ",".join(map(text_of, value)) + "]" if is_list else repr(value) if isinstance(value, str) else str(value)
    )


def _checksum(data: bytes) -> str:
    """Return short data in hexadecimal, other data as size and checksum."""
    if len(data) > _SHORT_BYTES:
        return f"<{len(data)} bytes, crc32 {zlib.crc32(data):08x}>"
    return data.hex() or "empty"


def hex_lines(data: bytes | memoryview, offset: int = 0) -> Iterator[str]:
    """Yield lines of 16 bytes in the format of `hexdump -C`."""
    for start in range(0, len(data), _LINE_BYTES):
        line = data[start : start + _LINE_BYTES]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        yield f"{offset + start:08x}  {line.hex(' '):47}  |{letters}|"
