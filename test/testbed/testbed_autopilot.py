# SPDX-License-Identifier: Apache-2.0
"""Autopilot for tests that control each byte."""

import socket

from patience import TIMEOUT_S

from drone_bridge.testbed.codec import NEED_DATA, AttitudeLayout, AutopilotConnection, MotionParameters

MOTION = MotionParameters(10.0, -20.0, 30.0, 12.5)


class AutopilotPeer:
    """Connects to a testbed, and sends the test's data."""

    def __init__(self, port, layout=AttitudeLayout.PITCH_YAW):
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        self.connection = AutopilotConnection(layout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self):
        """Wait for the next event. Images are copied."""
        while (event := self.connection.next_event()) is NEED_DATA:
            count = self.socket.recv_into(self.connection.get_buffer())
            if count:
                self.connection.buffer_updated(count)
            else:
                self.connection.receive_eof()
        return event

    def answer(self, motion=MOTION):
        self.socket.sendall(self.connection.send(motion))

    def reads_end(self):
        """Wait for the end of the connection; return earlier data."""
        received = b""
        while more := self.socket.recv(65536):
            received += more
        return received
