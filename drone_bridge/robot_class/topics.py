# SPDX-License-Identifier: Apache-2.0
"""RobotClassTranslation: topics of a Robot: standard ones with its telemetry, those of its camera, and its own."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, CompressedImage, Image, LaserScan, PointCloud2, Range
from std_msgs.msg import Bool
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement, Picture
from drone_bridge.motion.quaternions import (
    Quaternion,
    euler_from_quaternion,
    quaternion_from_euler,
    rotated,
    rotated_back,
)
from drone_bridge.motion.vectors import Triple
from drone_bridge.pictures.topics import H264_ROW, PICTURE_ROWS
from drone_bridge.robot_class import self_check
from drone_bridge.robot_class.connection import StatePacket
from drone_bridge.robot_class.contacts import point_cloud, points_of
from drone_bridge.robot_class.robot import Robot, Telemetry, image_of, rays_of
from drone_bridge.robot_class.scans import distances_of, laser_scan
from drone_bridge.robot_class.telemetry import possible_telemetry
from drone_bridge.robot_class.transports import Lidar
from drone_bridge.ros.qos import newest
from drone_bridge.ros.topics.covariances import (
    UNKNOWN_VARIANCE,
    OdometryCovariances,
    covariance_from_diagonal,
    is_measured,
)
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.images import RGB8_BYTES_PER_PIXEL, Rgb8Image, rgb8_pixels, set_data
from drone_bridge.ros.topics.jpeg_images import JpegDecoder
from drone_bridge.ros.topics.standard_rows import MeasuredMessages, standard_row
from drone_bridge.ros.topics.table import MissingTopicError, Topic, TopicTable, state_topic
from drone_bridge.ros.topics.transforms import odometry_transform, set_quaternion, set_vector
from drone_bridge.ros.topics.wheel_odometry import POSE_VARIANCES, TWIST_VARIANCES
from drone_bridge.vision.raw_images import check_layout
from drone_bridge.wire import jpeg
from drone_bridge.wire.counters import ProblemCounter

CAMERA = "camera/"
RAW, COMPRESSED = f"{CAMERA}image_raw", f"{CAMERA}image_raw/compressed"
#: Limit of the width and height of a JPEG that is decoded, pixels.
MAX_SIDE = 4096
#: Field of a velocity along and about the body's axes, until `assemble` knows its attitude.
IN_BODY = "in_body"
#: States of a battery on a charger.
ON_CHARGER = BatteryState.POWER_SUPPLY_STATUS_CHARGING, BatteryState.POWER_SUPPLY_STATUS_FULL
#: Time of reports after which a topic without a value is an obstacle, s.
UNSENT_S = 5.0
#: Counter of images that can't be converted.
REFUSED_IMAGES = ProblemCounter("refused_images")


class RobotClassTranslation(MeasuredMessages[StatePacket]):
    """Conversion of telemetry to messages, and back to fields of telemetry. For one thread."""

    def __init__(
        self,
        names: DroneFrameNames,
        image: str,
        *,
        lidar: Lidar | None = None,
        twist_variances: Sequence[float] = TWIST_VARIANCES,
        refuse_image: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Prepare the conversions.

        Args:
            names: names of the frames.
            image: encoding of the images in the reports; empty for none.
            lidar: the robot's lidar, if it has one.
            twist_variances: six variances of a reported velocity, (m/s)^2 and (rad/s)^2.
            refuse_image: receives a sentence about each unconvertible image.
        """
        super().__init__(names)
        self._refuse_image, self._lidar = refuse_image, lidar
        self._covariances = OdometryCovariances(POSE_VARIANCES, twist_variances)
        self._twist_covariance = covariance_from_diagonal(twist_variances)
        self._without_velocity = OdometryCovariances(POSE_VARIANCES, [UNKNOWN_VARIANCE] * 6)
        self._decoder = JpegDecoder(names.optical) if image == "jpeg" else None
        self._pixels: Rgb8Image | None = None
        self._size = (0, 0)

    def measurement(self, wire: StatePacket) -> Measurement:
        return wire.meaning  # type: ignore[no-any-return]

    @property
    def battery_frame(self) -> str:
        return ""

    def odometry(self, told: StatePacket, stamp: Time) -> Odometry | None:
        """Return pose and velocity, the latter along and about the body's axes."""
        telemetry: Telemetry = told.meaning
        if telemetry.position is None or telemetry.yaw is None:
            return None
        message = Odometry(child_frame_id=self.names.base_link)
        message.header.stamp, message.header.frame_id = stamp, self.names.odom
        set_vector(message.pose.pose.position, telemetry.position)
        roll, pitch = telemetry.roll or 0.0, telemetry.pitch or 0.0
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(roll, pitch, telemetry.yaw))
        if telemetry.velocity is None:
            self._without_velocity.fill(message)
            return message
        self._covariances.fill(message)
        tilt = quaternion_from_euler(roll, pitch, 0.0)
        set_vector(message.twist.twist.linear, rotated_back(tilt, *telemetry.velocity.linear))
        set_vector(message.twist.twist.angular, rotated_back(tilt, *telemetry.velocity.angular))
        return message

    def wire_odometry(self, message: Odometry) -> dict[str, Any]:
        q, p = message.pose.pose.orientation, message.pose.pose.position
        roll, pitch, yaw = euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w))
        attitude = {"roll": roll, "pitch": pitch, "yaw": yaw}
        velocity = {IN_BODY: _velocity(message.twist.twist)} if is_measured(message, 0) else {}
        return {"position": (p.x, p.y, p.z), **attitude, **velocity}

    def transform(self, told: StatePacket, stamp: Time) -> TFMessage | None:
        odometry = self.odometry(told, stamp)
        return TFMessage(transforms=[odometry_transform(odometry)]) if odometry else None

    def wire_battery(self, message: BatteryState) -> dict[str, Any]:
        values = {"voltage": message.voltage, "charge": message.percentage}
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        status = message.power_supply_status
        return known | ({"is_charging": status in ON_CHARGER} if status else {})

    def velocity(self, told: StatePacket, stamp: Time) -> TwistWithCovarianceStamped | None:
        """Return the velocity along and about level axes."""
        velocity = told.meaning.velocity
        if velocity is None:
            return None
        message = TwistWithCovarianceStamped()
        message.header.stamp, message.header.frame_id = stamp, self.names.footprint
        set_vector(message.twist.twist.linear, velocity.linear)
        set_vector(message.twist.twist.angular, velocity.angular)
        message.twist.covariance = self._twist_covariance
        return message

    def wire_velocity(self, message: TwistWithCovarianceStamped) -> dict[str, Any]:
        """Return a velocity in level axes, or in the body's to be levelled; nothing if it is unknown over ground."""
        if not (is_measured(message, 0) and is_measured(message, 1)):
            return {}
        is_level = message.header.frame_id == self.names.footprint
        return {"velocity" if is_level else IN_BODY: _velocity(message.twist.twist)}

    def range(self, told: StatePacket, stamp: Time) -> Range | None:
        """Return the distance to the ground below. 0 means that limits are unknown."""
        if (height := told.meaning.height) is None:
            return None
        message = Range(radiation_type=Range.INFRARED, range=height, max_range=math.inf)
        message.header.stamp, message.header.frame_id = stamp, self.names.altimeter
        return message

    def contacts(self, told: StatePacket, stamp: Time) -> PointCloud2 | None:
        points = told.meaning.contacts
        return None if points is None else point_cloud(points, self.names.base_link, stamp)

    def wire_contacts(self, message: PointCloud2) -> dict[str, Any]:
        return {"contacts": points_of(message)}

    def scan(self, told: StatePacket, stamp: Time) -> LaserScan | None:
        distances = told.meaning.scan
        return laser_scan(self._lidar, distances, self.names.laser, stamp) if self._lidar and distances else None

    def wire_scan(self, message: LaserScan) -> dict[str, Any]:
        distances = distances_of(self._lidar, message) if self._lidar else None
        return {"scan": distances} if distances else {}

    def flying(self, told: StatePacket, _: Time) -> Bool | None:
        return None if told.meaning.is_flying is None else Bool(data=told.meaning.is_flying)

    def wire_flying(self, message: Bool) -> dict[str, Any]:
        return {"is_flying": message.data}

    def compressed(self, told: StatePacket, stamp: Time) -> CompressedImage | None:
        if not isinstance(told.meaning.image, bytes):
            return None
        message = CompressedImage(format="jpeg")
        message.header.stamp, message.header.frame_id = stamp, self.names.optical
        set_data(message, told.meaning.image)
        return message

    def wire_compressed(self, message: CompressedImage) -> dict[str, Any]:
        return {"image": bytes(message.data)}

    def raw(self, told: StatePacket, stamp: Time) -> Image | None:
        """Return an image, decoded if it is a JPEG; None if that fails. Valid until the next call."""
        image = told.meaning.image
        try:
            if isinstance(image, Picture):
                size = image.width, image.height
                check_layout("rgb8", *size, RGB8_BYTES_PER_PIXEL * image.width, len(image.rgb8))
                if self._pixels is None or size != self._size:
                    self._size, self._pixels = size, Rgb8Image(*size, self.names.optical)
                return self._pixels.filled(image.rgb8, stamp)
            if not self._decoder or not image:
                return None
            width, height = jpeg.read_size(image)
            if max(width, height) > MAX_SIDE:
                raise ValueError(f"has {width} x {height} pixels, and {MAX_SIDE} are allowed on each side")
            return self._decoder.image(image, stamp)
        except ValueError as error:
            self._refuse_image(f"An image of the robot {error}")
            return None

    def wire_raw(self, message: Image) -> dict[str, Any]:
        try:
            return {"image": Picture(message.width, message.height, bytes(rgb8_pixels(message)))}
        except ValueError as error:
            self._refuse_image(f"An image on {RAW} {error}")
            return {}


def _components(vector: Any) -> Triple:
    return vector.x, vector.y, vector.z


def _velocity(twist: Twist) -> BodyVelocity:
    return BodyVelocity(*_components(twist.linear), *_components(twist.angular))


def _levelled(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a measurement, whose velocity is in level axes."""
    in_body: BodyVelocity | None = fields.pop(IN_BODY, None)
    if in_body and "velocity" not in fields:
        tilt = quaternion_from_euler(fields.get("roll", 0.0), fields.get("pitch", 0.0), 0.0)
        fields["velocity"] = BodyVelocity(*rotated(tilt, *in_body.linear), *rotated(tilt, *in_body.angular))
    return fields


def _own(name: str, type_name: str, *, is_latched: bool = False) -> Topic:
    """Return the row of an own topic. Raises ImportError and AttributeError if its type is not installed."""
    package, _, message_type = type_name.partition("/")

    def make(translation: RobotClassTranslation, told: StatePacket, stamp: Time) -> Any:
        message = told.meaning.extra.get(name)
        if hasattr(message, "header"):
            message.header.stamp = stamp
            message.header.frame_id = message.header.frame_id or translation.names.base_link
        return message

    def take(translation: RobotClassTranslation, message: Any) -> dict[str, Any]:
        return {name: message}

    kind = getattr(importlib.import_module(f"{package}.msg"), message_type)
    return (state_topic if is_latched else Topic)(name, kind, StatePacket, make, take, meaning="its own")


_T = RobotClassTranslation
_row = partial(standard_row, StatePacket)
#: Rows by name in `Robot.topics`.
_STANDARD = {
    row.name: row
    for row in (
        _row("odom", _T.odometry, _T.wire_odometry, "its pose and velocity"),
        _row("battery_state", _T.battery_state, _T.wire_battery, "its battery"),
        _row("height", _T.height, _T.wire_height, "its height above the ground"),
        _row("velocity", _T.velocity, _T.wire_velocity, "its velocity along and about level axes"),
        _row("imu/data", _T.imu, _T.wire_imu, "its attitude, rates and acceleration; unknown covariances"),
        state_topic(
            "flying", Bool, StatePacket, _T.flying, _T.wire_flying, meaning="whether it is in the air; latched"
        ),
        _row("range", _T.range, None, "its height above the ground, measured downwards"),
        _row("bumper/points", _T.contacts, _T.wire_contacts, "its pressed bumpers and found cliffs, as points"),
        _row("scan", _T.scan, _T.wire_scan, "distances by its lidar, counter-clockwise; inf: nothing within reach"),
    )
}
_TF = _row("/tf", _T.transform, if_parameter="publish_tf")
#: Rows by the encoding of images. The decoded image of a JPEG is only for its subscribers, and created last.
_IMAGES = {
    "": (),
    "rgb8": (Topic(RAW, Image, StatePacket, _T.raw, _T.wire_raw, newest, meaning="images of its camera"),),
    "jpeg": (
        Topic(COMPRESSED, CompressedImage, StatePacket, _T.compressed, _T.wire_compressed, meaning="as sent"),
        Topic(RAW, Image, StatePacket, _T.raw, qos=newest, is_slow=True, meaning="decoded"),
    ),
}


def make_rows(robot: type[Robot]) -> tuple[Topic, ...]:
    """Return the rows of a robot's topics. Raises ImportError and AttributeError if a type is not installed."""
    standard = [_STANDARD[name] for name in robot.standard_topics]
    if "odom" in robot.standard_topics:
        standard.append(_TF)
    own = (_own(name, kind, is_latched=name in robot.latched) for name, kind in robot.own_topics.items())
    return (*standard, *_IMAGES[image_of(robot)], *own)


class UnsentTopics:
    """Topics of a robot for which none of its reports has had a value. For one thread, except for `facts`."""

    def __init__(self, robot: type[Robot], translation: RobotClassTranslation) -> None:
        """Start without a report."""
        declared = (*robot.standard_topics, *robot.own_topics)
        self._rows = [row for row in make_rows(robot) if row.name in declared and row.to_ros]
        self._translation, self._since_s = translation, math.inf
        #: Facts about them once there have been reports for UNSENT_S, else None.
        self.facts: dict[str, str] | None = None

    def reported(self, told: StatePacket, now_s: float) -> None:
        """Handle a report with its pose in `odom`, at a time, s."""
        self._since_s, make = min(self._since_s, now_s), self._translation
        self._rows = [row for row in self._rows if row.to_ros and row.to_ros(make, told, Time()) is None]
        names = ", ".join(f"{row.name} ({row.meaning})" for row in self._rows)
        self.facts = {"topics": names} if names and now_s - self._since_s > UNSENT_S else None


def faults(robot: type[Robot]) -> Iterator[str]:
    """Yield what is wrong with a robot, see `self_check`; or else the topics for which no report has a value."""
    if found := list(self_check.faults(robot)):
        yield from found
        return
    unsent = UnsentTopics(robot, RobotClassTranslation(DroneFrameNames(), image_of(robot), lidar=robot.lidar))
    for told, now_s in self_check.reports(robot, math.ceil(UNSENT_S) + 2):
        unsent.reported(told, now_s)
    if unsent.facts:
        yield f"{robot.__name__}.topics has {unsent.facts['topics']}, for which no report has a value."


def assemble(
    robot: type[Robot], translation: RobotClassTranslation, value: Callable[[str], Any], stamp: Time
) -> StatePacket:
    """Return the values of topics as telemetry. Raises MissingTopicError without odometry, or without any value."""
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    is_tilt_unknown = False
    for row in make_rows(robot):
        if row.from_ros:
            values = value(row.name) or {}
            (extra if row.name in robot.own_topics else fields).update(values)
            is_tilt_unknown |= row.name == "imu/data" and bool(values) and "roll" not in values
    if is_tilt_unknown:  # that of odom is no measurement
        fields = {name: each for name, each in fields.items() if name not in ("roll", "pitch")}
    if "odom" in robot.standard_topics and "position" not in fields and not robot.reckons:
        raise MissingTopicError("odom")
    if not (fields or extra) and (robot.standard_topics or robot.own_topics):
        raise MissingTopicError(" or ".join((*robot.standard_topics, *robot.own_topics)))
    telemetry = Telemetry(**_levelled(fields), extra=extra, time_s=stamp.sec + stamp.nanosec / 1e9)
    return StatePacket(b"", possible_telemetry(telemetry, robot.own_topics, rays_of(robot))[0])


def make_table(robot: type[Robot]) -> TopicTable:
    """Return the table of a robot's topics."""
    pictures = (H264_ROW, *PICTURE_ROWS) if robot.camera and robot.camera.link else ()
    return TopicTable(
        (*make_rows(robot), *(replace(row, name=f"{CAMERA}{row.name}") for row in pictures)),
        lambda: RobotClassTranslation(DroneFrameNames(), image_of(robot), lidar=robot.lidar),
        {StatePacket: partial(assemble, robot)},
        samples=partial(self_check.samples, robot),
    )
