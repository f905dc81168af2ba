# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about entities, the rigid bodies of the world, and their attributes.

Numbers are as the wire has them: SI units, quaternions as w, x, y, z, the world north-east-down. x, v and a are in
the world frame, w in the frame of the model.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator.extended import ExtendedAttribute
from drone_bridge.protocols.simulator.wire import (
    UINT8,
    Empty,
    Flat,
    IdList,
    ItemType,
    Quaternion,
    Reader,
    Request,
    Response,
    Vector,
    is_vector,
    pack,
    pack_numbers,
)
from drone_bridge.protocols.simulator.world import Added, Ok


class Attribute(IntEnum):
    """The built-in attributes of an entity."""

    POSITION = 0  # x, m, world
    VELOCITY = 1  # v, m/s, world
    ACCELERATION = 2  # a, m/s², world
    ORIENTATION = 3  # q, from the model (Set) or the body (Get, streams) to the world
    ANGULAR_VELOCITY = 4  # w, rad/s, model
    CORPOREAL = 5


#: A vector or quaternion, a bool for CORPOREAL, and bytes for an attribute that the document does not have.
AttributeValue = tuple[float, ...] | bool | bytes

#: Of an attribute: the format of its value, and how many numbers that gives.
FORMATS: Final[dict[int, tuple[str, int]]] = {
    Attribute.POSITION: ("3d", 3),
    Attribute.VELOCITY: ("3d", 3),
    Attribute.ACCELERATION: ("3d", 3),
    Attribute.ORIENTATION: ("4d", 4),
    Attribute.ANGULAR_VELOCITY: ("3d", 3),
    Attribute.CORPOREAL: ("?", 1),
}
_LAYOUTS: Final = {attribute: struct.Struct(f">{form}") for attribute, (form, _) in FORMATS.items()}
_ENTITY: Final = struct.Struct(">5d4d3d4d?")
_ID_AND_ATTRIBUTE: Final = struct.Struct(">IB")


def _pack_value(attribute: int, value: AttributeValue) -> bytes:
    if isinstance(value, bytes):
        if attribute in _LAYOUTS:
            raise LocalProtocolError(f"Bytes are no value for the attribute {Attribute(attribute).name}.")
        return value
    layout = _LAYOUTS.get(attribute)
    if layout is None:
        raise LocalProtocolError(f"There is no attribute {attribute}; there are 0 to {max(Attribute)}.")
    return pack_numbers(layout, f"The value of {Attribute(attribute).name}", value)


def read_value(attribute: int, reader: Reader) -> AttributeValue:
    """Return the value that comes next: all that is left for an attribute that the document does not have."""
    layout = _LAYOUTS.get(attribute)
    if layout is None:
        return reader.rest()
    values = reader.numbers(layout)
    return bool(values[0]) if attribute == Attribute.CORPOREAL else values


@dataclass(frozen=True, slots=True)
class EntitiesListed(IdList, Response):
    """ELISTED (3): the entities that there are."""

    ID = 3


@dataclass(frozen=True, slots=True)
class ListEntities(Empty, Request):
    """ELIST (1): ask for the entities that there are."""

    ID = 1
    NAME = "ELIST"
    ANSWER = EntitiesListed


@dataclass(frozen=True, slots=True)
class AddEntity(Request):
    """EADD (2): add an entity."""

    ID = 2
    NAME = "EADD"
    ANSWER = Added
    ADDS = ItemType.ENTITY
    mass: float  # kg
    radius: float  # m, of the sphere that triggers and cameras take it for
    inertia: Vector  # kg m², about the axes of the body frame
    body_to_model: Quaternion  # btom_rq, the body frame in the model frame
    position: Vector  # m, world
    orientation: Quaternion  # of the body frame in the world, as GetEntity gives it and unlike what SetEntity takes
    corporeal: bool = True  # else forces don't act on it, and it moves with its velocity alone
    attributes: tuple[ExtendedAttribute, ...] = ()  # at most 255

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        """Its keys and values."""
        return tuple(text for attribute in self.attributes for text in (attribute.key, attribute.data))

    def encode(self) -> bytes:
        """Return the body."""
        _check_widths(
            (self.inertia, 3, "inertia"),
            (self.body_to_model, 4, "rotation from body to model"),
            (self.position, 3, "position"),
            (self.orientation, 4, "orientation"),
        )
        fixed = pack_numbers(
            _ENTITY,
            "AddEntity",
            self.mass,
            self.radius,
            self.inertia,
            self.body_to_model,
            self.position,
            self.orientation,
            self.corporeal,
        )
        count = pack(UINT8, "The number of attributes", len(self.attributes))
        return fixed + count + b"".join(attribute.encode() for attribute in self.attributes)

    @classmethod
    def read(cls, reader: Reader) -> "AddEntity":
        """Return what the body says."""
        n = reader.numbers(_ENTITY)
        attributes = tuple(ExtendedAttribute.read(reader) for _ in range(reader.number(UINT8)))
        return cls(n[0], n[1], n[2:5], n[5:9], n[9:12], n[12:16], n[16], attributes)


@dataclass(frozen=True, slots=True)
class SetEntity(Request):
    """ESET (3): set an attribute. Error 0: there is no such entity; 1: there is no such attribute."""

    ID = 3
    NAME = "ESET"
    ANSWER = Ok
    id: int
    attribute: int  # an Attribute
    value: AttributeValue

    def encode(self) -> bytes:
        """Return the body."""
        head = pack(_ID_AND_ATTRIBUTE, "SetEntity", self.id, self.attribute)
        return head + _pack_value(self.attribute, self.value)

    @classmethod
    def read(cls, reader: Reader) -> "SetEntity":
        """Return what the body says."""
        entity, attribute = reader.numbers(_ID_AND_ATTRIBUTE)
        return cls(entity, attribute, read_value(attribute, reader))


@dataclass(frozen=True, slots=True)
class EntityGot(Response):
    """EGOT (4): the value of an attribute."""

    ID = 4
    attribute: int  # an Attribute
    value: AttributeValue

    def encode(self) -> bytes:
        """Return the body."""
        return pack(UINT8, "The attribute", self.attribute) + _pack_value(self.attribute, self.value)

    @classmethod
    def read(cls, reader: Reader) -> "EntityGot":
        """Return what the body says."""
        attribute = reader.number(UINT8)
        return cls(attribute, read_value(attribute, reader))


@dataclass(frozen=True, slots=True)
class GetEntity(Flat, Request):
    """EGET (4): ask for an attribute. Error 0: there is no such entity; 1: there is no such attribute.

    The document's struct ends with a `data` that has no meaning in a question. Programs neither send nor accept it,
    and so do we.
    """

    ID = 4
    NAME = "EGET"
    ANSWER = EntityGot
    LAYOUT = _ID_AND_ATTRIBUTE
    id: int
    attribute: int  # an Attribute

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response gives the attribute that was asked for."""
        return isinstance(response, EntityGot) and response.attribute == self.attribute


def _check_widths(*checks: tuple[object, int, str]) -> None:
    for value, width, meaning in checks:
        if not is_vector(value, width):
            raise LocalProtocolError(f"The {meaning} of an entity has {width} numbers; {value!r} has not.")
