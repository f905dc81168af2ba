# SPDX-License-Identifier: Apache-2.0
"""The robot control protocol, versions 1 and 2: TCP, packets with a length and a type in front, big-endian.

A driver registers, queries the lists, binds what it wants to drive and updates it; keep-alives show both sides that the
other one is alive. The robot answers, and informs all drivers of changes. Nothing is sent on connect, and nothing is in
lockstep: packets may come at any time.

Lengths are uint16, so no packet is larger than MAX_PAYLOAD_BYTES and a header.
"""

from drone_bridge.robot.codec.connections import (
    DEFAULT_PORT,
    HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    PROTOCOL_VERSION,
    TCP_PORT,
    DriverConnection,
    FromDriver,
    FromRobot,
    RobotConnection,
    in_pieces,
)
from drone_bridge.robot.codec.packets import (
    FULL_SPEED,
    BindFailure,
    BindSubsystem,
    BindSuccess,
    FirmwareInfo,
    KeepAlive,
    LightUpdate,
    LogMessage,
    OpaqueUpdate,
    QuerySubsystems,
    RegisterDriver,
    SkidSteerUpdate,
    SubsystemBound,
    UnbindSubsystem,
    UnknownPacket,
    UnreadableList,
)
from drone_bridge.robot.codec.sensors import (
    Sensor,
    SensorInfo,
    SensorLayout,
    SensorReading,
    SensorType,
    SensorUpdate,
)
from drone_bridge.robot.codec.subsystems import MotorSensors, Subsystem, SubsystemInfo, SubsystemType
from drone_bridge.robot.codec.wire import MAX_STRING_BYTES
from drone_bridge.wire.events import NEED_DATA, ConnectionClosed

__all__ = [
    "DEFAULT_PORT",
    "FULL_SPEED",
    "HEADER_BYTES",
    "MAX_PAYLOAD_BYTES",
    "MAX_STRING_BYTES",
    "NEED_DATA",
    "PROTOCOL_VERSION",
    "TCP_PORT",
    "BindFailure",
    "BindSubsystem",
    "BindSuccess",
    "ConnectionClosed",
    "DriverConnection",
    "FirmwareInfo",
    "FromDriver",
    "FromRobot",
    "KeepAlive",
    "LightUpdate",
    "LogMessage",
    "MotorSensors",
    "OpaqueUpdate",
    "QuerySubsystems",
    "RegisterDriver",
    "RobotConnection",
    "Sensor",
    "SensorInfo",
    "SensorLayout",
    "SensorReading",
    "SensorType",
    "SensorUpdate",
    "SkidSteerUpdate",
    "Subsystem",
    "SubsystemBound",
    "SubsystemInfo",
    "SubsystemType",
    "UnbindSubsystem",
    "UnknownPacket",
    "UnreadableList",
    "in_pieces",
]
