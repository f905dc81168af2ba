# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that finds neutral commands."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drone_bridge.ar_drone.flight_state import MAJOR_STATE_SHIFT
from drone_bridge.ardrone import codec
from drone_bridge.ardrone.codec import navdata as blocks
from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side
from drone_bridge.wire.events import EventQueue, NeedData, RemoteProtocolError


def conversation() -> tuple[Sent, ...]:
    """Return commands of a client, and the navdata of a drone that was switched on, and flies."""
    commands = (
        codec.WatchdogReset(),
        codec.Pcmd(),
        codec.Config("general:navdata_demo", "TRUE"),
        codec.Control(5),
        codec.ConfigIds("00000001", "00000002", "00000003"),
        codec.FlatTrim(),
        codec.Ref(),
        codec.Ref(is_flying=True),
        codec.Ref(is_emergency=True),
        codec.Pcmd(codec.PROGRESSIVE, 0.25, -0.5, 1.0, -1.0),
        codec.PcmdMag(codec.PROGRESSIVE, 0.25, -0.5, 1.0, -1.0, 0.5, 0.125),
        codec.OtherCommand("LED", ("1", "1073741824", "5")),
    )
    flies, stands = (each << MAJOR_STATE_SHIFT for each in (codec.FlightState.FLYING, codec.FlightState.LANDED))
    flying = codec.Demo(flies, 87, -1500.0, 2500.0, 90_000.0, 1200, 250.0, -125.0, 0.0, 7)
    landed = codec.Demo(stands, 50, None, 1.0, None, 0, None, None, 0.0)
    options = (
        blocks.demo_option(flying),
        blocks.time_option(12.5),
        blocks.physical_option(codec.Physical(30.0, (50.0, -25.0, -1000.0), (1.5, -2.0, 30.0))),
        blocks.ultrasound_option(1190),
        blocks.detections_option((codec.Detected(500, 250, 120, 80, 150),)),
        blocks.pressure_option(codec.Pressure(215, 101_300)),
        blocks.magnetometer_option(codec.Magnetometer((200.0, -50.0, 400.0), True)),
        blocks.wifi_option(0.75),
        codec.Option(99, b"unknown"),
    )
    navdata = (
        codec.Navdata(codec.State.BOOTSTRAP | codec.State.WATCHDOG, 1),
        codec.Navdata(codec.State.FLYING | codec.State.START_BUTTON, 2, 1, options),
        codec.Navdata(codec.State.DEMO_ONLY, 3, 1, (blocks.demo_option(landed),)),
    )
    return (*(Sent(Side.OPERATOR, each) for each in commands), *(Sent(Side.VEHICLE, each) for each in navdata))


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read datagrams of a client. Hover is neutral, and so is a level command."""

    def read(data: bytes) -> Iterator[bool]:
        # A new one, because a new bridge starts again from 1.
        connection = codec.DroneConnection()
        connection.receive_data(data)
        while True:
            try:
                event = connection.next_event()
            except RemoteProtocolError:
                continue
            if event is codec.NEED_DATA:
                return
            if isinstance(event, codec.Pcmd | codec.PcmdMag):
                yield not event.flags & codec.PROGRESSIVE or not any((event.roll, event.pitch, event.gaz, event.yaw))

    return read


@dataclass(frozen=True, slots=True)
class NavdataRequest:
    """Datagram to the port of navdata."""


class _DronePorts(codec.DroneConnection):
    """Drone's end of a wire log, which has both its ports: commands, and requests for navdata."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = 0

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        if bytes(datagram) == codec.WAKE_UP:
            self._requests += 1
        else:
            super().receive_data(datagram)

    def next_event(self) -> codec.Command | codec.LateCommand | NeedData | NavdataRequest:  # type: ignore[override]
        if self._requests:
            self._requests -= 1
            return NavdataRequest()
        return super().next_event()


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of a drone, as its control port sends them."""

    settings: Mapping[str, str]


class _ClientPorts(codec.ClientConnection):
    """Client's end of a wire log: navdata, or the text of a connection to the control port, which begins in ASCII."""

    def __init__(self) -> None:
        super().__init__()
        self._is_text: bool | None = None
        self._text, self._found = codec.ConfigurationReader(), EventQueue[Configuration]()
        #: Whether a text is incomplete.
        self.inside_message = False

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        data = bytes(datagram)
        if self._is_text is None:
            self._is_text = data[:1].isascii() and data != b""
        if not self._is_text:
            super().receive_data(data)
            return
        self.inside_message = not data.endswith(b"\0")
        try:
            if settings := self._text.receive(data):
                self._found.put(Configuration(settings))
        except RemoteProtocolError as error:
            self._found.put(error)

    def receive_eof(self) -> None:
        """Ignore the end of a text. An incomplete one is shown as such."""

    def next_event(self) -> codec.Navdata | NeedData | Configuration:  # type: ignore[override]
        return self._found.next_event() if self._is_text else super().next_event()


class RecordedDrone(Recorded):
    """Recorded datagrams, which are independent of each other, and texts of the control port."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        super().__init__(kind, parameters)
        self.readers = {Side.OPERATOR: _DronePorts(), Side.VEHICLE: _ClientPorts()}

    def note_sent(self, sender: Side, event: Any) -> None:
        """See Recorded. Neither end of a conversation sends anything by its past."""
