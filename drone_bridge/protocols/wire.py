# SPDX-License-Identifier: Apache-2.0
"""Reading and writing the numbers of a payload whose length is known. The layouts say which byte order."""

import struct
from typing import Any, Final

from drone_bridge.protocols.errors import LocalProtocolError

#: What packing raises for numbers that a layout has no room for, and for what is no number.
_UNPACKABLE: Final = (struct.error, OverflowError, TypeError)


class MisfitError(Exception):
    """The bytes don't fit the layout they are read as; the text says where, as the end of a sentence."""


class Reader:
    """Reads one payload from its start. Every method raises MisfitError when bytes are missing."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Return the next numbers."""
        if self.remaining < layout.size:
            raise MisfitError(
                f"{layout.size} bytes should follow at byte {self._position}, and {self.remaining} are left"
            )
        values = layout.unpack_from(self._payload, self._position)
        self._position += layout.size
        return values

    def number(self, layout: struct.Struct) -> int:
        """Return the next number."""
        return int(self.numbers(layout)[0])

    def take(self, length: int, what: str) -> bytes:
        """Return the next `length` bytes; `what` is what they are, for the complaint when they are missing."""
        end = self._position + length
        if end > len(self._payload):
            raise MisfitError(
                f"{what} of {length} bytes should follow at byte {self._position}, and {self.remaining} are left"
            )
        taken = self._payload[self._position : end]
        self._position = end
        return taken

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


def pack(layout: struct.Struct, meaning: str, *values: float) -> bytes:
    """Return numbers as the wire has them. Raises LocalProtocolError, naming the meaning, when one does not fit."""
    try:
        return layout.pack(*values)
    except _UNPACKABLE as error:
        shown = ", ".join(map(str, values))
        raise LocalProtocolError(f"{meaning} {shown} does not fit the wire: {error}.") from error
