# SPDX-License-Identifier: Apache-2.0
"""Converts the testbed's messages to ROS messages, and commands to the wire."""

import math
from typing import Final, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped, Twist
from nav_msgs.msg import Odometry
from sensor_msgs.msg import CameraInfo, Imu

from drone_bridge.motion.attitude_estimator import MeasuredAttitude
from drone_bridge.motion.quaternions import Quaternion, quaternion_from_euler, rotated_back
from drone_bridge.motion.velocity_control import VelocityCommand
from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.ros import frames
from drone_bridge.ros.frames import BodyRates, FrameNames, set_quaternion, transform
from drone_bridge.ros.images import pinhole_camera_info
from drone_bridge.testbed.codec import AngleUnit, Constants, ImageBytes, MotionParameters, SensorFrame
from drone_bridge.testbed.topics.frames import (
    body_from_testbed_rates,
    body_from_testbed_velocity,
    enu_from_testbed,
    enu_yaw_from_heading,
    orientation_from_testbed,
    radians_from_wire,
    testbed_from_enu,
    testbed_from_orientation,
    testbed_rates_from_body,
    wire_from_radians,
)

# An angle that can be anything: the variance of a uniform distribution over the whole circle.
UNKNOWN_ANGLE_VARIANCE: Final = math.pi**2 / 3  # rad^2
#: How far from 1 the norm of a quaternion may be that is meant to be a rotation.
_NORM_TOLERANCE: Final = 0.01
#: Of radians. What is smaller is rounding, and the wire's floats would carry it.
_DECIMALS: Final = 13
SIDES: Final = ("left", "right")
#: Of a drone that is to be levelled: the rate per angle of tilt, 1/s, and the fastest one, rad/s.
LEVELLING_GAIN, MAX_LEVELLING_RATE = 4.0, 1.5


class StereoFrameNames(FrameNames):
    """The tf frames of one drone, with their prefix: base_link is midway between the cameras."""

    __slots__ = ()

    def camera(self, side: str) -> str:
        """The pinhole of one camera, in body axes."""
        return f"{self.prefix}{side}_camera_link"

    def optical(self, side: str) -> str:
        """The pinhole of one camera, in optical axes."""
        return f"{self.prefix}{side}_camera_optical_frame"


class Command(NamedTuple):
    """A command of body rates, and thrust along the body's z axis, N."""

    rates: BodyRates
    thrust: float


def command_from_twist(twist: Twist) -> Command:
    """Read a cmd_vel of rates and thrust: body rates in angular, rad/s, thrust in linear.z, N."""
    return Command(BodyRates(twist.angular.x, twist.angular.y, twist.angular.z), twist.linear.z)


def velocity_from_twist(twist: Twist) -> VelocityCommand:
    """Read a cmd_vel of velocities: m/s in the level frame of the body, and rad/s about the vertical."""
    return VelocityCommand(twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z)


def command_from_rates(rates: CommandRates) -> Command:
    """Read a cmd_rates."""
    return Command(BodyRates(rates.roll_rate, rates.pitch_rate, rates.yaw_rate), rates.thrust)


def hover(constants: Constants) -> Command:
    """Return the command that keeps a level drone in place: no rotation, and thrust against its weight."""
    return Command(BodyRates(0.0, 0.0, 0.0), constants.weight * abs(constants.gravity))


def tilt_of(attitude: Quaternion) -> float:
    """Return the angle between a drone's own up and the world's, rad."""
    x, y, z = rotated_back(attitude, 0.0, 0.0, 1.0)
    return math.atan2(math.hypot(x, y), z)


def levelling(constants: Constants, attitude: Quaternion) -> Command:
    """Return the command that turns a drone of this attitude level, and carries its weight meanwhile."""
    up_x, up_y, up_z = rotated_back(attitude, 0.0, 0.0, 1.0)  # in its own frame
    tilt_sine = math.hypot(up_x, up_y)
    rate = min(LEVELLING_GAIN * math.atan2(tilt_sine, up_z), MAX_LEVELLING_RATE)
    thrust = hover(constants).thrust / max(up_z, 0.5)
    if constants.max_thrust > 0:
        thrust = min(thrust, constants.max_thrust)
    if tilt_sine < 1e-9:
        return Command(BodyRates(0.0, 0.0, 0.0), thrust)
    return Command(BodyRates(-rate * up_y / tilt_sine, rate * up_x / tilt_sine, 0.0), thrust)


def motion_parameters(command: Command, constants: Constants, unit: AngleUnit) -> tuple[MotionParameters, bool]:
    """Return a finite command in the units of the wire, within the announced maxima, and whether it was within them."""
    pitch, roll, yaw = (wire_from_radians(rate, unit) for rate in testbed_rates_from_body(command.rates))
    return limited(MotionParameters(pitch, roll, yaw, command.thrust), constants)


def limited(motion: MotionParameters, constants: Constants) -> tuple[MotionParameters, bool]:
    """Return finite motion parameters within the announced maxima, and whether they were within them."""
    asked = (motion.pitch_rate, motion.roll_rate, motion.yaw_rate, motion.thrust)
    clamped = (
        _clamp(motion.pitch_rate, -constants.max_pitch_rate, constants.max_pitch_rate),
        _clamp(motion.roll_rate, -constants.max_roll_rate, constants.max_roll_rate),
        _clamp(motion.yaw_rate, -constants.max_yaw_rate, constants.max_yaw_rate),
        _clamp(motion.thrust, 0.0, constants.max_thrust),
    )
    # Radians and back to degrees may miss a maximum by a rounding error.
    within = clamped == asked or all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(clamped, asked, strict=True))
    return MotionParameters(*clamped), within


def command_from_motion_parameters(motion: MotionParameters, unit: AngleUnit) -> Command:
    """Convert motion parameters back to a command."""
    wire = (motion.pitch_rate, motion.roll_rate, motion.yaw_rate)
    pitch, roll, yaw = (radians_from_wire(rate, unit) for rate in wire)
    return Command(body_from_testbed_rates(pitch, roll, yaw), motion.thrust)


def twist_from_velocity(ahead: float, right: float, up: float, yaw_rate: float) -> Twist:
    """Return a cmd_vel for a velocity, m/s and rad/s, in the testbed's levelled axes."""
    twist = Twist()
    linear, angular = twist.linear, twist.angular
    linear.x, linear.y, linear.z, angular.z = body_from_testbed_velocity(ahead, right, up, yaw_rate)
    return twist


def rates_from_command(command: Command, stamp: Time) -> CommandRates:
    """Return a cmd_rates with the stamp of the frame that it answers."""
    roll, pitch, yaw = command.rates
    message = CommandRates(roll_rate=roll, pitch_rate=pitch, yaw_rate=yaw, thrust=command.thrust)
    message.header.stamp = stamp
    return message


def measured_attitude(frame: SensorFrame, unit: AngleUnit) -> MeasuredAttitude:
    """Return the angles that a frame carries, rad, REP 103."""
    return MeasuredAttitude(
        roll=None if frame.roll is None else radians_from_wire(frame.roll, unit),
        pitch=radians_from_wire(frame.pitch, unit),
        yaw=None if frame.yaw is None else enu_yaw_from_heading(radians_from_wire(frame.yaw, unit)),
    )


def measured_position(frame: SensorFrame) -> tuple[float, float, float] | None:
    """Return the position that a frame carries, m, ENU."""
    return None if frame.position is None else enu_from_testbed(*frame.position)


def drone_properties(constants: Constants, unit: AngleUnit) -> DroneProperties:
    """Return the testbed's constants in SI units, with gravity positive downwards."""
    return DroneProperties(
        image_width=constants.width,
        image_height=constants.height,
        horizontal_angle_of_view=radians_from_wire(constants.horizontal_angle_of_view, unit),
        vertical_angle_of_view=radians_from_wire(constants.vertical_angle_of_view, unit),
        camera_separation=constants.camera_separation,
        mass=constants.weight,
        gravity=abs(constants.gravity),
        drag=constants.drag,
        max_thrust=constants.max_thrust,
        max_roll_rate=radians_from_wire(constants.max_roll_rate, unit),
        max_pitch_rate=radians_from_wire(constants.max_pitch_rate, unit),
        max_yaw_rate=radians_from_wire(constants.max_yaw_rate, unit),
    )


def constants_from_properties(properties: DroneProperties, unit: AngleUnit) -> Constants:
    """Return the constants that a testbed with this drone announces."""
    return Constants(
        horizontal_angle_of_view=wire_from_radians(properties.horizontal_angle_of_view, unit),
        vertical_angle_of_view=wire_from_radians(properties.vertical_angle_of_view, unit),
        width=properties.image_width,
        height=properties.image_height,
        camera_separation=properties.camera_separation,
        weight=properties.mass,
        gravity=properties.gravity,
        drag=properties.drag,
        max_thrust=properties.max_thrust,
        max_pitch_rate=wire_from_radians(properties.max_pitch_rate, unit),
        max_roll_rate=wire_from_radians(properties.max_roll_rate, unit),
        max_yaw_rate=wire_from_radians(properties.max_yaw_rate, unit),
    )


def camera_info(constants: Constants, unit: AngleUnit, names: StereoFrameNames, side: str) -> CameraInfo:
    """Return the CameraInfo of one side; the stereo pair is referred to the left camera."""
    horizontal = radians_from_wire(constants.horizontal_angle_of_view, unit)
    vertical = radians_from_wire(constants.vertical_angle_of_view, unit)
    return pinhole_camera_info(
        constants.width,
        constants.height,
        focal_x=constants.width / 2 / math.tan(horizontal / 2),
        focal_y=constants.height / 2 / math.tan(vertical / 2),
        frame_id=names.optical(side),
        baseline=constants.camera_separation if side == "right" else 0.0,
    )


def add_cameras(properties: DroneProperties, left: CameraInfo, right: CameraInfo | None) -> None:
    """Set the properties from the CameraInfos of a pair; without a right one the separation is 0.

    Raises ValueError for cameras that are not calibrated.
    """
    for name, focal_length in (("k[0]", left.k[0]), ("k[4]", left.k[4])):
        if not 0.0 < focal_length < math.inf:
            raise ValueError(f"the left CameraInfo's {name}, a focal length, is {focal_length}: it is not calibrated.")
    properties.image_width, properties.image_height = left.width, left.height
    properties.horizontal_angle_of_view = 2 * math.atan(left.width / 2 / left.k[0])
    properties.vertical_angle_of_view = 2 * math.atan(left.height / 2 / left.k[4])
    properties.camera_separation = 0.0
    if right is not None and right.p[0]:
        properties.camera_separation = abs(right.p[3] / right.p[0])


def camera_transforms(constants: Constants, names: StereoFrameNames) -> list[TransformStamped]:
    """Return base_link to both cameras, which stand on its y axis, and on to their optical frames."""
    transforms = []
    for side, y in zip(SIDES, (constants.camera_separation / 2, -constants.camera_separation / 2), strict=True):
        transforms.append(transform(names.base_link, names.camera(side), (0.0, y, 0.0)))
        transforms.append(transform(names.camera(side), names.optical(side), rotation=frames.OPTICAL_IN_BODY))
    return transforms


def map_transform(names: FrameNames) -> TransformStamped:
    """Return map to odom, which coincide, as the wire's position does not drift."""
    return transform(names.map, names.odom)


def imu(frame: SensorFrame, unit: AngleUnit, standard_deviation: float, names: FrameNames) -> Imu:
    """Return the attitude, without a stamp; an angle that the wire does not carry is 0 with a full circle's variance.

    Rates and accelerations are not on the wire: their covariances say so. `standard_deviation` is in rad.
    """
    message = Imu()
    message.header.frame_id = names.base_link
    set_quaternion(message.orientation, orientation(frame, unit))
    known = standard_deviation**2
    roll_variance = UNKNOWN_ANGLE_VARIANCE if frame.roll is None else known
    yaw_variance = UNKNOWN_ANGLE_VARIANCE if frame.yaw is None else known
    message.orientation_covariance = [roll_variance, 0.0, 0.0, 0.0, known, 0.0, 0.0, 0.0, yaw_variance]
    message.angular_velocity_covariance[0] = -1.0
    message.linear_acceleration_covariance[0] = -1.0
    return message


def pose_numbers(frame: SensorFrame, unit: AngleUnit) -> tuple[float, ...] | None:
    """Return position (m) and orientation in odom, as a Pose or a Transform has them; None without a position."""
    position = measured_position(frame)
    return (*position, *orientation(frame, unit)) if position else None


def orientation(frame: SensorFrame, unit: AngleUnit) -> Quaternion:
    """Return the attitude; an angle that the wire does not carry is 0."""
    pitch = radians_from_wire(frame.pitch, unit)
    roll = radians_from_wire(frame.roll or 0.0, unit)
    if frame.yaw is None:
        return quaternion_from_euler(roll, pitch, 0.0)
    return orientation_from_testbed(pitch, roll, radians_from_wire(frame.yaw, unit))


def sensor_frame(
    left: ImageBytes, right: ImageBytes, time_s: float, sensed: Imu | Odometry, unit: AngleUnit
) -> SensorFrame:
    """Return a frame with the attitude of an Imu, or the pose of an Odometry.

    Raises ValueError, with a sentence, for a message that has no attitude.
    """
    q = sensed.pose.pose.orientation if isinstance(sensed, Odometry) else sensed.orientation
    norm = math.sqrt(q.x**2 + q.y**2 + q.z**2 + q.w**2)
    if not abs(norm - 1.0) < _NORM_TOLERANCE:
        raise ValueError(f"the orientation ({q.x:g}, {q.y:g}, {q.z:g}, {q.w:g}) is not a unit quaternion.")
    pitch, roll, heading = testbed_from_orientation(Quaternion(q.x / norm, q.y / norm, q.z / norm, q.w / norm))
    position = None
    if isinstance(sensed, Odometry):
        point = sensed.pose.pose.position
        if not all(map(math.isfinite, (point.x, point.y, point.z))):
            raise ValueError(f"the position ({point.x:g}, {point.y:g}, {point.z:g}) is not finite.")
        position = testbed_from_enu(point.x, point.y, point.z)
    elif sensed.orientation_covariance[0] == -1.0:
        raise ValueError("its orientation_covariance says that it has no orientation.")
    elif sensed.orientation_covariance[0] >= UNKNOWN_ANGLE_VARIANCE and abs(roll) > math.pi / 2:
        # A roll that nobody knows is 0: the nose points backward because the pitch is beyond a quarter turn.
        pitch, roll, heading = math.copysign(math.pi, pitch) - pitch, 0.0, heading - math.copysign(math.pi, heading)
    pitch, roll, heading = (wire_from_radians(0.0 + round(angle, _DECIMALS), unit) for angle in (pitch, roll, heading))
    return SensorFrame(left, right, time_s, pitch, roll, yaw=heading, position=position)


def _clamp(value: float, low: float, high: float) -> float:
    return max(low, min(high, value))
