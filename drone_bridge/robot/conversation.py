# SPDX-License-Identifier: Apache-2.0
"""One conversation with each message of the protocol, and which of an operator's commands are neutral."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side
from drone_bridge.robot.codec import (
    BindFailure,
    BindSubsystem,
    BindSuccess,
    FirmwareInfo,
    KeepAlive,
    LightUpdate,
    LogMessage,
    MotorSensors,
    QuerySubsystems,
    RegisterDriver,
    RobotConnection,
    Sensor,
    SensorInfo,
    SensorReading,
    SensorType,
    SensorUpdate,
    SkidSteerUpdate,
    Subsystem,
    SubsystemBound,
    SubsystemInfo,
    SubsystemType,
    UnbindSubsystem,
    UnknownPacket,
)


def robot_connection() -> RobotConnection:
    """Return the robot's side, which has to know the types of its subsystems."""
    return RobotConnection((SubsystemType.SKID_STEER, SubsystemType.LIGHTS))


def conversation() -> tuple[Sent, ...]:
    """Return a driver's visit: it asks what there is, binds the tracks, drives, and gives them back."""
    sensors = SensorInfo(
        (
            Sensor(SensorType.BATTERY, "pack", 11_400, 12_600),
            Sensor(SensorType.THERMOMETER, "left motor", 2550),
            Sensor(SensorType.AMMETER, "left current", 800),
        )
    )
    subsystems = SubsystemInfo(
        (
            Subsystem(SubsystemType.SKID_STEER, "tracks", "", MotorSensors(0, 1, 2, 3), MotorSensors(0, 1, 2, 3)),
            Subsystem(SubsystemType.LIGHTS, "headlight", "somebody"),
        )
    )
    driver, robot = Side.OPERATOR, Side.VEHICLE
    visit: tuple[tuple[Side, object], ...] = (
        (driver, KeepAlive(1_700_000_000_000)),
        (robot, KeepAlive(1_700_000_000_000)),
        (driver, QuerySubsystems()),
        (robot, sensors),
        (robot, subsystems),
        (robot, FirmwareInfo("robotd", "1.2", 2)),
        (driver, RegisterDriver("caf\u00e9")),
        (driver, BindSubsystem(0)),
        (robot, SubsystemBound(0, "caf\u00e9")),
        (robot, LogMessage("caf\u00e9 has bound tracks")),
        (robot, BindSuccess(0)),
        (driver, BindSubsystem(1)),
        (robot, BindFailure(1)),
        (driver, SkidSteerUpdate(0, 2048, -2048)),
        (driver, LightUpdate(1, True)),
        (driver, UnknownPacket(0x42, b"later")),
        (robot, SensorUpdate((SensorReading(0, 11_300), SensorReading(1, 2600)))),
        (robot, UnknownPacket(0x42, b"later")),
        (driver, UnbindSubsystem(0)),
        (robot, SubsystemBound(0, "")),
    )
    return tuple(Sent(side, packet) for side, packet in visit)


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read speeds of the tracks."""
    connection = robot_connection()

    def read(data: bytes) -> Iterator[bool]:
        connection.receive_data(data)
        for packet in connection.events():
            if isinstance(packet, SkidSteerUpdate):
                yield packet.left == packet.right == 0

    return read


class RecordedRobot(Recorded):
    """A robot that says itself which subsystems it has."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        super().__init__(kind, parameters)
        self.readers[Side.OPERATOR] = RobotConnection([])

    def answer_to(self, question: Any) -> Callable[[Any], bool] | None:
        for asked, answers in (
            (KeepAlive, KeepAlive),
            (QuerySubsystems, FirmwareInfo),
            (BindSubsystem, BindSuccess | BindFailure),
        ):
            if isinstance(question, asked):
                return lambda event, answers=answers: isinstance(event, answers)  # type: ignore[misc]
        return None
