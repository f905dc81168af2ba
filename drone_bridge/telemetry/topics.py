# SPDX-License-Identifier: Apache-2.0
"""TelemetryTranslation: telemetry documents to topics and back; the table of topics. `units` has the signs.

Velocity and landing pad are in base_stabilized, or in base_link if they are not measured in level axes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped, TwistWithCovarianceStamped, Vector3
from nav_msgs.msg import Odometry
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Range
from std_msgs.msg import Bool, Header, String
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import Quaternion, inverse, quaternion_from_euler, rotated
from drone_bridge.msg import LandingPad as LandingPadMessage
from drone_bridge.ros.node.parameters import ParameterDeclaration
from drone_bridge.ros.node.simulated_time import CLOCK_TOPIC
from drone_bridge.ros.qos import newest
from drone_bridge.ros.time import seconds_of, time_from_seconds
from drone_bridge.ros.topics import frames
from drone_bridge.ros.topics.covariances import (
    EXACT_VARIANCE,
    UNKNOWN_VARIANCE,
    OdometryCovariances,
    covariance_from_diagonal,
    is_measured,
)
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.images import pinhole_camera_info, set_data
from drone_bridge.ros.topics.jpeg_images import JpegDecoder
from drone_bridge.ros.topics.reckoned_odometry import reckoned_odometry
from drone_bridge.ros.topics.standard_rows import ImuVariances, MeasuredMessages, standard_row
from drone_bridge.ros.topics.table import MissingTopicError, Topic, TopicTable, state_topic
from drone_bridge.ros.topics.transforms import odometry_transform, set_quaternion, set_vector, transform
from drone_bridge.telemetry.codec import (
    MAX_FOV,
    MAX_PATTERN_LETTERS,
    MIN_FOV,
    Camera,
    DroneTelemetry,
    LandingPad,
    RoverTelemetry,
    Vector,
)
from drone_bridge.telemetry.units import SIGNED, Units
from drone_bridge.wire.counters import RateCounter
from drone_bridge.wire.jpeg import read_size

_NONE = "none"


def _check_signs(names: Sequence[str]) -> str | None:
    for name in names:
        if name not in (_NONE, *SIGNED):
            return f"has {name!r}, but may only have {_NONE}, or any of {', '.join(SIGNED)}."
    return None


#: Parameter for commands and telemetry, for peers whose axes differ from those assumed in ros/topics/frames.py.
OPPOSITE_SIGNS = ParameterDeclaration(
    "opposite_signs",
    [_NONE],
    f"Quantities to which the peer gives the opposite sign, or {_NONE}: any of {', '.join(SIGNED)}.",
    check=_check_signs,
    replaces=("command_sign.", "telemetry_sign."),
)

TRANSPORT = ParameterDeclaration(
    "transport",
    "udp",
    "Transport of documents: UDP datagrams (udp), or std_msgs/String on /drone/telemetry, /drone/command "
    "and /rover/telemetry.",
    choices=("udp", "topic"),
)

DEFAULT_FOV = ParameterDeclaration(
    "default_fov",
    60.0,
    "Horizontal field of view of the camera, degrees, if no message has one.",
    range=(MIN_FOV, MAX_FOV),
)

# Variances of measurements, which are not on the wire.

#: Variances on `velocity`: 0.1 m/s by optical flow, 1 degree per second by gyroscopes.
VELOCITY_VARIANCES = (1e-2, 1e-2, 1e-2, 3e-4, 3e-4, 3e-4)
#: Variances on `vertical_velocity`: 0.05 m/s by the altimeter. The rest is not measured.
CLIMB_VARIANCES = (UNKNOWN_VARIANCE, UNKNOWN_VARIANCE, 2.5e-3, *[UNKNOWN_VARIANCE] * 3)
#: Variances of the pose and twist on `rover/odom`: heading and turn rate are not on the wire.
ROVER_VARIANCES = (*[EXACT_VARIANCE] * 3, *[UNKNOWN_VARIANCE] * 3)
ROVER_COVARIANCES = OdometryCovariances(ROVER_VARIANCES, ROVER_VARIANCES)


class LandingFrameNames(DroneFrameNames):
    """Names of the tf frames of a drone with a downward camera, and of a rover. base_link is the drone's."""

    __slots__ = ()

    @property
    def stabilized(self) -> str:
        """Drone's position and heading, in axes that stay level."""
        return f"{self.frame_prefix}base_stabilized"

    @property
    def landing_pad(self) -> str:
        """Visible pad, in axes parallel to those of its measurement."""
        return f"{self.frame_prefix}landing_pad"

    @property
    def rover(self) -> str:
        """Rover, in axes parallel to map, as its heading is not on the wire."""
        return f"{self.frame_prefix}rover/base_link"


def static_transforms(names: LandingFrameNames) -> list[TransformStamped]:
    """Return the transforms from base_link to the altimeter and to the camera, which both point down."""
    return [
        transform(names.base_link, names.altimeter, rotation=frames.DOWN_IN_BODY),
        transform(names.base_link, names.optical, rotation=frames.DOWNWARD_OPTICAL_IN_BODY),
    ]


class TelemetryTranslation(MeasuredMessages[DroneTelemetry]):
    """Converter between telemetry and ROS. A message is valid until the next one of its kind."""

    names: LandingFrameNames
    #: 1 degree of tilt, 10 degrees of heading (gyroscopes drift), 1 degree per second, 0.1 m/s^2.
    imu_variances = ImuVariances(tilt=3e-4, yaw=3e-2, rates=3e-4, acceleration=1e-2)

    def __init__(
        self,
        names: LandingFrameNames,
        units: Units,
        default_fov: float = 60.0,
        *,
        refuse_image: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Prepare the messages.

        Args:
            names: names of the tf frames.
            units: signs of values on the wire.
            default_fov: horizontal field of view if the wire has none, degrees.
            refuse_image: callback with a sentence about each image that can't be decoded.
        """
        super().__init__(names)
        self._units, self._refuse_image = units, refuse_image
        self._decoder = JpegDecoder(names.optical)
        self._default_fov = default_fov
        self._optical = names.optical
        measured_in = names.stabilized if units.is_levelled else names.base_link
        self._velocity = TwistWithCovarianceStamped(header=Header(frame_id=measured_in))
        self._velocity.twist.covariance = covariance_from_diagonal(VELOCITY_VARIANCES)
        self._vertical_velocity = TwistWithCovarianceStamped(header=Header(frame_id=names.footprint))
        self._vertical_velocity.twist.covariance = covariance_from_diagonal(CLIMB_VARIANCES)
        self._pad = LandingPadMessage(header=Header(frame_id=measured_in))
        self._level, self._ground, self._way_to_pad = (
            transform(names.base_link, names.stabilized),
            transform(names.stabilized, names.footprint),
            transform(measured_in, names.landing_pad),
        )
        self._compressed = CompressedImage(header=Header(frame_id=names.optical), format="jpeg")
        self._camera: tuple[int, int, float] | None = None  # parameters of the cached CameraInfo
        self._camera_info = CameraInfo()

    def measurement(self, wire: DroneTelemetry) -> Measurement:
        return self._units.measurement(wire)

    def vertical_velocity(self, telemetry: DroneTelemetry, stamp: Time) -> TwistWithCovarianceStamped:
        """Return a velocity with only the vertical component known, by the altimeter, m/s."""
        message = self._vertical_velocity
        message.header.stamp, message.twist.twist.linear.z = stamp, telemetry.altimeter.vertical_velocity
        return message

    def velocity(self, telemetry: DroneTelemetry, stamp: Time) -> TwistWithCovarianceStamped:
        """Return the body's velocity and rates in the axes of the measurement, with covariance."""
        rates = self._units.angles(*telemetry.imu.angular_velocity)
        if self._units.is_levelled:
            rates = rotated(self._units.tilt(telemetry.imu.orientation), *rates)
        message = self._velocity
        message.header.stamp = stamp
        set_vector(message.twist.twist.linear, telemetry.velocity)
        set_vector(message.twist.twist.angular, rates)
        return message

    def landing_pad(self, telemetry: DroneTelemetry, stamp: Time) -> LandingPadMessage:
        """Return the pad's position, or that it is not visible."""
        pad, message = telemetry.landing_pad, self._pad
        x = y = distance = confidence = math.nan
        if pad:
            x, y = self._units.position(pad.relative_x, pad.relative_y)
            distance, confidence = pad.distance, pad.confidence
        message.header.stamp, message.detected = stamp, pad is not None
        message.offset_x, message.offset_y, message.distance, message.confidence = x, y, distance, confidence
        return message

    def transforms(self, telemetry: DroneTelemetry, stamp: Time) -> TFMessage:
        """Return the transforms from base_link to its level axes, to the ground, and to a visible pad."""
        set_quaternion(self._level.transform.rotation, inverse(self._units.tilt(telemetry.imu.orientation)))
        self._ground.transform.translation.z = -telemetry.altimeter.altitude
        moved = [self._level, self._ground]
        if pad := telemetry.landing_pad:
            place = (*self._units.position(pad.relative_x, pad.relative_y), -pad.distance)
            set_vector(self._way_to_pad.transform.translation, place)
            moved.append(self._way_to_pad)
        for each in moved:
            each.header.stamp = stamp
        return TFMessage(transforms=moved)

    def odometry(self, pose: DeadReckonedPose, stamp: Time) -> Odometry:
        """Return the pose by dead reckoning."""
        return reckoned_odometry(pose, stamp, self.names)

    def transform(self, pose: DeadReckonedPose, stamp: Time) -> TFMessage:
        """Return the pose by dead reckoning as a transform."""
        return TFMessage(transforms=[odometry_transform(self.odometry(pose, stamp))])

    def compressed_image(self, telemetry: DroneTelemetry, stamp: Time) -> CompressedImage | None:
        """Return the JPEG unchanged, if there is one."""
        if telemetry.camera.jpeg is None:
            return None
        self._compressed.header.stamp = stamp
        set_data(self._compressed, telemetry.camera.jpeg)
        return self._compressed

    def camera_info(self, telemetry: DroneTelemetry, stamp: Time) -> CameraInfo | None:
        """Return the CameraInfo of the image, if there is one; pixels are square.

        Its size is that of the image itself, which overrides the telemetry.
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

    def landed(self, telemetry: DroneTelemetry, _: Time) -> Bool | None:
        """Return whether the drone is on the ground, if it reports that."""
        return None if telemetry.landed is None else Bool(data=telemetry.landed)

    def flying(self, telemetry: DroneTelemetry, _: Time) -> Bool | None:
        """Return whether the drone is in the air, if it reports that."""
        return None if telemetry.landed is None else Bool(data=not telemetry.landed)

    def image(self, telemetry: DroneTelemetry, stamp: Time) -> Image | None:
        """Return the decoded image, if there is one."""
        if telemetry.camera.jpeg is None:
            return None
        try:
            return self._decoder.image(telemetry.camera.jpeg, stamp)
        except ValueError as error:
            self._refuse_image(f"An image {error}. The rest of its document was published.")
            return None

    def rover_odometry(self, rover: RoverTelemetry, stamp: Time) -> Odometry:
        """Return the rover's pose in map. Its frame is parallel to map, as no heading is on the wire."""
        message = Odometry(child_frame_id=self.names.rover)
        message.header.stamp, message.header.frame_id = stamp, self.names.map
        position, velocity = message.pose.pose.position, message.twist.twist.linear
        position.x, position.y, position.z = rover.position
        velocity.x, velocity.y, velocity.z = rover.velocity
        ROVER_COVARIANCES.fill(message)
        return message

    def rover_pattern(self, rover: RoverTelemetry, _: Time) -> String:
        """Return the name of the rover's pattern."""
        return String(data=rover.pattern)

    def rover_transforms(self, rover: RoverTelemetry, stamp: Time) -> TFMessage:
        """Return the rover's pose as a transform."""
        return TFMessage(transforms=[odometry_transform(self.rover_odometry(rover, stamp))])

    # From ROS.

    def wire_range(self, message: Range) -> float | None:
        return float(message.range) if math.isfinite(message.range) else None

    def wire_climb(self, message: TwistWithCovarianceStamped) -> float | None:
        return float(message.twist.twist.linear.z) if is_measured(message, 2) else None

    def wire_odometry(self, message: Odometry) -> tuple[float, Vector3]:
        """Return the height and the velocity in body axes."""
        return float(message.pose.pose.position.z), message.twist.twist.linear

    def wire_velocity(self, message: TwistWithCovarianceStamped) -> tuple[Vector3, bool] | None:
        """Return the velocity, and whether it is in level axes; None if a component is unknown."""
        is_level = message.header.frame_id == self.names.stabilized
        return (message.twist.twist.linear, is_level) if all(is_measured(message, axis) for axis in range(3)) else None

    def wire_pad(self, message: LandingPadMessage) -> LandingPad | None:
        """Return the pad, None if it is not visible."""
        if not message.detected:
            return None
        x, y = self._units.position(message.offset_x, message.offset_y)
        return LandingPad(x, y, message.distance, max(0.0, min(1.0, message.confidence)))

    def wire_fov(self, message: CameraInfo) -> float | None:
        """Return the horizontal field of view in degrees, None if the camera is not calibrated."""
        focal = message.k[0]
        return math.degrees(2 * math.atan2(message.width / 2, focal)) if focal > 0 and message.width else None

    def wire_jpeg(self, message: CompressedImage) -> bytes:
        return bytes(message.data)

    def wire_landed(self, message: Bool) -> bool:
        """Return whether the drone is in the air."""
        return not message.data

    def wire_flying(self, message: Bool) -> bool:
        return bool(message.data)

    def wire_pattern(self, message: String) -> str | None:
        """Return the name of the rover's pattern, None if a document can't have it."""
        return message.data if 0 < len(message.data) <= MAX_PATTERN_LETTERS else None

    def wire_rover(self, message: Odometry, pattern: str = "unknown", height: float = 0.0) -> RoverTelemetry:
        """Return the rover's position and velocity in the odometry's frame. A twist is in the child frame's axes.

        `height` is the height of that position above the odometry's, m.
        """
        place, turn, moves = message.pose.pose.position, message.pose.pose.orientation, message.twist.twist.linear
        velocity = rotated(Quaternion(turn.x, turn.y, turn.z, turn.w), moves.x, moves.y, moves.z)
        return RoverTelemetry(
            Vector(place.x, place.y, place.z + height), Vector(*velocity), pattern, seconds_of(message.header.stamp)
        )

    def telemetry(self, value: Callable[[str], Any], camera: Camera, timestamp: float | None) -> DroneTelemetry:
        """Assemble a document from topics; `value` returns the newest value of a topic, or None.

        Raises MissingTopicError, which names the topics that would provide a missing value.
        """
        attitude = value("imu/data") or {}
        if not attitude.keys() >= {"roll", "rates"}:
            raise MissingTopicError("the orientation or the rates of imu/data")
        odometry = value("odom")
        heights = ((value("height") or {}).get("height"), value("altitude"), odometry and odometry[0])
        height = next((each for each in heights if each is not None), None)
        if height is None:
            raise MissingTopicError("height, altitude or odom")
        known: tuple[Vector3, bool] | None = value("velocity") or (odometry and (odometry[1], False))
        if known is None:
            raise MissingTopicError("velocity or odom")
        linear, is_level = known
        velocity = linear.x, linear.y, linear.z
        if not is_level:
            velocity = rotated(quaternion_from_euler(attitude["roll"], attitude["pitch"], 0.0), *velocity)
        is_flying = value("landed")
        measured = Measurement(
            **attitude,
            velocity=BodyVelocity(*velocity),
            height=height,
            climb=value("vertical_velocity"),
            is_flying=value("flying") if is_flying is None else is_flying,
            time_s=timestamp,
        )
        return self._units.telemetry(measured, camera, value("landing_pad"))


_T = TelemetryTranslation
_row = partial(standard_row, DroneTelemetry)
_drone_topic = partial(Topic, of=DroneTelemetry)

#: Rows in the order in which the executor handles simultaneous messages: the Imu, which starts a moment, is last.
TOPICS = (
    _drone_topic(CLOCK_TOPIC, Clock, to_ros=_T.clock, qos=newest, if_parameter="publish_clock"),
    _drone_topic(
        "camera/camera_info",
        CameraInfo,
        to_ros=_T.camera_info,
        from_ros=_T.wire_fov,
        qos=newest,
        meaning="calibration, with the size of the image itself",
    ),
    _drone_topic(
        "camera/image_raw/compressed",
        CompressedImage,
        to_ros=_T.compressed_image,
        from_ros=_T.wire_jpeg,
        qos=newest,
        meaning="JPEG, unchanged",
    ),
    _drone_topic(
        "camera/image_raw",
        Image,
        to_ros=_T.image,
        qos=newest,
        is_slow=True,
        count=RateCounter("images_decoded"),
        meaning="decoded image, rgb8, only for subscribers",
    ),
    standard_row(
        DeadReckonedPose,
        "odom",
        _T.odometry,
        _T.wire_odometry,
        "pose by integrated velocities; to the operator, height and velocity of a vehicle without topics for these",
        if_parameter="publish_odometry",
    ),
    standard_row(DeadReckonedPose, "/tf", _T.transform, if_parameter="publish_tf"),
    _row(
        "height",
        _T.height,
        _T.wire_height,
        "height above the ground below, m",
        needed="no document is sent",
        instead=("altitude", "odom"),
    ),
    _row("altitude", None, _T.wire_range, "height by a rangefinder, m"),
    _drone_topic(
        "vertical_velocity",
        TwistWithCovarianceStamped,
        to_ros=_T.vertical_velocity,
        from_ros=_T.wire_climb,
        meaning="climb rate by the altimeter, m/s, positive up",
    ),
    _row(
        "velocity",
        _T.velocity,
        _T.wire_velocity,
        "velocity of the body by optical flow, m/s, and its rates",
        needed="no document is sent",
        instead=("odom",),
    ),
    _drone_topic(
        "landing_pad",
        LandingPadMessage,
        to_ros=_T.landing_pad,
        from_ros=_T.wire_pad,
        meaning="position of the pad below the drone, or that it is not visible",
    ),
    state_topic(
        "flying",
        Bool,
        of=DroneTelemetry,
        to_ros=_T.flying,
        from_ros=_T.wire_flying,
        meaning="whether the drone is in the air; latched",
    ),
    state_topic(
        "landed",
        Bool,
        of=DroneTelemetry,
        to_ros=_T.landed,
        from_ros=_T.wire_landed,
        meaning="whether the drone is on the ground; latched",
    ),
    _row("imu/data", _T.imu, _T.wire_imu, "attitude, rates and acceleration", needed="no document is sent"),
    _row("/tf", _T.transforms, if_parameter="publish_tf"),
    Topic(
        "rover/odom",
        Odometry,
        of=RoverTelemetry,
        to_ros=_T.rover_odometry,
        from_ros=_T.wire_rover,
        meaning="position and velocity of the rover in map",
    ),
    state_topic(
        "rover/pattern",
        String,
        of=RoverTelemetry,
        to_ros=_T.rover_pattern,
        from_ros=_T.wire_pattern,
        meaning="name of the rover's pattern; latched",
    ),
    standard_row(RoverTelemetry, "/tf", _T.rover_transforms, if_parameter="publish_tf"),
)


def _document(translation: TelemetryTranslation, value: Callable[[str], Any], stamp: Time) -> DroneTelemetry:
    jpeg = value("camera/image_raw/compressed")
    camera = Camera(*(read_size(jpeg) if jpeg else (320, 240)), value("camera/camera_info"), jpeg)
    return translation.telemetry(value, camera, seconds_of(stamp))


def _rover(_: TelemetryTranslation, value: Callable[[str], Any], __: Time) -> RoverTelemetry:
    rover: RoverTelemetry = value("rover/odom")
    return replace(rover, pattern=value("rover/pattern") or rover.pattern)


TABLE = TopicTable(
    TOPICS,
    lambda: TelemetryTranslation(LandingFrameNames(), Units()),
    {DroneTelemetry: _document, RoverTelemetry: _rover},
)
