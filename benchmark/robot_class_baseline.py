# SPDX-License-Identifier: Apache-2.0
"""Baseline for the bridge of a robot in one class: a minimal node between a Pioneer and ROS 2.

It greets the robot, sends it the newest velocity 20 times per second, neutral once that is older than 0.5 s, and
publishes each state. It does not limit, check or count anything, and it exits when the connection is lost.
"""

import argparse
import math
import select
import socket
import sys
import threading
import time
from pathlib import Path

import rclpy
from geometry_msgs.msg import TransformStamped, Twist
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from robot_baseline import connect
from sensor_msgs.msg import BatteryState
from std_msgs.msg import Bool, Header
from tf2_msgs.msg import TFMessage

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "pioneer"))
from pioneer import ENABLE, HALF_AXLE_M, M_PER_UNIT, OPEN, RAD_PER_UNIT, RVEL, SIP, STATE, VEL, command, packet

PERIOD_S, TIMEOUT_S = 0.05, 0.5


class Baseline:
    """Publishes a robot's reports. Messages are created once and refilled."""

    def __init__(self, node: Node, robot: socket.socket) -> None:
        self._robot, self._clock = robot, node.get_clock()
        self._velocity, self._commanded_s = (0.0, 0.0), -math.inf
        self._odometry_publisher = node.create_publisher(Odometry, "odom", 10)
        self._tf_publisher = node.create_publisher(TFMessage, "/tf", 100)
        self._battery_publisher = node.create_publisher(BatteryState, "battery_state", 10)
        self._flag_publishers = [node.create_publisher(Bool, name, 10) for name in ("motors", "stalled")]
        self._odometry = Odometry(header=Header(frame_id="odom"), child_frame_id="base_link")
        self._transform = TransformStamped(header=self._odometry.header, child_frame_id="base_link")
        self._tf = TFMessage(transforms=[self._transform])
        self._battery = BatteryState(percentage=math.nan, present=True)
        node.create_subscription(Twist, "cmd_vel", self._take, 1)
        robot.sendall(packet(0))

    def _take(self, twist: Twist) -> None:
        self._velocity, self._commanded_s = (twist.linear.x, twist.angular.z), time.monotonic()

    def drive(self) -> None:
        """Send the newest velocity."""
        forward, turn = self._velocity if time.monotonic() - self._commanded_s < TIMEOUT_S else (0.0, 0.0)
        self._robot.sendall(command(VEL, round(1000 * forward)) + command(RVEL, round(math.degrees(turn))))

    def handle(self, heard: bytes) -> None:
        """Handle a packet."""
        kind = heard[3]
        if kind < 2:
            self._robot.sendall(packet(kind + 1))
        elif kind == 2:
            self._robot.sendall(packet(OPEN) + command(ENABLE, 1))
        elif kind in (SIP, SIP + 1):
            self._publish(heard)

    def _publish(self, heard: bytes) -> None:
        x, y, theta, left, right, battery, stalls, _, flags, _, _ = STATE.unpack_from(heard, 4)
        pose, twist, moved = self._odometry.pose.pose, self._odometry.twist.twist, self._transform.transform
        stamp = self._clock.now().to_msg()
        self._odometry.header.stamp = self._battery.header.stamp = stamp
        twist.linear.x, twist.angular.z = (left + right) / 2000, (right - left) / 2000 / HALF_AXLE_M
        pose.position.x = moved.translation.x = x * M_PER_UNIT
        pose.position.y = moved.translation.y = y * M_PER_UNIT
        pose.orientation.z = moved.rotation.z = math.sin(theta * RAD_PER_UNIT / 2)
        pose.orientation.w = moved.rotation.w = math.cos(theta * RAD_PER_UNIT / 2)
        self._battery.voltage = battery / 10
        publish(self._odometry_publisher, self._odometry)
        publish(self._tf_publisher, self._tf)
        publish(self._battery_publisher, self._battery)
        for publisher, flag in zip(self._flag_publishers, (flags & 1, stalls & 0x101), strict=True):
            publish(publisher, Bool(data=bool(flag)))


def converse(robot: socket.socket, baseline: Baseline) -> None:
    """Serve one robot until it closes the connection."""
    buffer, due_s = b"", time.monotonic()
    while True:
        now_s = time.monotonic()
        if now_s >= due_s:
            due_s += PERIOD_S
            baseline.drive()
        if not select.select([robot], [], [], max(0.0, due_s - now_s))[0]:
            continue
        if not (data := robot.recv(65536)):
            return
        buffer += data
        while len(buffer) >= 3 and len(buffer) >= (size := 3 + buffer[2]):
            baseline.handle(buffer[:size])
            buffer = buffer[size:]


def main() -> int:
    """Serve one robot until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("port", type=int)
    arguments = parser.parse_args()
    with ros(is_interrupted=True):
        node = rclpy.create_node("baseline", namespace=arguments.namespace)
        with connect(arguments.port) as robot:
            baseline = Baseline(node, robot)
            spin_in_a_thread(node)
            converse(robot, baseline)
        threading.Event().wait()  # for SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
