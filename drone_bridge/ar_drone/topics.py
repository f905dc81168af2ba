# SPDX-License-Identifier: Apache-2.0
"""ArDroneMessages: the messages of an AR.Drone's navdata and of its dead reckoning, for each protocol that has them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from typing import Any, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Range
from tf2_msgs.msg import TFMessage

from drone_bridge.ar_drone.cameras import FRONT
from drone_bridge.ar_drone.drone import (
    CLIMB_VARIANCE,
    FARTHEST_RANGE_M,
    NEAREST_RANGE_M,
    PICTURE_UNITS,
    TILT_DEVIATION,
    YAW_DEVIATION,
)
from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import quaternion_from_euler, rotated_back
from drone_bridge.motion.vectors import Triple
from drone_bridge.msg import DetectionArray
from drone_bridge.pictures.topics import optical_frame
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE, covariance_from_diagonal
from drone_bridge.ros.topics.detections import DetectedObject, detection_array
from drone_bridge.ros.topics.reckoned_odometry import TWIST_VARIANCES, reckoned_odometry
from drone_bridge.ros.topics.standard_rows import ImuVariances, MeasuredMessages
from drone_bridge.ros.topics.transforms import odometry_transform, set_vector, transform

WireT = TypeVar("WireT")


class ArDroneMessages(MeasuredMessages[WireT]):
    """Converter of navdata. On topics, velocities are along the body's axes."""

    imu_variances = ImuVariances(
        TILT_DEVIATION**2,
        YAW_DEVIATION**2,
        math.radians(0.5) ** 2,
        0.5**2,  # of a drone whose motors run
    )

    def altitude(self, wire: WireT, stamp: Time) -> Range | None:
        """Return the height above ground, as the drone estimates it."""
        height = self.converted(wire).height
        return None if height is None else self.range_of(height, stamp)

    def velocity_of(
        self, measured: Measurement, level: Triple, stamp: Time, *, has: Sequence[bool] = (True, True, True)
    ) -> TwistWithCovarianceStamped:
        """Return a level velocity in body axes. `has`: components that were reported."""
        message = TwistWithCovarianceStamped()
        message.header.stamp, message.header.frame_id = stamp, self.names.base_link
        tilt = quaternion_from_euler(measured.roll or 0.0, measured.pitch or 0.0, 0.0)
        set_vector(message.twist.twist.linear, rotated_back(tilt, *level))
        of_linear = zip(has, (*TWIST_VARIANCES[:2], CLIMB_VARIANCE), strict=True)
        variances = [variance if has_value else UNKNOWN_VARIANCE for has_value, variance in of_linear]
        message.twist.covariance = covariance_from_diagonal([*variances, *TWIST_VARIANCES[3:]])
        return message

    def range_of(self, height: float, stamp: Time) -> Range:
        """Return a height, m, as a distance by the rangefinder."""
        message = Range(radiation_type=Range.ULTRASOUND, min_range=NEAREST_RANGE_M, max_range=FARTHEST_RANGE_M)
        message.header.stamp, message.header.frame_id = stamp, self.names.altimeter
        message.range = height
        return message

    def detections_of(self, found: Iterable[Any], stamp: Time) -> DetectionArray:
        """Return detections, whose fields are x, y, width, height and distance, in the front camera's frame."""
        objects = []
        for *place, cm in map(astuple, found):
            x, y, width, height = (value / PICTURE_UNITS for value in place)
            objects.append(DetectedObject(x, y, width, height, None if cm is None else cm / 100))
        return detection_array(objects, optical_frame(self.names, FRONT), stamp)

    def odometry(self, pose: DeadReckonedPose, stamp: Time) -> Odometry:
        """Return the pose by dead reckoning."""
        return reckoned_odometry(pose, stamp, self.names)

    def transforms(self, pose: DeadReckonedPose, stamp: Time) -> TFMessage:
        """Return the transforms from odom to base_link, and to the ground below it."""
        flown = odometry_transform(self.odometry(pose, stamp))
        heading = quaternion_from_euler(0.0, 0.0, pose.yaw)
        below = transform(self.names.odom, self.names.footprint, (pose.x, pose.y, 0.0), heading)
        below.header.stamp = stamp
        return TFMessage(transforms=[flown, below])
