# SPDX-License-Identifier: Apache-2.0
"""The robot protocol's single packets; those that hold lists are in lists.py.

`encode` returns a packet's payload, the bytes after its length and type, and raises LocalProtocolError for what does
not fit the wire. `decode` reads one, all of it, and raises MisfitError.
"""

import struct
from dataclasses import dataclass
from typing import Final

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.robot.wire import MisfitError, Reader, pack, pack_text

FULL_SPEED: Final = 2048  # of a motor, on the wire; the same backwards is negative

_UINT8: Final = struct.Struct(">B")
_UINT16: Final = struct.Struct(">H")
_INT64: Final = struct.Struct(">q")
_SPEEDS: Final = struct.Struct(">hh")


@dataclass(frozen=True, slots=True)
class KeepAlive:
    """0x01, both ways: the robot sends it back as it came."""

    time_ms: int  # when the driver sent it, by its own clock

    def encode(self) -> bytes:
        """Return the payload."""
        return pack(_INT64, "The time of a keep-alive", self.time_ms)

    @classmethod
    def decode(cls, payload: bytes) -> "KeepAlive":
        """Read a payload."""
        return cls(_only_number(payload, _INT64))


@dataclass(frozen=True, slots=True)
class QuerySubsystems:
    """0x02 to the robot, which answers with what there is to bind and what is measured."""

    def encode(self) -> bytes:
        """Return the payload."""
        return b""

    @classmethod
    def decode(cls, payload: bytes) -> "QuerySubsystems":
        """Read a payload."""
        Reader(payload).expect_end()
        return cls()


@dataclass(frozen=True, slots=True)
class RegisterDriver:
    """0x03 to the robot: who drives. Comes before any bind."""

    name: str
    has_replacements: bool = False

    def encode(self) -> bytes:
        """Return the payload."""
        return pack_text(self.name, "The name of a driver")

    @classmethod
    def decode(cls, payload: bytes) -> "RegisterDriver":
        """Read a payload."""
        return cls(*_only_text(payload))


@dataclass(frozen=True, slots=True)
class BindSubsystem:
    """0x04 to the robot."""

    id: int  # its place in the list of subsystems

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id)

    @classmethod
    def decode(cls, payload: bytes) -> "BindSubsystem":
        """Read a payload."""
        return cls(_only_number(payload, _UINT16))


@dataclass(frozen=True, slots=True)
class UnbindSubsystem:
    """0x06 to the robot."""

    id: int

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id)

    @classmethod
    def decode(cls, payload: bytes) -> "UnbindSubsystem":
        """Read a payload."""
        return cls(_only_number(payload, _UINT16))


@dataclass(frozen=True, slots=True)
class SkidSteerUpdate:
    """0x05 to the robot, for a skid steer: the speeds of its motors, from -FULL_SPEED to FULL_SPEED."""

    id: int
    left: int
    right: int

    def encode(self) -> bytes:
        """Return the payload."""
        for name, speed in (("left", self.left), ("right", self.right)):
            if not -FULL_SPEED <= speed <= FULL_SPEED:
                raise LocalProtocolError(f"The {name} speed is {speed}, and has to be within ±{FULL_SPEED}.")
        return _pack_id(self.id) + pack(_SPEEDS, "The speeds", self.left, self.right)


@dataclass(frozen=True, slots=True)
class LightUpdate:
    """0x05 to the robot, for a light."""

    id: int
    is_on: bool

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id) + _UINT8.pack(bool(self.is_on))


@dataclass(frozen=True, slots=True)
class OpaqueUpdate:
    """0x05 to the robot, for a subsystem that does not exist or is of an unknown type."""

    id: int
    data: bytes

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id) + self.data


def decode_skid_steer_update(payload: bytes) -> SkidSteerUpdate:
    """Read the payload of 0x05 to the robot, for a skid steer. Speeds beyond full speed do come, and are left as is."""
    reader = Reader(payload)
    update = SkidSteerUpdate(reader.number(_UINT16), *reader.numbers(_SPEEDS))
    reader.expect_end()
    return update


def decode_light_update(payload: bytes) -> LightUpdate:
    """Read the payload of 0x05 to the robot, for a light."""
    reader = Reader(payload)
    subsystem, state = reader.number(_UINT16), reader.number(_UINT8)
    reader.expect_end()
    if state > 1:
        raise MisfitError(f"the state of a light is {state}, and has to be 0 or 1")
    return LightUpdate(subsystem, bool(state))


def decode_opaque_update(payload: bytes) -> OpaqueUpdate:
    """Read the payload of 0x05 to the robot, whatever it is for."""
    reader = Reader(payload)
    return OpaqueUpdate(reader.number(_UINT16), reader.rest())


@dataclass(frozen=True, slots=True)
class BindFailure:
    """0x03 from the robot: the subsystem does not exist, or another driver has it."""

    id: int

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id)

    @classmethod
    def decode(cls, payload: bytes) -> "BindFailure":
        """Read a payload."""
        return cls(_only_number(payload, _UINT16))


@dataclass(frozen=True, slots=True)
class BindSuccess:
    """0x04 from the robot, to the driver that has the subsystem now."""

    id: int

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id)

    @classmethod
    def decode(cls, payload: bytes) -> "BindSuccess":
        """Read a payload."""
        return cls(_only_number(payload, _UINT16))


@dataclass(frozen=True, slots=True)
class SubsystemBound:
    """0x06 from the robot, to everybody: who has a subsystem now."""

    id: int
    driver: str  # empty when nobody has
    has_replacements: bool = False

    def encode(self) -> bytes:
        """Return the payload."""
        return _pack_id(self.id) + pack_text(self.driver, "The name of a driver")

    @classmethod
    def decode(cls, payload: bytes) -> "SubsystemBound":
        """Read a payload."""
        reader = Reader(payload)
        subsystem, driver = reader.number(_UINT16), reader.text()
        reader.expect_end()
        return cls(subsystem, driver, reader.has_replacements)


@dataclass(frozen=True, slots=True)
class LogMessage:
    """0x08 from the robot."""

    text: str
    has_replacements: bool = False

    def encode(self) -> bytes:
        """Return the payload."""
        return pack_text(self.text, "A log message")

    @classmethod
    def decode(cls, payload: bytes) -> "LogMessage":
        """Read a payload."""
        return cls(*_only_text(payload))


@dataclass(frozen=True, slots=True)
class FirmwareInfo:
    """0x09 from the robot: what it runs."""

    type: str  # usually robotd or android
    version: str
    protocol_version: int
    has_replacements: bool = False

    def encode(self) -> bytes:
        """Return the payload."""
        return b"".join(
            (
                pack_text(self.type, "The type of the firmware"),
                pack_text(self.version, "The version of the firmware"),
                pack(_UINT16, "The version of the protocol", self.protocol_version),
            )
        )

    @classmethod
    def decode(cls, payload: bytes) -> "FirmwareInfo":
        """Read a payload."""
        reader = Reader(payload)
        kind, version, protocol_version = reader.text(), reader.text(), reader.number(_UINT16)
        reader.expect_end()
        return cls(kind, version, protocol_version, reader.has_replacements)


@dataclass(frozen=True, slots=True)
class UnknownPacket:
    """A packet of a type that the document does not have. Its length tells where the next one starts."""

    type: int
    payload: bytes

    def encode(self) -> bytes:
        """Return the payload."""
        return self.payload


def _pack_id(subsystem: int) -> bytes:
    return pack(_UINT16, "The id of a subsystem", subsystem)


def _only_number(payload: bytes, layout: struct.Struct) -> int:
    reader = Reader(payload)
    number = reader.number(layout)
    reader.expect_end()
    return number


def _only_text(payload: bytes) -> tuple[str, bool]:
    reader = Reader(payload)
    text = reader.text()
    reader.expect_end()
    return text, reader.has_replacements
