# SPDX-License-Identifier: Apache-2.0
"""Strings and readers of the robot protocol."""

from dataclasses import replace
from typing import Annotated, Any, Final, TypeVar

from drone_bridge.wire import layouts
from drone_bridge.wire.layouts import Message, Text

MAX_STRING_BYTES: Final = 0xFFFF  # what its uint16 length can say

PacketT = TypeVar("PacketT", bound="Packet")


class Reader(layouts.Reader):
    """Reads one packet's payload, and records how strings were decoded."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(payload)
        #: Whether a string was no UTF-8, so that U+FFFD stands for the bytes that could not be read.
        self.has_replacements = False
        #: Whether each string read so far looks like text, without control characters.
        self.is_readable = True


class _String(Text):
    def __init__(self) -> None:
        super().__init__("H", errors="strict")

    def read(self, reader: layouts.Reader, meaning: str) -> Any:
        assert isinstance(reader, Reader)
        raw = self.read_bytes(reader, meaning)
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="replace")
            reader.has_replacements = True
        reader.is_readable &= text.isprintable()
        return text


String = Annotated[str, _String()]


class Packet(Message):
    """A packet whose `has_replacements`, if it has one, tells whether strings had invalid bytes."""

    __slots__ = ()

    @classmethod
    def decode(cls: type[PacketT], body: bytes) -> PacketT:
        """Decode a whole payload. Raises MisfitError."""
        reader = Reader(body)
        packet = cls.read(reader)
        reader.expect_end()
        return replace(packet, has_replacements=True) if reader.has_replacements else packet  # type: ignore[type-var]
