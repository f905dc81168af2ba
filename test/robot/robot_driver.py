# SPDX-License-Identifier: Apache-2.0
"""Driver for tests, which sends packets and waits for expected responses."""

import socket
import time

from patience import TIMEOUT_S

from drone_bridge.robot.codec import (
    NEED_DATA,
    BindSubsystem,
    BindSuccess,
    ConnectionClosed,
    DriverConnection,
    KeepAlive,
    QuerySubsystems,
    RegisterDriver,
    SensorInfo,
)


class RobotDriver:
    """Connection to a robot."""

    def __init__(self, port, name=None):
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_S)
        self.socket.connect(("127.0.0.1", port))
        self._connection = DriverConnection()
        self.events = []
        if name:
            self.send(RegisterDriver(name))

    def send(self, *packets):
        self.socket.sendall(b"".join(map(self._connection.send, packets)))

    def send_bytes(self, data):
        self.socket.sendall(data)

    def next_event(self):
        while (event := self._connection.next_event()) is NEED_DATA:
            try:
                data = self.socket.recv(65536)
            except ConnectionResetError:
                data = b""
            if data:
                self._connection.receive_data(data)
            else:
                self._connection.receive_eof()
        self.events.append(event)
        return event

    def wait_for(self, kind, wanted=lambda event: True):
        """Return the first event of a wanted kind. Earlier ones are in `events`."""
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            event = self.next_event()
            if isinstance(event, kind) and wanted(event):
                return event
            assert not isinstance(event, ConnectionClosed), f"closed after {self.events}"
        raise AssertionError(f"no {kind.__name__} in {self.events}")

    def bind(self, subsystem):
        self.send(BindSubsystem(subsystem))
        self.wait_for(BindSuccess, lambda event: event.id == subsystem)

    def query_sensors(self):
        self.send(QuerySubsystems())
        return self.wait_for(SensorInfo)

    def settle(self):
        """Wait until the robot has handled all packets sent so far."""
        now_ms = time.time_ns() // 1_000_000
        self.send(KeepAlive(now_ms))
        self.wait_for(KeepAlive, lambda event: event.time_ms == now_ms)

    def is_hung_up_on_within(self, seconds):
        """Return whether the connection ends. Earlier events are in `events`."""
        self.socket.settimeout(seconds)
        try:
            while not isinstance(self.next_event(), ConnectionClosed):
                pass
        except TimeoutError:
            return False
        return True

    def close(self):
        self.socket.close()
