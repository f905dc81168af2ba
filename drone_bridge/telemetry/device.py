# SPDX-License-Identifier: Apache-2.0
"""The drone's side of the telemetry protocol: commands and rover positions in, documents out.

Documents are not answered. A drone sends its telemetry some 25 times per second in any case, and the last command
stays in force, as the document has no time-out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from drone_bridge.telemetry.codec import (
    Document,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)

PERIOD_S = 0.04  # 25 telemetry documents per second
#: One of this many documents has an image.
IMAGE_EVERY = 5
#: Documents of the drone per document of the rover.
ROVER_EVERY = 2
#: The largest payload of a UDP datagram.
MAX_DATAGRAM_BYTES = 65507


class Vehicle(Protocol):
    """A drone that can be commanded, and whose rover may be moved by others."""

    def follow_command(self, command: DroneCommand) -> None:
        """Put a command into force."""

    def move_rover(self, rover: RoverTelemetry) -> None:
        """Set the rover's position and velocity."""


class DroneSide:
    """One drone and its controllers."""

    def __init__(self, vehicle: Vehicle) -> None:
        self._vehicle = vehicle
        self._drone = DroneConnection()
        self._rover = RoverConnection()

    def receive(self, document: Document) -> DroneCommand | RoverTelemetry:
        """Handle a document.

        Raises RemoteProtocolError for one that is refused, which changes nothing.
        """
        self._drone.receive_data(document)
        event = self._drone.next_event()
        if isinstance(event, DroneCommand):
            self._vehicle.follow_command(event)
            return event
        assert isinstance(event, RoverTelemetry)
        self._vehicle.move_rover(event)
        return event

    def telemetry(self, telemetry: DroneTelemetry) -> bytes:
        """Return the drone's document. Raises LocalProtocolError."""
        return self._drone.send(telemetry)

    def rover(self, telemetry: RoverTelemetry) -> bytes:
        """Return the rover's document. Raises LocalProtocolError."""
        return self._rover.send(telemetry)

    def documents(self, number: int, telemetry: DroneTelemetry, rover: RoverTelemetry | None) -> Iterator[bytes]:
        """Return what is sent when the drone's document with this number, from 0, is due."""
        yield self.telemetry(telemetry)
        if rover is not None and number % ROVER_EVERY == 0:
            yield self.rover(rover)


def without_image(telemetry: DroneTelemetry) -> DroneTelemetry:
    """Return telemetry without its image."""
    return replace(telemetry, camera=replace(telemetry.camera, jpeg=None, jpeg_size=None))
