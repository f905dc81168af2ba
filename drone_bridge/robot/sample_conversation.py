# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that recognizes neutral commands."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side
from drone_bridge.robot import codec


def robot_connection() -> codec.RobotConnection:
    """Return a robot's connection that knows the types of its subsystems."""
    return codec.RobotConnection((codec.SubsystemType.SKID_STEER, codec.SubsystemType.LIGHTS))


def conversation() -> tuple[Sent, ...]:
    """Return a driver's session: it queries the lists, binds the tracks, drives, and unbinds."""
    sensors = codec.SensorInfo(
        (
            codec.Sensor(codec.SensorType.BATTERY, "pack", 11_400, 12_600),
            codec.Sensor(codec.SensorType.THERMOMETER, "left motor", 2550),
            codec.Sensor(codec.SensorType.AMMETER, "left current", 800),
            codec.Sensor(codec.SensorType.MOTOR_PWM, "left", -1024),
        )
    )
    subsystems = codec.SubsystemInfo(
        (
            codec.Subsystem(
                codec.SubsystemType.SKID_STEER,
                "tracks",
                "",
                codec.MotorSensors(0, 1, 2, 3),
                codec.MotorSensors(0, 1, 2, 3),
            ),
            codec.Subsystem(codec.SubsystemType.LIGHTS, "headlight", "somebody"),
        )
    )
    driver, robot = Side.OPERATOR, Side.VEHICLE
    visit: tuple[tuple[Side, object], ...] = (
        (driver, codec.KeepAlive(1_700_000_000_000)),
        (robot, codec.KeepAlive(1_700_000_000_000)),
        (driver, codec.QuerySubsystems()),
        (robot, sensors),
        (robot, subsystems),
        (robot, codec.FirmwareInfo("robotd", "1.2", 2)),
        (driver, codec.RegisterDriver("caf\u00e9")),
        (driver, codec.BindSubsystem(0)),
        (robot, codec.SubsystemBound(0, "caf\u00e9")),
        (robot, codec.LogMessage("caf\u00e9 has bound tracks")),
        (robot, codec.BindSuccess(0)),
        (driver, codec.BindSubsystem(1)),
        (robot, codec.BindFailure(1)),
        (driver, codec.SkidSteerUpdate(0, 2048, -2048)),
        (driver, codec.LightUpdate(1, True)),
        (driver, codec.UnknownPacket(0x42, b"later")),
        (robot, codec.SensorUpdate((codec.SensorReading(0, 11_300), codec.SensorReading(1, 2600)))),
        (robot, codec.UnknownPacket(0x42, b"later")),
        (driver, codec.UnbindSubsystem(0)),
        (robot, codec.SubsystemBound(0, "")),
    )
    return tuple(Sent(side, packet) for side, packet in visit)


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Return a reader of speed updates."""
    connection = robot_connection()

    def read(data: bytes) -> Iterator[bool]:
        connection.receive_data(data)
        for packet in connection.events():
            if isinstance(packet, codec.SkidSteerUpdate):
                yield packet.left == packet.right == 0

    return read


class RecordedRobot(Recorded):
    """Reader of a recording, in which the robot lists its subsystems itself."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        super().__init__(kind, parameters)
        self.readers[Side.OPERATOR] = codec.RobotConnection([])
