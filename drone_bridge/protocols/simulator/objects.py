# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about objects: the forces and engines that act on entities.

The document gives the bodies of OADD alone. The others are laid out here in its style, after the messages for
entities and cameras:

- OCLASSES and OLIST have empty bodies. OSET is an ID, the uint8 of an attribute and its bytes; OGET is an ID and an
  attribute. Attribute 0 of an object is what its class takes in OADD.
- OLISTED is a number and so many IDs; OGOT is an attribute and its bytes.
- No response of the document's can carry a list of names, so OCLASSES is answered with type 10, which the document
  leaves free: a number, and so many names with their lengths as uint32.

No known server implements them.
"""

import struct
from dataclasses import astuple, dataclass
from typing import ClassVar, Final

from drone_bridge.protocols.simulator.wire import (
    UINT8,
    UINT32,
    Empty,
    Flat,
    IdList,
    ItemType,
    Reader,
    Request,
    Response,
    Vector,
    pack,
    pack_numbers,
    pack_text,
    read_text,
)
from drone_bridge.protocols.simulator.world import Added, Ok

PARAMETERS: Final = 0  # the attribute of an object that holds what its class takes in OADD
_ID_AND_ATTRIBUTE: Final = struct.Struct(">IB")


@dataclass(frozen=True, slots=True)
class Turbulence:
    """What the class `turbulence` takes: a force and a torque in the world frame, on every corporeal entity.

    The document names the numbers and does not explain them. The CUAUV server lets each component walk: it starts at
    zero, changes in each step at a rate drawn evenly from between two rates, and is kept between its bounds a
    and b. So equal bounds make it constant, whatever the rates, and rates of one sign drive it to a bound.
    """

    CLASS: ClassVar[str] = "turbulence"
    LAYOUT: ClassVar[struct.Struct] = struct.Struct(">16d")
    force_a: Vector  # lowest, N
    force_b: Vector  # highest, N
    force_rate_a: float  # fda, lowest, N/s
    force_rate_b: float  # fdb, highest, N/s
    torque_a: Vector  # lowest, N m
    torque_b: Vector  # highest, N m
    torque_rate_a: float  # tda, lowest, N m/s
    torque_rate_b: float  # tdb, highest, N m/s

    def encode(self) -> bytes:
        """Return the bytes for AddObject.data."""
        return pack_numbers(self.LAYOUT, "Turbulence", *astuple(self))

    @classmethod
    def decode(cls, data: bytes) -> "Turbulence":
        """Read AddObject.data. Raises MisfitError."""
        reader = Reader(data)
        n = reader.numbers(cls.LAYOUT)
        reader.expect_end()
        return cls(n[0:3], n[3:6], n[6], n[7], n[8:11], n[11:14], n[14], n[15])


@dataclass(frozen=True, slots=True)
class ObjectClassesListed(Response):
    """Type 10: the classes of objects that can be added."""

    ID = 10
    names: tuple[str, ...]

    def encode(self) -> bytes:
        """Return the body."""
        count = pack(UINT32, "The number of classes", len(self.names))
        return count + b"".join(pack_text(name, "The name of a class") for name in self.names)

    @classmethod
    def read(cls, reader: Reader) -> "ObjectClassesListed":
        """Return what the body says."""
        names = []
        # Every name has a length, so the bytes run out long before a count that is a lie does.
        for _ in range(reader.number(UINT32)):
            names.append(read_text(reader, "the name of a class"))
        return cls(tuple(names))


@dataclass(frozen=True, slots=True)
class ListObjectClasses(Empty, Request):
    """OCLASSES (5): ask for the classes of objects that can be added."""

    ID = 5
    NAME = "OCLASSES"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = ObjectClassesListed


@dataclass(frozen=True, slots=True)
class ObjectsListed(IdList, Response):
    """OLISTED (5): the objects that there are."""

    ID = 5


@dataclass(frozen=True, slots=True)
class ListObjects(Empty, Request):
    """OLIST (6): ask for the objects that there are."""

    ID = 6
    NAME = "OLIST"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = ObjectsListed


@dataclass(frozen=True, slots=True)
class AddObject(Request):
    """OADD (7): add an object of a class. Nothing tells how long the data are: they end with the body."""

    ID = 7
    NAME = "OADD"
    ANSWER = Added
    ADDS = ItemType.OBJECT
    class_name: str
    data: bytes

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """The name of its class."""
        return (self.class_name,)

    def encode(self) -> bytes:
        """Return the body."""
        return pack_text(self.class_name, "The name of a class") + self.data

    @classmethod
    def read(cls, reader: Reader) -> "AddObject":
        """Return what the body says."""
        return cls(read_text(reader, "the name of a class"), reader.rest())


@dataclass(frozen=True, slots=True)
class SetObject(Request):
    """OSET (8): set an attribute of an object."""

    ID = 8
    NAME = "OSET"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Ok
    id: int
    attribute: int
    data: bytes

    def encode(self) -> bytes:
        """Return the body."""
        return pack(_ID_AND_ATTRIBUTE, "SetObject", self.id, self.attribute) + self.data

    @classmethod
    def read(cls, reader: Reader) -> "SetObject":
        """Return what the body says."""
        thing, attribute = reader.numbers(_ID_AND_ATTRIBUTE)
        return cls(thing, attribute, reader.rest())


@dataclass(frozen=True, slots=True)
class ObjectGot(Response):
    """OGOT (6): an attribute of an object."""

    ID = 6
    attribute: int
    data: bytes

    def encode(self) -> bytes:
        """Return the body."""
        return pack(UINT8, "The attribute", self.attribute) + self.data

    @classmethod
    def read(cls, reader: Reader) -> "ObjectGot":
        """Return what the body says."""
        return cls(reader.number(UINT8), reader.rest())


@dataclass(frozen=True, slots=True)
class GetObject(Flat, Request):
    """OGET (18): ask for an attribute of an object."""

    ID = 18
    NAME = "OGET"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = ObjectGot
    LAYOUT = _ID_AND_ATTRIBUTE
    id: int
    attribute: int = PARAMETERS

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response gives the attribute that was asked for."""
        return isinstance(response, ObjectGot) and response.attribute == self.attribute
