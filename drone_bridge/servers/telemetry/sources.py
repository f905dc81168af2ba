# SPDX-License-Identifier: Apache-2.0
"""The drone's telemetry from ROS: the newest message of each topic while it is fresh."""

import math
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu, Range
from std_msgs.msg import Bool, Float64

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.msg import LandingPad
from drone_bridge.protocols.telemetry import Altimeter, Camera, DroneTelemetry, Vector
from drone_bridge.protocols.telemetry import Imu as WireImu
from drone_bridge.protocols.telemetry.jpeg import read_size
from drone_bridge.translate import telemetry_from_ros as translate
from drone_bridge.translate.frames import TelemetrySigns
from drone_bridge.translate.jpeg import encoded
from drone_bridge.translate.telemetry import LandingFrameNames
from drone_bridge.translate.time import NANOSECONDS

BAD_IMAGES: Final = "unusable images"
#: Where there is no image yet: what the protocol's document says of it.
DOCUMENTED_SIZE: Final = (320, 240)
#: What telemetry is put together of at one moment, if it tells the moment; the Imu begins it.
STAMPED: Final = ("height", "altitude", "velocity", "landing_pad")


class _Told(NamedTuple):
    message: Any
    came_s: float


class DroneSources:
    """Subscribes to what a drone tells, and says when there is something new of all of it."""

    def __init__(
        self, node: LinkNode, signs: TelemetrySigns, names: LandingFrameNames, on_telemetry: Callable[[], None]
    ) -> None:
        """Create the subscriptions. `on_telemetry` is called, in the executor, when everything is of one moment."""
        get = node.parameters.__getitem__
        self._node = node
        self._signs = signs
        self._names = names
        self._on_telemetry = on_telemetry
        self._is_levelled: bool = get("is_levelled")
        self._told: dict[str, _Told] = {}  # by topic; entries are replaced as one
        self._pending: Time | None = None  # the moment that is not complete yet
        self._image: tuple[bytes, tuple[int, int]] | None = None  # that was not sent yet, and its size
        self._size = DOCUMENTED_SIZE
        sensor = qos_profile_sensor_data
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        # Images first: an executor that finds several things has them in this order.
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
            ("landing_pad", LandingPad),
            ("imu/data", Imu),
        ):
            node.make_subscription(kind, topic, self._take(topic), sensor)
        node.make_subscription(Bool, "landed", self._take("landed"), latched)

    @property
    def lacks(self) -> str | None:
        """What of that which no document may leave out nothing tells at present, None when all of it is there."""
        imu = self._newest("imu/data")
        if imu is None:
            return "imu/data"
        if translate.wire_imu(imu, self._signs) is None:
            return "the orientation or the rates of imu/data"
        if self._height() is None:
            return "height, altitude or odom"
        return None if self._has_velocity() else "velocity or odom"

    def telemetry(self, takes_image: bool) -> DroneTelemetry | None:
        """Return what is known, None while something that no document may leave out is not; an image goes once."""
        message = self._newest("imu/data")
        imu = translate.wire_imu(message, self._signs) if message else None
        altitude = self._height()
        if imu is None or altitude is None or not self._has_velocity():
            return None
        velocity = self._velocity(imu)
        climb = self._newest("vertical_velocity")
        pad = self._newest("landing_pad")
        landed = self._told.get("landed")
        return DroneTelemetry(
            imu=imu,
            altimeter=Altimeter(altitude, climb.data if climb else velocity.z),
            velocity=velocity,
            landing_pad=translate.landing_pad(pad, self._signs) if pad else None,
            camera=self._camera(takes_image),
            landed=landed.message.data if landed else None,
            timestamp=message.header.stamp.sec + message.header.stamp.nanosec / NANOSECONDS,
        )

    def forget_image(self) -> None:
        """Send no image that has come before now."""
        self._image = None

    def _camera(self, takes_image: bool) -> Camera:
        info = self._newest("camera/camera_info")
        fov = (translate.horizontal_fov(info) if info else None) or self._node.parameters["default_fov"]
        jpeg = None
        if takes_image and self._image:
            jpeg, self._size = self._image
            self._image = None
        width, height = self._size
        return Camera(width, height, fov, jpeg)

    def _height(self) -> float | None:
        if height := self._newest("height"):
            return float(height.point.z)
        if (altitude := self._newest("altitude")) and math.isfinite(altitude.range):
            return float(altitude.range)
        odometry = self._newest("odom")
        return float(odometry.pose.pose.position.z) if odometry else None

    def _has_velocity(self) -> bool:
        return bool(self._newest("velocity") or self._newest("odom"))

    def _velocity(self, imu: WireImu) -> Vector:
        """Return the velocity along the axes that the operator expects."""
        measured = self._newest("velocity")
        linear = (measured or self._newest("odom").twist).twist.linear
        is_level = measured is not None and measured.header.frame_id == self._names.stabilized
        if self._is_levelled and not is_level:
            return translate.levelled(linear, imu, self._signs)
        return Vector(linear.x, linear.y, linear.z)

    def _newest(self, topic: str) -> Any:
        """Return the newest message of a topic, None where there is none that is young enough."""
        told = self._told.get(topic)
        is_young = told and time.monotonic() - told.came_s <= self._node.parameters["source_timeout"]
        return told.message if told and is_young else None

    def _take(self, topic: str) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            if topic == "imu/data" and self._pending is not None:
                self._complete()  # what belongs to the moment before does not come any more
            self._told[topic] = _Told(message, time.monotonic())
            if topic == "imu/data":
                self._pending = message.header.stamp
            if self._pending is not None and self._is_of_one_moment(self._pending):
                self._complete()

        return take

    def _is_of_one_moment(self, moment: Time) -> bool:
        """Return whether everything that is told now and then, and tells when, is of this moment."""
        told = [message for topic in STAMPED if (message := self._newest(topic))]
        return bool(told) and all(message.header.stamp == moment for message in told)

    def _complete(self) -> None:
        self._pending = None
        self._on_telemetry()

    def _take_jpeg(self, message: CompressedImage) -> None:
        data = bytes(message.data)
        try:
            self._image = data, read_size(data)
        except ValueError as error:
            self._node.complain(BAD_IMAGES, f"An image on camera/image_raw/compressed {error}.")

    def _take_raw(self, message: Image) -> None:
        get = self._node.parameters.__getitem__
        try:
            data = encoded(message, get("image_width"), get("jpeg_quality"))
        except ValueError as error:
            self._node.complain(BAD_IMAGES, f"An image on camera/image_raw {error}.")
        else:
            self._image = data, read_size(data)
