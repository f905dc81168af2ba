# SPDX-License-Identifier: Apache-2.0
"""Sample conversation with each message of the protocol, and a reader that finds neutral commands."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from drone_bridge.ar_drone.flight_state import MAJOR_STATE_SHIFT
from drone_bridge.ardrone.codec import (
    NEED_DATA,
    PROGRESSIVE,
    WAKE_UP,
    ClientConnection,
    Command,
    Config,
    ConfigIds,
    ConfigurationReader,
    Control,
    Demo,
    Detected,
    DroneConnection,
    FlatTrim,
    FlightState,
    LateCommand,
    Magnetometer,
    Navdata,
    Option,
    OtherCommand,
    Pcmd,
    PcmdMag,
    Physical,
    Pressure,
    Ref,
    State,
    WatchdogReset,
)
from drone_bridge.ardrone.codec.navdata import (
    demo_option,
    detections_option,
    magnetometer_option,
    physical_option,
    pressure_option,
    time_option,
    ultrasound_option,
    wifi_option,
)
from drone_bridge.kind import ProtocolKind, Recorded, Sent, Side
from drone_bridge.wire.events import EventQueue, NeedData, RemoteProtocolError


def conversation() -> tuple[Sent, ...]:
    """Return commands of a client, and the navdata of a drone that was switched on, and flies."""
    commands = (
        WatchdogReset(),
        Pcmd(),
        Config("general:navdata_demo", "TRUE"),
        Control(5),
        ConfigIds("00000001", "00000002", "00000003"),
        FlatTrim(),
        Ref(),
        Ref(is_flying=True),
        Ref(is_emergency=True),
        Pcmd(PROGRESSIVE, 0.25, -0.5, 1.0, -1.0),
        PcmdMag(PROGRESSIVE, 0.25, -0.5, 1.0, -1.0, 0.5, 0.125),
        OtherCommand("LED", ("1", "1073741824", "5")),
    )
    flying = Demo(FlightState.FLYING << MAJOR_STATE_SHIFT, 87, -1500.0, 2500.0, 90_000.0, 1200, 250.0, -125.0, 0.0, 7)
    options = (
        demo_option(flying),
        time_option(12.5),
        physical_option(Physical(30.0, (50.0, -25.0, -1000.0), (1.5, -2.0, 30.0))),
        ultrasound_option(1190),
        detections_option((Detected(500, 250, 120, 80, 150),)),
        pressure_option(Pressure(215, 101_300)),
        magnetometer_option(Magnetometer((200.0, -50.0, 400.0), True)),
        wifi_option(0.75),
        Option(99, b"unknown"),
    )
    navdata = (
        Navdata(State.BOOTSTRAP | State.WATCHDOG, 1),
        Navdata(State.FLYING | State.START_BUTTON, 2, 1, options),
        Navdata(State.DEMO_ONLY, 3, 1, (demo_option(Demo(2 << 16, 50, None, 1.0, None, 0, None, None, 0.0)),)),
    )
    return (*(Sent(Side.OPERATOR, each) for each in commands), *(Sent(Side.VEHICLE, each) for each in navdata))


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read datagrams of a client. Hover is neutral, and so is a level command."""

    def read(data: bytes) -> Iterator[bool]:
        # A new one, because a new bridge starts again from 1.
        connection = DroneConnection()
        connection.receive_data(data)
        while True:
            try:
                event = connection.next_event()
            except RemoteProtocolError:
                continue
            if event is NEED_DATA:
                return
            if isinstance(event, Pcmd | PcmdMag):
                yield not event.flags & PROGRESSIVE or not any((event.roll, event.pitch, event.gaz, event.yaw))

    return read


@dataclass(frozen=True, slots=True)
class NavdataRequest:
    """Datagram to the port of navdata."""


class _DronePorts(DroneConnection):
    """Drone's end of a wire log, which has both its ports: commands, and requests for navdata."""

    def __init__(self) -> None:
        super().__init__()
        self._requests = 0

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        if bytes(datagram) == WAKE_UP:
            self._requests += 1
        else:
            super().receive_data(datagram)

    def next_event(self) -> Command | LateCommand | NeedData | NavdataRequest:  # type: ignore[override]
        if self._requests:
            self._requests -= 1
            return NavdataRequest()
        return super().next_event()


@dataclass(frozen=True, slots=True)
class Configuration:
    """The settings of a drone, as its control port sends them."""

    settings: Mapping[str, str]


class _ClientPorts(ClientConnection):
    """Client's end of a wire log: navdata, or the text of a connection to the control port, which begins in ASCII."""

    def __init__(self) -> None:
        super().__init__()
        self._is_text: bool | None = None
        self._text, self._found = ConfigurationReader(), EventQueue[Configuration]()
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

    def next_event(self) -> Navdata | NeedData | Configuration:  # type: ignore[override]
        return self._found.next_event() if self._is_text else super().next_event()


class RecordedDrone(Recorded):
    """Recorded datagrams, which are independent of each other, and texts of the control port."""

    def __init__(self, kind: ProtocolKind, parameters: Mapping[str, Any]) -> None:
        super().__init__(kind, parameters)
        self.readers = {Side.OPERATOR: _DronePorts(), Side.VEHICLE: _ClientPorts()}

    def note_sent(self, sender: Side, event: Any) -> None:
        """See Recorded. Neither end of a conversation sends anything by its past."""
