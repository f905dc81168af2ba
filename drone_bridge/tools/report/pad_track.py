# SPDX-License-Identifier: Apache-2.0
"""PadTrack: the path of a drone in its rover's frame, from the pad that it sees on that rover."""

import math
from typing import Any

_ODOMETRY, _PAD, _IMU = "nav_msgs/msg/Odometry", "drone_bridge/msg/LandingPad", "sensor_msgs/msg/Imu"
_ROVER, _PAD_TOPIC, _IMU_TOPIC = "rover/odom", "landing_pad", "imu/data"
_LEVEL_FRAME = "base_stabilized"


class PadTrack:
    """Positions of drones in the frames of their rovers' odometry, by namespace."""

    def __init__(self) -> None:
        """Begin without measurements."""
        self._rovers: dict[str, Any] = {}
        self._yaws_rad: dict[str, float] = {}

    def note(self, topic: str, type_name: str, message: Any) -> tuple[float, float, float] | None:
        """Collect the next message. Return the drone's x, y, z in m if this message determines them, or None."""
        if type_name == _ODOMETRY and topic.endswith(f"/{_ROVER}"):
            self._rovers[topic.removesuffix(_ROVER)] = message.pose.pose.position
        elif type_name == _IMU and topic.endswith(f"/{_IMU_TOPIC}"):
            self._yaws_rad[topic.removesuffix(_IMU_TOPIC)] = _yaw_rad(message.orientation)
        elif type_name == _PAD and topic.endswith(f"/{_PAD_TOPIC}"):
            return self._position(topic.removesuffix(_PAD_TOPIC), message)
        return None

    def _position(self, namespace: str, pad: Any) -> tuple[float, float, float] | None:
        rover, yaw_rad = self._rovers.get(namespace), self._yaws_rad.get(namespace)
        is_level = pad.header.frame_id.endswith(_LEVEL_FRAME)
        if rover is None or yaw_rad is None or not (pad.detected and is_level):
            return None
        cos, sin = math.cos(yaw_rad), math.sin(yaw_rad)
        x, y = cos * pad.offset_x - sin * pad.offset_y, sin * pad.offset_x + cos * pad.offset_y
        return rover.x - x, rover.y - y, rover.z + pad.distance


def _yaw_rad(q: Any) -> float:
    return math.atan2(2.0 * (q.w * q.z + q.x * q.y), 1.0 - 2.0 * (q.y * q.y + q.z * q.z))
