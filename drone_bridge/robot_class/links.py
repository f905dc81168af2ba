# SPDX-License-Identifier: Apache-2.0
"""Links of both ends of a Robot: TCP, a serial line, and UDP, optionally with a separate port for the state."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from drone_bridge.net.connector import Cancellation, LinkError, MakeTap, Selectable
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.net.link_loop import Link, ReceivedData
from drone_bridge.net.serial_line import SerialLine
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.robot_class.client_session import STATE
from drone_bridge.robot_class.robot import Robot
from drone_bridge.wire.addresses import same_host

#: Bytes of a stream that are read at a time. Between two reads commands are sent, so that a burst of telemetry that a
#: network has held up, or a peer that floods, delays them by a few ten milliseconds.
STREAM = StreamOptions(chunk_bytes=4096)
#: The stream to a robot. One that reads nothing for long is reconnected, as commands would wait for it.
STREAM_TO_ROBOT = replace(STREAM, expects_acknowledgements=True)
#: Limit of other hosts' datagrams that are dropped at a time, so that a flood of them delays no command.
MAX_FOREIGN = 32


class PeerWithStatePort(DatagramPeer):
    """UDP peer that replies to the source of commands, and sends its state to a separate local port."""

    def __init__(
        self,
        host: str,
        port: int,
        state_port: int,
        on_failure: Callable[[LinkError, float], None],
        *,
        wire_log: MakeTap | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """See DatagramPeer. `state_port` is local."""
        super().__init__(host, port, on_failure, wire_log, cancellation=cancellation)
        self._state_port = state_port
        self._state: DatagramPort | None = None

    def open(self) -> None:
        """See Link. Opening both ports is retried until it succeeds."""
        super().open()
        if self._state:
            self._state.close()
        self._state = self._retried(lambda: DatagramPort(self.own_host, self._state_port, self._wire_log))

    def files(self) -> Sequence[Selectable]:
        return (*super().files(), *(self._state.files() if self._state else ()))

    def receive(self) -> ReceivedData | None:
        """See Link. The source of the state is STATE. Datagrams of other hosts are dropped."""
        if (received := super().receive()) or self._state is None:
            return received
        for _ in range(MAX_FOREIGN):
            if not (received := self._state.receive()):
                break
            if same_host(received.source, self.address):
                return ReceivedData(received.data, STATE)
        return None

    def close(self) -> None:
        if self._state:
            self._state.close()
        super().close()


def client_link(
    robot: type[Robot],
    host: str,
    port: int,
    on_failure: Callable[[LinkError, float], None],
    *,
    state_port: int = 0,
    serial: str = "",
    baud: int = 0,
    wire_log: MakeTap | None = None,
    cancellation: Cancellation | None = None,
) -> Link:
    """Return the link to a robot. `serial` is the path of a serial line, which replaces host and port if given.

    Raises ValueError for a serial line to a robot on datagrams, and for an unsupported baud rate.
    """
    if serial:
        if robot.transport != "tcp":
            raise ValueError(f"serial is {serial}, but must be empty: {robot.name} uses datagrams.")
        return SerialLine(serial, baud or robot.baud, on_failure, wire_log=wire_log, cancellation=cancellation)
    if robot.transport == "tcp":
        return TcpPeer(host, port, on_failure, options=STREAM_TO_ROBOT, wire_log=wire_log, cancellation=cancellation)
    if state_port:
        return PeerWithStatePort(host, port, state_port, on_failure, wire_log=wire_log, cancellation=cancellation)
    return DatagramPeer(host, port, on_failure, wire_log, cancellation=cancellation)


def robots_link(robot: type[Robot], host: str, port: int, wire_log: MakeTap | None = None) -> TcpPort | DatagramPort:
    """Return the link of a robot to its clients. Raises LinkError if the port is in use."""
    if robot.transport == "tcp":
        return TcpPort(host, port, options=STREAM, wire_log=wire_log, has_small_buffers=True)
    return DatagramPort(host, port, wire_log)
