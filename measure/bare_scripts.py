# SPDX-License-Identifier: Apache-2.0
"""bare_scripts: what testbed_bridge and ardrone_bridge do at least, for overhead.py to compare them with.

They read the same bytes and publish the same messages. They check and count nothing, have no command timeout, and do
not control velocities by feedback.
"""

import contextlib
import itertools
import math
import select
import signal
import socket
import struct
import sys
import threading
import time
from array import array
from collections.abc import Iterator
from typing import Any

import rclpy
from geometry_msgs.msg import Point, Quaternion, TransformStamped, Twist, Vector3
from nav_msgs.msg import Odometry
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import CameraInfo, Image, Imu
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

LOOPBACK = "127.0.0.1"
PERIOD_S = 1 / 30
GRAVITY = 9.80665


def turn(quaternions: list[Quaternion], roll: float, pitch: float, yaw: float) -> None:
    """Set quaternions to three Euler angles, rad."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    for each in quaternions:
        each.x, each.y = sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy
        each.z, each.w = cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy


def move(vectors: list[Point | Vector3], x: float, y: float, z: float) -> None:
    """Set three coordinates."""
    for each in vectors:
        each.x, each.y, each.z = x, y, z


class Pose:
    """Messages with the vehicle's pose, created once and refilled."""

    def __init__(self, node: Node, depth: int) -> None:
        self.clock = node.get_clock()
        self.imu = Imu(header=Header(frame_id="base_link"))
        self.odometry = Odometry(header=Header(frame_id="odom"), child_frame_id="base_link")
        moved = TransformStamped(header=self.odometry.header, child_frame_id="base_link")
        self._transforms = TFMessage(transforms=[moved])
        pose = self.odometry.pose.pose
        self.places = [pose.position, moved.transform.translation]
        self.rotations = [self.imu.orientation, pose.orientation, moved.transform.rotation]
        self._imu_publisher = node.create_publisher(Imu, "imu/data", depth)
        self._odometry_publisher = node.create_publisher(Odometry, "odom", depth)
        self._tf_publisher = node.create_publisher(TFMessage, "/tf", 100)

    def publish_imu(self) -> None:
        self.imu.header.stamp = self.clock.now().to_msg()
        self._imu_publisher.publish(self.imu)

    def publish_odometry(self) -> None:
        self.odometry.header.stamp = self.imu.header.stamp
        self._odometry_publisher.publish(self.odometry)
        self._tf_publisher.publish(self._transforms)


class BareTestbed:
    """Reads frames into arrays, replies with neutral, and publishes both images and what belongs to them."""

    FLOATS = struct.Struct(">fffffff")  # x, y, z, heading, pitch, roll, time
    SIDES = ("left", "right")

    def __init__(self, node: Node, port: int) -> None:
        self._pose = Pose(node, 1)
        self._images = [node.create_publisher(Image, f"{side}/image_raw", QoSProfile(depth=1)) for side in self.SIDES]
        self._infos = [node.create_publisher(CameraInfo, f"{side}/camera_info", 1) for side in self.SIDES]
        self._testbed = socket.create_connection((LOOPBACK, port))
        self._testbed.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def run(self) -> None:
        """Serve the testbed until it closes the connection."""
        angle_of_view, _, width, height, separation, weight, gravity = struct.unpack(
            ">ffiifff20x", self._fill(bytearray(48))
        )
        headers = [Header(frame_id=f"{side}_camera_optical_frame") for side in self.SIDES]
        infos = list(_camera_infos(headers, width, height, separation, angle_of_view))
        images = [
            Image(header=header, width=width, height=height, encoding="rgb8", step=3 * width) for header in headers
        ]
        turns = itertools.cycle([[array("B", bytes(3 * width * height)) for _ in self.SIDES] for _ in range(2)])
        neutral = struct.pack(">ffff", 0.0, 0.0, 0.0, weight * abs(gravity))
        for arrays in turns:
            for pixels in arrays:
                self._fill(pixels)
            x, y, z, heading, pitch, roll, _ = self.FLOATS.unpack(self._fill(bytearray(self.FLOATS.size)))
            self._testbed.sendall(neutral)
            move(self._pose.places, x, -z, y)
            turn(self._pose.rotations, math.radians(roll), math.radians(pitch), math.radians(90 - heading))
            self._pose.publish_imu()
            self._pose.publish_odometry()
            for info_publisher, info in zip(self._infos, infos, strict=True):
                info.header.stamp = self._pose.imu.header.stamp
                info_publisher.publish(info)
            for publisher, image, pixels in zip(self._images, images, arrays, strict=True):
                image._data = pixels
                publisher.publish(image)

    def _fill(self, buffer: Any) -> Any:
        """Read until the buffer is full, and return it."""
        left = memoryview(buffer)
        while left:
            count = self._testbed.recv_into(left)
            if not count:
                raise EOFError
            left = left[count:]
        return buffer


def _camera_infos(
    headers: list[Header], width: int, height: int, separation: float, angle_of_view: float
) -> Iterator[CameraInfo]:
    focal, x, y = width / 2 / math.tan(math.radians(angle_of_view) / 2), (width - 1) / 2, (height - 1) / 2
    for header, baseline in zip(headers, (0.0, separation), strict=True):
        yield CameraInfo(
            header=header,
            width=width,
            height=height,
            distortion_model="plumb_bob",
            d=[0.0] * 5,
            k=[focal, 0.0, x, 0.0, focal, y, 0.0, 0.0, 1.0],
            r=[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0],
            p=[focal, 0.0, x, -focal * baseline, 0.0, focal, y, 0.0, 0.0, 0.0, 1.0, 0.0],
        )


class BareArdrone:
    """Asks for full navdata, publishes each datagram, and sends the newest velocity as shares at 30 Hz."""

    FLY = 290718208
    ALL_OPTIONS = 0x7FFFFFF
    DEMO, PHYSICAL = 0, 3
    MAX_TILT, MAX_YAW_RATE, DRAG = 0.2094, 1.745, 0.4  # rad, rad/s, rad of tilt per m/s (about)

    def __init__(self, node: Node, port: int, navdata_port: int) -> None:
        self._pose = Pose(node, 10)
        self._commands, self._navdata = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self._commands.connect((LOOPBACK, port))
        self._navdata.connect((LOOPBACK, navdata_port))
        self._sequence = 0
        self._shares: tuple[float, ...] = (0.0,) * 4
        self._x = self._y = 0.0
        self._published_at = -math.inf
        self._came_at = time.monotonic()
        node.create_subscription(Twist, "cmd_vel", self._steer, 1)

    def run(self) -> None:
        """Exchange datagrams for ever."""
        due_at, asked_at = time.monotonic(), -math.inf
        while True:
            if (now := time.monotonic()) >= due_at:
                due_at += PERIOD_S
                with contextlib.suppress(ConnectionRefusedError):  # the drone has not started yet
                    if now > max(asked_at, self._came_at) + 1.0:
                        asked_at = now
                        self._ask()
                    self._send(f"AT*REF=%d,{self.FLY}\r")
                    shares = struct.unpack("<4i", struct.pack("<4f", *self._shares))
                    self._send(f"AT*PCMD=%d,1,{','.join(map(str, shares))}\r")
            if select.select([self._navdata], [], [], max(0.0, due_at - now))[0]:
                with contextlib.suppress(ConnectionRefusedError):
                    self._publish(self._navdata.recv(8192))

    def _steer(self, twist: Twist) -> None:
        roll, pitch = (-axis * self.DRAG / self.MAX_TILT for axis in (twist.linear.y, twist.linear.x))
        self._shares = roll, pitch, twist.linear.z, -twist.angular.z / self.MAX_YAW_RATE

    def _ask(self) -> None:
        self._navdata.send(b"\x01\x00\x00\x00")
        self._send(f'AT*CONFIG=%d,"general:navdata_options","{self.ALL_OPTIONS}"\r')
        self._send('AT*CONFIG=%d,"general:navdata_demo","FALSE"\r')

    def _send(self, command: str) -> None:
        self._sequence += 1
        self._commands.send((command % self._sequence).encode())

    def _publish(self, datagram: bytes) -> None:
        at, options = 16, {}
        while at < len(datagram):
            tag, size = struct.unpack_from("<HH", datagram, at)
            options[tag] = at + 4
            at += size
        if self.DEMO not in options or self.PHYSICAL not in options:
            return
        _, _, theta, phi, psi, height, vx, vy = struct.unpack_from("<IIfffiff", datagram, options[self.DEMO])
        _, _, ax, ay, az, p, q, r = struct.unpack_from("<fHffffff", datagram, options[self.PHYSICAL])
        roll, pitch, yaw = (math.radians(angle / 1000) for angle in (phi, -theta, -psi))
        pose, unit = self._pose, GRAVITY / 1000
        turn(pose.rotations, roll, pitch, yaw)
        move([pose.imu.linear_acceleration], unit * ax, -unit * ay, -unit * az)
        move([pose.imu.angular_velocity], math.radians(p), -math.radians(q), -math.radians(r))
        pose.publish_imu()
        now, forward, left = time.monotonic(), vx / 1000, -vy / 1000
        step_s, self._came_at = now - self._came_at, now
        self._x += step_s * (forward * math.cos(yaw) - left * math.sin(yaw))
        self._y += step_s * (forward * math.sin(yaw) + left * math.cos(yaw))
        if now >= self._published_at + PERIOD_S:
            self._published_at = now
            move([pose.odometry.twist.twist.linear], forward, left, 0.0)
            move(pose.places, self._x, self._y, height / 1000)
            pose.publish_odometry()


def main() -> None:
    """Run a script until it is killed: bare_scripts.py testbed|ardrone NAMESPACE PORT..."""
    name, namespace, *ports = sys.argv[1:]
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    node = rclpy.create_node("bare_script", namespace=namespace)
    script = {"testbed": BareTestbed, "ardrone": BareArdrone}[name](node, *map(int, ports))
    threading.Thread(target=rclpy.spin, args=(node,), daemon=True).start()
    script.run()


if __name__ == "__main__":
    main()
