# SPDX-License-Identifier: Apache-2.0
"""Baseline for telemetry_bridge: a minimal script between telemetry and ROS 2.

It parses documents with orjson and base64 and publishes their contents. With --commanded it answers at COMMAND_RATE_HZ
with the newest cmd_vel, as tilt. It does not check or count anything, does not decode images, has no command timeout,
and does not control velocity by feedback.
"""

import argparse
import base64
import math
import socket
import sys
import time
from array import array
from collections.abc import Callable
from typing import Any

import orjson
import rclpy
from builtin_interfaces.msg import Time
from filling import fill, fill_rotation, rotation_of
from geometry_msgs.msg import PointStamped, TransformStamped, Twist, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin_in_a_thread
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Imu
from std_msgs.msg import Bool, Header
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad

LARGEST_DATAGRAM = 65535
COMMAND_RATE_HZ = 25.0
DRAG = 0.3  # tilt per m/s, about
Document = dict[str, Any]


def transform(parent: str, child: str) -> TFMessage:
    """Return a message with one transform, to be filled."""
    return TFMessage(transforms=[TransformStamped(header=Header(frame_id=parent), child_frame_id=child)])


class Baseline:
    """Publishes documents. Messages are created once and refilled."""

    def __init__(self, node: Node) -> None:
        newest = QoSProfile(depth=1)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._imu_publisher = node.create_publisher(Imu, "imu/data", 10)
        self._height_publisher = node.create_publisher(PointStamped, "height", 10)
        self._climb_publisher = node.create_publisher(TwistWithCovarianceStamped, "vertical_velocity", 10)
        self._velocity_publisher = node.create_publisher(TwistWithCovarianceStamped, "velocity", 10)
        self._pad_publisher = node.create_publisher(LandingPad, "landing_pad", 10)
        self._image_publisher = node.create_publisher(CompressedImage, "camera/image_raw/compressed", newest)
        self._info_publisher = node.create_publisher(CameraInfo, "camera/camera_info", newest)
        self._landed_publisher = node.create_publisher(Bool, "landed", latched)
        self._odometry_publisher = node.create_publisher(Odometry, "rover/odom", 10)
        self._tf_publisher = node.create_publisher(TFMessage, "/tf", 100)
        self._imu = Imu(header=Header(frame_id="base_link"))
        self._height = PointStamped(header=Header(frame_id="base_footprint"))
        self._climb = TwistWithCovarianceStamped(header=Header(frame_id="base_footprint"))
        self._velocity = TwistWithCovarianceStamped(header=Header(frame_id="base_link"))
        self._pad = LandingPad(header=Header(frame_id="base_link"), detected=True)
        self._image = CompressedImage(header=Header(frame_id="camera_optical_frame"), format="jpeg")
        self._info = CameraInfo(header=Header(frame_id="camera_optical_frame"), distortion_model="plumb_bob")
        self._odometry = Odometry(header=Header(frame_id="map"), child_frame_id="rover/base_link")
        self._drone_tf = TFMessage(
            transforms=[
                *transform("base_link", "base_stabilized").transforms,
                *transform("base_stabilized", "base_footprint").transforms,
                *transform("base_stabilized", "landing_pad").transforms,
            ]
        )
        self._rover_tf = transform("map", "rover/base_link")
        self._was_landed: bool | None = None

    def take(self, document: Document) -> None:
        """Publish the contents of a document."""
        timestamp = document["timestamp"]
        seconds = int(timestamp)
        stamp = Time(sec=seconds, nanosec=int((timestamp - seconds) * 1e9))
        if "imu" in document:
            self._take_drone(document, stamp)
        else:
            self._take_rover(document, stamp)

    def _take_drone(self, document: Document, stamp: Time) -> None:
        imu = self._imu
        imu.header.stamp = stamp
        fill_rotation(imu.orientation, rotation_of(**document["imu"]["orientation"]))
        fill(imu.angular_velocity, **document["imu"]["angular_velocity"])
        fill(imu.linear_acceleration, **document["imu"]["linear_acceleration"])
        publish(self._imu_publisher, imu)

        self._height.header.stamp = stamp
        self._height.point.z = document["altimeter"]["altitude"]
        publish(self._height_publisher, self._height)
        self._climb.header.stamp = stamp
        self._climb.twist.twist.linear.z = document["altimeter"]["vertical_velocity"]
        publish(self._climb_publisher, self._climb)

        velocity = self._velocity
        velocity.header.stamp = stamp
        fill(velocity.twist.twist.linear, **document["velocity"])
        fill(velocity.twist.twist.angular, **document["imu"]["angular_velocity"])
        publish(self._velocity_publisher, velocity)

        level, ground, place = self._drone_tf.transforms
        level.header.stamp = ground.header.stamp = place.header.stamp = stamp
        angles = document["imu"]["orientation"]
        fill_rotation(level.transform.rotation, rotation_of(-angles["roll"], -angles["pitch"], 0.0))
        ground.transform.translation.z = -self._height.point.z
        if seen := document["landing_pad"]:
            pad = self._pad
            pad.header.stamp = stamp
            pad.offset_x, pad.offset_y = seen["relative_x"], seen["relative_y"]
            pad.distance, pad.confidence = seen["distance"], seen["confidence"]
            publish(self._pad_publisher, pad)
            fill(place.transform.translation, pad.offset_x, pad.offset_y, -pad.distance)
        publish(self._tf_publisher, self._drone_tf)

        if document["camera"]["image"]:
            self._take_image(document["camera"], stamp)
        if document["landed"] != self._was_landed:
            self._was_landed = document["landed"]
            publish(self._landed_publisher, Bool(data=self._was_landed))

    def _take_image(self, camera: Document, stamp: Time) -> None:
        self._image.header.stamp = stamp
        self._image.data = array("B", base64.b64decode(camera["image"]))
        publish(self._image_publisher, self._image)

        info, width, height = self._info, camera["width"], camera["height"]
        info.header.stamp = stamp
        if (info.width, info.height) != (width, height):
            info.width, info.height = width, height
            focal_length = width / 2 / math.tan(math.radians(camera["fov"]) / 2)
            x, y = (width - 1) / 2, (height - 1) / 2
            info.d = [0.0, 0.0, 0.0, 0.0, 0.0]
            info.k = [focal_length, 0.0, x, 0.0, focal_length, y, 0.0, 0.0, 1.0]
            info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
            info.p = [focal_length, 0.0, x, 0.0, 0.0, focal_length, y, 0.0, 0.0, 0.0, 1.0, 0.0]
        publish(self._info_publisher, info)

    def _take_rover(self, document: Document, stamp: Time) -> None:
        odometry, [tf] = self._odometry, self._rover_tf.transforms
        odometry.header.stamp = tf.header.stamp = stamp
        fill(odometry.pose.pose.position, **document["position"])
        fill(odometry.twist.twist.linear, **document["velocity"])
        publish(self._odometry_publisher, odometry)
        fill(tf.transform.translation, **document["position"])
        publish(self._tf_publisher, self._rover_tf)


class Commands:
    """Answers the drone with the newest velocity on cmd_vel."""

    def __init__(self, node: Node) -> None:
        self._twist, self._due_s = Twist(), 0.0
        node.create_subscription(Twist, "cmd_vel", self._take, 1)
        spin_in_a_thread(node)

    def send(self, link: socket.socket, drone: Any) -> None:
        """Send a command if it is due."""
        now_s = time.monotonic()
        if now_s < self._due_s:
            return
        self._due_s = now_s + 1 / COMMAND_RATE_HZ
        linear, angular = self._twist.linear, self._twist.angular
        tilt = {"thrust": linear.z, "pitch": DRAG * linear.x, "roll": -DRAG * linear.y, "yaw": angular.z}
        link.sendto(orjson.dumps(tilt), drone)

    def _take(self, twist: Twist) -> None:
        self._twist = twist


def receive(port: int, take: Callable[[Document], None], commands: Commands | None) -> None:
    """Receive on a port of this machine, forever."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.bind(("127.0.0.1", port))
        while True:
            data, drone = link.recvfrom(LARGEST_DATAGRAM)
            take(orjson.loads(data))
            if commands:
                commands.send(link, drone)


def main() -> int:
    """Publish until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    parser.add_argument("--commanded", action="store_true")
    arguments = parser.parse_args()
    with ros(is_interrupted=True):
        node = rclpy.create_node("baseline", namespace=arguments.namespace)
        receive(arguments.port, Baseline(node).take, Commands(node) if arguments.commanded else None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
