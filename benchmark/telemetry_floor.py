# SPDX-License-Identifier: Apache-2.0
"""The least that a script between telemetry and ROS 2 can do: what the bridge is compared with.

It takes documents apart with orjson and base64 and publishes what is in them. Nothing is checked, nothing is counted,
no image is decoded, and no command goes to the drone.
"""

import argparse
import base64
import math
import socket
import sys
from array import array
from collections.abc import Callable
from typing import Any

import orjson
import rclpy
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Point, Quaternion, TransformStamped, TwistStamped, Vector3
from nav_msgs.msg import Odometry
from nodes import publish, ros
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Imu, Range
from std_msgs.msg import Bool, Float64
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad

LARGEST_DATAGRAM = 65535
Document = dict[str, Any]


def quaternion(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Return what three Euler angles in rad come to."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return Quaternion(
        x=sr * cp * cy - cr * sp * sy,
        y=cr * sp * cy + sr * cp * sy,
        z=cr * cp * sy - sr * sp * cy,
        w=cr * cp * cy + sr * sp * sy,
    )


class Floor:
    """Publishes documents."""

    def __init__(self, node: Node) -> None:
        newest = QoSProfile(depth=1)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._imu = node.create_publisher(Imu, "imu/data", 10)
        self._altitude = node.create_publisher(Range, "altitude", 10)
        self._climb = node.create_publisher(Float64, "vertical_velocity", 10)
        self._velocity = node.create_publisher(TwistStamped, "velocity", 10)
        self._pad = node.create_publisher(LandingPad, "landing_pad", 10)
        self._image = node.create_publisher(CompressedImage, "camera/image_raw/compressed", newest)
        self._info = node.create_publisher(CameraInfo, "camera/camera_info", newest)
        self._landed = node.create_publisher(Bool, "landed", latched)
        self._odometry = node.create_publisher(Odometry, "rover/odom", 10)
        self._tf = node.create_publisher(TFMessage, "/tf", 100)
        self._was_landed: bool | None = None

    def take(self, document: Document) -> None:
        """Publish all that is in a document."""
        timestamp = document["timestamp"]
        seconds = int(timestamp)
        stamp = Time(sec=seconds, nanosec=int((timestamp - seconds) * 1e9))
        if "imu" in document:
            self._take_drone(document, stamp)
        else:
            self._take_rover(document, stamp)

    def _take_drone(self, document: Document, stamp: Time) -> None:
        imu = Imu()
        imu.header.stamp = stamp
        imu.header.frame_id = "base_link"
        imu.orientation = quaternion(**document["imu"]["orientation"])
        imu.angular_velocity = Vector3(**document["imu"]["angular_velocity"])
        imu.linear_acceleration = Vector3(**document["imu"]["linear_acceleration"])
        publish(self._imu, imu)

        altitude = Range(radiation_type=Range.INFRARED, min_range=0.0, max_range=math.inf)
        altitude.header.stamp = stamp
        altitude.header.frame_id = "altimeter_link"
        altitude.range = document["altimeter"]["altitude"]
        publish(self._altitude, altitude)
        publish(self._climb, Float64(data=document["altimeter"]["vertical_velocity"]))

        velocity = TwistStamped()
        velocity.header.stamp = stamp
        velocity.header.frame_id = "base_link"
        velocity.twist.linear = Vector3(**document["velocity"])
        velocity.twist.angular = imu.angular_velocity
        publish(self._velocity, velocity)

        seen = document["landing_pad"]
        pad = LandingPad(detected=seen is not None)
        pad.header.stamp = stamp
        pad.header.frame_id = "base_link"
        if seen:
            pad.offset_x = seen["relative_x"]
            pad.offset_y = seen["relative_y"]
            pad.distance = seen["distance"]
            pad.confidence = seen["confidence"]
            transform = TransformStamped(child_frame_id="landing_pad")
            transform.header = pad.header
            transform.transform.translation = Vector3(x=pad.offset_x, y=pad.offset_y, z=-pad.distance)
            publish(self._tf, TFMessage(transforms=[transform]))
        publish(self._pad, pad)

        if document["camera"]["image"]:
            self._take_image(document["camera"], stamp)
        if document["landed"] != self._was_landed:
            self._was_landed = document["landed"]
            publish(self._landed, Bool(data=self._was_landed))

    def _take_image(self, camera: Document, stamp: Time) -> None:
        image = CompressedImage(format="jpeg")
        image.header.stamp = stamp
        image.header.frame_id = "camera_optical_frame"
        image.data = array("B", base64.b64decode(camera["image"]))
        publish(self._image, image)

        width, height = camera["width"], camera["height"]
        focal_length = width / 2 / math.tan(math.radians(camera["fov"]) / 2)
        info = CameraInfo(width=width, height=height, distortion_model="plumb_bob")
        info.header = image.header
        info.d = [0.0, 0.0, 0.0, 0.0, 0.0]
        info.k = [focal_length, 0.0, (width - 1) / 2, 0.0, focal_length, (height - 1) / 2, 0.0, 0.0, 1.0]
        info.r = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]
        info.p = [focal_length, 0.0, (width - 1) / 2, 0.0, 0.0, focal_length, (height - 1) / 2, 0.0, 0.0, 0.0, 1.0, 0.0]
        publish(self._info, info)

    def _take_rover(self, document: Document, stamp: Time) -> None:
        position = document["position"]
        odometry = Odometry(child_frame_id="rover/base_link")
        odometry.header.stamp = stamp
        odometry.header.frame_id = "map"
        odometry.pose.pose.position = Point(**position)
        odometry.twist.twist.linear = Vector3(**document["velocity"])
        publish(self._odometry, odometry)
        transform = TransformStamped(child_frame_id=odometry.child_frame_id)
        transform.header = odometry.header
        transform.transform.translation = Vector3(**position)
        publish(self._tf, TFMessage(transforms=[transform]))


def receive(port: int, take: Callable[[Document], None]) -> None:
    """Take what comes to a port of this machine, for ever."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as opened:
        opened.bind(("127.0.0.1", port))
        while True:
            take(orjson.loads(opened.recv(LARGEST_DATAGRAM)))


def main() -> int:
    """Publish until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("namespace")
    arguments = parser.parse_args()
    with ros():
        receive(arguments.port, Floor(rclpy.create_node("floor", namespace=arguments.namespace)).take)
    return 0


if __name__ == "__main__":
    sys.exit(main())
