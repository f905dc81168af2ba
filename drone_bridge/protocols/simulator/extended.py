# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about extended attributes: bytes that entities carry, by names."""

import struct
from dataclasses import dataclass
from typing import Final

from drone_bridge.protocols.simulator.wire import (
    UINT8,
    UINT32,
    ItemType,
    Reader,
    Request,
    Response,
    pack,
    pack_bytes,
    pack_text,
    read_bytes,
    read_text,
)
from drone_bridge.protocols.simulator.world import Added, Ok

_STREAM: Final = struct.Struct(">IIB")
_DATA: Final = struct.Struct(">IB")


def _pack_key(key: str) -> bytes:
    return pack_text(key, "The key", UINT8)


def _read_key(reader: Reader) -> str:
    return read_text(reader, "a key", UINT8)


@dataclass(frozen=True, slots=True)
class ExtendedAttribute:
    """A name and what it stands for. Its meaning is a matter of the clients."""

    key: str  # at most 255 bytes
    data: bytes

    def encode(self) -> bytes:
        """Return the bytes on the wire."""
        return _pack_key(self.key) + pack_bytes(self.data, f"the data of {self.key!r}")

    @classmethod
    def read(cls, reader: Reader) -> "ExtendedAttribute":
        """Return what comes next."""
        return cls(_read_key(reader), read_bytes(reader, "data"))


@dataclass(frozen=True, slots=True)
class SetExtended(Request):
    """EXSET (19): give an entity an attribute, or another value for one that it has. Error 0: no such entity."""

    ID = 19
    NAME = "EXSET"
    ANSWER = Ok
    id: int
    key: str
    data: bytes

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """Its keys and values."""
        return (self.key, self.data)

    def encode(self) -> bytes:
        """Return the body."""
        return pack(UINT32, "The ID of an entity", self.id) + ExtendedAttribute(self.key, self.data).encode()

    @classmethod
    def read(cls, reader: Reader) -> "SetExtended":
        """Return what the body says."""
        return cls(reader.number(UINT32), _read_key(reader), read_bytes(reader, "data"))


@dataclass(frozen=True, slots=True)
class ExtendedGot(Response):
    """EXGOT (9): the value of an attribute."""

    ID = 9
    key: str
    data: bytes

    def encode(self) -> bytes:
        """Return the body."""
        return ExtendedAttribute(self.key, self.data).encode()

    @classmethod
    def read(cls, reader: Reader) -> "ExtendedGot":
        """Return what the body says."""
        return cls(_read_key(reader), read_bytes(reader, "data"))


@dataclass(frozen=True, slots=True)
class GetExtended(Request):
    """EXGET (20): ask for an attribute. Answered with an Error if the entity has none with the key."""

    ID = 20
    NAME = "EXGET"
    ANSWER = ExtendedGot
    id: int
    key: str

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """Its keys and values."""
        return (self.key,)

    def encode(self) -> bytes:
        """Return the body."""
        return pack(UINT32, "The ID of an entity", self.id) + _pack_key(self.key)

    @classmethod
    def read(cls, reader: Reader) -> "GetExtended":
        """Return what the body says."""
        return cls(reader.number(UINT32), _read_key(reader))

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response gives the attribute that was asked for."""
        return isinstance(response, ExtendedGot) and response.key == self.key


@dataclass(frozen=True, slots=True)
class StreamExtended(Request):
    """EXSTREAM (21): send ExtendedData after every `period` steps."""

    ID = 21
    NAME = "EXSTREAM"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Added
    ADDS = ItemType.EXTENDED_STREAM
    id: int
    period: int  # steps
    keys: tuple[str, ...]  # at most 255

    def encode(self) -> bytes:
        """Return the body."""
        head = pack(_STREAM, "StreamExtended", self.id, self.period, len(self.keys))
        return head + b"".join(map(_pack_key, self.keys))

    @classmethod
    def read(cls, reader: Reader) -> "StreamExtended":
        """Return what the body says."""
        entity, period, count = reader.numbers(_STREAM)
        return cls(entity, period, tuple(_read_key(reader) for _ in range(count)))


@dataclass(frozen=True, slots=True)
class ExtendedData(Response):
    """EXDATA (135): extended attributes of an entity after a step."""

    ID = 135
    id: int  # of the stream
    attributes: tuple[ExtendedAttribute, ...]  # at most 255

    def encode(self) -> bytes:
        """Return the body."""
        head = pack(_DATA, "ExtendedData", self.id, len(self.attributes))
        return head + b"".join(attribute.encode() for attribute in self.attributes)

    @classmethod
    def read(cls, reader: Reader) -> "ExtendedData":
        """Return what the body says."""
        stream, count = reader.numbers(_DATA)
        return cls(stream, tuple(ExtendedAttribute.read(reader) for _ in range(count)))
