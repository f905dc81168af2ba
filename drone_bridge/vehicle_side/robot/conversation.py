# SPDX-License-Identifier: Apache-2.0
"""One driver's connection to a robot: bytes in, bytes out. No socket and no clock."""

from __future__ import annotations

from collections.abc import Callable

from drone_bridge.protocols.errors import LocalProtocolError
from drone_bridge.protocols.robot import NEED_DATA, ConnectionClosed, FromRobot, RobotConnection
from drone_bridge.vehicle_side.robot.control import Control
from drone_bridge.vehicle_side.robot.drivers import Driver, Now


class Conversation:
    """What one driver says and is told. It has joined the others at once, and stays until `leave`."""

    def __init__(
        self,
        control: Control,
        peer: str,
        send: Callable[[bytes], None],
        close: Callable[[], None],
        clock: Callable[[], Now],
        *,
        is_withheld: Callable[[FromRobot], bool] = lambda packet: False,
    ) -> None:
        """Join.

        Args:
            control: of the robot.
            peer: the address of the driver, for people.
            send: takes bytes for the driver, and never blocks.
            close: ends the connection.
            clock: tells the time.
            is_withheld: tells whether a packet must not be sent, for emulators of faults.
        """
        self._control = control
        self._send = send
        self._clock = clock
        self._is_withheld = is_withheld
        self._connection = RobotConnection([subsystem.type for subsystem in control.vehicle.subsystems])
        self.driver = Driver(peer, self._send_packet, close, clock().steady_s)
        control.join(self.driver)

    def receive_data(self, data: bytes) -> None:
        """Take in bytes. Raises RemoteProtocolError, and HangUpError, after which the connection has to be closed."""
        self._connection.receive_data(data)
        self._handle_events()

    def receive_eof(self) -> None:
        """Take in the end of what the driver sends. Raises RemoteProtocolError when it is inside a packet."""
        self._connection.receive_eof()
        self._handle_events()

    def leave(self, reason: str) -> None:
        """Note that the connection is closed."""
        self._control.leave(self.driver, self._clock())
        self._control.report(f"{self.driver} is gone: {self.driver.dropped_because or reason}")

    def _handle_events(self) -> None:
        while not self.driver.dropped_because:
            event = self._connection.next_event()
            if event is NEED_DATA or isinstance(event, ConnectionClosed):
                return
            self._control.handle(self.driver, event, self._clock())

    def _send_packet(self, packet: FromRobot) -> None:
        if not self.driver.dropped_because and not self._is_withheld(packet):
            try:
                data = self._connection.send(packet)
            except LocalProtocolError as error:  # nothing on the wire can say this
                self.driver.drop(str(error))
            else:
                self._send(data)
