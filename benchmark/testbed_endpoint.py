# SPDX-License-Identifier: Apache-2.0
"""ROS-TCP-Endpoint as a baseline, and a peer that sends it the images of frames as messages, like a Unity program.

Its branch main-ros2 is read from a folder with a clone of github.com/Unity-Technologies/ROS-TCP-Endpoint.
"""

import json
import socket
import struct
import sys
import time
from pathlib import Path

import testbed_marks as marks
from rclpy.serialization import serialize_message
from sensor_msgs.msg import Image
from std_msgs.msg import Header
from system import READY_TIMEOUT_S, free_port
from testbed_marks import Mark
from testbed_peer import HOVER_THRUST

#: Folder of the clone, or None.
FOLDER: Path | None = None
_START = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); from ros_tcp_endpoint.default_server_endpoint import main; main()"
)
RETRY_S = 0.1


def endpoint_command(port: int) -> list[str]:
    """Return the command line of ROS-TCP-Endpoint."""
    settings = ["-p", "ROS_IP:=127.0.0.1", "-p", f"ROS_TCP_PORT:={port}"]
    return [sys.executable, "-c", _START, str(FOLDER), "--ros-args", *settings]


def _packed(name: str, data: bytes) -> bytes:
    """Encode a message, or for a name that begins with __ a command."""
    return struct.pack(f"<I{len(name)}sI", len(name), name.encode(), len(data)) + data


class EndpointConversation:
    """Connection on which two images are published repeatedly, without replies."""

    def __init__(self, connected: socket.socket, namespace: str, width: int, height: int, *, registers: bool) -> None:
        """Connect; `registers`: its topics are new to ROS-TCP-Endpoint."""
        self._socket, self._frame, self._starts = connected, bytearray(), list[int]()
        self._image_bytes = 3 * width * height
        for side in marks.SIDES:
            topic = f"{namespace}/{side}/image_raw"
            if registers:
                command = {"topic": topic, "message_name": "sensor_msgs/Image", "queue_size": 1}
                connected.sendall(_packed("__publish", json.dumps(command).encode() + b"\0"))
            image = Image(header=Header(frame_id=side), height=height, width=width, encoding="rgb8", step=3 * width)
            image.data = pixels = bytes([marks.FILL[side]]) * self._image_bytes
            packed = _packed(topic, serialize_message(image))
            self._starts.append(len(self._frame) + packed.rindex(pixels))
            self._frame += packed

    def exchange(self, measurement: int, number: int) -> tuple[Mark, float, float]:
        """Send a frame; return its mark, the hover thrust in place of a reply, and the duration, s."""
        mark = Mark(measurement, number, time.monotonic_ns())
        marks.write(self._frame, self._starts, self._image_bytes, mark)
        self._socket.sendall(self._frame)
        return mark, HOVER_THRUST, (time.monotonic_ns() - mark.sent_ns) / 1e9

    def close(self) -> None:
        self._socket.close()


class EndpointPeer:
    """Connects to ROS-TCP-Endpoint, for one connection at a time."""

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self._has_met = False
        self.port = free_port()

    def meet(self, width: int, height: int) -> EndpointConversation:
        """Connect once it listens."""
        end_s = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                connected = socket.create_connection(("127.0.0.1", self.port))
                break
            except ConnectionRefusedError:
                if time.monotonic() > end_s:
                    raise
                time.sleep(RETRY_S)
        registers, self._has_met = not self._has_met, True
        return EndpointConversation(connected, self._namespace, width, height, registers=registers)

    def close(self) -> None:
        """Do nothing: the other side listens."""
