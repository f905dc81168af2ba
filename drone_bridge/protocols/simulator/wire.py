# SPDX-License-Identifier: Apache-2.0
"""How the simulator protocol lays out its messages: a type ID, a length, and a body of big-endian numbers.

Strings and opaque bytes have their length in front. Strings are read as UTF-8; bytes that are none become surrogates
(Python's surrogateescape), so that what was read can be written again byte for byte.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, ClassVar, Final, TypeVar

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.wire import MisfitError, Reader, pack

__all__ = [
    "UINT8",
    "UINT32",
    "Empty",
    "Flat",
    "IdList",
    "ItemType",
    "Message",
    "MisfitError",
    "Quaternion",
    "Reader",
    "Request",
    "Response",
    "Vector",
    "is_vector",
    "pack",
    "pack_bytes",
    "pack_numbers",
    "pack_text",
    "read_bytes",
    "read_text",
]

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]  # w, x, y, z

UINT8: Final = struct.Struct(">B")
UINT32: Final = struct.Struct(">I")

MessageT = TypeVar("MessageT", bound="Message")


class ItemType(IntEnum):
    """What has an ID of its own; IDs count per type."""

    ENTITY = 0
    OBJECT = 1
    CAMERA = 2
    TRIGGER = 3
    ENTITY_STREAM = 4
    CAMERA_STREAM = 5
    CAMERA_BROADCAST = 6
    EXTENDED_STREAM = 7
    SPY = 8


class Message:
    """What a header and a body say. Bodies are encoded and decoded without their header."""

    __slots__ = ()
    #: The type ID in the header. Requests and responses count on their own.
    ID: ClassVar[int]
    #: How many bytes the body has, where that does not depend on what it says.
    BODY_BYTES: ClassVar[int | None] = None

    def encode(self) -> bytes:
        """Return the body. Raises LocalProtocolError for what does not fit the wire."""
        raise NotImplementedError

    @classmethod
    def read(cls: type[MessageT], reader: Reader) -> MessageT:
        """Return what the body says. Raises MisfitError; need not look for the body's end."""
        raise NotImplementedError

    @classmethod
    def decode(cls: type[MessageT], body: bytes) -> MessageT:
        """Return what a body says, all of it. Raises MisfitError."""
        reader = Reader(body)
        message = cls.read(reader)
        reader.expect_end()
        return message


class Response(Message):
    """From the server: the answer to a request if its ID is below 128, else sent without being asked for."""

    __slots__ = ()

    @property
    def is_in_band(self) -> bool:
        """Whether it answers a request."""
        return self.ID < 128


class Request(Message):
    """From a client. Each is answered once, in order, with what is expected here or with an Error."""

    __slots__ = ()
    #: What the document calls it.
    NAME: ClassVar[str]
    #: What answers it.
    ANSWER: ClassVar[type[Response]]
    #: The type of what it adds, where Added answers it.
    ADDS: ClassVar[ItemType | None] = None
    #: Whether the CUAUV server knows it at all. It closes the connection on what it does not know.
    IS_KNOWN_TO_CUAUV: ClassVar[bool] = True

    @property
    def is_implemented(self) -> bool:
        """Whether the CUAUV server implements it, as this one is filled in."""
        return self.IS_KNOWN_TO_CUAUV

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """Its keys, values and names. The CUAUV server closes the connection if any of them is empty."""
        return ()

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response of the expected type, other than Error, can be the answer to just this."""
        return self.ADDS is None or getattr(response, "type", None) == self.ADDS


class Empty(Message):
    """A message without a body."""

    __slots__ = ()
    BODY_BYTES = 0

    def encode(self) -> bytes:
        """Return the body."""
        return b""

    @classmethod
    def read(cls: type[MessageT], reader: Reader) -> MessageT:
        """Return the message."""
        return cls()


class Flat(Message):
    """A message whose fields are numbers, in the order of the wire."""

    __slots__ = ()
    LAYOUT: ClassVar[struct.Struct]

    def __init_subclass__(cls) -> None:
        if "LAYOUT" in cls.__dict__:
            cls.BODY_BYTES = cls.LAYOUT.size

    def encode(self) -> bytes:
        """Return the body. Raises LocalProtocolError for a number that does not fit."""
        names: tuple[str, ...] = self.__slots__
        return pack(self.LAYOUT, type(self).__name__, *[getattr(self, name) for name in names])

    @classmethod
    def read(cls: type[MessageT], reader: Reader) -> MessageT:
        """Return what the body says."""
        return cls(*reader.numbers(cls.LAYOUT))  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class IdList(Message):
    """A message that is a list of IDs, with their number in front."""

    ids: tuple[int, ...]

    def encode(self) -> bytes:
        """Return the body. Raises LocalProtocolError for an ID that does not fit."""
        return pack(struct.Struct(f">{len(self.ids) + 1}I"), type(self).__name__, len(self.ids), *self.ids)

    @classmethod
    def read(cls: type[MessageT], reader: Reader) -> MessageT:
        """Return what the body says."""
        count = reader.number(UINT32)
        raw = reader.take(count * UINT32.size, f"{count} IDs")
        return cls(struct.unpack(f">{count}I", raw))  # type: ignore[call-arg]


def pack_numbers(layout: struct.Struct, meaning: str, *groups: Any) -> bytes:
    """Return groups of numbers (vectors, quaternions) and single numbers one after the other.

    Raises LocalProtocolError for what does not fit; the layout tells how many numbers there are, not how they group.
    """
    numbers: list[Any] = []
    for group in groups:
        if isinstance(group, tuple | list):
            numbers.extend(group)
        else:
            numbers.append(group)
    return pack(layout, meaning, *numbers)


def is_vector(value: object, width: int) -> bool:
    """Return whether a value is a tuple or list of so many numbers."""
    return isinstance(value, tuple | list) and len(value) == width


def pack_bytes(raw: bytes, meaning: str) -> bytes:
    """Return bytes with their length as uint32 in front."""
    return pack(UINT32, f"The length of {meaning}", len(raw)) + raw


def read_bytes(reader: Reader, what: str) -> bytes:
    """Return bytes that have their length as uint32 in front."""
    return reader.take(reader.number(UINT32), what)


def pack_text(text: str, meaning: str, length: struct.Struct = UINT32) -> bytes:
    """Return a string with its length in front. Raises LocalProtocolError, naming the meaning, when it does not fit."""
    try:
        raw = text.encode(errors="surrogateescape")
    except UnicodeEncodeError as error:
        raise LocalProtocolError(f"{meaning} {text!r} has characters that UTF-8 can't carry.") from error
    longest = (1 << 8 * length.size) - 1
    if len(raw) > longest:
        raise LocalProtocolError(f"{meaning} has {len(raw)} bytes, and {longest} are allowed.")
    return length.pack(len(raw)) + raw


def read_text(reader: Reader, what: str, length: struct.Struct = UINT32) -> str:
    """Return a string that has its length in front."""
    return reader.take(reader.number(length), what).decode(errors="surrogateescape")
