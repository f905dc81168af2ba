# SPDX-License-Identifier: Apache-2.0
"""Testbed at a steady rate that logs when it sent each frame, and when it received which reply.

It prints its port, and then `frame time, reply's time, roll rate` for each frame, in s since 1970 and degrees/s.
"""

import socket
import sys
import time

import numpy as np

from drone_bridge.testbed.codec import NEED_DATA, ConnectionClosed, Constants, SensorFrame, TestbedConnection

WIDTH, HEIGHT = 320, 240  # pixels
_REPLY_BYTES = 16


def main() -> None:
    """Serve one bridge until it disconnects: hosts_vehicle.py FRAMES_PER_SECOND."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        print(listener.getsockname()[1], flush=True)
        bridge, _ = listener.accept()
    with bridge:
        bridge.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        converse(bridge, float(sys.argv[1]))


def converse(bridge: socket.socket, rate: float) -> None:
    """Send frames, and print the replies."""
    connection = TestbedConnection()
    # The roll rate numbers the commands, so its range must be large.
    limits = {"max_thrust": 25.0, "max_pitch_rate": 720.0, "max_roll_rate": 1e6, "max_yaw_rate": 720.0}
    body = {"camera_separation": 0.25, "weight": 1.0, "gravity": 9.81, "drag": 0.2}
    constants = Constants(90.0, 73.7, WIDTH, HEIGHT, **body, **limits)
    bridge.sendall(connection.send(constants))
    image = scene(WIDTH, HEIGHT)
    begin_s = time.monotonic()
    for number in range(1, 1 << 30):
        time.sleep(max(0.0, begin_s + number / rate - time.monotonic()))
        sent_s = time.time()
        try:
            bridge.sendall(connection.send(SensorFrame(image, image, pitch=0.0, yaw=0.0, time=number / rate)))
            while (event := connection.next_event()) is NEED_DATA:
                data = bridge.recv(_REPLY_BYTES)
                connection.receive_data(data) if data else connection.receive_eof()
        except OSError:
            return
        if isinstance(event, ConnectionClosed):
            return
        print(f"{sent_s:.6f} {time.time():.6f} {event.roll_rate:.3f}", flush=True)


def scene(width: int, height: int) -> bytes:
    """Return an image that compresses like one of a room: coarse shapes with camera noise."""
    source = np.random.default_rng(1)
    shapes = source.integers(60, 200, (height // 40 + 1, width // 40 + 1, 3)).repeat(40, 0).repeat(40, 1)
    noisy = shapes[:height, :width] + source.normal(0.0, 3.0, (height, width, 3))
    return noisy.astype(np.uint8).tobytes()


main()
