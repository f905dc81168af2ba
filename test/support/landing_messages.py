# SPDX-License-Identifier: Apache-2.0
"""The messages that a drone's telemetry becomes, as subscribers get them."""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistStamped
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CameraInfo, Imu
from std_msgs.msg import Float64
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad
from drone_bridge.telemetry.codec import DroneTelemetry
from drone_bridge.telemetry.topics.to_ros import DroneMessages

Make = Callable[[DroneMessages, DroneTelemetry, Time], Any]


def deserialized(make: Make, kind: type) -> Make:
    """Return what makes the same message, or None, but not serialized."""

    def received(messages: DroneMessages, telemetry: DroneTelemetry, stamp: Time) -> Any:
        content = make(messages, telemetry, stamp)
        return content and deserialize_message(content, kind)

    return received


class ReceivedMessages(DroneMessages):
    imu = deserialized(DroneMessages.imu, Imu)
    height = deserialized(DroneMessages.height, PointStamped)
    vertical_velocity = deserialized(DroneMessages.vertical_velocity, Float64)
    velocity = deserialized(DroneMessages.velocity, TwistStamped)
    landing_pad = deserialized(DroneMessages.landing_pad, LandingPad)
    transforms = deserialized(DroneMessages.transforms, TFMessage)
    camera_info = deserialized(DroneMessages.camera_info, CameraInfo)
