# SPDX-License-Identifier: Apache-2.0
"""ClientConnection and ServerConnection: the two ends of the underwater simulator's protocol.

TCP, big-endian messages of a type ID, a length and a body.

Theory of operation ("Simulator Protocol" of the specification). All clients share one world of rigid bodies, which is
paused until a client sends RUN. A client may send requests at any time, even before earlier ones are answered. Each
request has exactly one answer, in order: the message of its type, or ERROR. The oldest unanswered request therefore
determines how an answer is decoded. Messages with type IDs from 128 on are out of band: streams, triggers, spying and
COMPLETED arrive between the answers. Streams, triggers and spies end with the connection that added them. Entities,
objects and cameras persist. A request that the server does not support has no answer: the server disconnects.

On the wire:

TCP port 7772, big-endian. A message is a type (uint8), a length (uint32, of the body) and a body. `d` is a float64,
`f` a float32, vectors are 3 d, quaternions 4 d as w, x, y, z. Strings and bytes are preceded by their length: a uint32,
or a uint8 in a *key*.

| request | body | answer |
| --- | --- | --- |
| 0 REMOVE | type (uint8), id | OK |
| 1 ELIST | | ELISTED |
| 2 EADD | mass, radius, inertia, btom (quaternion), x, q, corporeal (uint8), list (uint8) of key and bytes | ADDED |
| 3 ESET | id, attribute (uint8), value | OK |
| 4 EGET | id, attribute | EGOT |
| 5 OCLASSES, 9 CLIST | not documented | not documented |
| 6 OLIST, 8 OSET, 12 CVIEW, 18 OGET | not documented | OLISTED, OK, CGOT, OGOT |
| 7 OADD | class (string), data of the class; `turbulence`: 16 d | ADDED |
| 10 CADD | entity, q, x, f (d), enabled | ADDED |
| 11 CSET | id, attribute, value | OK |
| 13 TADD | type, configuration: collision (a, b, distance), sweep (a, b), bytecode, path (entity, start, end, distance) | ADDED |
| 14 ESTREAM, 21 EXSTREAM | id, period, list (uint8) of attributes, or of keys | ADDED, then EDATA, EXDATA |
| 15 CSTREAM, 16 CBCAST | camera, period, entity; camera | ADDED, then CDATA; ADDED |
| 17 CONFIG | | CONFIGED |
| 19 EXSET, 20 EXGET | id, key, bytes; id, key | OK; EXGOT |
| 22 SPY | | ADDED (or OK), then SPIED |
| 33 REASSURE | | OK |
| 254 RUN | steps (uint64), 0 forever | OK, then COMPLETED |
| 255 PAUSE | | OK |

Attributes of entities: 0 x, 1 v, 2 a, 3 q, 4 w (d each), 5 corporeal. Of cameras: 0 q, 1 x, 2 f, 3 enabled.

| response | body |
| --- | --- |
| 0 OK, 255 COMPLETED | |
| 1 ERROR | code (uint32), text; instead of any answer |
| 2 ADDED | type (uint8), id |
| 3 ELISTED | list of ids (uint32) |
| 4 EGOT | attribute, value |
| 5 OLISTED, 6 OGOT, 7 CGOT | not documented |
| 8 CONFIGED | frequency, speed (d), non-real-time, desired thrusters (uint8) |
| 9 EXGOT | key, bytes |
| 129 EDATA | stream, list (uint8) of attribute and value |
| 130 CDATA | stream, x, y, radius, depth |
| 135 EXDATA | stream, list (uint8) of key and bytes |
| 128 TRIGGERED, 131 UNTRIGGERED, 132 PSTART, 133 PFAIL, 134 PEND | trigger |
| 136 SPIED | added (uint8), type, id (uint8 by the document, uint32 in programs; both are read) |

Undocumented bodies are bytes here: their meaning is up to the two ends.
"""  # noqa: E501 -- tables

import struct
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Annotated, Any, ClassVar

from drone_bridge.wire.events import NEED_DATA, ConnectionClosed, EventT, LocalProtocolError
from drone_bridge.wire.layouts import (
    Bytes,
    Choice,
    Flag,
    Float32,
    Float64,
    Layout,
    LayoutReader,
    ListOf,
    MisfitError,
    Numbers,
    RestOfBody,
    Text,
    UInt8,
    UInt32,
    UInt64,
    is_one_of,
)
from drone_bridge.wire.messages import Message
from drone_bridge.wire.stream import StreamConnection

__all__ = [
    "DEFAULT_PORT", "MAX_BODY_BYTES", "MAX_OUTSTANDING", "MAX_REQUEST_BYTES", "NEED_DATA", "REQUESTS", "RESPONSES",
    "STREAMED", "VEHICLE", "AddCamera", "AddEntity", "AddObject", "AddTrigger", "Added", "Answer", "Attribute",
    "AttributeValue", "BroadcastCamera", "BytecodeTrigger", "CameraAttribute", "CameraData", "CameraGot", "CameraValue",
    "ClientConnection", "CollisionTrigger", "Completed", "Configured", "ConnectionClosed", "EntitiesListed",
    "EntityData", "EntityGot", "Error", "ExtendedAttribute", "ExtendedData", "ExtendedGot", "GetConfig", "GetEntity",
    "GetExtended", "GetObject", "ItemType", "ListCameras", "ListEntities", "ListObjectClasses", "ListObjects",
    "ObjectGot", "ObjectsListed", "Ok", "PathEnded", "PathFailed", "PathStarted", "PathTrigger", "Pause", "Quaternion",
    "Reassure", "Remove", "Request", "Response", "Run", "ServerConnection", "SetCamera", "SetEntity", "SetExtended",
    "SetObject", "Spied", "Spy", "StreamCamera", "StreamEntity", "StreamExtended", "SweepCollisionTrigger", "Trigger",
    "TriggerType", "Triggered", "Turbulence", "UnknownTrigger", "Untriggered", "Vector", "ViewCamera", "frame",
]  # fmt: skip


# Requests, responses and strings. Strings are decoded as UTF-8. Invalid bytes become surrogates (Python's
# surrogateescape), so that a decoded string can be encoded byte for byte.


Vector = Annotated[tuple[float, float, float], Numbers("d", 3)]
Quaternion = Annotated[tuple[float, float, float, float], Numbers("d", 4)]  # w, x, y, z
Name = Annotated[str, Text("I", errors="surrogateescape")]
Key = Annotated[str, Text("B", errors="surrogateescape")]  # at most 255 bytes
Data = Annotated[bytes, Bytes("I")]
Ids = Annotated[tuple[int, ...], ListOf("I", UInt32)]


class ItemType(IntEnum):
    """Types of items with IDs. Each type has its own IDs."""

    ENTITY = 0
    OBJECT = 1
    CAMERA = 2
    TRIGGER = 3
    ENTITY_STREAM = 4
    CAMERA_STREAM = 5
    CAMERA_BROADCAST = 6
    EXTENDED_STREAM = 7
    SPY = 8


class Response(Message):
    """Message from the server: an answer if its ID is below 128, otherwise an out-of-band message."""

    __slots__ = ()

    def __init_subclass__(cls, *, id: int | None = None) -> None:
        super().__init_subclass__()
        if id is not None:  # the class is created again for slots
            cls.ID = id

    @property
    def is_in_band(self) -> bool:
        """Whether it answers a request."""
        return self.ID < 128


class Request(Message):
    """Message from a client. It has one answer, in order: the expected response or an Error."""

    __slots__ = ()
    #: Name in the specification.
    NAME: ClassVar[str]
    #: Type of its answer.
    ANSWER: ClassVar[type[Response]]
    #: Type of the added item, if its answer is Added.
    ADDS: ClassVar[ItemType | None]
    #: Whether the CUAUV server supports it. It closes the connection on unsupported requests.
    IS_IN_CUAUV: ClassVar[bool]

    def __init_subclass__(
        cls,
        *,
        id: int | None = None,
        name: str = "",
        answer: type[Response] = Response,
        adds: ItemType | None = None,
        is_in_cuauv: bool = True,
    ) -> None:
        super().__init_subclass__()
        if id is not None:  # the class is created again for slots
            cls.ID, cls.NAME, cls.ANSWER, cls.ADDS = id, name, answer, adds
            cls.IS_IN_CUAUV = is_in_cuauv

    @property
    def texts(self) -> list[str | bytes]:
        """Its keys, values and names. The CUAUV server closes the connection if any of them is empty."""
        return list(_texts(self))

    def moves(self, entity: int) -> bool:
        """Return whether it moves or removes an entity, or changes forces on all entities."""
        return False

    def is_answered_by(self, response: Response) -> bool:
        """Return whether a response other than Error can answer this request."""
        return isinstance(response, self.ANSWER) and self.ADDS in (None, getattr(response, "type", None))


def _texts(message: Any) -> Iterator[str | bytes]:
    for field in fields(message):
        value = getattr(message, field.name)
        for each in value if isinstance(value, tuple) else (value,):
            if isinstance(each, str | bytes):
                yield each
            elif isinstance(each, Message):
                yield from _texts(each)


# World: running it, items, and answers shared by many requests.


_IS_ADDED = Numbers("?")
_TYPE = Numbers("B")
_SPIED_IDS = {1: Numbers("B"), 4: Numbers("I")}  # by the size of the ID, bytes


@dataclass(frozen=True, slots=True)
class Ok(Response, id=0):
    """OK (0): a request was completed."""


@dataclass(frozen=True, slots=True)
class Error(Response, id=1):
    """ERROR (1): a request failed. The meaning of the code depends on the request."""

    code: UInt32
    message: Name = ""


@dataclass(frozen=True, slots=True)
class Added(Response, id=2):
    """ADDED (2): a request to add something was completed."""

    type: UInt8  # an ItemType
    id: UInt32


@dataclass(frozen=True, slots=True)
class Completed(Response, id=255):
    """COMPLETED (255): a Run is complete, or the server is shutting down. Sent to every client."""


@dataclass(frozen=True, slots=True)
class Remove(Request, id=0, name="REMOVE", answer=Ok):
    """REMOVE (0): remove an item of any type. Error 0: no such item; 1: no such type.

    The CUAUV server treats objects as forces, of which 0 is gravity, and does nothing about other types.
    """

    type: UInt8  # an ItemType
    id: UInt32

    def moves(self, entity: int) -> bool:
        return self.type == ItemType.OBJECT or (self.type, self.id) == (ItemType.ENTITY, entity)


@dataclass(frozen=True, slots=True)
class Spy(Request, id=22, name="SPY", answer=Added, adds=ItemType.SPY, is_in_cuauv=False):
    """SPY (22): notify this client of all added and removed items.

    The specification implies the answer ADDED, since REMOVE ends the spying, but does not state it. OK is accepted as
    well.
    """

    def is_answered_by(self, response: Response) -> bool:
        return isinstance(response, Ok) or Request.is_answered_by(self, response)


@dataclass(frozen=True, slots=True)
class Spied(Response, id=136):
    """SPIED (136): an item was added or removed.

    The specified ID is a uint8, other programs send a uint32. Both are accepted, and `id_bytes` is the size.
    """

    is_added: bool  # False: removed
    type: int  # an ItemType
    id: int
    id_bytes: int = 1  # or 4

    def encode(self) -> bytes:
        if not is_one_of(self.id_bytes, (1, 4)):
            raise LocalProtocolError(f"The ID in Spied has 1 or 4 bytes, not {self.id_bytes!r:.200}.")
        id_numbers = _SPIED_IDS[self.id_bytes]
        return (
            _IS_ADDED.pack(self.is_added, "is_added of Spied")
            + _TYPE.pack(self.type, "type of Spied")
            + id_numbers.pack(self.id, "id of Spied")
        )

    @classmethod
    def read(cls, reader: LayoutReader) -> "Spied":
        id_bytes = reader.remaining - 2
        id_numbers = _SPIED_IDS.get(id_bytes)
        if id_numbers is None:
            raise MisfitError(f"it has {reader.remaining} bytes, but must have 3 or 6")
        is_added, kind = _IS_ADDED.read(reader, "is_added"), _TYPE.read(reader, "type")
        return cls(is_added, kind, id_numbers.read(reader, "id"), id_bytes)


@dataclass(frozen=True, slots=True)
class Configured(Response, id=8):
    """CONFIGED (8): the configuration. A step lasts speed / frequency simulated seconds.

    With `non_real_time`, steps run as fast as possible, and last the same simulated time.
    """

    frequency: Float64  # steps per second of the wall clock
    speed: Float64  # simulated seconds per second of the wall clock
    non_real_time: Flag
    use_desired_thrusters: Flag


@dataclass(frozen=True, slots=True)
class GetConfig(Request, id=17, name="CONFIG", answer=Configured):
    """CONFIG (17): get the configuration."""


@dataclass(frozen=True, slots=True)
class Reassure(Request, id=33, name="REASSURE", answer=Ok):
    """REASSURE (33): always answered with OK."""


@dataclass(frozen=True, slots=True)
class Run(Request, id=254, name="RUN", answer=Ok):
    """RUN (254): unpause the world. Completed follows the last of a limited number of steps."""

    steps: UInt64 = 0  # 0: forever


@dataclass(frozen=True, slots=True)
class Pause(Request, id=255, name="PAUSE", answer=Ok):
    """PAUSE (255): pause the world. The Run that this ends is not followed by Completed."""


# Extended attributes: named bytes of entities.


@dataclass(frozen=True, slots=True)
class ExtendedAttribute(Message):
    """Name and bytes, whose meaning is up to the clients."""

    key: Key  # at most 255 bytes
    data: Data


ExtendedAttributes = Annotated[tuple[ExtendedAttribute, ...], ListOf("B", ExtendedAttribute)]


@dataclass(frozen=True, slots=True)
class SetExtended(Request, id=19, name="EXSET", answer=Ok):
    """EXSET (19): add or change an attribute. Error 0: no such entity."""

    id: UInt32
    key: Key
    data: Data


@dataclass(frozen=True, slots=True)
class ExtendedGot(Response, id=9):
    """EXGOT (9): the value of an attribute."""

    key: Key
    data: Data


@dataclass(frozen=True, slots=True)
class GetExtended(Request, id=20, name="EXGET", answer=ExtendedGot):
    """EXGET (20): get an attribute. Answered with an Error if the entity lacks the key."""

    id: UInt32
    key: Key

    def is_answered_by(self, response: Response) -> bool:
        return isinstance(response, ExtendedGot) and response.key == self.key


@dataclass(frozen=True, slots=True)
class StreamExtended(Request, id=21, name="EXSTREAM", answer=Added, adds=ItemType.EXTENDED_STREAM, is_in_cuauv=False):
    """EXSTREAM (21): send ExtendedData after every `period` steps."""

    id: UInt32
    period: UInt32  # steps
    keys: Annotated[tuple[str, ...], ListOf("B", Key)]  # at most 255


@dataclass(frozen=True, slots=True)
class ExtendedData(Response, id=135):
    """EXDATA (135): extended attributes of an entity after a step."""

    id: UInt32  # of the stream
    attributes: ExtendedAttributes  # at most 255


# Entities: the rigid bodies of the world, and their attributes, in the wire's units: SI, quaternions as w, x, y, z, a
# north-east-down world. x, v and a are in the world frame, w in the model frame.


class Attribute(IntEnum):
    """Built-in attributes of an entity."""

    POSITION = 0  # x, m, world
    VELOCITY = 1  # v, m/s, world
    ACCELERATION = 2  # a, m/s², world
    ORIENTATION = 3  # q, from the model (Set) or the body (Get, streams) to the world
    ANGULAR_VELOCITY = 4  # w, rad/s, model
    CORPOREAL = 5


#: The attributes of a streamed state, in the order of the request.
STREAMED = (
    Attribute.POSITION,
    Attribute.VELOCITY,
    Attribute.ACCELERATION,
    Attribute.ORIENTATION,
    Attribute.ANGULAR_VELOCITY,
)

#: A vector or quaternion, a bool for CORPOREAL, and bytes for an undocumented attribute.
AttributeValue = tuple[float, ...] | bool | bytes

#: Layouts of the values of attributes.
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
class EntitiesListed(Response, id=3):
    """ELISTED (3): the IDs of all entities."""

    ids: Ids


@dataclass(frozen=True, slots=True)
class ListEntities(Request, id=1, name="ELIST", answer=EntitiesListed):
    """ELIST (1): list entities."""


@dataclass(frozen=True, slots=True)
class AddEntity(Request, id=2, name="EADD", answer=Added, adds=ItemType.ENTITY):
    """EADD (2): add an entity."""

    mass: Float64  # kg
    radius: Float64  # m, of the sphere that represents it for triggers and cameras
    inertia: Vector  # kg m², about the axes of the body frame
    body_to_model: Quaternion  # btom_rq, the body frame in the model frame
    position: Vector  # m, world
    orientation: Quaternion  # of the body frame in the world, as in GetEntity and unlike in SetEntity
    corporeal: Flag = True  # False: no forces, it moves with its velocity alone
    attributes: ExtendedAttributes = ()  # at most 255


@dataclass(frozen=True, slots=True)
class SetEntity(Request, id=3, name="ESET", answer=Ok):
    """ESET (3): set an attribute. Error 0: no such entity; 1: no such attribute."""

    id: UInt32
    attribute: UInt8  # an Attribute
    value: _Value

    def moves(self, entity: int) -> bool:
        return self.id == entity


@dataclass(frozen=True, slots=True)
class EntityGot(Response, id=4):
    """EGOT (4): the value of an attribute."""

    attribute: UInt8  # an Attribute
    value: _Value


@dataclass(frozen=True, slots=True)
class GetEntity(Request, id=4, name="EGET", answer=EntityGot):
    """EGET (4): get an attribute. Error 0: no such entity; 1: no such attribute.

    The specified struct ends with a `data` field, which has no meaning in a request. Programs neither send nor accept
    it, nor does this codec.
    """

    id: UInt32
    attribute: UInt8  # an Attribute

    def is_answered_by(self, response: Response) -> bool:
        return isinstance(response, EntityGot) and response.attribute == self.attribute


# Streams of entity attributes.


_STREAM, _ATTRIBUTE = Numbers("I"), Numbers("B")


@dataclass(frozen=True, slots=True)
class StreamEntity(Request, id=14, name="ESTREAM", answer=Added, adds=ItemType.ENTITY_STREAM):
    """ESTREAM (14): send EntityData after every `period` steps. Error 0: a bad attribute; 1: no such entity."""

    id: UInt32
    period: UInt32  # steps; 0: never
    attributes: Annotated[tuple[int, ...], ListOf("B", UInt8)]  # at most 255


@dataclass(frozen=True, slots=True)
class EntityData(Response, id=129):
    """EDATA (129): the attributes of an entity after a step, in the order of the request."""

    id: int  # of the stream
    attributes: tuple[int, ...]  # Attribute numbers
    values: tuple[AttributeValue, ...]

    def encode(self) -> bytes:
        attributes, values = self.attributes, self.values
        if not (isinstance(attributes, tuple) and isinstance(values, tuple) and len(values) == len(attributes)):
            raise LocalProtocolError(f"The values for attributes {attributes!r:.200} are {values!r:.200}.")
        data = _STREAM.pack(self.id, "id of EntityData") + _ATTRIBUTE.pack(len(attributes), "number of attributes")
        for attribute, value in zip(attributes, values, strict=True):
            if not is_one_of(attribute, tuple(VALUES)):
                raise LocalProtocolError(f"Attribute {attribute!r:.200} does not exist: they are 0 to {max(VALUES)}.")
            data += _ATTRIBUTE.pack(attribute, "attribute") + VALUES[attribute].pack(value, f"value of {attribute}")
        return data

    @classmethod
    def read(cls, reader: LayoutReader) -> "EntityData":
        stream, attributes, values = _STREAM.read(reader, "id"), [], []
        for _ in range(_ATTRIBUTE.read(reader, "count of attributes")):
            attribute = _ATTRIBUTE.read(reader, "attribute")
            if attribute not in VALUES:
                raise MisfitError(f"attribute {attribute} does not exist, so its size is unknown")
            attributes.append(attribute)
            values.append(VALUES[attribute].read(reader, "value"))
        return cls(stream, tuple(attributes), tuple(values))


# Cameras: they report the position of entities in the image, without an image. The bodies of CLIST, CVIEW and CGOT are
# undocumented, so they are bytes here. CBCAST is described as CBSTART in the specification.


class CameraAttribute(IntEnum):
    """Attributes of a camera."""

    ORIENTATION = 0  # q
    POSITION = 1  # x, m
    FOCAL_LENGTH = 2  # f
    ENABLED = 3


#: A quaternion or vector, a float for FOCAL_LENGTH, a bool for ENABLED, bytes for undocumented attributes.
CameraValue = tuple[float, ...] | float | bool | bytes

_VALUES = {
    CameraAttribute.ORIENTATION: Numbers("d", 4),
    CameraAttribute.POSITION: Numbers("d", 3),
    CameraAttribute.FOCAL_LENGTH: Numbers("d"),
    CameraAttribute.ENABLED: Numbers("?"),
}


@dataclass(frozen=True, slots=True)
class ListCameras(Request, id=9, name="CLIST", is_in_cuauv=False):
    """CLIST (9): list cameras."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class AddCamera(Request, id=10, name="CADD", answer=Added, adds=ItemType.CAMERA):
    """CADD (10): attach a camera to an entity. Error 0: no such entity."""

    entity: UInt32
    orientation: Quaternion  # of the camera in the entity's model frame
    position: Vector  # m, in the entity's model frame
    focal_length: Float64
    enabled: Flag = True  # False: its streams are silent

    def changed(self, change: "SetCamera") -> "AddCamera":
        """Return the camera with a changed attribute."""
        changed: dict[str, Any] = {CameraAttribute(change.attribute).name.lower(): change.value}
        return replace(self, **changed)


@dataclass(frozen=True, slots=True)
class SetCamera(Request, id=11, name="CSET", answer=Ok):
    """CSET (11): set an attribute of a camera. Error 0: no such camera; 1: no such attribute.

    The CUAUV server interprets orientation and position in the entity's body frame here, unlike in CADD.
    """

    id: UInt32
    attribute: UInt8  # a CameraAttribute
    value: Annotated[CameraValue, Choice("attribute", _VALUES, otherwise=Bytes())]


@dataclass(frozen=True, slots=True)
class CameraGot(Response, id=7):
    """CGOT (7): an entity's position in the image."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class ViewCamera(Request, id=12, name="CVIEW", answer=CameraGot, is_in_cuauv=False):
    """CVIEW (12): get an entity's position in the image."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class StreamCamera(Request, id=15, name="CSTREAM", answer=Added, adds=ItemType.CAMERA_STREAM):
    """CSTREAM (15): send CameraData after every `period` steps.

    Error 0: no such camera; 1: no such target; 2: the camera is on the target.
    """

    id: UInt32
    period: UInt32  # steps; 0: never
    target: UInt32  # ID of the observed entity


@dataclass(frozen=True, slots=True)
class CameraData(Response, id=130):
    """CDATA (130): an entity's position in the image.

    (0, 0) is straight ahead. x grows to the right, y downwards.
    """

    id: UInt32  # of the stream
    x: Float32
    y: Float32
    radius: Float32  # apparent; 0: not visible
    depth: Float32  # m, along the camera's x axis


@dataclass(frozen=True, slots=True)
class BroadcastCamera(Request, id=16, name="CBCAST", answer=Added, adds=ItemType.CAMERA_BROADCAST, is_in_cuauv=False):
    """CBCAST (16): start a broadcast to shared memory."""

    id: UInt32


# Triggers: they report events in the world.


class TriggerType(IntEnum):
    """Documented types of triggers."""

    COLLISION = 0
    SWEEP_COLLISION = 1
    BYTECODE = 2
    PATH = 3


@dataclass(frozen=True, slots=True)
class CollisionTrigger(Message):
    """Collision: two entities are within a distance after a step."""

    TYPE: ClassVar[TriggerType] = TriggerType.COLLISION
    a: UInt32
    b: UInt32
    distance: Float64  # m; negative: the sum of their radii


@dataclass(frozen=True, slots=True)
class SweepCollisionTrigger(Message):
    """Swept collision: two entities touch at any time during a step."""

    TYPE: ClassVar[TriggerType] = TriggerType.SWEEP_COLLISION
    a: UInt32
    b: UInt32


@dataclass(frozen=True, slots=True)
class BytecodeTrigger(Message):
    """Program for an undocumented machine. The CUAUV server's response has an undefined type."""

    TYPE: ClassVar[TriggerType] = TriggerType.BYTECODE
    code: Data


@dataclass(frozen=True, slots=True)
class PathTrigger(Message):
    """Path: an entity moves between two points without leaving the line between them."""

    TYPE: ClassVar[TriggerType] = TriggerType.PATH
    entity: UInt32
    start: Vector  # m, world
    end: Vector  # m, world
    distance: Float64  # m, maximum


@dataclass(frozen=True, slots=True)
class UnknownTrigger(Message):
    """Trigger of an undocumented type. Its configuration is the rest of the body."""

    type: int
    configuration: RestOfBody


#: Documented triggers.
Trigger = CollisionTrigger | SweepCollisionTrigger | BytecodeTrigger | PathTrigger
_TRIGGERS: dict[int, type[Trigger]] = {
    kind.TYPE: kind for kind in (CollisionTrigger, SweepCollisionTrigger, BytecodeTrigger, PathTrigger)
}


class _TriggerLayout(Layout):
    """Layout of a trigger: its type, then its configuration."""

    _type = Numbers("B")

    def pack(self, value: Any, meaning: str) -> bytes:
        if isinstance(value, Trigger):
            return self._type.pack(value.TYPE, meaning) + value.encode()
        if not isinstance(value, UnknownTrigger) or value.type in tuple(_TRIGGERS):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, but must be a trigger or an UnknownTrigger.")
        return self._type.pack(value.type, f"type of the {meaning}") + value.encode()

    def read(self, reader: LayoutReader, meaning: str) -> Any:
        kind = self._type.read(reader, meaning)
        trigger = _TRIGGERS.get(kind)
        return trigger.read(reader) if trigger else UnknownTrigger(kind, reader.take(reader.remaining, meaning))


@dataclass(frozen=True, slots=True)
class AddTrigger(Request, id=13, name="TADD", answer=Added, adds=ItemType.TRIGGER):
    """TADD (13): add a trigger, whose events are sent to this client.

    Error 0: no such type. For collisions 1: an entity with itself; 2, 3: no entity a, no entity b.
    For paths 1: no such entity; 2: the distance is not above 0.
    """

    trigger: Annotated[Trigger | UnknownTrigger, _TriggerLayout()]


@dataclass(frozen=True, slots=True)
class Triggered(Response, id=128):
    """TRIGGERED (128): a trigger has become active."""

    id: UInt32


@dataclass(frozen=True, slots=True)
class Untriggered(Response, id=131):
    """UNTRIGGERED (131): a trigger is no longer active."""

    id: UInt32


@dataclass(frozen=True, slots=True)
class PathStarted(Response, id=132):
    """PSTART (132): an entity has reached the start of a path."""

    id: UInt32


@dataclass(frozen=True, slots=True)
class PathFailed(Response, id=133):
    """PFAIL (133): an entity has left a path before its end."""

    id: UInt32


@dataclass(frozen=True, slots=True)
class PathEnded(Response, id=134):
    """PEND (134): an entity has reached the end of a path."""

    id: UInt32


# Objects: forces and engines that act on entities. Only the body of OADD is specified, and no known server implements
# the others, whose bodies are bytes here.


@dataclass(frozen=True, slots=True)
class Turbulence(Message):
    """Data of the class `turbulence`: a force and a torque in the world frame, on every corporeal entity.

    Encoded, it is AddObject.data. The specification names the numbers without explanation. In the CUAUV server, each
    component is a random walk: it starts at zero, changes in each step at a rate drawn uniformly between two rates, and
    is clamped to its bounds a and b. Equal bounds therefore make it constant, at any rates, and rates of one sign drive
    it to a bound.
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

    @classmethod
    def of(cls, data: bytes) -> "Turbulence":
        """Decode AddObject.data. Raises ValueError."""
        try:
            return cls.decode(data)
        except MisfitError as error:
            raise ValueError(f"The data are no turbulence: {error}.") from error


@dataclass(frozen=True, slots=True)
class ListObjectClasses(Request, id=5, name="OCLASSES", is_in_cuauv=False):
    """OCLASSES (5): list the classes of objects that can be added."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class ObjectsListed(Response, id=5):
    """OLISTED (5): the IDs of all objects."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class ListObjects(Request, id=6, name="OLIST", answer=ObjectsListed, is_in_cuauv=False):
    """OLIST (6): list objects."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class AddObject(Request, id=7, name="OADD", answer=Added, adds=ItemType.OBJECT):
    """OADD (7): add an object of a class. The data fill the rest of the body."""

    class_name: Name
    data: RestOfBody

    def moves(self, entity: int) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class SetObject(Request, id=8, name="OSET", answer=Ok, is_in_cuauv=False):
    """OSET (8): set an attribute of an object."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class ObjectGot(Response, id=6):
    """OGOT (6): an attribute of an object."""

    body: RestOfBody = b""


@dataclass(frozen=True, slots=True)
class GetObject(Request, id=18, name="OGET", answer=ObjectGot, is_in_cuauv=False):
    """OGET (18): get an attribute of an object."""

    body: RestOfBody = b""


# The two ends of a connection.


DEFAULT_PORT = 7772
VEHICLE = 0  # ID of the entity that exists from the start
MAX_BODY_BYTES = 16 << 20  # received
MAX_REQUEST_BYTES = 1024  # of a request; the CUAUV server disconnects on larger ones
MAX_OUTSTANDING = 1024  # unanswered requests


def _by_id(base: type[Any]) -> dict[int, Any]:
    """Return the request or response classes of this module by type ID."""
    things: list[Any] = [thing for thing in globals().values() if isinstance(thing, type)]
    return {kind.ID: kind for kind in things if issubclass(kind, base) and kind is not base}


REQUESTS: dict[int, type[Request]] = _by_id(Request)
RESPONSES: dict[int, type[Response]] = _by_id(Response)

_HEADER = struct.Struct(">BI")  # type ID, length of the body


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of the server to a request."""

    request: Request
    response: Response  # of the request's type ANSWER, or Error


def frame(message: Message) -> bytes:
    """Return a message with its header, for any connection. Raises LocalProtocolError if it can't be encoded.

    A message to many clients is framed only once.
    """
    body = message.encode()
    if len(body) > MAX_BODY_BYTES:
        raise LocalProtocolError(
            f"{type(message).__name__} has {len(body)} bytes, but must have at most {MAX_BODY_BYTES}."
        )
    return _HEADER.pack(message.ID, len(body)) + body


class _MessageConnection(StreamConnection[EventT]):
    """Base class for both roles."""

    _header = _HEADER
    _kinds: ClassVar[dict[int, Any]]

    def __init__(self, max_body_bytes: int) -> None:
        super().__init__()
        self._max_body_bytes = max_body_bytes

    def _measure(self, *header: int) -> tuple[str, int]:
        kind, length = header
        message = self._kinds.get(kind)
        if message is None:
            raise self._fail(f"sent a message of unknown type {kind}")
        if length != message.BODY_BYTES:
            if message.BODY_BYTES is not None:
                raise self._fail(f"sent {message.__name__} with {length} bytes instead of {message.BODY_BYTES}")
            if length > self._max_body_bytes:
                raise self._fail(f"sent {message.__name__} with {length} bytes; {self._max_body_bytes} are allowed")
        return message.__name__, length

    def _read_message(self, header: tuple[int, ...], body: bytes) -> Any:
        return self._event_of(self._kinds[header[0]].decode(body))

    @abstractmethod
    def _event_of(self, message: Any) -> Any:
        """Return the event of a received message. Raises the errors of `_fail`."""


class ClientConnection(_MessageConnection[Answer | Response | ConnectionClosed]):
    """Connection of a client. `next_event` returns Answers in the order of the requests, and out-of-band messages.

    A server disconnects instead of answering a rejected request, so `outstanding` may be above 0 at the end.
    """

    _peer = "simulator"
    _kinds = RESPONSES

    def __init__(self, *, max_request_bytes: int = MAX_REQUEST_BYTES, max_outstanding: int = MAX_OUTSTANDING) -> None:
        """`max_request_bytes` limits requests, without headers."""
        super().__init__(MAX_BODY_BYTES)
        self._max_request_bytes = max_request_bytes
        self._max_outstanding = max_outstanding
        self._requests: deque[Request] = deque()

    @property
    def outstanding(self) -> int:
        """Number of pending requests."""
        return len(self._requests)

    @property
    def oldest(self) -> Request | None:
        """Oldest pending request, to which the next answer belongs."""
        return self._requests[0] if self._requests else None

    def send(self, request: Request) -> bytes:
        """Return the bytes of a request. Write them at once: the CUAUV server can't read a request in pieces.

        Raises LocalProtocolError if it is not a request, can't be encoded, is too long for the server, or exceeds the
        limit of pending requests. In that case, nothing must be sent, and no answer is expected.
        """
        if REQUESTS.get(getattr(request, "ID", -1)) is not type(request):
            raise LocalProtocolError(f"A client must not send {type(request).__name__}.")
        if len(self._requests) >= self._max_outstanding:
            raise LocalProtocolError(
                f"{len(self._requests)} requests are pending, and at most {self._max_outstanding} are allowed."
            )
        data = frame(request)
        if len(data) - _HEADER.size > self._max_request_bytes:
            raise LocalProtocolError(
                f"{type(request).__name__} has {len(data) - _HEADER.size} bytes, "
                f"and the simulator accepts at most {self._max_request_bytes}."
            )
        self._requests.append(request)
        return data

    def _event_of(self, message: Response) -> Answer | Response:
        return self._answer(message) if message.is_in_band else message

    def _answer(self, response: Response) -> Answer:
        if not self._requests:
            raise self._fail(f"sent {type(response).__name__} without a pending request")
        request = self._requests[0]
        if not isinstance(response, Error) and not request.is_answered_by(response):
            raise self._fail(f"answered {request!r} with {response!r}"[:1000])
        self._requests.popleft()
        return Answer(request, response)


class ServerConnection(_MessageConnection[Request | ConnectionClosed]):
    """Connection of the server to one client. `next_event` returns requests, to be answered in order.

    It raises RemoteProtocolError, again at each call, for data that violate the specification, including unknown
    requests. The CUAUV server disconnects then, without an answer.
    """

    _peer = "client"
    _kinds = REQUESTS

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """`max_body_bytes` limits requests, without headers. The CUAUV server's limit is MAX_REQUEST_BYTES."""
        super().__init__(max_body_bytes)
        self._requests: deque[Request] = deque()

    @property
    def outstanding(self) -> int:
        """Number of unanswered requests."""
        return len(self._requests)

    def send(self, response: Response) -> bytes:
        """Return the bytes of a response.

        Raises LocalProtocolError if it is not a response, can't be encoded, or is an answer of the wrong type for the
        oldest pending request.
        """
        kind = type(response)
        if RESPONSES.get(getattr(response, "ID", -1)) is not kind:
            raise LocalProtocolError(f"A simulator must not send {kind.__name__}.")
        if not response.is_in_band:
            return frame(response)
        if not self._requests:
            raise LocalProtocolError(f"{kind.__name__} is an answer, but no request is pending.")
        request = self._requests[0]
        if kind is not Error and not request.is_answered_by(response):
            raise LocalProtocolError(f"{response!r} is not an answer to {request!r}.")
        data = frame(response)
        self._requests.popleft()
        return data

    def _event_of(self, message: Request) -> Request:
        self._requests.append(message)
        return message
