# SPDX-License-Identifier: Apache-2.0
"""How the robot protocol lays out numbers and strings: big-endian, strings with a uint16 length in front."""

import struct
from typing import Final

from drone_bridge.protocols import wire
from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.wire import MisfitError, pack

__all__ = ["MAX_STRING_BYTES", "MisfitError", "Reader", "pack", "pack_text"]

MAX_STRING_BYTES: Final = 0xFFFF  # what its uint16 length can say

_LENGTH: Final = struct.Struct(">H")


class Reader(wire.Reader):
    """Reads one packet's payload from its start. Every method raises MisfitError when bytes are missing."""

    def __init__(self, payload: bytes) -> None:
        super().__init__(payload)
        #: Whether a string was no UTF-8, so that U+FFFD stands for the bytes that could not be read.
        self.has_replacements = False
        #: Whether each string read so far looks like text, without control characters.
        self.is_readable = True

    def text(self) -> str:
        """Return the next string."""
        raw = self.take(self.number(_LENGTH), "a string")
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = raw.decode(errors="replace")
            self.has_replacements = True
        self.is_readable &= text.isprintable()
        return text


def pack_text(text: str, meaning: str) -> bytes:
    """Return a string as the wire has it. Raises LocalProtocolError, naming the meaning, when it does not fit."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"{meaning} {text!r} has characters that UTF-8 can't carry.") from error
    if len(raw) > MAX_STRING_BYTES:
        raise LocalProtocolError(f"{meaning} has {len(raw)} bytes, and {MAX_STRING_BYTES} are allowed.")
    return _LENGTH.pack(len(raw)) + raw
