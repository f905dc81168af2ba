# SPDX-License-Identifier: Apache-2.0
"""The least that a script between a testbed and ROS 2 can do: what the bridge is compared with.

It reads frames into arrays, makes them the data of two images, publishes these and the attitude, and answers. Nothing
is checked, nothing is counted, nothing can fail. Without --wait it answers before it publishes, like `sync: latest`;
with --wait it answers with the command that a controller sends it, like `sync: lockstep`.
"""

import argparse
import contextlib
import math
import socket
import struct
import sys
import threading
import time
from array import array
from collections.abc import Callable

import rclpy
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, Imu
from testbed_peer import HOVER_THRUST

from drone_bridge.msg import CommandRates

COMMAND_TIMEOUT_S = 0.5
RECONNECT_S = 0.05


def fill(testbed: socket.socket, buffer: memoryview) -> None:
    """Read as many bytes as the buffer holds. Raises EOFError when the testbed has closed."""
    while buffer:
        count = testbed.recv_into(buffer)
        if not count:
            raise EOFError
        buffer = buffer[count:]


def fill_orientation(imu: Imu, pitch: float, yaw: float) -> None:
    """Set an attitude without roll from angles in degrees, yaw positive to the right."""
    half_pitch, half_yaw = math.radians(pitch) / 2, -math.radians(yaw) / 2
    q = imu.orientation
    q.x = -math.sin(half_pitch) * math.sin(half_yaw)
    q.y = math.sin(half_pitch) * math.cos(half_yaw)
    q.z = math.cos(half_pitch) * math.sin(half_yaw)
    q.w = math.cos(half_pitch) * math.cos(half_yaw)


def converse(
    testbed: socket.socket,
    images: "list[Publisher[Image]]",
    attitude: "Publisher[Imu]",
    wait: Callable[[], CommandRates] | None,
) -> None:
    """Serve one testbed until it closes."""
    constants = bytearray(48)
    fill(testbed, memoryview(constants))
    width, height = struct.unpack_from(">ii", constants, 8)
    image = Image(width=width, height=height, encoding="rgb8", step=3 * width)
    imu = Imu(header=image.header)
    turns = [[array("B", bytes(3 * width * height)) for _ in images] for _ in range(2)]
    floats = bytearray(12)
    neutral = struct.pack(">ffff", 0.0, 0.0, 0.0, HOVER_THRUST)

    def publish_all(arrays: list["array[int]"]) -> None:
        pitch, yaw, _ = struct.unpack(">fff", floats)
        fill_orientation(imu, pitch, yaw)
        publish(attitude, imu)
        for publisher, pixels in zip(images, arrays, strict=True):
            image._data = pixels
            publish(publisher, image)

    with contextlib.suppress(EOFError):
        while True:
            arrays = turns[image.header.stamp.sec % 2]
            for pixels in arrays:
                fill(testbed, memoryview(pixels))
            fill(testbed, memoryview(floats))
            image.header.stamp.sec += 1
            if wait:
                publish_all(arrays)
                command = wait()
                rates = (command.pitch_rate, command.roll_rate, -command.yaw_rate)
                testbed.sendall(struct.pack(">ffff", *map(math.degrees, rates), command.thrust))
            else:
                testbed.sendall(neutral)
                publish_all(arrays)


def receive_commands(node: Node) -> Callable[[], CommandRates]:
    """Receive commands in a thread that ends with ROS, and return a function that waits for the next one."""
    newest = CommandRates()
    arrived = threading.Event()

    def on_command(message: CommandRates) -> None:
        nonlocal newest
        newest = message
        arrived.set()

    def wait() -> CommandRates:
        arrived.wait(COMMAND_TIMEOUT_S)
        arrived.clear()
        return newest

    node.create_subscription(CommandRates, "cmd_rates", on_command, 1)
    spin_in_a_thread(node)
    return wait


def main() -> int:
    """Serve one testbed after the other until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    parser.add_argument("--wait", action="store_true", help="answer with the command of a controller")
    arguments = parser.parse_args()
    with ros(is_interrupted=True):
        node = rclpy.create_node("floor", namespace=arguments.namespace)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        images = [node.create_publisher(Image, f"{side}/image_raw", qos) for side in ("left", "right")]
        attitude = node.create_publisher(Imu, "imu/data", qos)
        wait = receive_commands(node) if arguments.wait else None
        while True:
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection(("127.0.0.1", arguments.port)) as testbed,
            ):
                testbed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                converse(testbed, images, attitude, wait)
            time.sleep(RECONNECT_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
