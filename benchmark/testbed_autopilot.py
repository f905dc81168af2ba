# SPDX-License-Identifier: Apache-2.0
"""An autopilot that checks each frame, and answers as its mark asks for, over plain blocking sockets."""

import argparse
import contextlib
import socket
import struct
import sys
import time

import testbed_marks as marks

RECONNECT_S = 0.05
TOLERANCE_DEGREES = 1e-3


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
        mark = marks.read(frame[:image_bytes], "left")
        if marks.read(frame[image_bytes : 2 * image_bytes], "right") != mark:
            raise ValueError("The images of a frame are of two frames.")
        attitude = struct.unpack_from(">ff", frame, 2 * image_bytes)
        if max(abs(came - sent) for came, sent in zip(attitude, mark.attitude, strict=True)) > TOLERANCE_DEGREES:
            raise ValueError(f"Frame {mark.frame} came with attitude {attitude} instead of {mark.attitude}.")
        connected.sendall(struct.pack(">ffff", *mark.answer))


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
