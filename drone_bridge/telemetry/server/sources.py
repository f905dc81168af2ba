# SPDX-License-Identifier: Apache-2.0
"""The drone's telemetry from ROS: the newest message of each topic while it is fresh."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu, Range
from std_msgs.msg import Bool, Float64

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.msg import LandingPad
from drone_bridge.node.qos import latched
from drone_bridge.protocols.jpeg import read_size
from drone_bridge.servers.latest_messages import LatestMessages
from drone_bridge.telemetry.codec import Altimeter, Camera, DroneTelemetry, Vector
from drone_bridge.telemetry.codec import Imu as WireImu
from drone_bridge.telemetry.server.pad_source import BAD_IMAGES, PadSource
from drone_bridge.telemetry.server.parameters import CAMERA, LANDING_PAD
from drone_bridge.telemetry.topics import from_ros as translate
from drone_bridge.telemetry.topics.to_ros import LandingFrameNames
from drone_bridge.translate.frames import TelemetrySigns
from drone_bridge.translate.jpeg import encoded
from drone_bridge.translate.time import seconds_of

#: Before the first image: the size in the protocol's document.
DOCUMENTED_SIZE: Final = (320, 240)
#: Messages that belong to one document if their stamps are equal; the Imu comes first.
STAMPED: Final = ("height", "altitude", "velocity", "landing_pad")


class DroneSources:
    """Subscribes to the drone's topics, and reports when the messages of one moment are complete."""

    def __init__(
        self, node: LinkNode, signs: TelemetrySigns, names: LandingFrameNames, on_telemetry: Callable[[], None]
    ) -> None:
        """Create the subscriptions. `on_telemetry` is called, in the executor, when a moment is complete.

        Raises ValueError with a sentence for parameters that contradict each other.
        """
        get = node.parameters.__getitem__
        self._node = node
        self._signs = signs
        self._names = names
        self._on_telemetry = on_telemetry
        self._is_levelled: bool = get("is_levelled")
        self._messages = LatestMessages(node)
        self._pending: Time | None = None  # the stamp of a moment that is not complete yet
        self._image: tuple[bytes, tuple[int, int]] | None = None  # the next one to send, and its size
        self._size = DOCUMENTED_SIZE
        self._pad = PadSource(node, self._messages, names)
        sensor = qos_profile_sensor_data
        # Images first, as the executor handles subscriptions in this order.
        if get("images_from") == "compressed":
            node.make_subscription(CompressedImage, "camera/image_raw/compressed", self._take_jpeg, sensor)
        elif get("images_from") == "raw":
            node.make_subscription(Image, "camera/image_raw", self._take_raw, sensor)
        for topic, kind in (
            ("camera/camera_info", CameraInfo),
            ("odom", Odometry),
            ("height", PointStamped),
            ("altitude", Range),
            ("vertical_velocity", Float64),
            ("velocity", TwistStamped),
            *([] if get("pad_from") == CAMERA else [(LANDING_PAD, LandingPad)]),
            ("imu/data", Imu),
        ):
            node.make_subscription(kind, topic, partial(self._take, topic), sensor)
        node.make_subscription(Bool, "landed", partial(self._take, "landed"), latched())

    @property
    def missing(self) -> str | None:
        """The topics of a mandatory value that is missing at present, or None."""
        imu = self._messages.fresh("imu/data")
        if imu is None:
            return "imu/data"
        if translate.wire_imu(imu, self._signs) is None:
            return "the orientation or the rates of imu/data"
        if self._height() is None:
            return "height, altitude or odom"
        return None if self._has_velocity() else "velocity or odom"

    def telemetry(self, takes_image: bool) -> DroneTelemetry | None:
        """Return the drone's state, None while a mandatory value is missing. Each image is returned once."""
        message = self._messages.fresh("imu/data")
        imu = translate.wire_imu(message, self._signs) if message else None
        altitude = self._height()
        if imu is None or altitude is None or not self._has_velocity():
            return None
        velocity = self._velocity(imu)
        climb = self._messages.fresh("vertical_velocity")
        pad = self._pad.newest()
        landed = self._messages.last("landed")
        return DroneTelemetry(
            imu=imu,
            altimeter=Altimeter(altitude, climb.data if climb else velocity.z),
            velocity=velocity,
            landing_pad=translate.landing_pad(pad, self._signs) if pad else None,
            camera=self._camera(takes_image),
            landed=landed.data if landed else None,
            timestamp=seconds_of(message.header.stamp),
        )

    def begin(self) -> None:
        """Start for a new operator: discard the image that was not sent yet."""
        self._image = None
        self._pad.begin()

    def end(self) -> None:
        """Stop until `begin`."""
        self._pad.end()

    def _camera(self, takes_image: bool) -> Camera:
        info = self._messages.fresh("camera/camera_info")
        fov = (translate.horizontal_fov(info) if info else None) or self._node.parameters["default_fov"]
        jpeg = None
        if takes_image and self._image:
            jpeg, self._size = self._image
            self._image = None
        width, height = self._size
        return Camera(width, height, fov, jpeg)

    def _height(self) -> float | None:
        if height := self._messages.fresh("height"):
            return float(height.point.z)
        if (altitude := self._messages.fresh("altitude")) and math.isfinite(altitude.range):
            return float(altitude.range)
        odometry = self._messages.fresh("odom")
        return float(odometry.pose.pose.position.z) if odometry else None

    def _has_velocity(self) -> bool:
        return bool(self._messages.fresh("velocity") or self._messages.fresh("odom"))

    def _velocity(self, imu: WireImu) -> Vector:
        """Return the velocity along the axes that the operator expects."""
        measured = self._messages.fresh("velocity")
        linear = (measured or self._messages.fresh("odom").twist).twist.linear
        is_level = measured is not None and measured.header.frame_id == self._names.stabilized
        if self._is_levelled and not is_level:
            return translate.levelled(linear, imu, self._signs)
        return Vector(linear.x, linear.y, linear.z)

    def _take(self, topic: str, message: Any) -> None:
        if topic == "imu/data":
            self._pad.take_imu(message)
        if topic == "imu/data" and self._pending is not None:
            self._complete()  # the rest of the previous moment is missing
        self._messages.put(topic, message)
        if topic == "imu/data":
            self._pending = message.header.stamp
        if self._pending is not None and self._is_complete(self._pending):
            self._complete()

    def _is_complete(self, stamp: Time) -> bool:
        """Return whether all stamped messages have this stamp."""
        stamped = [message for topic in STAMPED if (message := self._messages.fresh(topic))]
        return bool(stamped) and all(message.header.stamp == stamp for message in stamped)

    def _complete(self) -> None:
        self._pending = None
        self._on_telemetry()

    def _take_jpeg(self, message: CompressedImage) -> None:
        try:
            self._take_image(bytes(message.data), message.header.stamp)
        except ValueError as error:
            self._node.count_and_warn(BAD_IMAGES, f"An image on camera/image_raw/compressed {error}.")

    def _take_raw(self, message: Image) -> None:
        get = self._node.parameters.__getitem__
        try:
            self._take_image(encoded(message, get("image_width"), get("jpeg_quality")), message.header.stamp)
        except ValueError as error:
            self._node.count_and_warn(BAD_IMAGES, f"An image on camera/image_raw {error}.")

    def _take_image(self, jpeg: bytes, stamp: Time) -> None:
        size = read_size(jpeg)
        self._image = jpeg, size
        self._pad.take_image(jpeg, size, stamp)
