# SPDX-License-Identifier: Apache-2.0
"""The least that a script between ROS 2 and an autopilot can do; with testbed_floor.py --wait it is a bare relay.

It sends both images of a stamp when they have come, and publishes the answer. Nothing is checked.
"""

import argparse
import socket
import struct
import sys
import threading

import rclpy
from nodes import publish, ros, spin_in_a_thread
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image

from drone_bridge.msg import CommandRates


def main() -> int:
    """Serve one autopilot until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    parser.add_argument("width", type=int)
    parser.add_argument("height", type=int)
    arguments = parser.parse_args()
    images: dict[str, Image] = {}
    arrived = threading.Condition()

    def on_image(side: str, image: Image) -> None:
        with arrived:
            images[side] = image
            arrived.notify()

    def is_pair() -> bool:
        return len(images) == 2 and images["left"].header.stamp == images["right"].header.stamp

    with ros(is_interrupted=True), socket.create_server(("127.0.0.1", arguments.port)) as listener:
        node = rclpy.create_node("relay_floor", namespace=arguments.namespace)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        publisher = node.create_publisher(CommandRates, "cmd_rates", qos)
        for side in ("left", "right"):
            node.create_subscription(Image, f"{side}/image_raw", lambda image, side=side: on_image(side, image), qos)
        spin_in_a_thread(node)
        autopilot, _ = listener.accept()
        with autopilot:
            autopilot.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            size = arguments.width, arguments.height
            numbers = (90.0, 90.0, *size, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
            autopilot.sendall(struct.pack(">ffiiffffffff", *numbers))
            while True:
                with arrived:
                    arrived.wait_for(is_pair)
                    left, right = images.pop("left"), images.pop("right")
                autopilot.sendall(memoryview(left.data))
                autopilot.sendall(memoryview(right.data))
                autopilot.sendall(struct.pack(">fff", 0.0, 0.0, 0.0))
                thrust = struct.unpack(">ffff", autopilot.recv(16, socket.MSG_WAITALL))[3]
                command = CommandRates(thrust=thrust)
                command.header.stamp = left.header.stamp
                publish(publisher, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
