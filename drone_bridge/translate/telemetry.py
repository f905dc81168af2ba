# SPDX-License-Identifier: Apache-2.0
"""Converts telemetry of a drone and a rover to ROS messages, and commands to the wire."""

import math
from typing import Final, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TransformStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Imu, Range
from std_msgs.msg import Float64
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad
from drone_bridge.protocols.telemetry import MAX_THRUST, MAX_TILT, DroneCommand, DroneTelemetry, RoverTelemetry
from drone_bridge.translate import frames
from drone_bridge.translate.frame_names import DroneFrameNames
from drone_bridge.translate.frames import TelemetryCommandSigns, TelemetrySigns
from drone_bridge.translate.images import pinhole_camera_info, set_data
from drone_bridge.translate.time import time_from_seconds
from drone_bridge.translate.transforms import set_quaternion, transform

#: The command that is always safe: level, neither up nor down.
HOVER: Final = DroneCommand()


class LandingFrameNames(DroneFrameNames):
    """The tf frames of a drone, whose camera looks down, and of a rover: base_link is the drone's."""

    __slots__ = ()

    @property
    def stabilized(self) -> str:
        """The drone's place and heading, in axes that stay level when it tilts."""
        return f"{self.prefix}base_stabilized"

    @property
    def footprint(self) -> str:
        """The ground below the drone, in the same axes."""
        return f"{self.prefix}base_footprint"

    @property
    def landing_pad(self) -> str:
        """The pad that the drone sees, in axes parallel to those that it is measured in."""
        return f"{self.prefix}landing_pad"

    @property
    def rover(self) -> str:
        """The rover, in axes parallel to those of map: its heading is not on the wire."""
        return f"{self.prefix}rover/base_link"


# Commands.


class FullScale(NamedTuple):
    """The command at full deflection of each axis, in the order of the wire."""

    thrust: float = 1.0  # linear.z
    pitch: float = 1.0  # linear.x
    roll: float = 1.0  # linear.y
    yaw: float = 1.0  # angular.z


_MAXIMA: Final = (MAX_THRUST, MAX_TILT, MAX_TILT, MAX_TILT)


def command_from_twist(twist: Twist, full_scale: FullScale, signs: TelemetryCommandSigns) -> tuple[DroneCommand, bool]:
    """Return a finite cmd_vel as a command, clamped to the wire's limits, and whether it was within them.

    linear.x is forward, linear.y left, linear.z up, angular.z a left turn (REP 103); the rest is not on the wire.
    """
    asked = frames.telemetry_axes_from_body(twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z, signs)
    shares = [value / full for value, full in zip(asked, full_scale, strict=True)]
    clamped = [max(-1.0, min(1.0, share)) for share in shares]
    return DroneCommand(*(share * most for share, most in zip(clamped, _MAXIMA, strict=True))), clamped == shares


def twist_from_command(command: DroneCommand, full_scale: FullScale, signs: TelemetryCommandSigns) -> Twist:
    """Return a command as cmd_vel, the inverse of `command_from_twist`."""
    given = (command.thrust, command.pitch, command.roll, command.yaw)
    thrust, pitch, roll, yaw = (
        value / most * full for value, most, full in zip(given, _MAXIMA, full_scale, strict=True)
    )
    twist = Twist()
    forward, left, up, left_turn = frames.body_from_telemetry_axes(thrust, pitch, roll, yaw, signs)
    twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z = forward, left, up, left_turn
    return twist


# Telemetry.


def static_transforms(names: LandingFrameNames) -> list[TransformStamped]:
    """Return base_link to the altimeter and to the camera, which both point down."""
    return [
        transform(names.base_link, names.altimeter, rotation=frames.DOWN_IN_BODY),
        transform(names.base_link, names.optical, rotation=frames.DOWNWARD_OPTICAL_IN_BODY),
    ]


class DroneMessages:
    """Converts a drone's telemetry to ROS messages.

    Each kind of message is made once and refilled each time, so that it holds until the next call.
    """

    def __init__(self, names: LandingFrameNames, signs: TelemetrySigns, default_fov: float, is_levelled: bool) -> None:
        """Prepare the messages.

        Args:
            names: of the frames.
            signs: of what the wire carries.
            default_fov: degrees of the horizontal field of view, where the wire carries none.
            is_levelled: whether velocity and pad are measured along level axes, instead of those of the tilted body.
        """
        self._signs = signs
        self._is_levelled = is_levelled
        measured_in = names.stabilized if is_levelled else names.base_link
        self._default_fov = default_fov
        self._imu = Imu()
        # The height above ground: no nearest, as noise makes it negative on the ground, no farthest, no beam.
        # Deprecated, as no rangefinder has such limits; see `height`.
        self._altitude = Range(radiation_type=Range.INFRARED, min_range=-math.inf, max_range=math.inf)
        self._velocity = TwistStamped()
        self._pad = LandingPad()
        self._pad_transform = transform(measured_in, names.landing_pad)
        self._level_transform = transform(names.base_link, names.stabilized)
        self._ground_transform = transform(names.stabilized, names.footprint)
        self._height = PointStamped()
        self._height.header.frame_id = names.footprint
        self._vertical_velocity = Float64()
        self._compressed = CompressedImage(format="jpeg")
        self._camera: tuple[int, int, float] | None = None  # what the CameraInfo is of
        self._camera_info = CameraInfo()
        self._imu.header.frame_id = names.base_link
        self._velocity.header.frame_id = self._pad.header.frame_id = measured_in
        self._altitude.header.frame_id = names.altimeter
        self._compressed.header.frame_id = self._optical = names.optical

    def imu(self, telemetry: DroneTelemetry, stamp: Time) -> Imu:
        """Return attitude, rates and acceleration; a covariance of -1 marks a missing acceleration."""
        message, imu = self._imu, telemetry.imu
        message.header.stamp = stamp
        set_quaternion(message.orientation, frames.orientation_from_telemetry(*imu.orientation, self._signs))
        rates = message.angular_velocity
        rates.x, rates.y, rates.z = frames.rates_from_telemetry(*imu.angular_velocity, self._signs)
        acceleration = message.linear_acceleration
        acceleration.x, acceleration.y, acceleration.z = imu.linear_acceleration or (0.0, 0.0, 0.0)
        message.linear_acceleration_covariance[0] = 0.0 if imu.linear_acceleration else -1.0
        return message

    def altitude(self, telemetry: DroneTelemetry, stamp: Time) -> Range:
        """Return the height above ground as a range, for compatibility."""
        self._altitude.header.stamp = stamp
        self._altitude.range = telemetry.altimeter.altitude
        return self._altitude

    def height(self, telemetry: DroneTelemetry, stamp: Time) -> PointStamped:
        """Return the drone's position above the ground below it."""
        self._height.header.stamp = stamp
        self._height.point.z = telemetry.altimeter.altitude
        return self._height

    def vertical_velocity(self, telemetry: DroneTelemetry, _: Time) -> Float64:
        """Return the altimeter's vertical velocity, m/s."""
        self._vertical_velocity.data = telemetry.altimeter.vertical_velocity
        return self._vertical_velocity

    def velocity(self, telemetry: DroneTelemetry, stamp: Time) -> TwistStamped:
        """Return the velocity of the body and its rates, both along the axes that the velocity is measured in."""
        self._velocity.header.stamp = stamp
        linear, angular = self._velocity.twist.linear, self._velocity.twist.angular
        linear.x, linear.y, linear.z = telemetry.velocity
        rates = frames.rates_from_telemetry(*telemetry.imu.angular_velocity, self._signs)
        if self._is_levelled:
            roll, pitch, _ = telemetry.imu.orientation
            rates = frames.level_from_body(rates, roll, pitch, self._signs)
        angular.x, angular.y, angular.z = rates
        return self._velocity

    def landing_pad(self, telemetry: DroneTelemetry, stamp: Time) -> LandingPad:
        """Return the pad's position, or that it is not visible."""
        message, pad = self._pad, telemetry.landing_pad
        message.header.stamp = stamp
        message.detected = pad is not None
        if pad:
            message.offset_x, message.offset_y = frames.pad_in_body(pad.relative_x, pad.relative_y, self._signs)
            message.distance, message.confidence = pad.distance, pad.confidence
        else:
            message.offset_x = message.offset_y = message.distance = message.confidence = math.nan
        return message

    def transforms(self, telemetry: DroneTelemetry, stamp: Time) -> TFMessage:
        """Return base_link to its level axes, those to the ground, and the way to the pad, if it is in sight."""
        roll, pitch, _ = telemetry.imu.orientation
        level = frames.level_in_body_from_telemetry(roll, pitch, self._signs)
        set_quaternion(self._level_transform.transform.rotation, level)
        self._ground_transform.transform.translation.z = -telemetry.altimeter.altitude
        found = [self._level_transform, self._ground_transform]
        if pad := telemetry.landing_pad:
            place = self._pad_transform.transform.translation
            place.x, place.y = frames.pad_in_body(pad.relative_x, pad.relative_y, self._signs)
            place.z = -pad.distance
            found.append(self._pad_transform)
        for each in found:
            each.header.stamp = stamp
        return TFMessage(transforms=found)

    def compressed_image(self, telemetry: DroneTelemetry, stamp: Time) -> CompressedImage | None:
        """Return the JPEG unchanged, if there is one."""
        if telemetry.camera.jpeg is None:
            return None
        self._compressed.header.stamp = stamp
        set_data(self._compressed, telemetry.camera.jpeg)
        return self._compressed

    def camera_info(self, telemetry: DroneTelemetry, stamp: Time) -> CameraInfo | None:
        """Return the camera of the image, if there is one; pixels are square.

        Whoever looks at the image sees its own size, so that is what the camera has.
        """
        camera = telemetry.camera
        if camera.jpeg is None:
            return None
        width, height = camera.jpeg_size or (camera.width, camera.height)
        fov = self._default_fov if camera.fov is None else camera.fov
        if self._camera != (width, height, fov):
            self._camera = (width, height, fov)
            focal = width / 2 / math.tan(math.radians(fov) / 2)
            self._camera_info = pinhole_camera_info(width, height, focal_x=focal, focal_y=focal, frame_id=self._optical)
        self._camera_info.header.stamp = stamp
        return self._camera_info

    def clock(self, telemetry: DroneTelemetry, _: Time) -> Clock | None:
        """Return the drone's time, if it has one."""
        return None if telemetry.timestamp is None else Clock(clock=time_from_seconds(telemetry.timestamp))


def rover_odometry(telemetry: RoverTelemetry, stamp: Time, names: LandingFrameNames) -> Odometry:
    """Return the rover's pose in map, in a frame parallel to map."""
    message = Odometry(child_frame_id=names.rover)
    message.header.stamp = stamp
    message.header.frame_id = names.map
    position, velocity = message.pose.pose.position, message.twist.twist.linear
    position.x, position.y, position.z = telemetry.position
    velocity.x, velocity.y, velocity.z = telemetry.velocity
    return message
