# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about entities, the rigid bodies of the world, and their attributes.

Numbers are as the wire has them: SI units, quaternions as w, x, y, z, the world north-east-down. x, v and a are in
the world frame, w in the frame of the model.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from drone_bridge.simulator.codec.extended import ExtendedAttributes
from drone_bridge.simulator.codec.wire import Ids, ItemType, Quaternion, Request, Response, Vector
from drone_bridge.simulator.codec.world import Added, Ok
from drone_bridge.wire.layouts import Bytes, Choice, Flag, Float64, Numbers, UInt8, UInt32


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

#: How the values of the attributes are laid out.
VALUES: dict[int, Numbers] = {
    Attribute.POSITION: Numbers("d", 3),
    Attribute.VELOCITY: Numbers("d", 3),
    Attribute.ACCELERATION: Numbers("d", 3),
    Attribute.ORIENTATION: Numbers("d", 4),
    Attribute.ANGULAR_VELOCITY: Numbers("d", 3),
    Attribute.CORPOREAL: Numbers("?"),
}
_Value = Annotated[AttributeValue, Choice("attribute", VALUES, otherwise=Bytes())]


@dataclass(frozen=True, slots=True)
class EntitiesListed(Response):
    """ELISTED (3): the IDs of all entities."""

    ID = 3
    ids: Ids


@dataclass(frozen=True, slots=True)
class ListEntities(Request):
    """ELIST (1): list entities."""

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
    mass: Float64  # kg
    radius: Float64  # m, of the sphere that triggers and cameras take it for
    inertia: Vector  # kg m², about the axes of the body frame
    body_to_model: Quaternion  # btom_rq, the body frame in the model frame
    position: Vector  # m, world
    orientation: Quaternion  # of the body frame in the world, as GetEntity gives it and unlike what SetEntity takes
    corporeal: Flag = True  # else forces don't act on it, and it moves with its velocity alone
    attributes: ExtendedAttributes = ()  # at most 255

    @property
    def texts(self) -> tuple[str | bytes, ...]:
        return tuple(text for attribute in self.attributes for text in (attribute.key, attribute.data))


@dataclass(frozen=True, slots=True)
class SetEntity(Request):
    """ESET (3): set an attribute. Error 0: there is no such entity; 1: there is no such attribute."""

    ID = 3
    NAME = "ESET"
    ANSWER = Ok
    id: UInt32
    attribute: UInt8  # an Attribute
    value: _Value


@dataclass(frozen=True, slots=True)
class EntityGot(Response):
    """EGOT (4): the value of an attribute."""

    ID = 4
    attribute: UInt8  # an Attribute
    value: _Value


@dataclass(frozen=True, slots=True)
class GetEntity(Request):
    """EGET (4): ask for an attribute. Error 0: there is no such entity; 1: there is no such attribute.

    The document's struct ends with a `data` that has no meaning in a question. Programs neither send nor accept it,
    and so do we.
    """

    ID = 4
    NAME = "EGET"
    ANSWER = EntityGot
    id: UInt32
    attribute: UInt8  # an Attribute

    def is_answered_by(self, response: Response) -> bool:
        return isinstance(response, EntityGot) and response.attribute == self.attribute
