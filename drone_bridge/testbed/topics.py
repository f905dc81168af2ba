# SPDX-License-Identifier: Apache-2.0
"""TestbedTranslation: testbed messages to topics and back; the table of topics.

An attitude without roll, or without yaw, is marked by its covariance. For signs and units see `units`.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu
from std_msgs.msg import Header
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.body_velocity import STILL
from drone_bridge.motion.derived_velocity import DerivedVelocity
from drone_bridge.motion.flight_control import RatesAndThrust
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import quaternion_from_euler, rotated_back, unit_quaternion
from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.simulated_time import CLOCK_TOPIC
from drone_bridge.ros.qos import newest
from drone_bridge.ros.time import seconds_of, time_from_seconds
from drone_bridge.ros.topics import frames
from drone_bridge.ros.topics.covariances import AXES, EXACT_VARIANCE, UNKNOWN_VARIANCE, OdometryCovariances
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.images import Rgb8Image, pinhole_camera_info, rgb8_pixels
from drone_bridge.ros.topics.jpeg_images import JpegEncoder
from drone_bridge.ros.topics.standard_rows import standard_row
from drone_bridge.ros.topics.table import Topic, TopicTable, state_topic
from drone_bridge.ros.topics.transforms import odometry_transform, set_quaternion, set_vector, transform
from drone_bridge.testbed import units
from drone_bridge.testbed.codec import AngleUnit, AttitudeLayout, Constants, SensorFrame
from drone_bridge.testbed.units import testbed_from_enu, testbed_from_orientation, wire_from_radians

# Variance of an unknown angle: a uniform distribution over the whole circle.
UNKNOWN_ANGLE_VARIANCE = math.pi**2 / 3  # rad^2
#: Standard deviation of an angle on the wire, rad: testbeds round it.
ANGLE_DEVIATION = 0.001
#: JPEG quality of images that are compressed here, 1 to 100.
JPEG_QUALITY = 80
#: Positions on the wire are exact. Velocities are not transmitted, but derived from them, once there are several.
ODOMETRY_COVARIANCES, WITHOUT_VELOCITY = (
    OdometryCovariances([EXACT_VARIANCE] * AXES, [known] * 3 + [UNKNOWN_VARIANCE] * 2 + [known])
    for known in (0.1, UNKNOWN_VARIANCE)
)
#: Speed, m/s, and turn rate, rad/s, far above those of drones, above which a position leaps.
FASTEST, FASTEST_TURN = 50.0, 10.0
#: Maximum deviation of a quaternion's length from 1.
_LENGTH_TOLERANCE = 0.01
#: Decimals of radians. Smaller differences are rounding errors, which would appear in the wire's floats.
_DECIMALS = 13
SIDES = ("left", "right")

# Parameters that bridge and server share.

#: Value of attitude_layout that detects the layout from the first frame.
AUTO = "auto"

ANGLE_UNIT = ParameterDeclaration(
    "angle_unit",
    AngleUnit.DEGREES.value,
    "Unit of angles and angular rates on the wire.",
    choices=tuple(unit.value for unit in AngleUnit),
)


#: Units of the time on the wire, s, by the value of `time_unit`.
TIME_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6}
TIME_UNIT = ParameterDeclaration("time_unit", "s", "Unit of the testbed's time.", choices=tuple(TIME_UNITS))


def attitude_layout(*, is_detectable: bool) -> ParameterDeclaration:
    """Return the declaration of attitude_layout. The default is AUTO if the layout is detectable."""
    layouts = tuple(layout.value for layout in AttitudeLayout)
    meaning = "The floats after the images: as documented, with roll instead of yaw, or a full pose."
    if is_detectable:
        meaning += " auto detects a pose from the first frame, and otherwise assumes the documented layout."
        return ParameterDeclaration("attitude_layout", AUTO, meaning, choices=(AUTO, *layouts))
    return ParameterDeclaration("attitude_layout", AttitudeLayout.PITCH_YAW.value, meaning, choices=layouts)


class StereoFrameNames(FrameNames):
    """Names of one drone's tf frames, with their prefix. base_link is midway between the cameras."""

    __slots__ = ()

    def camera(self, side: str) -> str:
        """Pinhole of one camera, in body axes."""
        return f"{self.frame_prefix}{side}_camera_link"

    def optical(self, side: str) -> str:
        """Pinhole of one camera, in optical axes."""
        return f"{self.frame_prefix}{side}_camera_optical_frame"


# Commands.


def command_from_rates(rates: CommandRates) -> RatesAndThrust:
    """Convert a cmd_rates message."""
    return RatesAndThrust(rates.roll_rate, rates.pitch_rate, rates.yaw_rate, rates.thrust)


def rates_from_command(command: RatesAndThrust, stamp: Time) -> CommandRates:
    """Return a cmd_rates message with the stamp of the frame that it answers."""
    message = CommandRates(**command._asdict())
    message.header.stamp = stamp
    return message


# Constants of the drone, and tf frames of its cameras.


def camera_info(constants: Constants, unit: AngleUnit, names: StereoFrameNames, side: str) -> CameraInfo:
    """Return the CameraInfo of one side. The left camera is the reference of the stereo pair."""
    horizontal = constants.horizontal_angle_of_view * unit.radians
    vertical = constants.vertical_angle_of_view * unit.radians
    return pinhole_camera_info(
        constants.width,
        constants.height,
        focal_x=constants.width / 2 / math.tan(horizontal / 2),
        focal_y=constants.height / 2 / math.tan(vertical / 2),
        frame_id=names.optical(side),
        baseline=constants.camera_separation if side == "right" else 0.0,
    )


def add_cameras(properties: DroneProperties, left: CameraInfo, right: CameraInfo | None) -> None:
    """Set the camera properties from a pair of CameraInfos. Without a right one, the separation is 0.

    Raises ValueError for an uncalibrated camera.
    """
    for name, focal_length in (("k[0]", left.k[0]), ("k[4]", left.k[4])):
        if not 0.0 < focal_length < math.inf:
            raise ValueError(f"the left CameraInfo is not calibrated: its focal length {name} is {focal_length}.")
    properties.image_width, properties.image_height = left.width, left.height
    properties.horizontal_angle_of_view = 2 * math.atan(left.width / 2 / left.k[0])
    properties.vertical_angle_of_view = 2 * math.atan(left.height / 2 / left.k[4])
    properties.camera_separation = 0.0
    if right is not None and right.p[0]:
        properties.camera_separation = abs(right.p[3] / right.p[0])


def camera_transforms(constants: Constants, names: StereoFrameNames) -> list[TransformStamped]:
    """Return the transforms from base_link to both cameras, on its y axis, and to their optical frames."""
    transforms = []
    for side, y in zip(SIDES, (constants.camera_separation / 2, -constants.camera_separation / 2), strict=True):
        transforms.append(transform(names.base_link, names.camera(side), (0.0, y, 0.0)))
        transforms.append(transform(names.camera(side), names.optical(side), rotation=frames.OPTICAL_IN_BODY))
    return transforms


# Frames.


def imu(frame: SensorFrame, names: FrameNames) -> Imu:
    """Return an Imu without stamp and orientation. An unknown angle has the variance of a full circle.

    Rates and accelerations are not transmitted, which their covariances indicate.
    """
    message = Imu()
    message.header.frame_id = names.base_link
    known = ANGLE_DEVIATION**2
    roll_variance = UNKNOWN_ANGLE_VARIANCE if frame.roll is None else known
    yaw_variance = UNKNOWN_ANGLE_VARIANCE if frame.yaw is None else known
    message.orientation_covariance = [roll_variance, 0.0, 0.0, 0.0, known, 0.0, 0.0, 0.0, yaw_variance]
    message.angular_velocity_covariance[0] = -1.0
    message.linear_acceleration_covariance[0] = -1.0
    return message


def sensed(message: Imu | Odometry, unit: AngleUnit) -> SensorFrame:
    """Return the attitude of an Imu, or the pose of an Odometry, as a frame without images, at time 0.

    Raises ValueError, with a sentence, for a message without an attitude.
    """
    q = message.pose.pose.orientation if isinstance(message, Odometry) else message.orientation
    if (unit_q := unit_quaternion(q, _LENGTH_TOLERANCE)) is None:
        raise ValueError(f"the orientation ({q.x:g}, {q.y:g}, {q.z:g}, {q.w:g}) is not a unit quaternion.")
    angles = testbed_from_orientation(unit_q)
    if isinstance(message, Odometry):
        point = message.pose.pose.position
        if not all(map(math.isfinite, (point.x, point.y, point.z))):
            raise ValueError(f"the position ({point.x:g}, {point.y:g}, {point.z:g}) is not finite.")
        pitch, roll, heading = (_wire_angle(angle, unit) for angle in angles)
        return SensorFrame(b"", b"", 0.0, pitch, roll, heading, testbed_from_enu(point.x, point.y, point.z))
    covariance = message.orientation_covariance
    if covariance[0] == -1.0:
        raise ValueError("its orientation_covariance[0] is -1: it has no orientation.")
    has_roll, has_yaw = (variance < UNKNOWN_ANGLE_VARIANCE for variance in (covariance[0], covariance[8]))
    pitch, roll, heading = angles
    if not has_roll and abs(roll) > math.pi / 2:
        # An unknown roll is set to 0: the nose points backward because pitch is beyond a quarter turn.
        pitch, heading = math.copysign(math.pi, pitch) - pitch, heading - math.copysign(math.pi, heading)
    return SensorFrame(
        b"",
        b"",
        0.0,
        _wire_angle(pitch, unit),
        _wire_angle(roll, unit) if has_roll else None,
        _wire_angle(heading, unit) if has_yaw else None,
    )


def _wire_angle(angle: float, unit: AngleUnit) -> float:
    return wire_from_radians(0.0 + round(angle, _DECIMALS), unit)


class TestbedTranslation:
    """Converter between testbed messages and ROS. A message is valid until the next one of its kind."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(
        self,
        unit: AngleUnit,
        names: StereoFrameNames,
        *,
        refuse_image: Callable[[str], None] = lambda sentence: None,
        time_unit_s: float = 1.0,
    ) -> None:
        """Prepare the messages.

        Args:
            unit: unit of angles on the wire.
            names: names of the tf frames.
            refuse_image: callback with a sentence about each image that can't be compressed.
            time_unit_s: unit of the time on the wire, s.
        """
        self.unit, self._names, self._refuse_image, self._time_unit_s = unit, names, refuse_image, time_unit_s
        self._odometry = Odometry(header=Header(frame_id=names.odom), child_frame_id=names.base_link)
        self._covariances: OdometryCovariances | None = None
        self.forget()

    def forget(self) -> None:
        """Release the data of one drone: its messages keep the memory of the images alive."""
        self._constants: Constants | None = None
        self._infos: dict[str, CameraInfo] = {}
        self._images: dict[str, Rgb8Image] = {}
        self._encoders: dict[str, JpegEncoder] = {}
        self._derived = DerivedVelocity(FASTEST, FASTEST_TURN)
        self._imu: Imu | None = None  # its covariances are the same for all frames of this drone

    def drone_properties(self, constants: Constants, stamp: Time) -> DroneProperties:
        """Return the announced drone. The following frames belong to it, and to one simulation."""
        self._derived = DerivedVelocity(FASTEST, FASTEST_TURN)
        if constants != self._constants:
            self.forget()
            self._constants, size = constants, (constants.width, constants.height)
            for side in SIDES:
                optical = self._names.optical(side)
                self._infos[side] = camera_info(constants, self.unit, self._names, side)
                self._images[side] = Rgb8Image(*size, optical)
                self._encoders[side] = JpegEncoder(*size, optical, JPEG_QUALITY)
        properties = DroneProperties(**units.properties(constants, self.unit))
        properties.header = Header(stamp=stamp, frame_id=self._names.base_link)
        return properties

    def clock(self, frame: SensorFrame, _: Time) -> Clock:
        return Clock(clock=time_from_seconds(frame.time * self._time_unit_s))

    def camera_info(self, _: SensorFrame, stamp: Time, side: str) -> CameraInfo:
        info = self._infos[side]
        info.header.stamp = stamp
        return info

    def imu(self, frame: SensorFrame, stamp: Time) -> Imu:
        """Return an Imu that has only the attitude."""
        if self._imu is None:
            self._imu = imu(frame, self._names)
        self._imu.header.stamp = stamp
        set_quaternion(self._imu.orientation, units.orientation(units.measurement(frame, self.unit)))
        return self._imu

    def odometry(self, frame: SensorFrame, stamp: Time) -> Odometry | None:
        """Return pose and derived velocity; None if the wire has no positions."""
        if (measured := self._posed(frame, stamp)) is None:
            return None
        message, velocity = self._odometry, self._derived.update(measured, seconds_of(stamp))
        covariances = ODOMETRY_COVARIANCES if velocity else WITHOUT_VELOCITY
        if covariances is not self._covariances:
            covariances.fill(message)
            self._covariances = covariances
        known, tilt = velocity or STILL, quaternion_from_euler(measured.roll or 0.0, measured.pitch or 0.0, 0.0)
        set_vector(message.twist.twist.linear, rotated_back(tilt, *known.linear))
        message.twist.twist.angular.z = known.turn
        return message

    def transforms(self, frame: SensorFrame, stamp: Time) -> TFMessage | None:
        """Return odom to base_link; None if the wire has no positions."""
        return self._posed(frame, stamp) and TFMessage(transforms=[odometry_transform(self._odometry)])

    def _posed(self, frame: SensorFrame, stamp: Time) -> Measurement | None:
        """Write the pose into the odometry. Return what was measured, or None if the wire has no positions."""
        measured, message = units.measurement(frame, self.unit), self._odometry
        if measured.position is None:
            return None
        message.header.stamp = stamp
        set_vector(message.pose.pose.position, measured.position)
        set_quaternion(message.pose.pose.orientation, units.orientation(measured))
        return measured

    def image(self, frame: SensorFrame, stamp: Time, side: str) -> Image:
        """Return the received memory itself, in a message that is valid until the next one."""
        return self._images[side].filled(getattr(frame, side), stamp)

    def compressed_image(self, frame: SensorFrame, stamp: Time, side: str) -> CompressedImage | None:
        try:
            return self._encoders[side].image(getattr(frame, side), stamp)
        except ValueError as error:
            self._refuse_image(f"{side}/image_raw/compressed {error}.")
            return None

    # From ROS to the wire.

    def wire_sensed(self, message: Imu | Odometry) -> SensorFrame:
        return sensed(message, self.unit)


_T = TestbedTranslation
_row = partial(standard_row, SensorFrame)
_frame_topic = partial(Topic, of=SensorFrame)
TOPICS = (
    _frame_topic(CLOCK_TOPIC, Clock, to_ros=_T.clock, qos=newest, if_parameter="publish_clock"),
    state_topic(
        "drone_properties",
        DroneProperties,
        of=Constants,
        to_ros=_T.drone_properties,
        from_ros=lambda translation, properties: units.constants_of(properties, translation.unit),
        meaning="properties of the drone, again at the start of each simulation; latched",
        needed="the parameters drone.* are announced, after source_timeout",
        instead=tuple(f"{side}/camera_info" for side in SIDES),
    ),
    *(
        _frame_topic(
            f"{side}/camera_info",
            CameraInfo,
            to_ros=partial(_T.camera_info, side=side),
            qos=newest,
            meaning=f"calibration of the {side} camera, an ideal pinhole; the left camera is the reference",
        )
        for side in SIDES
    ),
    # Small messages before images: a subscriber that assembles a frame has handled them when the images arrive.
    _row(
        "imu/data",
        _T.imu,
        _T.wire_sensed,
        "attitude; an angle that the wire lacks has the variance of a full circle",
        needed="no frame is sent",
    ),
    _row(
        "odom",
        _T.odometry,
        _T.wire_sensed,
        "pose, if the testbed sends positions",
        needed="no frame is sent if attitude_layout is pose",
        instead=("imu/data",),
    ),
    _row("/tf", _T.transforms, if_parameter="publish_tf"),
    *(
        _frame_topic(
            f"{side}/image_raw",
            Image,
            to_ros=partial(_T.image, side=side),
            from_ros=lambda _, image: rgb8_pixels(image),
            qos=newest,
            count="images",
            meaning=f"{side} camera image, rgb8 as on the wire",
            needed="no frame is sent, unless the parameter cameras is mono or none",
        )
        for side in SIDES
    ),
    *(
        _frame_topic(
            f"{side}/image_raw/compressed",
            CompressedImage,
            to_ros=partial(_T.compressed_image, side=side),
            qos=newest,
            is_slow=True,
            count="images_compressed",
            meaning=f"{side} camera image as JPEG, encoded only for subscribers",
        )
        for side in SIDES
    ),
)


def _frame(_: TestbedTranslation, value: Callable[[str], Any], stamp: Time) -> SensorFrame:
    left, right = (value(f"{side}/image_raw") for side in SIDES)
    posed: SensorFrame = value("odom") or value("imu/data")
    return replace(posed, left=left, right=right, time=seconds_of(stamp))


TABLE = TopicTable(
    TOPICS,
    lambda: TestbedTranslation(AngleUnit.DEGREES, StereoFrameNames()),
    {Constants: lambda _, value, stamp: value("drone_properties"), SensorFrame: _frame},
)
