# SPDX-License-Identifier: Apache-2.0
"""Messages and bytes as lines of text."""

import zlib
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

_SHORT_BYTES = 16
_LINE_BYTES = 16
_BINARY = (bytes, bytearray, memoryview, array)


class PixelsNotLogged(int):
    """In place of pixels, how many bytes of them there were."""

    def __str__(self) -> str:
        return f"<{int(self)} bytes, pixels not logged>"


def without_pixels(event: Any) -> Any:
    """Return a message with PixelsNotLogged in place of its images."""
    return replace(event, **{field.name: _counted(getattr(event, field.name)) for field in fields(event)})


def describe(event: Any) -> str:
    """Return a message on one line: its name, and what it says, field by field. Large binary fields as a checksum."""
    named = ((field.name, getattr(event, field.name)) for field in fields(event))
    said = " ".join(f"{name}={text_of(value)}" for name, value in named if value is not None)
    return f"{type(event).__name__} {said}".rstrip()


def text_of(value: Any) -> str:
    """Return a value for people, without spaces where it can do without."""
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
    """Return short bytes as they are, others as size and checksum."""
    if len(data) > _SHORT_BYTES:
        return f"<{len(data)} bytes, crc32 {zlib.crc32(data):08x}>"
    return data.hex() or "empty"


def differences(then: Any, now: Any) -> list[str]:
    """Return which fields of two messages of one type differ, and how."""
    found = []
    for field in fields(then):
        before, after = getattr(then, field.name), getattr(now, field.name)
        if isinstance(before, PixelsNotLogged):
            after = _counted(after)
        if text_of(before) != text_of(after):
            found.append(f"{field.name} {text_of(before)}, now {text_of(after)}")
    return found


def _counted(value: Any) -> Any:
    """Return a value as PixelsNotLogged, if it is binary."""
    return PixelsNotLogged(len(value)) if isinstance(value, _BINARY) else value


def hex_lines(data: bytes | memoryview, offset: int = 0) -> Iterator[str]:
    """Yield lines of 16 bytes, as `hexdump -C` has them."""
    for start in range(0, len(data), _LINE_BYTES):
        line = data[start : start + _LINE_BYTES]
        letters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in line)
        yield f"{offset + start:08x}  {line.hex(' '):47}  |{letters}|"
