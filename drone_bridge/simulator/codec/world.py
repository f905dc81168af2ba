# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about the world: running it, items, and generic answers."""

from dataclasses import dataclass
from typing import ClassVar

from drone_bridge.simulator.codec.wire import ItemType, Name, Request, Response
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import Flag, Float64, MisfitError, Numbers, Reader, UInt8, UInt32, UInt64, is_one_of

_IS_ADDED = Numbers("?")
_TYPE = Numbers("B")
_SPIED_IDS = {1: Numbers("B"), 4: Numbers("I")}  # by the bytes of the ID


@dataclass(frozen=True, slots=True)
class Ok(Response):
    """OK (0): a request was completed."""

    ID = 0


@dataclass(frozen=True, slots=True)
class Error(Response):
    """ERROR (1): a request failed. What a code means depends on the request."""

    ID = 1
    code: UInt32
    message: Name = ""


@dataclass(frozen=True, slots=True)
class Added(Response):
    """ADDED (2): a request to add something was completed."""

    ID = 2
    type: UInt8  # an ItemType
    id: UInt32


@dataclass(frozen=True, slots=True)
class Completed(Response):
    """COMPLETED (255): a Run is complete, or the server is shutting down. Sent to every client."""

    ID = 255


@dataclass(frozen=True, slots=True)
class Remove(Request):
    """REMOVE (0): remove an item of any type. Error 0: there is none; 1: there is no such type.

    The CUAUV server takes objects for forces, of which 0 is gravity's, and does nothing about other types.
    """

    ID = 0
    NAME = "REMOVE"
    ANSWER = Ok
    #: What the CUAUV server removes. It says OK to everything else, whether it is there or not, and leaves it there.
    REMOVED_BY_CUAUV: ClassVar[tuple[ItemType, ...]] = (
        ItemType.ENTITY,
        ItemType.OBJECT,
        ItemType.CAMERA,
        ItemType.CAMERA_STREAM,
        ItemType.SPY,
    )
    type: UInt8  # an ItemType
    id: UInt32


@dataclass(frozen=True, slots=True)
class Spy(Request):
    """SPY (22): notify this client of all added and removed items."""

    ID = 22
    NAME = "SPY"
    IS_KNOWN_TO_CUAUV = False
    ANSWER = Added
    ADDS = ItemType.SPY


@dataclass(frozen=True, slots=True)
class Spied(Response):
    """SPIED (136): something was added or removed.

    The document has the ID as a uint8, other programs write a uint32: both are read, and `id_bytes` tells which.
    """

    ID = 136
    is_added: bool  # else removed
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
    def read(cls, reader: Reader) -> "Spied":
        id_bytes = reader.remaining - 2
        id_numbers = _SPIED_IDS.get(id_bytes)
        if id_numbers is None:
            raise MisfitError(f"it has {reader.remaining} bytes, and 3 or 6 are allowed")
        is_added, kind = _IS_ADDED.read(reader, "is_added"), _TYPE.read(reader, "type")
        return cls(is_added, kind, id_numbers.read(reader, "id"), id_bytes)


@dataclass(frozen=True, slots=True)
class Configured(Response):
    """CONFIGED (8): the configuration. A step lasts speed / frequency simulated seconds.

    With `non_real_time` steps follow each other as fast as they can, and still last that long.
    """

    ID = 8
    frequency: Float64  # steps per second of the wall clock
    speed: Float64  # simulated seconds per second of the wall clock
    non_real_time: Flag
    use_desired_thrusters: Flag


@dataclass(frozen=True, slots=True)
class GetConfig(Request):
    """CONFIG (17): get the configuration."""

    ID = 17
    NAME = "CONFIG"
    ANSWER = Configured


@dataclass(frozen=True, slots=True)
class Reassure(Request):
    """REASSURE (33): answered with OK, always."""

    ID = 33
    NAME = "REASSURE"
    ANSWER = Ok


@dataclass(frozen=True, slots=True)
class Run(Request):
    """RUN (254): unpause the world. Completed follows the last of a limited number of steps."""

    ID = 254
    NAME = "RUN"
    ANSWER = Ok
    steps: UInt64 = 0  # 0: forever


@dataclass(frozen=True, slots=True)
class Pause(Request):
    """PAUSE (255): pause the world. The Run that this ends is not followed by Completed."""

    ID = 255
    NAME = "PAUSE"
    ANSWER = Ok
