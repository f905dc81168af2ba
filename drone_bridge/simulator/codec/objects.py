# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about objects: the forces and engines that act on entities.

The document gives the bodies of OADD alone. The others are laid out here in its style, after the messages for
entities and cameras:

- OCLASSES and OLIST have empty bodies. OSET is an ID, the uint8 of an attribute and its bytes; OGET is an ID and an
  attribute. Attribute 0 of an object is what its class takes in OADD.
- OLISTED is a count and that many IDs; OGOT is an attribute and its bytes.
- No response of the document's can carry a list of names, so OCLASSES is answered with type 10, which the document
  leaves free: a count, and that many names with their lengths as uint32.

No known server implements them.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from drone_bridge.simulator.codec.wire import Ids, ItemType, Name, Request, Response, Vector
from drone_bridge.simulator.codec.world import Added, Ok
from drone_bridge.wire.layouts import Float64, ListOf, Message, RestOfBody, UInt8, UInt32

PARAMETERS = 0  # the attribute of an object that holds what its class takes in OADD


@dataclass(frozen=True, slots=True)
class Turbulence(Message):
    """What the class `turbulence` takes: a force and a torque in the world frame, on every corporeal entity.

    Encoded, it is AddObject.data. The document names the numbers and does not explain them. The CUAUV server lets each
    component walk: it starts at zero, changes in each step at a rate drawn evenly from between two rates, and is kept
    between its bounds a and b. So equal bounds make it constant, whatever the rates, and rates of one sign drive it to
    a bound.
    """

    CLASS: ClassVar[str] = "turbulence"
    force_a: Vector  # lowest, N
    force_b: Vector  # highest, N
    force_rate_a: Float64  # fda, lowest, N/s
    force_rate_b: Float64  # fdb, highest, N/s
    torque_a: Vector  # lowest, N m
    torque_b: Vector  # highest, N m
    torque_rate_a: Float64  # tda, lowest, N m/s
    torque_rate_b: Float64  # tdb, highest, N m/s


@dataclass(frozen=True, slots=True)
class ObjectClassesListed(Response):
    """Type 10: the classes of objects that can be added."""

    ID = 10
    names: Annotated[tuple[str, ...], ListOf("I", Name)]


@dataclass(frozen=True, slots=True)
class ListObjectClasses(Request):
    """OCLASSES (5): list the classes of objects that can be added."""

    ID = 5
    NAME = "OCLASSES"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = ObjectClassesListed


@dataclass(frozen=True, slots=True)
class ObjectsListed(Response):
    """OLISTED (5): the IDs of all objects."""

    ID = 5
    ids: Ids


@dataclass(frozen=True, slots=True)
class ListObjects(Request):
    """OLIST (6): list objects."""

    ID = 6
    NAME = "OLIST"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = ObjectsListed


@dataclass(frozen=True, slots=True)
class AddObject(Request):
    """OADD (7): add an object of a class. The data extend to the end of the body."""

    ID = 7
    NAME = "OADD"
    ANSWER = Added
    ADDS = ItemType.OBJECT
    class_name: Name
    data: RestOfBody

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        return (self.class_name,)


@dataclass(frozen=True, slots=True)
class SetObject(Request):
    """OSET (8): set an attribute of an object."""

    ID = 8
    NAME = "OSET"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Ok
    id: UInt32
    attribute: UInt8
    data: RestOfBody


@dataclass(frozen=True, slots=True)
class ObjectGot(Response):
    """OGOT (6): an attribute of an object."""

    ID = 6
    attribute: UInt8
    data: RestOfBody


@dataclass(frozen=True, slots=True)
class GetObject(Request):
    """OGET (18): get an attribute of an object."""

    ID = 18
    NAME = "OGET"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = ObjectGot
    id: UInt32
    attribute: UInt8 = PARAMETERS

    def is_answered_by(self, response: Response) -> bool:
        return isinstance(response, ObjectGot) and response.attribute == self.attribute
