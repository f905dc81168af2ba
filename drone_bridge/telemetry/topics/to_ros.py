# SPDX-License-Identifier: Apache-2.0
"""Converts telemetry of a drone and a rover to ROS messages, and commands to the wire."""

import math
from typing import Final, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TransformStamped, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Imu, Range
from std_msgs.msg import Float64, Header
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad
from drone_bridge.telemetry.codec import MAX_THRUST, MAX_TILT, DroneCommand, DroneTelemetry, RoverTelemetry
from drone_bridge.translate import frames
from drone_bridge.translate.frame_names import DroneFrameNames
from drone_bridge.translate.frames import TelemetryCommandSigns, TelemetrySigns
from drone_bridge.translate.images import pinhole_camera_info, set_data
from drone_bridge.translate.message_template import STAMP, MessageTemplate
from drone_bridge.translate.time import stamp_numbers, time_from_seconds
from drone_bridge.translate.transforms import transform

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
    """Converts a drone's telemetry to ROS messages, most of them serialized."""

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
        self._default_fov = default_fov
        self._optical = names.optical
        measured_in = Header(frame_id=names.stabilized if is_levelled else names.base_link)
        self._imu = MessageTemplate(
            Imu(header=Header(frame_id=names.base_link)),
            *(STAMP, "orientation", "angular_velocity", "linear_acceleration", "linear_acceleration_covariance[0]"),
        )
        self._velocity = MessageTemplate(TwistStamped(header=measured_in), STAMP, "twist")
        self._height = MessageTemplate(PointStamped(header=Header(frame_id=names.footprint)), STAMP, "point.z")
        self._vertical_velocity = MessageTemplate(Float64(), "data")
        self._pad = MessageTemplate(
            LandingPad(header=measured_in), STAMP, "detected", "offset_x", "offset_y", "distance", "confidence"
        )
        level = [transform(names.base_link, names.stabilized), transform(names.stabilized, names.footprint)]
        pad = transform(measured_in.frame_id, names.landing_pad)
        rotation, height = "transforms[0].transform.rotation", "transforms[1].transform.translation.z"
        place, stamps = "transforms[2].transform.translation", [f"transforms[{n}].{STAMP}" for n in range(3)]
        self._level_tf = MessageTemplate(TFMessage(transforms=level), rotation, height, *stamps[:2])
        self._tf = MessageTemplate(TFMessage(transforms=[*level, pad]), rotation, height, place, *stamps)
        # The height above ground: no nearest, as noise makes it negative on the ground, no farthest, no beam.
        # Deprecated, as no rangefinder has such limits; see `height`.
        self._altitude = Range(radiation_type=Range.INFRARED, min_range=-math.inf, max_range=math.inf)
        self._altitude.header.frame_id = names.altimeter
        self._compressed = CompressedImage(header=Header(frame_id=names.optical), format="jpeg")
        self._camera: tuple[int, int, float] | None = None  # what the CameraInfo is of
        self._camera_info = MessageTemplate(CameraInfo())

    def imu(self, telemetry: DroneTelemetry, stamp: Time) -> bytes:
        """Return an Imu of attitude, rates and acceleration; a covariance of -1 marks a missing acceleration."""
        imu = telemetry.imu
        return self._imu.filled(
            stamp_numbers(stamp),
            frames.orientation_from_telemetry(*imu.orientation, self._signs),
            frames.rates_from_telemetry(*imu.angular_velocity, self._signs),
            imu.linear_acceleration or (0.0, 0.0, 0.0),
            (0.0 if imu.linear_acceleration else -1.0,),
        )

    def altitude(self, telemetry: DroneTelemetry, stamp: Time) -> Range:
        """Return the height above ground as a range, for compatibility; the next call changes it."""
        self._altitude.header.stamp = stamp
        self._altitude.range = telemetry.altimeter.altitude
        return self._altitude

    def height(self, telemetry: DroneTelemetry, stamp: Time) -> bytes:
        """Return the drone's position above the ground below it, a PointStamped."""
        return self._height.filled(stamp_numbers(stamp), (telemetry.altimeter.altitude,))

    def vertical_velocity(self, telemetry: DroneTelemetry, _: Time) -> bytes:
        """Return the altimeter's vertical velocity, m/s, a Float64."""
        return self._vertical_velocity.filled((telemetry.altimeter.vertical_velocity,))

    def velocity(self, telemetry: DroneTelemetry, stamp: Time) -> bytes:
        """Return a TwistStamped of the body's velocity and rates, along the axes that the velocity is measured in."""
        rates = frames.rates_from_telemetry(*telemetry.imu.angular_velocity, self._signs)
        if self._is_levelled:
            roll, pitch, _ = telemetry.imu.orientation
            rates = frames.level_from_body(rates, roll, pitch, self._signs)
        return self._velocity.filled(stamp_numbers(stamp), (*telemetry.velocity, *rates))

    def landing_pad(self, telemetry: DroneTelemetry, stamp: Time) -> bytes:
        """Return a LandingPad: the pad's position, or that it is not visible."""
        pad = telemetry.landing_pad
        x = y = distance = confidence = math.nan
        if pad:
            x, y = frames.pad_in_body(pad.relative_x, pad.relative_y, self._signs)
            distance, confidence = pad.distance, pad.confidence
        return self._pad.filled(stamp_numbers(stamp), (pad is not None,), (x,), (y,), (distance,), (confidence,))

    def transforms(self, telemetry: DroneTelemetry, stamp: Time) -> bytes:
        """Return a TFMessage: base_link to its level axes, those to the ground, and the way to a pad in sight."""
        now = stamp_numbers(stamp)
        roll, pitch, _ = telemetry.imu.orientation
        level = frames.level_in_body_from_telemetry(roll, pitch, self._signs)
        ground = (-telemetry.altimeter.altitude,)
        pad = telemetry.landing_pad
        if pad is None:
            return self._level_tf.filled(level, ground, now, now)
        place = (*frames.pad_in_body(pad.relative_x, pad.relative_y, self._signs), -pad.distance)
        return self._tf.filled(level, ground, place, now, now, now)

    def compressed_image(self, telemetry: DroneTelemetry, stamp: Time) -> CompressedImage | None:
        """Return the JPEG unchanged, if there is one; the next call changes it."""
        if telemetry.camera.jpeg is None:
            return None
        self._compressed.header.stamp = stamp
        set_data(self._compressed, telemetry.camera.jpeg)
        return self._compressed

    def camera_info(self, telemetry: DroneTelemetry, stamp: Time) -> bytes | None:
        """Return the CameraInfo of the image, if there is one; pixels are square.

        It has the size of the image itself, whatever telemetry says.
        """
        camera = telemetry.camera
        if camera.jpeg is None:
            return None
        width, height = camera.jpeg_size or (camera.width, camera.height)
        fov = self._default_fov if camera.fov is None else camera.fov
        if self._camera != (width, height, fov):
            self._camera = (width, height, fov)
            focal = width / 2 / math.tan(math.radians(fov) / 2)
            info = pinhole_camera_info(width, height, focal_x=focal, focal_y=focal, frame_id=self._optical)
            self._camera_info = MessageTemplate(info, STAMP)
        return self._camera_info.filled(stamp_numbers(stamp))

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
