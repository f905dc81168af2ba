# SPDX-License-Identifier: Apache-2.0
"""Baseline for ardrone_bridge: a minimal script between an AR.Drone and ROS 2.

It asks for full navdata, publishes imu/data of each datagram, and odom and /tf at 30 Hz, and sends the newest velocity
as shares at 30 Hz. It does not check or count anything, has no command timeout, reads no settings, and does not control
velocity by feedback.
"""

import argparse
import contextlib
import math
import select
import socket
import struct
import sys
import time

import rclpy
from filling import fill, fill_rotation, rotation_of
from geometry_msgs.msg import TransformStamped, Twist
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from sensor_msgs.msg import Imu
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

PERIOD_S = 1 / 30
SILENCE_S = 1.0  # after which navdata is asked for again
FLY = 290718208
DEMO, PHYSICAL, CHECKSUM = 0, 3, 0xFFFF
ALL_OPTIONS = 0x7FFFFFF
MAX_TILT, MAX_YAW_RATE = 0.2094, 1.745
DRAG = 0.4  # tilt per m/s, about
GRAVITY = 9.80665


class Baseline:
    """Sends commands, and publishes navdata. Messages are created once and refilled."""

    def __init__(self, node: Node, commands: socket.socket) -> None:
        self._commands, self._clock = commands, node.get_clock()
        self._sequence = 0
        self._shares: tuple[float, float, float, float] | None = None
        self._x = self._y = 0.0
        self._published_s = -math.inf
        self._before_s = time.monotonic()
        self._imu_publisher = node.create_publisher(Imu, "imu/data", 10)
        self._odometry_publisher = node.create_publisher(Odometry, "odom", 10)
        self._tf_publisher = node.create_publisher(TFMessage, "/tf", 100)
        self._imu = Imu(header=Header(frame_id="base_link"))
        self._odometry = Odometry(header=Header(frame_id="odom"), child_frame_id="base_link")
        self._moved = TransformStamped(header=self._odometry.header, child_frame_id="base_link")
        self._tf = TFMessage(transforms=[self._moved])
        node.create_subscription(Twist, "cmd_vel", self._fly, 1)

    def _fly(self, twist: Twist) -> None:
        roll, pitch = -twist.linear.y * DRAG / MAX_TILT, -twist.linear.x * DRAG / MAX_TILT
        self._shares = roll, pitch, twist.linear.z, -twist.angular.z / MAX_YAW_RATE

    def begin(self) -> None:
        """Ask for full navdata."""
        self._send(f'AT*CONFIG=%d,"general:navdata_options","{ALL_OPTIONS}"\r')
        self._send('AT*CONFIG=%d,"general:navdata_demo","FALSE"\r')

    def send(self) -> None:
        """Send the level and the steering."""
        self._send(f"AT*REF=%d,{FLY}\r")
        flag, shares = (0, (0.0,) * 4) if self._shares is None else (1, self._shares)
        self._send(f"AT*PCMD=%d,{flag},{','.join(map(str, struct.unpack('<4i', struct.pack('<4f', *shares))))}\r")

    def _send(self, command: str) -> None:
        self._sequence += 1
        self._commands.send((command % self._sequence).encode())

    def take(self, datagram: bytes) -> None:
        """Publish a datagram of navdata."""
        at, options = 16, {}
        while at < len(datagram):
            tag, size = struct.unpack_from("<HH", datagram, at)
            options[tag] = at + 4
            at += size
        if DEMO not in options or PHYSICAL not in options:
            return
        _, _, theta, phi, psi, height, vx, vy = struct.unpack_from("<IIfffiff", datagram, options[DEMO])
        roll, pitch, yaw = (math.radians(angle / 1000) for angle in (phi, -theta, -psi))
        stamp = self._clock.now().to_msg()
        _, _, ax, ay, az, p, q, r = struct.unpack_from("<fHffffff", datagram, options[PHYSICAL])
        rotation = rotation_of(roll, pitch, yaw)
        imu, unit = self._imu, GRAVITY / 1000
        imu.header.stamp = stamp
        fill_rotation(imu.orientation, rotation)
        fill(imu.linear_acceleration, unit * ax, -unit * ay, -unit * az)
        fill(imu.angular_velocity, math.radians(p), -math.radians(q), -math.radians(r))
        publish(self._imu_publisher, imu)
        forward, left = vx / 1000, -vy / 1000
        now_s = time.monotonic()
        step_s, self._before_s = now_s - self._before_s, now_s
        self._x += step_s * (forward * math.cos(yaw) - left * math.sin(yaw))
        self._y += step_s * (forward * math.sin(yaw) + left * math.cos(yaw))
        if now_s < self._published_s + PERIOD_S:
            return
        self._published_s = now_s
        odometry, moved = self._odometry, self._moved.transform
        odometry.header.stamp = stamp
        fill(odometry.twist.twist.linear, forward, left, 0.0)
        fill(odometry.pose.pose.position, self._x, self._y, height / 1000)
        fill(moved.translation, self._x, self._y, height / 1000)
        fill_rotation(odometry.pose.pose.orientation, rotation)
        fill_rotation(moved.rotation, rotation)
        publish(self._odometry_publisher, odometry)
        publish(self._tf_publisher, self._tf)


def main() -> int:
    """Fly one drone until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    for name in ("port", "navdata_port", "control_port", "video_port"):
        parser.add_argument(name, type=int)
    arguments = parser.parse_args()
    with (
        ros(is_interrupted=True),
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as commands,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as navdata,
    ):
        commands.connect(("127.0.0.1", arguments.port))
        navdata.connect(("127.0.0.1", arguments.navdata_port))
        node = rclpy.create_node("baseline", namespace=arguments.namespace)
        baseline = Baseline(node, commands)
        spin_in_a_thread(node)
        due_s, came_s = time.monotonic(), -math.inf
        while True:
            if (now_s := time.monotonic()) >= due_s:
                due_s += PERIOD_S
                with contextlib.suppress(ConnectionRefusedError):  # the drone has not started yet
                    if now_s > came_s + SILENCE_S:
                        navdata.send(b"\x01\x00\x00\x00")
                        baseline.begin()
                        came_s = now_s
                    baseline.send()
            if select.select([navdata], [], [], max(0.0, due_s - now_s))[0]:
                with contextlib.suppress(ConnectionRefusedError):
                    baseline.take(navdata.recv(8192))
                    came_s = now_s
    return 0


if __name__ == "__main__":
    sys.exit(main())
