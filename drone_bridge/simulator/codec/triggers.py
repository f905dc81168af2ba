# SPDX-License-Identifier: Apache-2.0
"""The simulator protocol's messages about triggers, which report events in the world."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any, ClassVar

from drone_bridge.simulator.codec.wire import Data, ItemType, Request, Response, Vector
from drone_bridge.simulator.codec.world import Added
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import Float64, Layout, Message, Numbers, Reader, RestOfBody, UInt32


class TriggerType(IntEnum):
    """The documented types of triggers."""

    COLLISION = 0
    SWEEP_COLLISION = 1
    BYTECODE = 2
    PATH = 3


@dataclass(frozen=True, slots=True)
class CollisionTrigger(Message):
    """Two entities are within a distance after a step."""

    TYPE: ClassVar[TriggerType] = TriggerType.COLLISION
    a: UInt32
    b: UInt32
    distance: Float64  # m; negative: the sum of their radii


@dataclass(frozen=True, slots=True)
class SweepCollisionTrigger(Message):
    """Two entities touch at any time during a step."""

    TYPE: ClassVar[TriggerType] = TriggerType.SWEEP_COLLISION
    a: UInt32
    b: UInt32


@dataclass(frozen=True, slots=True)
class BytecodeTrigger(Message):
    """A program for an undocumented machine."""

    TYPE: ClassVar[TriggerType] = TriggerType.BYTECODE
    code: Data


@dataclass(frozen=True, slots=True)
class PathTrigger(Message):
    """An entity moves between two points without leaving the line between them."""

    TYPE: ClassVar[TriggerType] = TriggerType.PATH
    entity: UInt32
    start: Vector  # m, world
    end: Vector  # m, world
    distance: Float64  # m, how close it has to be


@dataclass(frozen=True, slots=True)
class UnknownTrigger(Message):
    """A trigger of an undocumented type, whose configuration is the rest of the body."""

    type: int
    configuration: RestOfBody


#: What the document has.
Trigger = CollisionTrigger | SweepCollisionTrigger | BytecodeTrigger | PathTrigger
_TRIGGERS: dict[int, type[Trigger]] = {
    kind.TYPE: kind for kind in (CollisionTrigger, SweepCollisionTrigger, BytecodeTrigger, PathTrigger)
}


class _TriggerLayout(Layout):
    """The type of a trigger, then its configuration."""

    _type = Numbers("B")

    def pack(self, value: Any, meaning: str) -> bytes:
        if isinstance(value, Trigger):
            return self._type.pack(value.TYPE, meaning) + value.encode()
        if not isinstance(value, UnknownTrigger) or value.type in tuple(_TRIGGERS):
            raise LocalProtocolError(f"The {meaning} is {value!r:.200}, and has to be a trigger or of an unknown type.")
        return self._type.pack(value.type, f"type of the {meaning}") + value.encode()

    def read(self, reader: Reader, meaning: str) -> Any:
        kind = self._type.read(reader, meaning)
        trigger = _TRIGGERS.get(kind)
        return trigger.read(reader) if trigger else UnknownTrigger(kind, reader.take(reader.remaining, meaning))


@dataclass(frozen=True, slots=True)
class AddTrigger(Request):
    """TADD (13): add a trigger, whose events are sent to this client.

    Error 0: there are no triggers of this type. For collisions 1: an entity with itself; 2, 3: there is no entity a,
    no entity b. For paths 1: there is no such entity; 2: the distance is not above 0.
    """

    ID = 13
    NAME = "TADD"
    ANSWER = Added
    ADDS = ItemType.TRIGGER
    trigger: Annotated[Trigger | UnknownTrigger, _TriggerLayout()]

    @property
    def is_implemented(self) -> bool:
        """Whether the CUAUV server implements it: its answer to bytecode is of an undefined type."""
        return not isinstance(self.trigger, BytecodeTrigger)


@dataclass(frozen=True, slots=True)
class Triggered(Response):
    """TRIGGERED (128): a trigger has become active."""

    ID = 128
    id: UInt32


@dataclass(frozen=True, slots=True)
class Untriggered(Response):
    """UNTRIGGERED (131): a trigger is no longer active."""

    ID = 131
    id: UInt32


@dataclass(frozen=True, slots=True)
class PathStarted(Response):
    """PSTART (132): an entity has reached the start of a path."""

    ID = 132
    id: UInt32


@dataclass(frozen=True, slots=True)
class PathFailed(Response):
    """PFAIL (133): an entity has left a path before its end."""

    ID = 133
    id: UInt32


@dataclass(frozen=True, slots=True)
class PathEnded(Response):
    """PEND (134): an entity has reached the end of a path."""

    ID = 134
    id: UInt32
