# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that finds neutral commands."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from drone_bridge.kind import Sent, Side
from drone_bridge.telemetry.codec import (
    Altimeter,
    Camera,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    Imu,
    LandingPad,
    Orientation,
    RoverTelemetry,
    Vector,
)

#: Largest yaw share of a neutral command. A drone that holds its position uses the other axes, and corrects its
#: heading.
_HOLDING_YAW = 0.1
#: Smallest JPEG header with a size: 1 x 1 pixels.
JPEG = bytes.fromhex("ffd8ffc0000b080001000101011100ffd9")


def conversation() -> tuple[Sent, ...]:
    """Return a drone's telemetry with and without optional values, commands, and a rover's telemetry."""
    gravity, velocity = Vector(0.0, 0.0, 9.81), Vector(0.5, -0.25, 0.125)
    imu = Imu(Orientation(0.1, -0.2, 0.3), Vector(0.01, 0.02, -0.03), gravity)
    pad = LandingPad(0.1, -0.2, 2.0, 0.9)
    whole = DroneTelemetry(imu, Altimeter(2.0, -0.1), velocity, pad, Camera(1, 1, 60.0, JPEG), False, 1.5)
    least = DroneTelemetry(
        replace(imu, linear_acceleration=None), Altimeter(0.0, 0.0), velocity, None, Camera(320, 240)
    )
    return (
        Sent(Side.VEHICLE, whole),
        Sent(Side.OPERATOR, DroneCommand(0.5, 0.1, -0.1, 0.25)),
        Sent(Side.VEHICLE, least),
        Sent(Side.OPERATOR, DroneCommand()),
        Sent(Side.VEHICLE, RoverTelemetry(Vector(1.0, -2.0, 0.0), velocity, "circular", 2.0)),
    )


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read commands to a drone. Commands with little yaw are neutral, as a drone that holds its position tilts."""
    connection = DroneConnection()

    def read(data: bytes) -> Iterator[bool]:
        connection.receive_data(data)
        while isinstance(command := connection.next_event(), DroneCommand):
            yield abs(command.yaw) <= _HOLDING_YAW

    return read
