# SPDX-License-Identifier: Apache-2.0
"""Baseline for robot_bridge: a minimal script between a robot and ROS 2.

It binds the first skid steer, keeps the connection alive, sends it each velocity, publishes readings, and integrates
the commanded velocity. It does not check or count anything, has no command timeout, and does not publish the lists.
"""

import argparse
import contextlib
import math
import select
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import rclpy
from geometry_msgs.msg import TransformStamped, Twist
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from sensor_msgs.msg import BatteryState, Temperature
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import SensorValue

HEADER = struct.Struct(">HB")  # length of the payload, type
LENGTH = struct.Struct(">H")
BATTERY, THERMOMETER, AMMETER, MOTOR_PWM = range(1, 5)
PERIOD_S = 0.05  # of odometry; keep-alives go with every second one
RECONNECT_S = 0.05
SEPARATION, MAX_SPEED, FULL_SPEED = 0.5, 1.0, 2048


class Baseline:
    """Publishes a robot's reports. Messages are created once and refilled."""

    def __init__(self, node: Node, robot: socket.socket) -> None:
        self._node, self._robot = node, robot
        self._clock = node.get_clock()
        self._skid_steer = -1  # before it is bound
        self._sensors: list[tuple[Any, Any, Callable[[Any, int], None]]] = []  # publisher, message, fill function
        self._velocity = (0.0, 0.0)
        self._pose = (0.0, 0.0, 0.0)
        self._odometry_publisher = node.create_publisher(Odometry, "odom", 10)
        self._tf_publisher = node.create_publisher(TFMessage, "/tf", 100)
        self._odometry = Odometry(header=Header(frame_id="odom"), child_frame_id="base_link")
        self._transform = TransformStamped(header=self._odometry.header, child_frame_id="base_link")
        self._tf = TFMessage(transforms=[self._transform])
        self.send(0x03, LENGTH.pack(6) + b"script")
        self.send(0x02)
        node.create_subscription(Twist, "cmd_vel", self._drive, 1)

    def send(self, kind: int, payload: bytes = b"") -> None:
        """Send a packet."""
        self._robot.sendall(HEADER.pack(len(payload), kind) + payload)

    def keep_alive(self) -> None:
        """Send one with the time of day."""
        self.send(0x01, struct.pack(">q", time.time_ns() // 1_000_000))

    def _drive(self, twist: Twist) -> None:
        self._velocity = forward, turn = twist.linear.x, twist.angular.z
        if self._skid_steer >= 0:
            sides = (forward - turn * SEPARATION / 2, forward + turn * SEPARATION / 2)
            left, right = (round(side / MAX_SPEED * FULL_SPEED) for side in sides)
            self.send(0x05, struct.pack(">Hhh", self._skid_steer, left, right))

    def move(self) -> None:
        """Integrate the velocity, and publish the pose."""
        (forward, turn), (x, y, yaw) = self._velocity, self._pose
        half = yaw + turn * PERIOD_S / 2
        x, y, yaw = (
            x + forward * PERIOD_S * math.cos(half),
            y + forward * PERIOD_S * math.sin(half),
            yaw + turn * PERIOD_S,
        )
        self._pose = x, y, yaw
        pose, twist, moved = self._odometry.pose.pose, self._odometry.twist.twist, self._transform.transform
        self._odometry.header.stamp = self._clock.now().to_msg()
        twist.linear.x, twist.angular.z = forward, turn
        pose.position.x = moved.translation.x = x
        pose.position.y = moved.translation.y = y
        pose.orientation.z = moved.rotation.z = math.sin(yaw / 2)
        pose.orientation.w = moved.rotation.w = math.cos(yaw / 2)
        publish(self._odometry_publisher, self._odometry)
        publish(self._tf_publisher, self._tf)

    def take(self, kind: int, payload: bytes) -> None:
        """Handle a packet."""
        if kind == 0x05:
            stamp = self._clock.now().to_msg()
            for number, value in struct.iter_unpack(">Hi", payload[2:]):
                publisher, message, fill = self._sensors[number]
                message.header.stamp = stamp
                fill(message, value)
                publish(publisher, message)
        elif kind == 0x07:
            self._read_sensors(payload)
        elif kind == 0x02:
            # The emulator's first subsystem is a skid steer.
            self.send(0x04, LENGTH.pack(0))
        elif kind == 0x04:
            [self._skid_steer] = LENGTH.unpack(payload)

    def _read_sensors(self, payload: bytes) -> None:
        position = LENGTH.size
        while position < len(payload):
            kind, length = struct.unpack_from(">hH", payload, position)
            position += 4 + length
            topic = payload[position - length : position].decode().replace(" ", "_")
            position += 8 if kind == BATTERY else 4
            header = Header(frame_id="base_link")
            if kind == BATTERY:
                [full] = struct.unpack_from(">i", payload, position - 8)
                self._sensors.append(self._battery(header, full))
            elif kind == THERMOMETER:
                publisher = self._node.create_publisher(Temperature, f"temperature/{topic}", 10)
                self._sensors.append((publisher, Temperature(header=header), _fill_temperature))
            else:
                name, fill = ("current", _fill_current) if kind == AMMETER else ("motor_pwm", _fill_pwm)
                publisher = self._node.create_publisher(SensorValue, f"{name}/{topic}", 10)
                unit = "A" if kind == AMMETER else "1"
                self._sensors.append((publisher, SensorValue(header=header, name=topic, unit=unit), fill))

    def _battery(self, header: Header, full: int) -> tuple[Any, Any, Callable[[Any, int], None]]:
        def fill(message: BatteryState, value: int) -> None:
            message.voltage, message.percentage = value / 1000, value / full

        return self._node.create_publisher(BatteryState, "battery_state", 10), BatteryState(header=header), fill


def _fill_temperature(message: Temperature, value: int) -> None:
    message.temperature = value / 100


def _fill_current(message: SensorValue, value: int) -> None:
    message.value = value / 1000


def _fill_pwm(message: SensorValue, value: int) -> None:
    message.value = value / FULL_SPEED


def converse(robot: socket.socket, baseline: Baseline) -> None:
    """Serve one robot until it closes the connection."""
    buffer = b""
    due_s, is_alive_due = time.monotonic(), False
    while True:
        now_s = time.monotonic()
        if now_s >= due_s:
            due_s += PERIOD_S
            baseline.move()
            if is_alive_due := not is_alive_due:
                baseline.keep_alive()
        if not select.select([robot], [], [], max(0.0, due_s - now_s))[0]:
            continue
        if not (data := robot.recv(65536)):
            return
        buffer += data
        while len(buffer) >= HEADER.size:
            length, kind = HEADER.unpack_from(buffer)
            if len(buffer) < HEADER.size + length:
                break
            baseline.take(kind, buffer[HEADER.size : HEADER.size + length])
            buffer = buffer[HEADER.size + length :]


def connect(port: int) -> socket.socket:
    """Return a connection to the robot, once it listens."""
    while True:
        with contextlib.suppress(ConnectionError):
            robot = socket.create_connection(("127.0.0.1", port))
            robot.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return robot
        time.sleep(RECONNECT_S)


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
