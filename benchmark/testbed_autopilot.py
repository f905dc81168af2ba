# SPDX-License-Identifier: Apache-2.0
"""An autopilot that answers each frame with the thrust that its mark asks for, over plain blocking sockets."""

import argparse
import contextlib
import socket
import struct
import sys
import time

import testbed_marks as marks

RECONNECT_S = 0.05


def fly(connected: socket.socket) -> None:
    """Answer frames until the testbed closes. Raises ConnectionError and ValueError."""
    connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    constants = connected.recv(48, socket.MSG_WAITALL)
    if len(constants) < 48:
        return
    width, height = struct.unpack_from(">ii", constants, 8)
    image_bytes = 3 * width * height
    frame = memoryview(bytearray(2 * image_bytes + 12))
    while connected.recv_into(frame, len(frame), socket.MSG_WAITALL) == len(frame):
        thrust = marks.read(frame[:image_bytes], "left").thrust
        if marks.read(frame[image_bytes : 2 * image_bytes], "right").thrust != thrust:
            raise ValueError("The images of a frame are of two frames.")
        connected.sendall(struct.pack(">ffff", 0.0, 0.0, 0.0, thrust))


def main() -> int:
    """Serve one testbed after the other until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    port = parser.parse_args().port
    print("ready", flush=True)
    with contextlib.suppress(KeyboardInterrupt):
        while True:
            with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port)) as connected:
                fly(connected)
            time.sleep(RECONNECT_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
