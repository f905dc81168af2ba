# SPDX-License-Identifier: Apache-2.0
"""Testbed that sends prepared frames repeatedly: blocking sockets, with little computation."""

import itertools
import random
import socket
import struct
import time

import testbed_marks as marks
from testbed_marks import Mark

HOVER_THRUST = 9.81  # N, for the mass and gravity below; reply of an autopilot without a controller
TIMEOUT_S = 10.0
#: Amplitude of a flying drone's attitude, degrees, and position, m; and their approximate change per frame.
SWAY_DEGREES, SWAY_STEP_DEGREES = 3.0, 0.4
WAY_M, WAY_STEP_M = 1.0, 0.02
_CONSTANTS = struct.Struct(">ffiiffffffff")
_FLOATS = struct.Struct(">fffffff")  # x, y, z, heading, pitch, roll, time
_REPLY = struct.Struct(">ffff")  # pitch rate, roll rate, yaw rate, thrust


def flight(seed: int, count: int = 1000) -> tuple[tuple[float, ...], ...]:
    """Return x, y, z (m), heading, pitch and roll (degrees) of a drone that moves at random from frame to frame."""
    chance = random.Random(seed)
    ways = [(WAY_M, WAY_STEP_M)] * 3 + [(SWAY_DEGREES, SWAY_STEP_DEGREES)] * 3
    values = [0.0] * len(ways)
    poses = []
    for _ in range(count):
        values = [value + chance.gauss(-0.1 * value, step) for value, (_, step) in zip(values, ways, strict=True)]
        poses.append(tuple(max(-most, min(value, most)) for value, (most, _) in zip(values, ways, strict=True)))
    return tuple(poses)


class Conversation:
    """Connection to an autopilot, from the constants to the end."""

    def __init__(self, connected: socket.socket, width: int, height: int) -> None:
        connected.settimeout(TIMEOUT_S)
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connected
        self._image_bytes = 3 * width * height
        left, right = (bytes([marks.FILL[side]]) * self._image_bytes for side in marks.SIDES)
        self._frame = bytearray(left + right + _FLOATS.pack(*[0.0] * 7))
        self._poses = itertools.cycle(flight(random.randrange(1 << 30)))
        self._began_ns = time.monotonic_ns()
        angle_of_view, separation, weight, gravity, drag, max_thrust, max_rate = 90.0, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0
        connected.sendall(
            _CONSTANTS.pack(
                angle_of_view,
                angle_of_view,
                width,
                height,
                separation,
                weight,
                gravity,
                drag,
                max_thrust,
                *[max_rate] * 3,
            )
        )

    def exchange(self, measurement: int, number: int) -> tuple[Mark, float, float]:
        """Send a frame, and wait for the reply.

        Returns the frame's mark, the thrust of the reply in N, and the seconds from the first sent byte of the frame to
        the last received byte of the reply.
        """
        mark = Mark(measurement, number, time.monotonic_ns())
        flown_s = (mark.sent_ns - self._began_ns) / 1e9
        _FLOATS.pack_into(self._frame, 2 * self._image_bytes, *next(self._poses), flown_s)
        marks.write(self._frame, (0, self._image_bytes), self._image_bytes, mark)
        self._socket.sendall(self._frame)
        reply = self._socket.recv(_REPLY.size, socket.MSG_WAITALL)
        took_s = (time.monotonic_ns() - mark.sent_ns) / 1e9
        if len(reply) < _REPLY.size:
            raise ConnectionError(f"The autopilot closed the connection before its reply to frame {mark.frame}.")
        return mark, _REPLY.unpack(reply)[3], took_s

    def close(self) -> None:
        self._socket.close()


class Peer:
    """Listens for one autopilot at a time."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(TIMEOUT_S)
        self.port = int(self._listener.getsockname()[1])

    def meet(self, width: int, height: int) -> Conversation:
        """Wait for the autopilot, and send it constants for cameras of this size."""
        connected, _ = self._listener.accept()
        return Conversation(connected, width, height)

    def close(self) -> None:
        self._listener.close()
