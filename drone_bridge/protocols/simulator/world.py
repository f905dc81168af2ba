# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about the world as a whole: running it, its items, and answers of any kind."""

import struct
from dataclasses import dataclass
from typing import ClassVar, Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator.wire import (
    UINT32,
    Empty,
    Flat,
    ItemType,
    MisfitError,
    Reader,
    Request,
    Response,
    pack,
    pack_text,
    read_text,
)

_SPIED: Final = {1: struct.Struct(">BBB"), 4: struct.Struct(">BBI")}  # by the bytes of the ID


@dataclass(frozen=True, slots=True)
class Ok(Empty, Response):
    """OK (0): a request was completed."""

    ID = 0


@dataclass(frozen=True, slots=True)
class Error(Response):
    """ERROR (1): a request failed. What a code means depends on the request."""

    ID = 1
    code: int
    message: str = ""

    def encode(self) -> bytes:
        """Return the body."""
        return pack(UINT32, "The code of an error", self.code) + pack_text(self.message, "The message of an error")

    @classmethod
    def read(cls, reader: Reader) -> "Error":
        """Return what the body says."""
        return cls(reader.number(UINT32), read_text(reader, "a message"))


@dataclass(frozen=True, slots=True)
class Added(Flat, Response):
    """ADDED (2): a request to add something was completed."""

    ID = 2
    LAYOUT = struct.Struct(">BI")
    type: int  # an ItemType
    id: int


@dataclass(frozen=True, slots=True)
class Completed(Empty, Response):
    """COMPLETED (255): the steps of a Run are done, or the server is shutting down. Goes to every client."""

    ID = 255


@dataclass(frozen=True, slots=True)
class Remove(Flat, Request):
    """REMOVE (0): remove an item of any type. Error 0: there is none; 1: there is no such type.

    The CUAUV server takes objects for forces, of which 0 is gravity's, and does nothing about other types.
    """

    ID = 0
    NAME = "REMOVE"
    ANSWER = Ok
    LAYOUT = struct.Struct(">BI")
    #: What the CUAUV server removes. It says OK to everything else, whether it is there or not, and leaves it there.
    REMOVED_BY_CUAUV: ClassVar[tuple[ItemType, ...]] = (
        ItemType.ENTITY,
        ItemType.OBJECT,
        ItemType.CAMERA,
        ItemType.CAMERA_STREAM,
        ItemType.SPY,
    )
    type: int  # an ItemType
    id: int


@dataclass(frozen=True, slots=True)
class Spy(Empty, Request):
    """SPY (22): tell this client of all that is added and removed from now on."""

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
        """Return the body."""
        layout = _SPIED.get(self.id_bytes)
        if layout is None:
            raise LocalProtocolError(f"The ID in Spied has 1 or 4 bytes, not {self.id_bytes}.")
        return pack(layout, "Spied", bool(self.is_added), self.type, self.id)

    @classmethod
    def read(cls, reader: Reader) -> "Spied":
        """Return what the body says."""
        id_bytes = reader.remaining - 2
        layout = _SPIED.get(id_bytes)
        if layout is None:
            raise MisfitError(f"it has {reader.remaining} bytes, and 3 or 6 are allowed")
        is_added, kind, item = reader.numbers(layout)
        return cls(bool(is_added), kind, item, id_bytes)


@dataclass(frozen=True, slots=True)
class Configured(Flat, Response):
    """CONFIGED (8): how the world is run. A step lasts speed / frequency simulated seconds.

    With `non_real_time` steps follow each other as fast as they can, and still last that long.
    """

    ID = 8
    LAYOUT = struct.Struct(">dd??")
    frequency: float  # steps per second of the wall clock
    speed: float  # simulated seconds per second of the wall clock
    non_real_time: bool
    use_desired_thrusters: bool


@dataclass(frozen=True, slots=True)
class GetConfig(Empty, Request):
    """CONFIG (17): ask how the world is run."""

    ID = 17
    NAME = "CONFIG"
    ANSWER = Configured


@dataclass(frozen=True, slots=True)
class Reassure(Empty, Request):
    """REASSURE (33): answered with OK, always."""

    ID = 33
    NAME = "REASSURE"
    ANSWER = Ok


@dataclass(frozen=True, slots=True)
class Run(Flat, Request):
    """RUN (254): unpause the world. Completed follows after the last of a number of steps."""

    ID = 254
    NAME = "RUN"
    ANSWER = Ok
    LAYOUT = struct.Struct(">Q")
    steps: int = 0  # 0: for ever


@dataclass(frozen=True, slots=True)
class Pause(Empty, Request):
    """PAUSE (255): stop the world. No Completed follows for the Run that this ends."""

    ID = 255
    NAME = "PAUSE"
    ANSWER = Ok
