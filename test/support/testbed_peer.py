# SPDX-License-Identifier: Apache-2.0
"""Testbed with bytes controlled by tests."""

import socket
import struct

from processes import TIMEOUT_S, Process

from drone_bridge.testbed.codec import AttitudeLayout, Constants, MotionParameters, SensorFrame, TestbedConnection

STEP_S = 1 / 64
REPLY = struct.Struct(">4f")
#: With a gravity as some testbeds send it.
CONSTANTS = Constants(90.0, 60.0, 16, 8, 0.25, 1.5, -10.0, 0.25, 25.0, 720.0, 360.0, 180.0)
HOVER = MotionParameters(0.0, 0.0, 0.0, 15.0)


def pixels(seed, constants=CONSTANTS):
    pattern = bytes((seed + 7 * index) % 256 for index in range(256))
    return (pattern * (constants.image_bytes // 256 + 1))[: constants.image_bytes]


def read(connection, size):
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        assert more, f"the connection was closed after {len(received)} of {size} bytes"
        received += more
    return received


def bridge(peer, **parameters):
    """Start a bridge that connects to the peer."""
    return Process.node("testbed_bridge", port=peer.port, **parameters)


class TestbedPeer:
    """Server on a free port, which plays one testbed at a time."""

    __test__ = False

    def __init__(self, layout=AttitudeLayout.PITCH_YAW):
        self._layout = layout
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TIMEOUT_S)
        self.port = self._listener.getsockname()[1]
        self.socket = None

    def open(self, constants=CONSTANTS):
        """Accept a connection and send the first messages."""
        self.accept()
        self.connection = TestbedConnection(self._layout)
        self.time = 0.0
        self.socket.sendall(self.connection.send(constants))
        return self

    def accept(self):
        self.hang_up()
        self.socket, _ = self._listener.accept()
        self.socket.settimeout(TIMEOUT_S)

    def frame_bytes(self, time=None, pitch=0.0, constants=CONSTANTS, **fields):
        """Encode a frame. Default time: one step after the last one."""
        self.time = self.time + STEP_S if time is None else time
        if self._layout is AttitudeLayout.PITCH_YAW:
            fields.setdefault("yaw", 2.0)
        return self.connection.send(
            SensorFrame(pixels(1, constants), pixels(2, constants), time=self.time, pitch=pitch, **fields)
        )

    def send_frame(self, **fields):
        self.socket.sendall(self.frame_bytes(**fields))

    def reply(self):
        """Wait for the answer to the frame."""
        received = read(self.socket, REPLY.size)
        self.connection.receive_data(received)
        return self.connection.next_event()

    def exchange(self, **fields):
        self.send_frame(**fields)
        return self.reply()

    def hang_up(self):
        if self.socket:
            self.socket.close()
            self.socket = None

    def close(self):
        self.hang_up()
        self._listener.close()
