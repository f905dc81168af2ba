# SPDX-License-Identifier: Apache-2.0
"""The names of tf frames (REP 105)."""

import math
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion as QuaternionMessage
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import IDENTITY, Quaternion, quaternion_from_euler
from drone_bridge.ros.message_template import ENCAPSULATION, STAMP, MessageTemplate


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
    def optical(self) -> str:
        """The camera, in optical axes."""
        return f"{self.prefix}camera_optical_frame"


# Axes that more than one protocol has; those of one protocol are in its folder.


class BodyRates(NamedTuple):
    """Angular velocity of the body about its own axes, rad/s, REP 103."""

    roll: float  # about x: positive banks right
    pitch: float  # about y: positive lowers the nose
    yaw: float  # about z: positive turns left


#: Turns the axes of a camera's body frame (x forward) into those of its optical frame (z forward).
OPTICAL_IN_BODY = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Turns the axes of the body into those of a downward camera's optical frame: up in the picture is forward.
DOWNWARD_OPTICAL_IN_BODY = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Turns the body's x axis down, which is along what a rangefinder measures.
DOWN_IN_BODY = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))


# A skid steer has a left and a right side that each run forward or backward, and no frames.


def wheel_speeds_from_body(forward: float, left_turn: float, separation: float) -> tuple[float, float]:
    """Return the speeds of the left and the right side, m/s, for linear x in m/s and angular z in rad/s of the body.

    `separation` is the distance between the sides in m. To turn left, the right side has to be the faster one.
    """
    return forward - left_turn * separation / 2, forward + left_turn * separation / 2


def body_from_wheel_speeds(left: float, right: float, separation: float) -> tuple[float, float]:
    """Return linear x in m/s and angular z in rad/s of the body for the speeds of its sides, m/s."""
    return (left + right) / 2, (right - left) / separation


# A north-east-down world with forward-right-down bodies, as ships and submarines have it.


def enu_from_ned(north: float, east: float, down: float) -> tuple[float, float, float]:
    """Return a point or vector of the north-east-down world in ENU; and the other way round, by the same swap."""
    return east, north, 0.0 - down  # not -x, which makes -0.0 of zero


def flu_from_frd(forward: float, right: float, down: float) -> tuple[float, float, float]:
    """Return a vector of the forward-right-down body in REP 103's axes; and the other way round, by the same turn."""
    return forward, 0.0 - right, 0.0 - down


# Transforms between tf frames.


_COUNT = struct.Struct("=I")  # of the transforms in a TFMessage, before the first of them


def transform(
    parent: str,
    child: str,
    translation: tuple[float, float, float] = (0.0, 0.0, 0.0),
    rotation: Quaternion = IDENTITY,
) -> TransformStamped:
    """Return the pose of the child in the parent, without a stamp; translation in m."""
    message = TransformStamped(child_frame_id=child)
    message.header.frame_id = parent
    vector = message.transform.translation
    vector.x, vector.y, vector.z = translation
    set_quaternion(message.transform.rotation, rotation)
    return message


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


class TransformTemplate:
    """A transform of which only stamp and pose change, serialized once. For one thread."""

    def __init__(self, parent: str, child: str) -> None:
        message, gaps = transform(parent, child), (STAMP, "transform")
        # Its doubles are aligned differently at the beginning of a TFMessage, which is not at a multiple of 8 bytes.
        self.first = MessageTemplate(TFMessage(transforms=[message]), *(f"transforms[0].{gap}" for gap in gaps))
        self.later = MessageTemplate(message, *gaps)


def serialized_transforms(moved: Iterable[tuple[TransformTemplate, tuple[int, int], Iterable[float]]]) -> bytes:
    """Return a TFMessage of transforms, each with its stamp (s, ns) and pose (m, and x, y, z, w)."""
    parts: list[bytes] = []
    for template, stamp, pose in moved:
        if parts:
            parts.append(template.later.filled(stamp, pose)[len(ENCAPSULATION) :])
        else:
            parts.append(template.first.filled(stamp, pose)[len(ENCAPSULATION) + _COUNT.size :])
    return b"".join((ENCAPSULATION, _COUNT.pack(len(parts)), *parts))


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


class OdometryCovariances:
    """The covariances of one vehicle's odometry."""

    def __init__(self, pose: Sequence[float], twist: Sequence[float]) -> None:
        """Take the variances of a pose (m^2, rad^2) and a twist ((m/s)^2, (rad/s)^2), six each."""
        self._pose = covariance_from_diagonal(pose)
        self._twist = covariance_from_diagonal(twist)

    def fill(self, message: Odometry) -> None:
        message.pose.covariance = self._pose
        message.twist.covariance = self._twist


# Poses in a plane, and the motion of wheeled vehicles.


class Pose(NamedTuple):
    """A position in m and a yaw in rad, 0 along x, positive to the left."""

    x: float = 0.0
    y: float = 0.0
    yaw: float = 0.0

    def moved(self, seconds: float, forward: float, turn: float) -> "Pose":
        """Return the pose after moving along an arc, at m/s and rad/s to the left."""
        turned = turn * seconds
        # The chord of the arc, whose direction is halfway between those at its ends.
        chord = forward * seconds * (math.sin(turned / 2) / (turned / 2) if turned else 1.0)
        return self.seeing(Pose(chord * math.cos(turned / 2), chord * math.sin(turned / 2), turned))

    def seeing(self, other: "Pose") -> "Pose":
        """Return a pose given relative to this one in this one's frame."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        return Pose(
            self.x + cos * other.x - sin * other.y,
            self.y + sin * other.x + cos * other.y,
            math.remainder(self.yaw + other.yaw, math.tau),
        )

    def seen_from(self, base: "Pose") -> "Pose":
        """Return this pose relative to another one in the same frame."""
        x, y = self.x - base.x, self.y - base.y
        cos, sin = math.cos(base.yaw), math.sin(base.yaw)
        return Pose(cos * x + sin * y, cos * y - sin * x, math.remainder(self.yaw - base.yaw, math.tau))


# Dead reckoning from commanded velocities.


#: Of x, y, z (m²), and about them (rad²). Errors add up without end, and nothing corrects them.
POSE_VARIANCES = (UNKNOWN_VARIANCE,) * 6
#: In (m/s)², (rad/s)²: what was commanded, of tracks that slip.
TWIST_VARIANCES = (0.1, 0.1, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, 0.5)
_COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)


class WheelOdometry:
    """A pose that starts at the origin along x and integrates velocities."""

    def __init__(self) -> None:
        self.pose = Pose()
        self._velocity = (0.0, 0.0)

    def advance(self, seconds: float, forward: float, turn: float) -> None:
        """Advance with a velocity in m/s and a turn rate in rad/s."""
        self.at(self.pose.moved(seconds, forward, turn), forward, turn)

    def at(self, pose: Pose, forward: float, turn: float) -> None:
        """Set the pose, with a velocity in m/s and a turn rate in rad/s."""
        self.pose = pose
        self._velocity = (forward, turn)

    def message(self, stamp: Time, names: FrameNames) -> Odometry:
        """Return pose and velocity, with covariances for unmeasured odometry."""
        message = Odometry(child_frame_id=names.base_link)
        message.header.stamp = stamp
        message.header.frame_id = names.odom
        message.pose.pose.position.x, message.pose.pose.position.y, yaw = self.pose
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, yaw))
        message.twist.twist.linear.x, message.twist.twist.angular.z = self._velocity
        _COVARIANCES.fill(message)
        return message
