# SPDX-License-Identifier: Apache-2.0
"""The robot protocol's list of subsystems, which drivers bind (0x02)."""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final

from drone_bridge.robot.codec.lists import REST, UINT16, best_fit, encoded_count, opaque_rest
from drone_bridge.robot.codec.wire import Packet, Reader, String
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import UInt8, UInt16, layout_of

_SMALLEST_SUBSYSTEM: Final = 1 + 2 + 2  # bytes: type, two empty strings


class SubsystemType(IntEnum):
    """The documented types of subsystems."""

    INVALID = 0
    SKID_STEER = 1
    LIGHTS = 2


_SUBSYSTEM_TYPES: Final = frozenset(SubsystemType)


@dataclass(frozen=True, slots=True)
class MotorSensors(Packet):
    """The sensors of one side's motor, by their indices in the list of sensors."""

    battery: UInt16
    temperature: UInt16
    current: UInt16
    pwm: UInt16


_MOTOR: Final = layout_of(MotorSensors)


@dataclass(frozen=True, slots=True)
class Subsystem(Packet):
    """Something that a driver can bind."""

    type: UInt8  # a SubsystemType, or another number
    name: String
    driver: String = ""  # who has it; empty when nobody has
    left: MotorSensors | None = None  # of a skid steer, unless the robot speaks protocol 1
    right: MotorSensors | None = None

    def encode(self) -> bytes:
        """Return its entry in the list. Raises LocalProtocolError."""
        head = Packet.encode(self)
        if self.left is None and self.right is None:
            return head
        if self.left is None or self.right is None:
            raise LocalProtocolError("A subsystem has the sensors of either both sides or none.")
        if self.type != SubsystemType.SKID_STEER:
            raise LocalProtocolError(f"Only a skid steer has motors, not a subsystem of type {self.type}.")
        return head + _MOTOR.pack(self.left, "left motor") + _MOTOR.pack(self.right, "right motor")

    @classmethod
    def read_entry(cls, reader: Reader, has_sensors: bool) -> "Subsystem":
        """Read the next entry of a list, in which skid steers have sensors or not."""
        subsystem = cls.read(reader)
        if subsystem.type != SubsystemType.SKID_STEER or not has_sensors:
            return subsystem
        return replace(subsystem, left=MotorSensors.read(reader), right=MotorSensors.read(reader))


@dataclass(frozen=True, slots=True)
class SubsystemInfo(Packet):
    """0x02: the subsystems. A subsystem's id is its index."""

    ID = 0x02
    subsystems: tuple[Subsystem, ...]
    opaque: bytes = b""  # from the value of the first subsystem of an unknown type on, which is the last one listed
    missing: int = 0  # how many more subsystems the opaque bytes hold
    has_replacements: bool = field(default=False, compare=False)

    def encode(self) -> bytes:
        """Return the payload. Raises LocalProtocolError."""
        count = encoded_count(self.subsystems, Subsystem, self.missing, "subsystems")
        entries = [subsystem.encode() for subsystem in self.subsystems]
        return b"".join((count, *entries, REST.pack(self.opaque, "rest")))

    @classmethod
    def decode(cls, payload: bytes) -> "SubsystemInfo":
        """Decode a payload in the layout of protocol 2 or, without the motors' sensors, 1. Raises MisfitError."""
        return best_fit(
            payload,
            lambda reader: cls._read(reader, has_sensors=True),
            lambda reader: cls._read(reader, has_sensors=False),
            fallback=lambda reader: cls._read(reader, has_sensors=True, may_be_opaque=True),
        )

    @classmethod
    def _read(cls, reader: Reader, has_sensors: bool, may_be_opaque: bool = False) -> "SubsystemInfo":
        subsystems = []
        for missing in reversed(range(UINT16.read(reader, "count"))):
            subsystems.append(Subsystem.read_entry(reader, has_sensors))
            if may_be_opaque and subsystems[-1].type not in _SUBSYSTEM_TYPES:
                opaque = opaque_rest(reader, missing * _SMALLEST_SUBSYSTEM)
                return cls(tuple(subsystems), opaque, missing, reader.has_replacements)
        reader.expect_end()
        return cls(tuple(subsystems), has_replacements=reader.has_replacements)
