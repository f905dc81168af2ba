# SPDX-License-Identifier: Apache-2.0
"""The landing emulator's side of the wire: telemetry out, commands in, and injected faults."""

from __future__ import annotations

import base64
import contextlib
import time
from collections.abc import Callable, Iterator
from enum import Enum

from drone_bridge.net.connector import LinkRefusedError, LinkTimeoutError
from drone_bridge.net.udp import UdpListener, UdpStream
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.programs.faults import Fault
from drone_bridge.programs.program import LimitedReports, say
from drone_bridge.telemetry.codec import DroneCommand, DroneTelemetry
from drone_bridge.telemetry.codec.json_and_base64 import from_json, to_json
from drone_bridge.telemetry.device import PERIOD_S, DroneSide
from drone_bridge.telemetry.emulator.vehicle import Vehicle
from drone_bridge.wire.events import RemoteProtocolError

#: After the process was held up for longer than this, flight goes on from there instead of catching up.
LONGEST_CATCH_UP_S = 0.25
#: The most documents read per frame when there is no time left to wait, however many are sent.
DOCUMENTS_WHEN_LATE = 20
NO_JPEG = b"GIF89a, which is no JPEG"
HUGE = 1e300


class FaultKind(str, Enum):
    """Faults that can be injected into one telemetry document."""

    TRUNCATE = "truncate"  # half of the document
    GARBAGE = "garbage"  # bytes that are not JSON
    NOT_JPEG = "not-jpeg"  # bytes that are not an image
    HUGE = "huge"  # a number out of range
    STALL = "stall"  # nothing more, forever


class Conversation:
    """One flight in conversation with whoever receives the telemetry, if anybody."""

    def __init__(
        self,
        vehicle: Vehicle,
        stream: UdpStream,
        network: BadNetwork[bytes],
        *,
        rover_listener: UdpListener | None = None,
        publish_rover: bool = False,
        fault: Fault[FaultKind] | None = None,
    ) -> None:
        """Datagrams are sent through `network`. `rover_listener` receives telemetry of a rover, beside the stream."""
        self.sent = self.commands = self.refused = 0
        self._vehicle = vehicle
        self._stream = stream
        self._network = network
        self._rover_listener = rover_listener
        self._publish_rover = publish_rover
        self._fault = fault
        self._stalls = False
        self._side = DroneSide(vehicle)
        self._reports = LimitedReports()
        self._is_heard = True

    def run(self, speed: float, goes_on: Callable[[], bool]) -> None:
        """Fly at `speed` simulated seconds per second until `goes_on` is false after a frame.

        Raises LinkError, LinkCancelledError among them.
        """
        due = time.monotonic()
        while True:
            frame = self._vehicle.frames
            telemetry = self._vehicle.advance()
            for document in self._documents(frame, telemetry):
                for arriving in self._network.carry(document):
                    self._send(arriving)
            if not goes_on():
                return
            due = max(due + PERIOD_S / speed, time.monotonic() - LONGEST_CATCH_UP_S)
            self._receive_until(due)
            self._receive_of_rover()

    def _documents(self, frame: int, telemetry: DroneTelemetry) -> Iterator[bytes]:
        """Return the documents to send at the end of this frame."""
        kind = self._fault.kind if self._fault and self._fault.at == frame else None
        if kind:
            say(f"{kind.value} in frame {frame}, as requested")
        self._stalls |= kind is FaultKind.STALL
        if self._stalls:
            return
        rover = self._vehicle.rover_telemetry() if self._publish_rover else None
        document, *others = self._side.documents(frame, telemetry, rover)
        yield spoiled(document, kind) if kind else document
        yield from others

    def _send(self, document: bytes) -> None:
        try:
            self._stream.send(document)
        except LinkRefusedError as error:
            self._is_not_heard(error)
        self.sent += 1

    def _receive_until(self, due: float) -> None:
        """Handle datagrams until the deadline, and a few if it has already passed."""
        late = 0
        with contextlib.suppress(LinkTimeoutError):
            while (left_s := due - time.monotonic()) > 0 or late < DOCUMENTS_WHEN_LATE:
                late += left_s <= 0
                try:
                    document = self._stream.receive(max(left_s, 0.0))
                except LinkRefusedError as error:
                    self._is_not_heard(error)
                    continue
                self._is_heard = True
                self._take(document, self._stream.peer)

    def _receive_of_rover(self) -> None:
        if self._rover_listener is None:
            return
        with contextlib.suppress(LinkTimeoutError):
            for _ in range(DOCUMENTS_WHEN_LATE):
                document, _ = self._rover_listener.receive(0.0)
                self._take(document, "the rover's port")

    def _take(self, document: bytes, where: str) -> None:
        try:
            event = self._side.receive(document)
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.say(f"refused a document from {where}: {error}")
            return
        if isinstance(event, DroneCommand):
            if not self.commands:
                say(f"commanded from {where}")
            self.commands += 1

    def _is_not_heard(self, error: LinkRefusedError) -> None:
        """Report once that nobody listens, until somebody does."""
        if self._is_heard:
            say(str(error))
        self._is_heard = False


def spoiled(document: bytes, kind: FaultKind) -> bytes:
    """Return an invalid version of a telemetry document."""
    if kind is FaultKind.TRUNCATE:
        return document[: len(document) // 2]
    if kind is FaultKind.GARBAGE:
        return b"\xff\x00{" + document
    fields = from_json(document)
    if kind is FaultKind.NOT_JPEG:
        fields["camera"]["image"] = base64.b64encode(NO_JPEG).decode()
    elif kind is FaultKind.HUGE:
        fields["altimeter"]["altitude"] = HUGE
    return to_json(fields)
