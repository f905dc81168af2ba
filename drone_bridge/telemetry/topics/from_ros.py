# SPDX-License-Identifier: Apache-2.0
"""Converts ROS messages to telemetry of a drone and a rover, the inverse of telemetry/topics/to_ros.py."""

import math

from geometry_msgs.msg import Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CameraInfo, Imu

from drone_bridge.geometry.quaternions import Quaternion, inverse, rotated
from drone_bridge.msg import LandingPad as LandingPadMessage
from drone_bridge.telemetry.codec import Imu as WireImu
from drone_bridge.telemetry.codec import LandingPad, Orientation, RoverTelemetry, Vector
from drone_bridge.translate import frames
from drone_bridge.translate.frames import BodyRates, TelemetrySigns


def wire_imu(message: Imu, signs: TelemetrySigns) -> WireImu | None:
    """Return attitude, rates and, if available, acceleration; None if one of the others is missing.

    An Imu says with -1 in a covariance what it lacks.
    """
    lacks = [message.orientation_covariance[0] < 0, message.angular_velocity_covariance[0] < 0]
    orientation = quaternion(message)
    if any(lacks) or orientation is None:
        return None
    rates, acceleration = message.angular_velocity, message.linear_acceleration
    has_acceleration = message.linear_acceleration_covariance[0] >= 0
    return WireImu(
        Orientation(*frames.telemetry_angles_from_orientation(orientation, signs)),
        Vector(*frames.telemetry_from_rates(BodyRates(rates.x, rates.y, rates.z), signs)),
        Vector(acceleration.x, acceleration.y, acceleration.z) if has_acceleration else None,
    )


def quaternion(message: Imu) -> Quaternion | None:
    """Return the orientation with unit length, None unless it is a rotation."""
    q = message.orientation
    norm = math.hypot(q.x, q.y, q.z, q.w)
    if not 0.5 < norm < 2.0:  # zero, as in messages that nobody has filled, or NaN
        return None
    return Quaternion(q.x / norm, q.y / norm, q.z / norm, q.w / norm)


def levelled(velocity: Vector3, imu: WireImu, signs: TelemetrySigns) -> Vector:
    """Convert a velocity from body axes to level axes of the same heading."""
    level = frames.level_in_body_from_telemetry(imu.orientation.roll, imu.orientation.pitch, signs)
    return Vector(*rotated(inverse(level), velocity.x, velocity.y, velocity.z))


def landing_pad(message: LandingPadMessage, signs: TelemetrySigns) -> LandingPad | None:
    """Return the pad, None if it is not visible."""
    if not message.detected:
        return None
    x, y = frames.pad_from_body(message.offset_x, message.offset_y, signs)
    return LandingPad(x, y, message.distance, max(0.0, min(1.0, message.confidence)))


def horizontal_fov(message: CameraInfo) -> float | None:
    """Return the horizontal field of view in degrees, None if the camera is not calibrated."""
    focal = message.k[0]
    return math.degrees(2 * math.atan2(message.width / 2, focal)) if focal > 0 and message.width else None


def rover_telemetry(message: Odometry, pattern: str, timestamp: float) -> RoverTelemetry:
    """Return the rover's position and velocity in the frame of the odometry."""
    place, turn, moves = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist.linear
    # A twist is along the axes of the child frame.
    velocity = rotated(Quaternion(turn.x, turn.y, turn.z, turn.w), moves.x, moves.y, moves.z)
    return RoverTelemetry(Vector(place.x, place.y, place.z), Vector(*velocity), pattern, timestamp)
