# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about cameras: they see where entities appear, not what they look like.

The document leaves some bodies open. They are laid out here in its style, and no known server implements them:

- CLIST has an empty body. No response of the document's lists cameras, so it is answered with type 11, which the
  document leaves free: a number and so many IDs.
- CVIEW is the ID of a camera and of an entity. CGOT answers it with what CDATA has after the ID of the stream.
- CBCAST is what the document describes as CBSTART: the ID of a camera.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator.wire import (
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


class CameraAttribute(IntEnum):
    """The attributes of a camera."""

    ORIENTATION = 0  # q
    POSITION = 1  # x, m
    FOCAL_LENGTH = 2  # f
    ENABLED = 3


#: A quaternion or vector, a float for FOCAL_LENGTH, a bool for ENABLED, bytes for attributes that don't exist.
CameraValue = tuple[float, ...] | float | bool | bytes

_LAYOUTS: Final[dict[int, struct.Struct]] = {
    CameraAttribute.ORIENTATION: struct.Struct(">4d"),
    CameraAttribute.POSITION: struct.Struct(">3d"),
    CameraAttribute.FOCAL_LENGTH: struct.Struct(">d"),
    CameraAttribute.ENABLED: struct.Struct(">?"),
}
_CAMERA: Final = struct.Struct(">I4d3dd?")
_ID_AND_ATTRIBUTE: Final = struct.Struct(">IB")


@dataclass(frozen=True, slots=True)
class CamerasListed(IdList, Response):
    """Type 11: the cameras that there are."""

    ID = 11


@dataclass(frozen=True, slots=True)
class ListCameras(Empty, Request):
    """CLIST (9): ask for the cameras that there are."""

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
    entity: int
    orientation: Quaternion  # of the camera in the entity's model frame
    position: Vector  # m, in the entity's model frame
    focal_length: float
    enabled: bool = True  # else its streams are silent

    def encode(self) -> bytes:
        """Return the body."""
        if not (is_vector(self.orientation, 4) and is_vector(self.position, 3)):
            raise LocalProtocolError(
                f"A camera has an orientation of 4 numbers and a position of 3, "
                f"not {self.orientation!r} and {self.position!r}."
            )
        return pack_numbers(
            _CAMERA, "AddCamera", self.entity, self.orientation, self.position, self.focal_length, self.enabled
        )

    @classmethod
    def read(cls, reader: Reader) -> "AddCamera":
        """Return what the body says."""
        n = reader.numbers(_CAMERA)
        return cls(n[0], n[1:5], n[5:8], n[8], n[9])


@dataclass(frozen=True, slots=True)
class SetCamera(Request):
    """CSET (11): set an attribute of a camera. Error 0: there is no such camera; 1: there is no such attribute.

    The CUAUV server takes an orientation and a position to be in the entity's body frame here, other than in CADD.
    """

    ID = 11
    NAME = "CSET"
    ANSWER = Ok
    id: int
    attribute: int  # a CameraAttribute
    value: CameraValue

    def encode(self) -> bytes:
        """Return the body."""
        head = pack(_ID_AND_ATTRIBUTE, "SetCamera", self.id, self.attribute)
        layout = _LAYOUTS.get(self.attribute)
        if isinstance(self.value, bytes) == (layout is not None):
            raise LocalProtocolError(f"{self.value!r} is no value for attribute {self.attribute} of a camera.")
        if isinstance(self.value, bytes) or layout is None:
            return head + bytes(self.value)  # type: ignore[arg-type]
        return head + pack_numbers(layout, f"The value of {CameraAttribute(self.attribute).name}", self.value)

    @classmethod
    def read(cls, reader: Reader) -> "SetCamera":
        """Return what the body says."""
        camera, attribute = reader.numbers(_ID_AND_ATTRIBUTE)
        layout = _LAYOUTS.get(attribute)
        if layout is None:
            return cls(camera, attribute, reader.rest())
        values = reader.numbers(layout)
        return cls(camera, attribute, values[0] if len(values) == 1 else values)


@dataclass(frozen=True, slots=True)
class CameraGot(Flat, Response):
    """CGOT (7): where an entity appears; as CameraData, without a stream."""

    ID = 7
    LAYOUT = struct.Struct(">4f")
    x: float
    y: float
    radius: float
    depth: float  # m


@dataclass(frozen=True, slots=True)
class ViewCamera(Flat, Request):
    """CVIEW (12): ask where an entity appears."""

    ID = 12
    NAME = "CVIEW"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = CameraGot
    LAYOUT = struct.Struct(">II")
    id: int
    target: int  # the ID of an entity


@dataclass(frozen=True, slots=True)
class StreamCamera(Flat, Request):
    """CSTREAM (15): send CameraData after every `period` steps.

    Error 0: there is no such camera; 1: there is no such target; 2: the camera is on it.
    """

    ID = 15
    NAME = "CSTREAM"
    ANSWER = Added
    ADDS = ItemType.CAMERA_STREAM
    LAYOUT = struct.Struct(">III")
    id: int
    period: int  # steps; with 0 nothing is ever sent
    target: int  # the ID of the entity to look for


@dataclass(frozen=True, slots=True)
class CameraData(Flat, Response):
    """CDATA (130): where an entity appears on the screen.

    (0, 0) is straight ahead, x grows to the right and y downwards.
    """

    ID = 130
    LAYOUT = struct.Struct(">I4f")
    id: int  # of the stream
    x: float
    y: float
    radius: float  # apparent; 0 when it can't be seen
    depth: float  # m, along the camera's x axis


@dataclass(frozen=True, slots=True)
class BroadcastCamera(Flat, Request):
    """CBCAST (16): start a broadcast to shared memory."""

    ID = 16
    NAME = "CBCAST"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Added
    ADDS = ItemType.CAMERA_BROADCAST
    LAYOUT = struct.Struct(">I")
    id: int
