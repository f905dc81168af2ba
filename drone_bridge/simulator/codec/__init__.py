# SPDX-License-Identifier: Apache-2.0
"""The underwater simulator's protocol: TCP, messages of a type ID, a length and a body, big-endian.

The server answers each request of a client once, in order. Unsolicited messages, with type IDs from 128 on, come
between the answers: streams, triggers, spying, Completed. All clients share the world.

The messages are in files by subject, and all exported here. Those whose bodies the document leaves open are in
objects.py and cameras.py, which describe the chosen layouts.

On the wire:

TCP port 7772, big-endian. A message is a type (uint8), a length (uint32, of the body) and a body. Each request gets
one answer, in order; messages of type 128 and above come unsolicited, in between. `d` is a float64, `f` a float32,
vectors are 3 d, quaternions 4 d as w, x, y, z; strings and bytes have their length in front, a uint32, or a uint8
where it says *key*.

| request | body | answer |
| --- | --- | --- |
| 0 REMOVE | type (uint8), id | OK |
| 1 ELIST | | ELISTED |
| 2 EADD | mass, radius, inertia, btom (quaternion), x, q, corporeal (uint8), list (uint8) of key and bytes | ADDED |
| 3 ESET | id, attribute (uint8), value | OK |
| 4 EGET | id, attribute | EGOT |
| 5 OCLASSES, 6 OLIST | | type 10: list of strings; OLISTED |
| 7 OADD | class (string), what the class wants; `turbulence`: 16 d | ADDED |
| 8 OSET, 18 OGET | id, attribute, bytes; id, attribute | OK; OGOT |
| 9 CLIST | | type 11: list of ids |
| 10 CADD | entity, q, x, f (d), enabled | ADDED |
| 11 CSET | id, attribute, value | OK |
| 12 CVIEW | camera, entity | CGOT |
| 13 TADD | type, configuration: collision (a, b, distance), sweep (a, b), bytecode, path (entity, start, end, distance) | ADDED |
| 14 ESTREAM, 21 EXSTREAM | id, period, list (uint8) of attributes, or of keys | ADDED, then EDATA, EXDATA |
| 15 CSTREAM, 16 CBCAST | camera, period, entity; camera | ADDED, then CDATA; ADDED |
| 17 CONFIG | | CONFIGED |
| 19 EXSET, 20 EXGET | id, key, bytes; id, key | OK; EXGOT |
| 22 SPY | | ADDED, then SPIED |
| 33 REASSURE | | OK |
| 254 RUN | steps (uint64), 0 forever | OK, then COMPLETED |
| 255 PAUSE | | OK |

Attributes of entities: 0 x, 1 v, 2 a, 3 q, 4 w (d each), 5 corporeal. Of cameras: 0 q, 1 x, 2 f, 3 enabled.

| response | body |
| --- | --- |
| 0 OK, 255 COMPLETED | |
| 1 ERROR | code (uint32), text; instead of any answer |
| 2 ADDED | type (uint8), id |
| 3 ELISTED, 5 OLISTED | list of ids (uint32) |
| 4 EGOT, 6 OGOT | attribute, value |
| 7 CGOT | x, y, radius, depth (f) |
| 8 CONFIGED | frequency, speed (d), non-real-time, desired thrusters (uint8) |
| 9 EXGOT | key, bytes |
| 129 EDATA | stream, list (uint8) of attribute and value |
| 130 CDATA | stream, x, y, radius, depth |
| 135 EXDATA | stream, list (uint8) of key and bytes |
| 128 TRIGGERED, 131 UNTRIGGERED, 132 PSTART, 133 PFAIL, 134 PEND | trigger |
| 136 SPIED | added (uint8), type, id (uint8 by the document, uint32 in programs; both are read) |

The document leaves open what 5, 6, 8, 9, 12 and 18 and their answers look like; the layouts above are ours, in its
style. Types 10 and 11 are not in it at all.
"""  # noqa: E501 -- tables

from drone_bridge.simulator.codec.cameras import (
    AddCamera,
    BroadcastCamera,
    CameraAttribute,
    CameraData,
    CameraGot,
    CamerasListed,
    CameraValue,
    ListCameras,
    SetCamera,
    StreamCamera,
    ViewCamera,
)
from drone_bridge.simulator.codec.connections import (
    DEFAULT_PORT,
    MAX_BODY_BYTES,
    MAX_OUTSTANDING,
    MAX_REQUEST_BYTES,
    REQUESTS,
    RESPONSES,
    TCP_PORT,
    VEHICLE,
    Answer,
    ClientConnection,
    ServerConnection,
    frame,
)
from drone_bridge.simulator.codec.entities import (
    AddEntity,
    Attribute,
    AttributeValue,
    EntitiesListed,
    EntityGot,
    GetEntity,
    ListEntities,
    SetEntity,
)
from drone_bridge.simulator.codec.entity_streams import EntityData, StreamEntity
from drone_bridge.simulator.codec.extended import (
    ExtendedAttribute,
    ExtendedData,
    ExtendedGot,
    GetExtended,
    SetExtended,
    StreamExtended,
)
from drone_bridge.simulator.codec.objects import (
    PARAMETERS,
    AddObject,
    GetObject,
    ListObjectClasses,
    ListObjects,
    ObjectClassesListed,
    ObjectGot,
    ObjectsListed,
    SetObject,
    Turbulence,
)
from drone_bridge.simulator.codec.triggers import (
    AddTrigger,
    BytecodeTrigger,
    CollisionTrigger,
    PathEnded,
    PathFailed,
    PathStarted,
    PathTrigger,
    SweepCollisionTrigger,
    Trigger,
    Triggered,
    TriggerType,
    UnknownTrigger,
    Untriggered,
)
from drone_bridge.simulator.codec.wire import ItemType, Quaternion, Request, Response, Vector
from drone_bridge.simulator.codec.world import (
    Added,
    Completed,
    Configured,
    Error,
    GetConfig,
    Ok,
    Pause,
    Reassure,
    Remove,
    Run,
    Spied,
    Spy,
)
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed

__all__ = [
    "DEFAULT_PORT",
    "MAX_BODY_BYTES",
    "MAX_OUTSTANDING",
    "MAX_REQUEST_BYTES",
    "NEED_DATA",
    "PARAMETERS",
    "REQUESTS",
    "RESPONSES",
    "TCP_PORT",
    "VEHICLE",
    "AddCamera",
    "AddEntity",
    "AddObject",
    "AddTrigger",
    "Added",
    "Answer",
    "Attribute",
    "AttributeValue",
    "BroadcastCamera",
    "BytecodeTrigger",
    "CameraAttribute",
    "CameraData",
    "CameraGot",
    "CameraValue",
    "CamerasListed",
    "ClientConnection",
    "CollisionTrigger",
    "Completed",
    "Configured",
    "ConnectionClosed",
    "EntitiesListed",
    "EntityData",
    "EntityGot",
    "Error",
    "ExtendedAttribute",
    "ExtendedData",
    "ExtendedGot",
    "GetConfig",
    "GetEntity",
    "GetExtended",
    "GetObject",
    "ItemType",
    "ListCameras",
    "ListEntities",
    "ListObjectClasses",
    "ListObjects",
    "ObjectClassesListed",
    "ObjectGot",
    "ObjectsListed",
    "Ok",
    "PathEnded",
    "PathFailed",
    "PathStarted",
    "PathTrigger",
    "Pause",
    "Quaternion",
    "Reassure",
    "Remove",
    "Request",
    "Response",
    "Run",
    "ServerConnection",
    "SetCamera",
    "SetEntity",
    "SetExtended",
    "SetObject",
    "Spied",
    "Spy",
    "StreamCamera",
    "StreamEntity",
    "StreamExtended",
    "SweepCollisionTrigger",
    "Trigger",
    "TriggerType",
    "Triggered",
    "Turbulence",
    "UnknownTrigger",
    "Untriggered",
    "Vector",
    "ViewCamera",
    "frame",
]
