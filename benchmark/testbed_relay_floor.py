# SPDX-License-Identifier: Apache-2.0
"""The least that a script between ROS 2 and an autopilot can do; with testbed_floor.py --wait it is a bare relay.

It sends both images and the attitude of a stamp when they have come, and publishes the answer. Nothing is checked.
"""

import argparse
import math
import socket
import struct
import sys
import threading
from functools import partial

import rclpy
from nodes import publish, ros, spin_in_a_thread
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Image, Imu

from drone_bridge.msg import CommandRates

TOPICS = {"left/image_raw": Image, "right/image_raw": Image, "imu/data": Imu}


def pitch_and_yaw(imu: Imu) -> tuple[float, float]:
    """Return the angles of an attitude without roll, in degrees, yaw positive to the right."""
    q = imu.orientation
    pitch = math.asin(2 * (q.w * q.y - q.z * q.x))
    yaw = math.atan2(2 * (q.w * q.z + q.x * q.y), 1 - 2 * (q.y * q.y + q.z * q.z))
    return math.degrees(pitch), -math.degrees(yaw)


def main() -> int:
    """Serve one autopilot until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    parser.add_argument("width", type=int)
    parser.add_argument("height", type=int)
    arguments = parser.parse_args()
    newest: dict[str, Image | Imu] = {}
    arrived = threading.Condition()

    def on_message(topic: str, message: Image | Imu) -> None:
        with arrived:
            newest[topic] = message
            arrived.notify()

    def is_complete() -> bool:
        stamps = [newest[topic].header.stamp for topic in TOPICS if topic in newest]
        return len(stamps) == len(TOPICS) and stamps[0] == stamps[1] == stamps[2]

    with ros(is_interrupted=True), socket.create_server(("127.0.0.1", arguments.port)) as listener:
        node = rclpy.create_node("relay_floor", namespace=arguments.namespace)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        publisher = node.create_publisher(CommandRates, "cmd_rates", qos)
        for topic, message_type in TOPICS.items():
            node.create_subscription(message_type, topic, partial(on_message, topic), qos)
        spin_in_a_thread(node)
        autopilot, _ = listener.accept()
        with autopilot:
            autopilot.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            size = arguments.width, arguments.height
            numbers = (90.0, 90.0, *size, 0.25, 1.0, 9.81, 0.2, 25.0, 720.0, 720.0, 720.0)
            autopilot.sendall(struct.pack(">ffiiffffffff", *numbers))
            while True:
                with arrived:
                    arrived.wait_for(is_complete)
                    left, right, imu = (newest.pop(topic) for topic in TOPICS)
                autopilot.sendall(memoryview(left.data))
                autopilot.sendall(memoryview(right.data))
                autopilot.sendall(struct.pack(">fff", *pitch_and_yaw(imu), 0.0))
                pitch, roll, yaw, thrust = struct.unpack(">ffff", autopilot.recv(16, socket.MSG_WAITALL))
                command = CommandRates(
                    pitch_rate=math.radians(pitch),
                    roll_rate=math.radians(roll),
                    yaw_rate=-math.radians(yaw),
                    thrust=thrust,
                )
                command.header.stamp = left.header.stamp
                publish(publisher, command)
    return 0


if __name__ == "__main__":
    sys.exit(main())
