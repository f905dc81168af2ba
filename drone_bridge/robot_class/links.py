# SPDX-License-Identifier: Apache-2.0
"""Links of both ends of a Robot: TCP, a serial line, and UDP, with further ports to which it sends reports."""

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from drone_bridge.net.connector import Cancellation, Connector, LinkError, MakeTap, Selectable
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.net.link_loop import Connected, Disconnected, FilledBuffer, Link, ReceivedData
from drone_bridge.net.serial_line import SerialLine
from drone_bridge.net.tcp import listening_socket
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.robot_class.robot import Robot, first_link, further_links, is_stream, listens
from drone_bridge.robot_class.transports import Udp
from drone_bridge.wire.addresses import same_host

#: Bytes of a stream that are read at a time. Between two reads commands are sent, so that a burst of telemetry that a
#: network has held up, or a peer that floods, delays them by a few ten milliseconds.
STREAM = StreamOptions(chunk_bytes=4096)
#: The stream to a robot. One that reads nothing for long is reconnected, as commands would wait for it.
STREAM_TO_ROBOT = replace(STREAM, expects_acknowledgements=True)
#: Limit of connections on which nothing is said.
MOST_SILENT = 8


class _Reports(Connector):
    """Client link that also receives what a robot sends to ports of ours. Other hosts' datagrams are dropped."""

    def __init__(self, *arguments: Any, ports: Mapping[str, int], **options: Any) -> None:
        """`ports` are numbers by their links' names. For the others, see the link."""
        super().__init__(*arguments, **options)
        self._numbers, self._log = ports, options["wire_log"]
        self._reports: dict[str, DatagramPort] = {}
        self._ends: tuple[str, Any] = ("", None)  # our address, and the robot's socket address

    def open(self) -> None:
        """See Link. Opening all ports is retried until it succeeds."""
        link: Any = super()
        link.open()
        self._retried(self._open_reports)

    def files(self) -> Sequence[Selectable]:
        link: Any = super()
        return (*link.files(), *(file for each in self._reports.values() for file in each.files()))

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        """See Link. The source of a datagram of the robot is the link's name."""
        link: Any = super()
        received: ReceivedData | None = link.receive()
        for name, each in () if received else self._reports.items():
            if (datagram := each.receive()) and same_host(datagram.source, self._ends[1]):
                return ReceivedData(datagram.data, name)
        return received

    def close(self) -> None:
        self._close_reports()
        super().close()

    def _open_reports(self) -> None:
        """Bind all ports anew. Raises LinkError."""
        self._close_reports()
        for name, number in self._numbers.items():
            self._reports[name] = DatagramPort(self._ends[0], number, self._log, source=self._ends[1])

    def _close_reports(self) -> None:
        for each in self._reports.values():
            each.close()
        self._reports.clear()

    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        super()._connect_to(connecting, address)  # type: ignore[safe-super]
        self._ends = connecting.getsockname()[0], address


class UdpRobot(_Reports, DatagramPeer):
    """UDP link to a robot."""

    def receive(self) -> Any:
        """See Link. A robot that reports is not silent."""
        if received := super().receive():
            self.heard()
        return received


class TcpRobot(_Reports, TcpPeer):
    """TCP link to a robot."""


class TcpRobotsEnd(TcpPort):
    """TCP port of a robot that sends its reports as datagrams."""

    def __init__(self, *arguments: Any, wire_log: MakeTap | None, **options: Any) -> None:
        """See TcpPort."""
        super().__init__(*arguments, wire_log=wire_log, **options)
        self._reports = DatagramPort(arguments[0], 0, wire_log)
        self._silent_ports: list[socket.socket] = []
        self._silent: list[socket.socket] = []  # connections

    def add_silent(self, host: str, port: int) -> None:
        """Accept connections to another port, too, on which nothing is said. Raises LinkError."""
        self._silent_ports.append(listening := listening_socket(host, port, backlog=MOST_SILENT))
        listening.setblocking(False)
        self.watch(listening, partial(self._accept_silent, listening))

    def _accept_silent(self, listening: socket.socket) -> None:
        try:
            self._silent.append(listening.accept()[0])
        except OSError:
            self.unwatch(listening)
        if len(self._silent) > MOST_SILENT:
            self._silent.pop(0).close()  # the oldest

    def send(self, data: bytes | memoryview, to: Any, *options: Any) -> None:
        """See Link. Datagrams have a socket address."""
        if isinstance(to, tuple):
            self._reports.send(data, to)
        else:
            super().send(data, to, *options)

    def close(self) -> None:
        self._reports.close()
        for each in (*self._silent_ports, *self._silent):
            each.close()
        super().close()


def client_link(
    robot: type[Robot],
    host: str,
    port: int,
    on_failure: Callable[[LinkError, float], None],
    *,
    ports: Mapping[str, int],
    serial: str = "",
    baud: int = 0,
    wire_log: MakeTap | None = None,
    cancellation: Cancellation | None = None,
) -> Link:
    """Return the link to a robot.

    `ports` are of ours, by the names of further links. `serial` is the path of a serial line, which replaces all of
    these if given. Raises ValueError for one with a host, and for an unsupported baud rate.
    """
    first = first_link(robot)
    options: dict[str, Any] = {"wire_log": wire_log, "cancellation": cancellation}
    if serial:
        if host != "127.0.0.1":  # the default
            raise ValueError(f"host is {host}: serial, which is {serial}, must then be empty (robot_serial:=).")
        assert not isinstance(first, Udp)  # none is offered with datagrams
        return SerialLine(serial, baud or first.baud, on_failure, **options)
    if listens(robot):
        return DatagramPort(host, port, wire_log)
    make = UdpRobot if isinstance(first, Udp) else partial(TcpRobot, options=STREAM_TO_ROBOT)
    return make(host, port, on_failure, ports=ports, **options)


def login_text(source: str) -> str:
    """Return the text of a login from its source, an environment variable or a file. Raises ValueError without it."""
    try:
        return source and (os.environ.get(source) or Path(source).read_text(encoding="utf-8")).strip()
    except (OSError, ValueError):
        raise ValueError("login must name a file or environment variable with the login, and there is none.") from None


def robots_link(robot: type[Robot], host: str, port: int, wire_log: MakeTap | None = None) -> TcpPort | DatagramPort:
    """Return the link of a robot to its clients. Raises LinkError if the port is in use."""
    if not is_stream(robot):
        return DatagramPort(host, port, wire_log)
    if not further_links(robot):
        return TcpPort(host, port, options=STREAM, wire_log=wire_log, has_small_buffers=True)
    link = TcpRobotsEnd(host, port, options=STREAM, wire_log=wire_log, has_small_buffers=True)
    for each in robot.silent_ports if port == first_link(robot).port else ():
        link.add_silent(host, each)
    return link
