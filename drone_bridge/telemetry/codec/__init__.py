# SPDX-License-Identifier: Apache-2.0
"""The telemetry protocol of a drone without GPS and a rover: JSON documents, one per datagram or topic message.

A drone and a rover report what they sense, several times a second; commands go to the drone. Documents are not
answered. Signs and units are those of the wire; see docs/telemetry.md.
"""

from drone_bridge.telemetry.codec.connections import (
    DEFAULT_PORT,
    RESTART_S,
    ControllerConnection,
    DroneConnection,
    LateTelemetry,
    RoverConnection,
    Sender,
)
from drone_bridge.telemetry.codec.documents import Document
from drone_bridge.telemetry.codec.messages import (
    MAX_FOV,
    MAX_MAGNITUDE,
    MAX_PATTERN_LETTERS,
    MAX_THRUST,
    MAX_TILT,
    MAX_TIMESTAMP_S,
    MIN_FOV,
    Altimeter,
    Camera,
    DroneCommand,
    DroneTelemetry,
    Imu,
    LandingPad,
    Limits,
    Orientation,
    RoverTelemetry,
    Vector,
)
from drone_bridge.wire.events import NEED_DATA

__all__ = [
    "DEFAULT_PORT",
    "MAX_FOV",
    "MAX_MAGNITUDE",
    "MAX_PATTERN_LETTERS",
    "MAX_THRUST",
    "MAX_TILT",
    "MAX_TIMESTAMP_S",
    "MIN_FOV",
    "NEED_DATA",
    "RESTART_S",
    "Altimeter",
    "Camera",
    "ControllerConnection",
    "Document",
    "DroneCommand",
    "DroneConnection",
    "DroneTelemetry",
    "Imu",
    "LandingPad",
    "LateTelemetry",
    "Limits",
    "Orientation",
    "RoverConnection",
    "RoverTelemetry",
    "Sender",
    "Vector",
]
