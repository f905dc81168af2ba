# SPDX-License-Identifier: Apache-2.0
"""The robot protocol's packets, except for those in lists.py."""

from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from drone_bridge.robot.codec.wire import Packet, String
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.layouts import Int64, Layout, MisfitError, Numbers, Reader, RestOfBody, UInt16

FULL_SPEED: Final = 2048  # of a motor, on the wire; the same backwards is negative


class _Speed(Numbers):
    """Checked when sent; other programs may exceed full speed, and their values are kept."""

    def flat(self, value: Any, meaning: str) -> tuple[Any, ...] | list[Any]:
        if isinstance(value, int) and not -FULL_SPEED <= value <= FULL_SPEED:
            raise LocalProtocolError(f"The {meaning} is {value}, and has to be within ±{FULL_SPEED}.")
        return super().flat(value, meaning)


class _OnOff(Layout):
    _byte = Numbers("B")
    _flag = Numbers("?")

    def pack(self, value: Any, meaning: str) -> bytes:
        return self._flag.pack(value, meaning)

    def read(self, reader: Reader, meaning: str) -> Any:
        state = self._byte.read(reader, meaning)
        if state > 1:
            raise MisfitError(f"{meaning} is {state}, and has to be 0 or 1")
        return bool(state)


@dataclass(frozen=True, slots=True)
class KeepAlive(Packet):
    """0x01, both ways: the robot echoes it."""

    ID = 0x01
    time_ms: Int64  # when the driver sent it, by its own clock


@dataclass(frozen=True, slots=True)
class QuerySubsystems(Packet):
    """0x02 to the robot, which answers with the lists of subsystems and sensors."""

    ID = 0x02


@dataclass(frozen=True, slots=True)
class RegisterDriver(Packet):
    """0x03 to the robot: the driver's name, before any bind."""

    ID = 0x03
    name: String
    has_replacements: bool = field(default=False, compare=False)

    @classmethod
    def decode(cls, payload: bytes) -> "RegisterDriver":
        """Decode a payload, also of Java drivers, which count characters where others count bytes.

        Raises MisfitError.
        """
        try:
            return super(RegisterDriver, cls).decode(payload)
        except MisfitError:
            if (name := _name_by_characters(payload)) is None:
                raise
            return cls(name)


def _name_by_characters(payload: bytes) -> str | None:
    """Return the name if the length in front of it is that of a Java string, in UTF-16; otherwise None."""
    try:
        name = payload[2:].decode()
    except UnicodeDecodeError:
        return None
    return name if int.from_bytes(payload[:2], "big") == len(name.encode("utf-16-be")) // 2 else None


@dataclass(frozen=True, slots=True)
class BindSubsystem(Packet):
    """0x04 to the robot."""

    ID = 0x04
    id: UInt16  # its place in the list of subsystems


@dataclass(frozen=True, slots=True)
class SkidSteerUpdate(Packet):
    """0x05 to the robot, for a skid steer: the speeds of its motors, from -FULL_SPEED to FULL_SPEED."""

    ID = 0x05
    id: UInt16
    left: Annotated[int, _Speed("h")]
    right: Annotated[int, _Speed("h")]


@dataclass(frozen=True, slots=True)
class LightUpdate(Packet):
    """0x05 to the robot, for a light."""

    ID = 0x05
    id: UInt16
    is_on: Annotated[bool, _OnOff()]


@dataclass(frozen=True, slots=True)
class OpaqueUpdate(Packet):
    """0x05 to the robot, for a subsystem that does not exist or is of an unknown type."""

    ID = 0x05
    id: UInt16
    data: RestOfBody


@dataclass(frozen=True, slots=True)
class UnbindSubsystem(Packet):
    """0x06 to the robot."""

    ID = 0x06
    id: UInt16


@dataclass(frozen=True, slots=True)
class BindFailure(Packet):
    """0x03 from the robot: the subsystem does not exist, or another driver has it."""

    ID = 0x03
    id: UInt16


@dataclass(frozen=True, slots=True)
class BindSuccess(Packet):
    """0x04 from the robot, to the new driver of the subsystem."""

    ID = 0x04
    id: UInt16


@dataclass(frozen=True, slots=True)
class SubsystemBound(Packet):
    """0x06 from the robot, to all drivers: the driver of a subsystem."""

    ID = 0x06
    id: UInt16
    driver: String  # empty when nobody has
    has_replacements: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class LogMessage(Packet):
    """0x08 from the robot."""

    ID = 0x08
    text: String
    has_replacements: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class FirmwareInfo(Packet):
    """0x09 from the robot: its software."""

    ID = 0x09
    type: String  # usually robotd or android
    version: String
    protocol_version: UInt16
    has_replacements: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class UnknownPacket(Packet):
    """A packet of an undocumented type, skipped by its length."""

    type: int
    payload: RestOfBody


@dataclass(frozen=True, slots=True)
class UnreadableList(Packet):
    """A list from the robot (0x02, 0x05 or 0x07) in no known layout, left aside by its length."""

    type: int
    problem: str  # why it is not in the document's layout, as the end of a sentence
