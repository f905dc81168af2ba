# SPDX-License-Identifier: Apache-2.0
"""The names of tf frames (REP 105)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from geometry_msgs.msg import Point, TransformStamped, TwistWithCovarianceStamped, Vector3
from geometry_msgs.msg import Quaternion as QuaternionMessage
from nav_msgs.msg import Odometry

from drone_bridge.motion.quaternions import IDENTITY, Quaternion


@dataclass(frozen=True, slots=True)
class FrameNames:
    """The tf frames of any vehicle, with a common prefix."""

    prefix: str = ""
    map_name: str = "map"
    odom_name: str = "odom"
    base_name: str = "base_link"

    @property
    def own(self) -> set[str]:
        """All frames, without the prefix."""
        return {self.map_name, self.odom_name, self.base_name}

    @property
    def map(self) -> str:
        """The world, ENU."""
        return f"{self.prefix}{self.map_name}"

    @property
    def odom(self) -> str:
        return f"{self.prefix}{self.odom_name}"

    @property
    def base_link(self) -> str:
        """The body, x forward, y left, z up."""
        return f"{self.prefix}{self.base_name}"


class DroneFrameNames(FrameNames):
    """The tf frames of a drone with one camera and a rangefinder."""

    __slots__ = ()

    @property
    def altimeter(self) -> str:
        """The rangefinder, whose x axis points down."""
        return f"{self.prefix}altimeter_link"

    @property
    def footprint(self) -> str:
        """The ground below the drone, in axes that share its heading and stay level."""
        return f"{self.prefix}base_footprint"

    @property
    def optical(self) -> str:
        """The camera, in optical axes."""
        return f"{self.prefix}camera_optical_frame"


# Axes that more than one protocol has; those of one protocol are in its folder.


#: Turns the axes of a camera's body frame (x forward) into those of its optical frame (z forward).
OPTICAL_IN_BODY = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Turns the axes of the body into those of a downward camera's optical frame: up in the picture is forward.
DOWNWARD_OPTICAL_IN_BODY = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Turns the body's x axis down, which is along what a rangefinder measures.
DOWN_IN_BODY = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))


# A north-east-down world with forward-right-down bodies, as ships and submarines have it.


def enu_from_ned(north: float, east: float, down: float) -> tuple[float, float, float]:
    """Return a point or vector of the north-east-down world in ENU; and the other way round, by the same swap."""
    return east, north, 0.0 - down  # not -x, which makes -0.0 of zero


def flu_from_frd(forward: float, right: float, down: float) -> tuple[float, float, float]:
    """Return a vector of the forward-right-down body in REP 103's axes; and the other way round, by the same turn."""
    return forward, 0.0 - right, 0.0 - down


# Transforms between tf frames.


def transform(
    parent: str,
    child: str,
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0),
    rotation: Quaternion = IDENTITY,
) -> TransformStamped:
    """Return the pose of the child in the parent, without a stamp; translation in m."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    set_vector(message.transform.translation, translation)
    set_quaternion(message.transform.rotation, rotation)
    return message


def set_vector(message: Point | Vector3, value: Iterable[float]) -> None:
    """Write x, y and z into a message."""
    message.x, message.y, message.z = value


def set_quaternion(message: QuaternionMessage, value: Quaternion) -> None:
    """Write a rotation into a message."""
    message.x, message.y, message.z, message.w = value


def odometry_transform(message: Odometry) -> TransformStamped:
    """Return the pose of the odometry as a transform of the same time."""
    position, orientation = message.pose.pose.position, message.pose.pose.orientation
    rotation = Quaternion(orientation.x, orientation.y, orientation.z, orientation.w)
    moved = transform(message.header.frame_id, message.child_frame_id, (position.x, position.y, position.z), rotation)
    moved.header.stamp = message.header.stamp
    return moved


# The covariances of poses and velocities.


#: Of what is not known at all, in m^2, rad^2, (m/s)^2 or (rad/s)^2: a filter gives it no weight.
UNKNOWN_VARIANCE = 1e6
#: Of what a simulation knows exactly, but for the rounding on the wire. Not less: `ros2 param load` takes what Python
#: prints as 1e-06 for text.
EXACT_VARIANCE = 0.0001
AXES = 6  # x, y, z, and about x, y, z


def covariance_from_diagonal(variances: Sequence[float]) -> list[float]:
    """Return a 6 x 6 covariance, row by row, of independent axes."""
    covariance = [0.0] * AXES**2
    covariance[:: AXES + 1] = variances
    return covariance


def is_measured(message: TwistWithCovarianceStamped, axis: int) -> bool:
    """Return whether a component is known, counted from linear x to angular z: its variance says so."""
    return bool(message.twist.covariance[axis * (AXES + 1)] < UNKNOWN_VARIANCE)


class OdometryCovariances:
    """The covariances of one vehicle's odometry."""

    def __init__(self, pose: Sequence[float], twist: Sequence[float]) -> None:
        """Take the variances of a pose (m^2, rad^2) and a twist ((m/s)^2, (rad/s)^2), six each."""
        self._pose = covariance_from_diagonal(pose)
        self._twist = covariance_from_diagonal(twist)

    def fill(self, message: Odometry) -> None:
        message.pose.covariance = self._pose
        message.twist.covariance = self._twist
