# SPDX-License-Identifier: Apache-2.0
"""Baseline for testbed_bridge: a minimal script between a testbed and ROS 2.

It reads frames into arrays, uses them as the data of two images, publishes these and other outputs with the time, and
replies. It does not check or count anything. It replies before it publishes, like `sync: latest`; for CONTROLLED it
replies with the controller's command, like `sync: lockstep`.
"""

import argparse
import contextlib
import itertools
import math
import socket
import struct
import sys
import threading
import time
from array import array
from collections.abc import Callable

import rclpy
from filling import fill_rotation, rotation_of
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, Imu
from std_msgs.msg import Header
from testbed_loads import Load, load_named
from testbed_marks import SIDES
from testbed_peer import HOVER_THRUST
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import CommandRates

COMMAND_TIMEOUT_S = 0.5
RECONNECT_S = 0.05
FLOATS = struct.Struct(">fffffff")  # x, y, z, heading, pitch, roll, time


def receive(testbed: socket.socket, buffer: memoryview) -> None:
    """Read until the buffer is full. Raises EOFError if the testbed has closed the connection."""
    while buffer:
        count = testbed.recv_into(buffer)
        if not count:
            raise EOFError
        buffer = buffer[count:]


class Publishers:
    """Publishes frames. Messages are created once and refilled."""

    def __init__(self, node: Node, load: Load) -> None:
        self._has_images_only = load is Load.IMAGES
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        self._clock = node.get_clock()
        self._images = [node.create_publisher(Image, f"{side}/image_raw", qos) for side in SIDES]
        if self._has_images_only:
            return
        self._attitude = node.create_publisher(Imu, "imu/data", qos)
        self._odometry = node.create_publisher(Odometry, "odom", qos)
        self._tf = node.create_publisher(TFMessage, "/tf", qos)
        self._infos = [node.create_publisher(CameraInfo, f"{side}/camera_info", qos) for side in SIDES]

    def prepare(self, width: int, height: int, separation: float, angle_of_view: float) -> None:
        """Create the messages of a pair of cameras."""
        self._headers = [Header(frame_id=f"{side}_camera_optical_frame") for side in SIDES]
        row = 3 * width
        self._messages = [
            Image(header=header, width=width, height=height, encoding="rgb8", step=row) for header in self._headers
        ]
        self._imu = Imu(header=Header(frame_id="base_link"))
        self._pose = Odometry(header=Header(frame_id="odom"), child_frame_id="base_link")
        self._transform = TransformStamped(header=self._pose.header, child_frame_id="base_link")
        self._transforms = TFMessage(transforms=[self._transform])
        focal, x, y = width / 2 / math.tan(math.radians(angle_of_view) / 2), (width - 1) / 2, (height - 1) / 2
        self._info_messages = [
            CameraInfo(
                header=header,
                width=width,
                height=height,
                distortion_model="plumb_bob",
                d=[0.0] * 5,
                k=[focal, 0.0, x, 0.0, focal, y, 0.0, 0.0, 1.0],
                r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
                p=[focal, 0.0, x, -focal * baseline, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0],
            )
            for header, baseline in zip(self._headers, (0.0, separation), strict=True)
        ]

    def publish(self, arrays: list["array[int]"], floats: bytearray) -> None:
        """Publish a frame, small messages first."""
        stamp = self._clock.now().to_msg()
        for header in self._headers:
            header.stamp = stamp
        if not self._has_images_only:
            self._imu.header.stamp = self._pose.header.stamp = stamp
            x, y, z, heading, pitch, roll, _ = FLOATS.unpack(floats)
            point, translation = self._pose.pose.pose.position, self._transform.transform.translation
            point.x, point.y, point.z = translation.x, translation.y, translation.z = x, -z, y
            # The heading is positive to the right from north.
            rotation = rotation_of(*map(math.radians, (roll, pitch, 90 - heading)))
            fill_rotation(self._imu.orientation, rotation)
            fill_rotation(self._pose.pose.pose.orientation, rotation)
            fill_rotation(self._transform.transform.rotation, rotation)
            for info_publisher, info in zip(self._infos, self._info_messages, strict=True):
                publish(info_publisher, info)
            publish(self._attitude, self._imu)
            publish(self._odometry, self._pose)
            publish(self._tf, self._transforms)
        for image_publisher, image, pixels in zip(self._images, self._messages, arrays, strict=True):
            image._data = pixels
            publish(image_publisher, image)


def converse(testbed: socket.socket, publishers: Publishers, wait: Callable[[], CommandRates] | None) -> None:
    """Serve one testbed until it closes the connection."""
    constants = bytearray(48)
    receive(testbed, memoryview(constants))
    angle_of_view, _, width, height, separation = struct.unpack_from(">ffiif", constants)
    publishers.prepare(width, height, separation, angle_of_view)
    turns = itertools.cycle([[array("B", bytes(3 * width * height)) for _ in SIDES] for _ in range(2)])
    floats = bytearray(FLOATS.size)
    neutral = struct.pack(">ffff", 0.0, 0.0, 0.0, HOVER_THRUST)
    with contextlib.suppress(EOFError):
        for arrays in turns:
            for pixels in arrays:
                receive(testbed, memoryview(pixels))
            receive(testbed, memoryview(floats))
            if wait:
                publishers.publish(arrays, floats)
                command = wait()
                rates = (command.pitch_rate, command.roll_rate, -command.yaw_rate)
                testbed.sendall(struct.pack(">ffff", *map(math.degrees, rates), command.thrust))
            else:
                testbed.sendall(neutral)
                publishers.publish(arrays, floats)


def receive_commands(node: Node) -> Callable[[], CommandRates]:
    """Receive commands on a thread that ends with ROS, and return a function that waits for the next one."""
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
    """Serve one testbed at a time until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    parser.add_argument("load", type=load_named)
    arguments = parser.parse_args()
    with ros(is_interrupted=True):
        node = rclpy.create_node("baseline", namespace=arguments.namespace)
        publishers = Publishers(node, arguments.load)
        wait = receive_commands(node) if arguments.load is Load.CONTROLLED else None
        while True:
            with (
                contextlib.suppress(ConnectionError),
                socket.create_connection(("127.0.0.1", arguments.port)) as testbed,
            ):
                testbed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                converse(testbed, publishers, wait)
            time.sleep(RECONNECT_S)
    return 0


if __name__ == "__main__":
    sys.exit(main())
