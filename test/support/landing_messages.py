# SPDX-License-Identifier: Apache-2.0
"""The messages that a drone's telemetry becomes, as subscribers get them."""

from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import CameraInfo, Imu
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad
from drone_bridge.telemetry.codec import DroneTelemetry
from drone_bridge.telemetry.topics import Translation

Make = Callable[[Translation, DroneTelemetry, Time], Any]


def deserialized(make: Make, kind: type) -> Make:
    """Return what makes the same message, or None, but not serialized."""

    def received(messages: Translation, telemetry: DroneTelemetry, stamp: Time) -> Any:
        content = make(messages, telemetry, stamp)
        return content and deserialize_message(content, kind)

    return received


class ReceivedMessages(Translation):
    imu = deserialized(Translation.imu, Imu)
    height = deserialized(Translation.height, PointStamped)
    vertical_velocity = deserialized(Translation.vertical_velocity, TwistWithCovarianceStamped)
    velocity = deserialized(Translation.velocity, TwistWithCovarianceStamped)
    landing_pad = deserialized(Translation.landing_pad, LandingPad)
    transforms = deserialized(Translation.transforms, TFMessage)
    camera_info = deserialized(Translation.camera_info, CameraInfo)
