# SPDX-License-Identifier: Apache-2.0
"""The three roles of the telemetry protocol."""

from dataclasses import dataclass
from typing import Literal

from drone_bridge.telemetry.codec.documents import (
    DEFAULT_LIMITS,
    Document,
    parse,
    read_command,
    read_drone,
    read_rover,
    write,
)
from drone_bridge.telemetry.codec.messages import (
    DroneCommand,
    DroneTelemetry,
    Limits,
    RoverTelemetry,
)
from drone_bridge.wire.events import EventQueue, EventSource, NeedData, RemoteProtocolError

DEFAULT_PORT = 5555
#: A timestamp that is further back than this is not late: its sender has restarted.
RESTART_S = 1.0

Sender = Literal["drone", "rover"]


@dataclass(frozen=True, slots=True)
class LateTelemetry:
    """A document that came after one with a later timestamp, and was discarded."""

    sender: Sender
    timestamp: float  # s
    newest_timestamp: float  # s


class ControllerConnection(EventSource[DroneTelemetry | RoverTelemetry | LateTelemetry]):
    """The controller's side: telemetry of one drone and one rover comes in, commands to the drone go out.

    A document that is refused changes nothing, and those after it are read as if it had not come.
    """

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        """`limits`: how large an image may be."""
        self._limits = limits
        self._newest: dict[Sender, float] = {}  # timestamps, s
        self._queue: EventQueue[DroneTelemetry | RoverTelemetry | LateTelemetry] = EventQueue()

    def receive_data(self, document: Document, sender: Sender | None = None) -> None:
        """Receive a whole document, for `next_event`. If the `sender` is not known, the fields decide."""
        try:
            self._queue.put(self._read(document, sender))
        except RemoteProtocolError as error:
            self._queue.put(error)

    def next_event(self) -> DroneTelemetry | RoverTelemetry | LateTelemetry | NeedData:
        """Return what the next document was, or NEED_DATA. Raises RemoteProtocolError, once per refused document."""
        return self._queue.next_event()

    def send(self, command: DroneCommand) -> bytes:
        """Return the command as a document. Raises LocalProtocolError for what the protocol does not allow."""
        return write(command)

    def forget(self, sender: Sender) -> None:
        """Accept the next document of a sender whatever its timestamp, as after it was replaced by another one."""
        self._newest.pop(sender, None)

    def _read(self, document: Document, sender: Sender | None) -> DroneTelemetry | RoverTelemetry | LateTelemetry:
        fields = parse(document, self._limits)
        if sender is None:
            sender = _sender(fields)
        telemetry = read_drone(fields, self._limits) if sender == "drone" else read_rover(fields)
        timestamp = telemetry.timestamp
        if timestamp is not None:
            newest = self._newest.get(sender, timestamp)
            if newest - RESTART_S <= timestamp < newest:
                return LateTelemetry(sender, timestamp, newest)
            self._newest[sender] = timestamp
        return telemetry


class DroneConnection(EventSource[DroneCommand | RoverTelemetry]):
    """The drone's side: commands come in, and telemetry of a rover that it is to find; its own telemetry goes out."""

    def __init__(self) -> None:
        self._queue: EventQueue[DroneCommand | RoverTelemetry] = EventQueue()

    def receive_data(self, document: Document) -> None:
        """Take one whole document, of which `next_event` then tells what it was."""
        try:
            fields = parse(document)
            is_rovers = "thrust" not in fields and "position" in fields
            self._queue.put(read_rover(fields) if is_rovers else read_command(fields))
        except RemoteProtocolError as error:
            self._queue.put(error)

    def next_event(self) -> DroneCommand | RoverTelemetry | NeedData:
        """Return what the next document was, or NEED_DATA. Raises RemoteProtocolError, once per refused document."""
        return self._queue.next_event()

    def send(self, telemetry: DroneTelemetry) -> bytes:
        """Return the telemetry as a document. Raises LocalProtocolError for what the protocol does not allow."""
        return write(telemetry)


class RoverConnection:
    """The rover's side: its telemetry goes out, and nothing comes in."""

    def send(self, telemetry: RoverTelemetry) -> bytes:
        """Return the telemetry as a document. Raises LocalProtocolError for what the protocol does not allow."""
        return write(telemetry)


def _sender(fields: dict[str, object]) -> Sender:
    if "imu" in fields:
        return "drone"
    if "position" in fields:
        return "rover"
    raise RemoteProtocolError("The document has neither imu, as a drone's has, nor position, as a rover's has.")
