# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about triggers, which tell of what happens in the world."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.simulator.wire import (
    UINT8,
    UINT32,
    Flat,
    ItemType,
    Reader,
    Request,
    Response,
    Vector,
    is_vector,
    pack,
    pack_bytes,
    pack_numbers,
    read_bytes,
)
from drone_bridge.protocols.simulator.world import Added

_COLLISION: Final = struct.Struct(">IId")
_SWEEP: Final = struct.Struct(">II")
_PATH: Final = struct.Struct(">I3d3dd")


class TriggerType(IntEnum):
    """What a trigger looks for."""

    COLLISION = 0
    SWEEP_COLLISION = 1
    BYTECODE = 2
    PATH = 3


@dataclass(frozen=True, slots=True)
class CollisionTrigger:
    """Two entities are closer than a distance after a step."""

    TYPE: ClassVar[TriggerType] = TriggerType.COLLISION
    a: int
    b: int
    distance: float  # m; negative: the sum of their radii

    def encode(self) -> bytes:
        """Return the configuration."""
        return pack(_COLLISION, "CollisionTrigger", self.a, self.b, self.distance)

    @classmethod
    def read(cls, reader: Reader) -> "CollisionTrigger":
        """Return the configuration that comes next."""
        return cls(*reader.numbers(_COLLISION))


@dataclass(frozen=True, slots=True)
class SweepCollisionTrigger:
    """Two entities touch at any time of a step."""

    TYPE: ClassVar[TriggerType] = TriggerType.SWEEP_COLLISION
    a: int
    b: int

    def encode(self) -> bytes:
        """Return the configuration."""
        return pack(_SWEEP, "SweepCollisionTrigger", self.a, self.b)

    @classmethod
    def read(cls, reader: Reader) -> "SweepCollisionTrigger":
        """Return the configuration that comes next."""
        return cls(*reader.numbers(_SWEEP))


@dataclass(frozen=True, slots=True)
class BytecodeTrigger:
    """A program; the document does not say for what machine."""

    TYPE: ClassVar[TriggerType] = TriggerType.BYTECODE
    code: bytes

    def encode(self) -> bytes:
        """Return the configuration."""
        return pack_bytes(self.code, "a program")

    @classmethod
    def read(cls, reader: Reader) -> "BytecodeTrigger":
        """Return the configuration that comes next."""
        return cls(read_bytes(reader, "a program"))


@dataclass(frozen=True, slots=True)
class PathTrigger:
    """An entity goes from one place to another without leaving the line between them."""

    TYPE: ClassVar[TriggerType] = TriggerType.PATH
    entity: int
    start: Vector  # m, world
    end: Vector  # m, world
    distance: float  # m, how close it has to be

    def encode(self) -> bytes:
        """Return the configuration."""
        if not (is_vector(self.start, 3) and is_vector(self.end, 3)):
            raise LocalProtocolError(f"The ends of a path have 3 numbers, not {self.start!r} and {self.end!r}.")
        return pack_numbers(_PATH, "PathTrigger", self.entity, self.start, self.end, self.distance)

    @classmethod
    def read(cls, reader: Reader) -> "PathTrigger":
        """Return the configuration that comes next."""
        n = reader.numbers(_PATH)
        return cls(n[0], n[1:4], n[4:7], n[7])


@dataclass(frozen=True, slots=True)
class UnknownTrigger:
    """A trigger of a type that the document does not have. Its configuration is what is left of the body."""

    type: int
    configuration: bytes

    def encode(self) -> bytes:
        """Return the configuration. Raises LocalProtocolError for a type that the document has."""
        if self.type in tuple(TriggerType):
            raise LocalProtocolError(f"The configuration of the trigger {TriggerType(self.type).name} is known.")
        return self.configuration


#: What the document has.
Trigger = CollisionTrigger | SweepCollisionTrigger | BytecodeTrigger | PathTrigger
_TRIGGERS: Final[dict[int, type[Trigger]]] = {
    kind.TYPE: kind for kind in (CollisionTrigger, SweepCollisionTrigger, BytecodeTrigger, PathTrigger)
}


@dataclass(frozen=True, slots=True)
class AddTrigger(Request):
    """TADD (13): add a trigger. What it finds is sent to the client that added it.

    Error 0: there are no triggers of this type. For collisions 1: an entity with itself; 2, 3: there is no entity a,
    no entity b. For paths 1: there is no such entity; 2: the distance is not above 0.
    """

    ID = 13
    NAME = "TADD"
    ANSWER = Added
    ADDS = ItemType.TRIGGER
    trigger: Trigger | UnknownTrigger

    @property
    def is_implemented(self) -> bool:
        """Whether the CUAUV server implements it: its answer to bytecode is of an undefined type."""
        return not isinstance(self.trigger, BytecodeTrigger)

    def encode(self) -> bytes:
        """Return the body."""
        kind = self.trigger.type if isinstance(self.trigger, UnknownTrigger) else self.trigger.TYPE
        return pack(UINT8, "The type of a trigger", kind) + self.trigger.encode()

    @classmethod
    def read(cls, reader: Reader) -> "AddTrigger":
        """Return what the body says."""
        kind = reader.number(UINT8)
        trigger = _TRIGGERS.get(kind)
        return cls(trigger.read(reader) if trigger else UnknownTrigger(kind, reader.rest()))


@dataclass(frozen=True, slots=True)
class Triggered(Flat, Response):
    """TRIGGERED (128): a trigger has become active."""

    ID = 128
    LAYOUT = UINT32
    id: int


@dataclass(frozen=True, slots=True)
class Untriggered(Flat, Response):
    """UNTRIGGERED (131): a trigger is no longer active."""

    ID = 131
    LAYOUT = UINT32
    id: int


@dataclass(frozen=True, slots=True)
class PathStarted(Flat, Response):
    """PSTART (132): an entity has come to the start of a path."""

    ID = 132
    LAYOUT = UINT32
    id: int


@dataclass(frozen=True, slots=True)
class PathFailed(Flat, Response):
    """PFAIL (133): an entity has left a path before its end."""

    ID = 133
    LAYOUT = UINT32
    id: int


@dataclass(frozen=True, slots=True)
class PathEnded(Flat, Response):
    """PEND (134): an entity has come to the end of a path."""

    ID = 134
    LAYOUT = UINT32
    id: int
