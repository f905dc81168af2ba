# SPDX-License-Identifier: Apache-2.0
"""How the robot protocol lays out numbers and strings: big-endian, strings with a uint16 length in front."""

import struct
from typing import Any, Final

from drone_bridge.protocols.errors import LocalProtocolError

MAX_STRING_BYTES: Final = 0xFFFF  # what its uint16 length can say

_LENGTH: Final = struct.Struct(">H")


class MisfitError(Exception):
    """The bytes don't fit the layout they are read as; the text says where, as the end of a sentence."""


class Reader:
    """Reads one packet's payload from its start. Every method raises MisfitError when bytes are missing."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0
        #: Whether a string was no UTF-8, so that U+FFFD stands for the bytes that could not be read.
        self.has_replacements = False
        #: Whether each string read so far looks like text, without control characters.
        self.is_readable = True

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers."""
        if len(self._payload) - self._position < layout.size:
            raise MisfitError(
                f"{layout.size} bytes should follow at byte {self._position}, "
                f"and {len(self._payload) - self._position} are left"
            )
        values = layout.unpack_from(self._payload, self._position)
        self._position += layout.size
        return values

    def number(self, layout: struct.Struct) -> int:
        """Return the next number."""
        return int(self.numbers(layout)[0])

    def text(self) -> str:
        """Return the next string."""
        length = self.number(_LENGTH)
        end = self._position + length
        if end > len(self._payload):
            raise MisfitError(
                f"a string of {length} bytes should follow at byte {self._position}, "
                f"and {len(self._payload) - self._position} are left"
            )
        raw = self._payload[self._position : end]
        self._position = end
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="replace")
            self.has_replacements = True
        self.is_readable &= text.isprintable()
        return text

    @property
    def remaining(self) -> int:
        """How many bytes are left."""
        return len(self._payload) - self._position

    def rest(self) -> bytes:
        """Return all the bytes that are left."""
        rest = self._payload[self._position :]
        self._position = len(self._payload)
        return rest

    def expect_end(self) -> None:
        """Raise MisfitError unless everything has been read."""
        if self.remaining:
            raise MisfitError(f"it should end at byte {self._position}, and {self.remaining} more follow")


def pack(layout: struct.Struct, meaning: str, *values: int) -> bytes:
    """Return numbers as the wire has them. Raises LocalProtocolError, naming the meaning, when one does not fit."""
    try:
        return layout.pack(*values)
    except struct.error as error:
        shown = ", ".join(map(str, values))
        raise LocalProtocolError(f"{meaning} {shown} does not fit the wire: {error}.") from error


def pack_text(text: str, meaning: str) -> bytes:
    """Return a string as the wire has it. Raises LocalProtocolError, naming the meaning, when it does not fit."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"{meaning} {text!r} has characters that UTF-8 can't carry.") from error
    if len(raw) > MAX_STRING_BYTES:
        raise LocalProtocolError(f"{meaning} has {len(raw)} bytes, and {MAX_STRING_BYTES} are allowed.")
    return _LENGTH.pack(len(raw)) + raw
