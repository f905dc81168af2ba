# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about cameras: they see where entities appear, not what they look like.

The document leaves some bodies open. They are laid out here in its style, and no known server implements them:

- CLIST has an empty body. No response of the document's lists cameras, so it is answered with type 11, which the
  document leaves free: a count and that many IDs.
- CVIEW is the ID of a camera and of an entity. CGOT answers it with what CDATA has after the ID of the stream.
- CBCAST is what the document describes as CBSTART: the ID of a camera.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from drone_bridge.simulator.codec.wire import Ids, ItemType, Quaternion, Request, Response, Vector
from drone_bridge.simulator.codec.world import Added, Ok
from drone_bridge.wire.layouts import Bytes, Choice, Flag, Float32, Float64, Numbers, UInt8, UInt32


class CameraAttribute(IntEnum):
    """The attributes of a camera."""

    ORIENTATION = 0  # q
    POSITION = 1  # x, m
    FOCAL_LENGTH = 2  # f
    ENABLED = 3


#: A quaternion or vector, a float for FOCAL_LENGTH, a bool for ENABLED, bytes for attributes that don't exist.
CameraValue = tuple[float, ...] | float | bool | bytes

_VALUES = {
    CameraAttribute.ORIENTATION: Numbers("d", 4),
    CameraAttribute.POSITION: Numbers("d", 3),
    CameraAttribute.FOCAL_LENGTH: Numbers("d"),
    CameraAttribute.ENABLED: Numbers("?"),
}


@dataclass(frozen=True, slots=True)
class CamerasListed(Response):
    """Type 11: the IDs of all cameras."""

    ID = 11
    ids: Ids


@dataclass(frozen=True, slots=True)
class ListCameras(Request):
    """CLIST (9): list cameras."""

    ID = 9
    NAME = "CLIST"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = CamerasListed


@dataclass(frozen=True, slots=True)
class AddCamera(Request):
    """CADD (10): attach a camera to an entity. Error 0: there is no such entity."""

    ID = 10
    NAME = "CADD"
    ANSWER = Added
    ADDS = ItemType.CAMERA
    entity: UInt32
    orientation: Quaternion  # of the camera in the entity's model frame
    position: Vector  # m, in the entity's model frame
    focal_length: Float64
    enabled: Flag = True  # else its streams are silent


@dataclass(frozen=True, slots=True)
class SetCamera(Request):
    """CSET (11): set an attribute of a camera. Error 0: there is no such camera; 1: there is no such attribute.

    The CUAUV server takes an orientation and a position to be in the entity's body frame here, other than in CADD.
    """

    ID = 11
    NAME = "CSET"
    ANSWER = Ok
    id: UInt32
    attribute: UInt8  # a CameraAttribute
    value: Annotated[CameraValue, Choice("attribute", _VALUES, otherwise=Bytes())]


@dataclass(frozen=True, slots=True)
class CameraGot(Response):
    """CGOT (7): where an entity appears; as CameraData, without a stream."""

    ID = 7
    x: Float32
    y: Float32
    radius: Float32
    depth: Float32  # m


@dataclass(frozen=True, slots=True)
class ViewCamera(Request):
    """CVIEW (12): get where an entity appears."""

    ID = 12
    NAME = "CVIEW"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = CameraGot
    id: UInt32
    target: UInt32  # the ID of an entity


@dataclass(frozen=True, slots=True)
class StreamCamera(Request):
    """CSTREAM (15): send CameraData after every `period` steps.

    Error 0: there is no such camera; 1: there is no such target; 2: the camera is on it.
    """

    ID = 15
    NAME = "CSTREAM"
    ANSWER = Added
    ADDS = ItemType.CAMERA_STREAM
    id: UInt32
    period: UInt32  # steps; with 0 nothing is ever sent
    target: UInt32  # the ID of the entity to look for


@dataclass(frozen=True, slots=True)
class CameraData(Response):
    """CDATA (130): where an entity appears on the screen.

    (0, 0) is straight ahead, x grows to the right and y downwards.
    """

    ID = 130
    id: UInt32  # of the stream
    x: Float32
    y: Float32
    radius: Float32  # apparent; 0 when it can't be seen
    depth: Float32  # m, along the camera's x axis


@dataclass(frozen=True, slots=True)
class BroadcastCamera(Request):
    """CBCAST (16): start a broadcast to shared memory."""

    ID = 16
    NAME = "CBCAST"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Added
    ADDS = ItemType.CAMERA_BROADCAST
    id: UInt32
