# SPDX-License-Identifier: Apache-2.0
"""The drone's side of the telemetry protocol: commands and rover positions in, documents out.

No document answers another one. A drone sends its telemetry some 25 times per second whatever comes; what it was
commanded last stays in force, as the document knows no time-out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final, Protocol

from drone_bridge.protocols.telemetry import (
    Document,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)

PERIOD_S: Final = 0.04  # 25 telemetry documents per second
#: Documents from one with an image to the next one.
IMAGE_EVERY: Final = 5
#: Documents of the drone between two about the rover.
ROVER_EVERY: Final = 2
#: What a datagram holds, less what IP and UDP put before it.
MAX_DATAGRAM_BYTES: Final = 65507


class Vehicle(Protocol):
    """A drone that can be commanded, and may follow a rover that is led."""

    def follow_command(self, command: DroneCommand) -> None:
        """Put a command into force."""

    def move_rover(self, rover: RoverTelemetry) -> None:
        """Take where a rover is, from whoever moves it."""


class DroneSide:
    """One drone in conversation with whoever commands it. Times are seconds of one clock, whichever."""

    def __init__(self, vehicle: Vehicle) -> None:
        self.commanded_s = -math.inf  # when a command was taken last
        self._vehicle = vehicle
        self._drone = DroneConnection()
        self._rover = RoverConnection()

    def receive(self, document: Document, now_s: float) -> DroneCommand | RoverTelemetry:
        """Take a document, and have the vehicle do what it says.

        Raises RemoteProtocolError for one that is refused, and changes nothing.
        """
        self._drone.receive_data(document)
        event = self._drone.next_event()
        if isinstance(event, DroneCommand):
            self.commanded_s = now_s
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
        """Return what goes out after the drone's document with this number, from 0, has become due."""
        yield self.telemetry(telemetry)
        if rover is not None and number % ROVER_EVERY == 0:
            yield self.rover(rover)


def without_image(telemetry: DroneTelemetry) -> DroneTelemetry:
    """Return telemetry as it is in the documents between images."""
    return replace(telemetry, camera=replace(telemetry.camera, jpeg=None, jpeg_size=None))
