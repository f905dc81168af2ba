# SPDX-License-Identifier: Apache-2.0
"""Translation: topics of a Robot: standard ones with its telemetry, those of its camera, and its own."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, CompressedImage, Image
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, quaternion_from_euler
from drone_bridge.robot_class.connection import Told
from drone_bridge.robot_class.robot import Picture, Robot, Telemetry, finite_telemetry
from drone_bridge.ros.covariances import UNKNOWN_VARIANCE, OdometryCovariances
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.images import RGB8_BYTES_PER_PIXEL, Rgb8Image, rgb8_pixels, set_data
from drone_bridge.ros.jpeg_images import JpegDecoder
from drone_bridge.ros.qos import newest
from drone_bridge.ros.topics import MissingTopicError, Topic, TopicTable
from drone_bridge.ros.transforms import odometry_transform, set_quaternion, set_vector
from drone_bridge.ros.wheel_odometry import POSE_VARIANCES, TWIST_VARIANCES
from drone_bridge.vision.raw_images import check_layout
from drone_bridge.wire import jpeg

RAW, COMPRESSED = "camera/image_raw", "camera/image_raw/compressed"
#: Limit of the width and height of a JPEG that is decoded, pixels.
MAX_SIDE = 4096
#: Counter of images that can't be converted.
REFUSED_IMAGES = "refused_images"


class Translation:
    """Conversion of telemetry to messages, and back to fields of telemetry. For one thread."""

    def __init__(
        self,
        names: DroneFrameNames,
        image: str,
        *,
        twist_variances: Sequence[float] = TWIST_VARIANCES,
        refuse_image: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        """Prepare the conversions.

        Args:
            names: names of the frames.
            image: `image` of the description.
            twist_variances: six variances of a reported velocity, (m/s)^2 and (rad/s)^2.
            refuse_image: receives a sentence about each unconvertible image.
        """
        self.names, self._refuse_image = names, refuse_image
        self._covariances = OdometryCovariances(POSE_VARIANCES, twist_variances)
        self._without_velocity = OdometryCovariances(POSE_VARIANCES, [UNKNOWN_VARIANCE] * 6)
        self._decoder = JpegDecoder(names.optical) if image == "jpeg" else None
        self._pixels: Rgb8Image | None = None
        self._size = (0, 0)

    def odometry(self, told: Told, stamp: Time) -> Odometry | None:
        telemetry: Telemetry = told.meaning
        if telemetry.position is None or telemetry.yaw is None:
            return None
        message = Odometry(child_frame_id=self.names.base_link)
        message.header.stamp, message.header.frame_id = stamp, self.names.odom
        set_vector(message.pose.pose.position, telemetry.position)
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(0.0, 0.0, telemetry.yaw))
        if telemetry.velocity is None:
            self._without_velocity.fill(message)
            return message
        self._covariances.fill(message)
        set_vector(message.twist.twist.linear, telemetry.velocity.linear)
        set_vector(message.twist.twist.angular, telemetry.velocity.angular)
        return message

    def wire_odometry(self, message: Odometry) -> dict[str, Any]:
        q, p = message.pose.pose.orientation, message.pose.pose.position
        linear, angular = message.twist.twist.linear, message.twist.twist.angular
        velocity = BodyVelocity(linear.x, linear.y, linear.z, angular.x, angular.y, angular.z)
        yaw = euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w))[2]
        return {"position": (p.x, p.y, p.z), "yaw": yaw, "velocity": velocity}

    def transform(self, told: Told, stamp: Time) -> TFMessage | None:
        odometry = self.odometry(told, stamp)
        return TFMessage(transforms=[odometry_transform(odometry)]) if odometry else None

    def battery(self, told: Told, stamp: Time) -> BatteryState | None:
        known = (told.meaning.voltage, told.meaning.charge)
        if known == (None, None):
            return None
        nan = math.nan
        message = BatteryState(
            temperature=nan, current=nan, charge=nan, capacity=nan, design_capacity=nan, present=True
        )
        message.header.stamp = stamp
        message.voltage, message.percentage = (nan if value is None else value for value in known)
        return message

    def wire_battery(self, message: BatteryState) -> dict[str, Any]:
        values = {"voltage": message.voltage, "charge": message.percentage}
        return {name: value for name, value in values.items() if math.isfinite(value)}

    def height(self, told: Told, stamp: Time) -> PointStamped | None:
        if told.meaning.height is None:
            return None
        message = PointStamped()
        message.header.stamp, message.header.frame_id = stamp, self.names.footprint
        message.point.z = told.meaning.height
        return message

    def wire_height(self, message: PointStamped) -> dict[str, Any]:
        return {"height": message.point.z}

    def compressed(self, told: Told, stamp: Time) -> CompressedImage | None:
        if not isinstance(told.meaning.image, bytes):
            return None
        message = CompressedImage(format="jpeg")
        message.header.stamp, message.header.frame_id = stamp, self.names.optical
        set_data(message, told.meaning.image)
        return message

    def wire_compressed(self, message: CompressedImage) -> dict[str, Any]:
        return {"image": bytes(message.data)}

    def raw(self, told: Told, stamp: Time) -> Image | None:
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


def _own(name: str, type_name: str) -> Topic:
    """Return the row of an own topic. Raises ImportError and AttributeError if its type is not installed."""
    package, _, message_type = type_name.partition("/")

    def make(translation: Translation, told: Told, stamp: Time) -> Any:
        message = told.meaning.extra.get(name)
        if hasattr(message, "header"):
            message.header.stamp = stamp
            message.header.frame_id = message.header.frame_id or translation.names.base_link
        return message

    def take(translation: Translation, message: Any) -> dict[str, Any]:
        return {name: message}

    kind = getattr(importlib.import_module(f"{package}.msg"), message_type)
    return Topic(name, kind, Told, make, take, meaning="its own")


#: Rows by name in `Robot.tells`.
_STANDARD = {
    "odom": Topic(
        "odom", Odometry, Told, Translation.odometry, Translation.wire_odometry, meaning="its pose and velocity"
    ),
    "battery_state": Topic(
        "battery_state", BatteryState, Told, Translation.battery, Translation.wire_battery, meaning="its battery"
    ),
    "height": Topic(
        "height", PointStamped, Told, Translation.height, Translation.wire_height, meaning="its height above the ground"
    ),
}
_TF = Topic("/tf", TFMessage, Told, Translation.transform, if_parameter="publish_tf")
#: Rows by `Robot.image`. The decoded image of a JPEG is only for its subscribers, and created last.
_IMAGES = {
    "": (),
    "rgb8": (Topic(RAW, Image, Told, Translation.raw, Translation.wire_raw, newest, meaning="images of its camera"),),
    "jpeg": (
        Topic(
            COMPRESSED, CompressedImage, Told, Translation.compressed, Translation.wire_compressed, meaning="as sent"
        ),
        Topic(RAW, Image, Told, Translation.raw, qos=newest, is_slow=True, meaning="decoded"),
    ),
}


def make_rows(robot: type[Robot]) -> tuple[Topic, ...]:
    """Return the rows of a robot's topics. Raises ImportError and AttributeError if a type is not installed."""
    standard = [_STANDARD[name] for name in robot.tells]
    if "odom" in robot.tells:
        standard.append(_TF)
    return (*standard, *_IMAGES[robot.image], *(_own(*each) for each in robot.topics.items()))


def assemble(robot: type[Robot], translation: Translation, value: Callable[[str], Any], stamp: Time) -> Told:
    """Return the values of topics as telemetry. Raises MissingTopicError without odometry, or without any value."""
    fields: dict[str, Any] = {}
    for row in make_rows(robot):
        if row.from_ros and row.name not in robot.topics:
            fields |= value(row.name) or {}
    if "odom" in robot.tells and "position" not in fields:
        raise MissingTopicError("odom")
    extra: dict[str, Any] = {}
    for name in robot.topics:
        extra |= value(name) or {}
    if not (fields or extra) and (robot.tells or robot.topics):
        raise MissingTopicError(" or ".join((*robot.tells, *robot.topics)))
    return Told(b"", finite_telemetry(Telemetry(**fields, extra=extra)))


def make_table(robot: type[Robot]) -> TopicTable:
    """Return the table of a robot's topics."""
    return TopicTable(
        make_rows(robot), lambda: Translation(DroneFrameNames(), robot.image), {Told: partial(assemble, robot)}
    )
