# SPDX-License-Identifier: Apache-2.0
"""ClientConnection and DroneConnection: codec of an AR.Drone 1 or 2 and its client.

Theory of operation, by Parrot's developer guides (SDK 1.6 and 2.0), its SDK, and the programs of others: node-ar-drone,
ardrone_autonomy, ARbDrone (github.com/bklang/arbdrone), UAV::Pilot::ARDrone (metacpan.org), Wireshark's dissector:

- **Commands** (client to UDP port 5556 of the drone): AT commands as text, see `commands`. One counter numbers all of
them. A command counts if its number is higher than that of the last one that counted, or 1, by which a client starts
over. Others are late. `REF` has take-off and landing as a level, which is repeated, and the emergency as a toggle.
- **Navdata** (drone to the client that sent a datagram to its UDP port 5554 last): state bits and options, see
`navdata`. A drone that was just switched on sends only the head, with the bit BOOTSTRAP, until the setting
`general:navdata_demo` arrives.
- **Settings** are acknowledged by the state bit COMMAND_ACKNOWLEDGED, which the client has to clear by `CTRL` 5.
- **Configuration** (TCP port 5559) and **video** of an AR.Drone 2 (TCP port 5555): see `configuration` and `video`.
- **Refusal**: an unreadable datagram of navdata is refused as a whole, and an unreadable command alone. Neither affects
later ones.
"""

from collections import deque
from dataclasses import dataclass

from drone_bridge.ar_drone.flight_state import FlightState
from drone_bridge.ardrone.codec.commands import (
    ABSOLUTE,
    COMBINED_YAW,
    MAX_LINE,
    PROGRESSIVE,
    REF_BASE,
    Command,
    Config,
    ConfigIds,
    Control,
    ControlMode,
    FlatTrim,
    OtherCommand,
    Pcmd,
    PcmdMag,
    Ref,
    WatchdogReset,
    command_text,
    lines_of,
    read_line,
    setting,
)
from drone_bridge.ardrone.codec.configuration import ConfigurationReader, read_settings, write_settings
from drone_bridge.ardrone.codec.navdata import (
    Demo,
    Detected,
    Magnetometer,
    Navdata,
    Option,
    Physical,
    Pressure,
    State,
    Tag,
    read_navdata,
    write_navdata,
)
from drone_bridge.ardrone.codec.video import Frame, FrameType, PaveReader, VideoCodec, write_frame
from drone_bridge.wire.events import NEED_DATA, EventSource, LocalProtocolError, MessageSource, NeedData

__all__ = [
    "ABSOLUTE", "COMBINED_YAW", "COMMANDS", "CONNECT", "CONTROL", "CONTROL_PORT", "DEFAULT_PORT", "DISCONNECT",
    "FIRST_SEQUENCE", "MAX_LINE", "NAVDATA", "NAVDATA_PORT", "NEED_DATA", "PROGRESSIVE", "REF_BASE", "VIDEO_PORT",
    "WAKE_UP", "ClientConnection", "Command", "Config", "ConfigIds", "ConfigurationReader", "Control", "ControlMode",
    "Demo", "Detected", "DroneConnection", "FlatTrim", "FlightState", "Frame", "FrameType", "LateCommand",
    "Magnetometer", "Navdata", "Option", "OtherCommand", "PaveReader", "Pcmd", "PcmdMag", "Physical", "Pressure", "Ref",
    "State", "Tag", "VideoCodec", "WatchdogReset", "read_settings", "setting", "write_frame", "write_settings",
]  # fmt: skip

#: The drone's ports, as a link names them.
COMMANDS, NAVDATA, CONTROL = "commands", "navdata", "control"
#: Instead of data, which CONTROL never gets: make a new connection, or end it.
CONNECT, DISCONNECT = b"connect", b""
#: Their numbers: AT commands and navdata over UDP, video and configuration over TCP.
DEFAULT_PORT, NAVDATA_PORT, VIDEO_PORT, CONTROL_PORT = 5556, 5554, 5555, 5559
#: The datagram to NAVDATA_PORT by which a client asks for navdata to its own address.
WAKE_UP = b"\x01\x00\x00\x00"
#: This number always counts: a client starts over.
FIRST_SEQUENCE = 1
MAX_SEQUENCE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LateCommand:
    """Command that was discarded, after one with the same or a higher number."""

    sequence: int
    newest: int


class ClientConnection(MessageSource[Navdata]):
    """Client's end: sends numbered commands, and receives navdata. A refused datagram does not affect later ones."""

    def __init__(self) -> None:
        super().__init__()
        #: Number of the next command. Read only.
        self.next_sequence = FIRST_SEQUENCE

    def send(self, *commands: Command, is_urgent: bool = False) -> bytes:
        """Return the datagram of commands. Raises LocalProtocolError, and sends none of them then.

        An urgent one has its first command as number 1, too: a drone then accepts all whatever it has received before.
        One for which 1 is a number as any other accepts them as well, as the others go on above all that were used.
        """
        data = self.peek(*commands, is_urgent=is_urgent)
        self.next_sequence += len(commands)
        if self.next_sequence > MAX_SEQUENCE - MAX_LINE:
            self.next_sequence = FIRST_SEQUENCE
        return data

    def peek(self, *commands: Command, is_urgent: bool = False) -> bytes:
        """Return the datagram that `send` would return, and keep its numbers. Raises LocalProtocolError."""
        lines = [command_text(command, FIRST_SEQUENCE) for command in commands[:is_urgent]]
        lines += [command_text(command, self.next_sequence + place) for place, command in enumerate(commands)]
        if not lines or sum(map(len, lines)) > MAX_LINE:
            raise LocalProtocolError(
                f"{len(lines)} commands have {sum(map(len, lines))} of 1 to {MAX_LINE} characters."
            )
        return "".join(lines).encode("ascii")

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Receive a whole datagram of navdata, for `next_event`."""
        self._queue.read(read_navdata, datagram)


class DroneConnection(EventSource[Command | LateCommand]):
    """Drone's end: receives commands, and sends navdata. A refused command does not affect others of its datagram."""

    def __init__(self) -> None:
        self._newest = 0
        self._lines: deque[str] = deque()

    def restart(self) -> None:
        """Accept any number next, as after the loss of a client or a WatchdogReset."""
        self._newest = 0

    def send(self, navdata: Navdata) -> bytes:
        """Return the datagram of navdata. Raises LocalProtocolError."""
        if not isinstance(navdata, Navdata):
            raise LocalProtocolError(f"A drone does not send {type(navdata).__name__}.")
        return write_navdata(navdata)

    def receive_data(self, datagram: bytes | bytearray | memoryview) -> None:
        """Receive a whole datagram of commands, for `next_event`."""
        self._lines.extend(lines_of(bytes(datagram)))

    def next_event(self) -> Command | LateCommand | NeedData:
        """Return the next command, or NEED_DATA. Raises RemoteProtocolError, once per refused command."""
        if not self._lines:
            return NEED_DATA
        sequence, command = read_line(self._lines.popleft())
        if sequence != FIRST_SEQUENCE and sequence <= self._newest:
            return LateCommand(sequence, self._newest)
        self._newest = sequence
        return command
