# SPDX-License-Identifier: Apache-2.0
"""ServedDriver: one driver's connection to a robot, as received and sent bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from drone_bridge.robot import codec
from drone_bridge.robot.vehicle.device.control import RobotControl
from drone_bridge.robot.vehicle.device.drivers import Driver, Instant
from drone_bridge.wire.outgoing import encoded


class ServedDriver:
    """One connected driver. It is added to `RobotControl` at creation, and removed by `leave`."""

    def __init__(
        self,
        control: RobotControl,
        peer: Any,
        send: Callable[[bytes], None],
        clock: Callable[[], Instant],
        *,
        is_suppressed: Callable[[codec.FromRobot], bool] = lambda packet: False,
        reads_one_packet: bool = False,
        unencodable: Callable[[str], None] | None = None,
    ) -> None:
        """Add the driver.

        Args:
            control: of the robot.
            peer: the driver, as passed to `send`. Its text is its address, for logs.
            send: sends bytes to the driver without blocking.
            clock: returns the time.
            is_suppressed: returns whether a packet is withheld.
            reads_one_packet: handle one of the packets in each socket read, as the LEGO NXT adapters do.
            unencodable: receives a sentence about a packet that can't be encoded, and is dropped. Default: a report.
        """
        self._control = control
        self._send = send
        self._clock = clock
        self._is_suppressed = is_suppressed
        self._reads_one_packet = reads_one_packet
        self._unencodable = unencodable or control.report
        self._has_read = False
        self._received = clock()
        self._connection = codec.RobotConnection([subsystem.type for subsystem in control.vehicle.subsystems])
        self.driver = Driver(peer, self._send_packet, self._received.steady_s)
        control.join(self.driver)

    @property
    def inside_message(self) -> bool:
        return self._connection.inside_message and not self._reads_one_packet

    def receive_data(self, data: bytes) -> None:
        self._received = self._clock()  # a packet may be handled much later
        self._connection.receive_data(data)
        self._has_read = True

    def handle_next(self) -> bool:
        """Execute the next received packet. Return False if there was none.

        Raises RemoteProtocolError and DisconnectPeerError, which end the connection.
        """
        if self._reads_one_packet and not self._has_read:
            return False
        self._has_read = False
        event = self._connection.next_event()
        if event is codec.NEED_DATA or isinstance(event, codec.ConnectionClosed):
            return False
        self._control.handle(self.driver, event, self._received)
        return True

    def receive_eof(self) -> None:
        """Execute the rest of an ended stream. Raises RemoteProtocolError if it ends inside a packet."""
        self._connection.receive_eof()
        self._reads_one_packet = False  # the remaining packets are handled at once
        while self.handle_next():
            pass

    def leave(self, reason: str) -> None:
        self._control.leave(self.driver, self._clock())
        self._control.report(f"{self.driver} disconnected: {reason}")

    def _send_packet(self, packet: codec.FromRobot) -> None:
        if not self._is_suppressed(packet) and (
            data := encoded(self._connection.send, packet, None, self._unencodable)
        ):
            self._send(data)
