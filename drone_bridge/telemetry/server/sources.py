# SPDX-License-Identifier: Apache-2.0
"""The drone's telemetry from ROS: what belongs to one moment, and the images."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage, Image

from drone_bridge.ros.images import encoded
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.time import seconds_of
from drone_bridge.ros.topics import MissingTopicError, TopicSubscriptions
from drone_bridge.telemetry.codec import Camera, DroneTelemetry
from drone_bridge.telemetry.server.pad import BAD_IMAGES, PadSource
from drone_bridge.telemetry.server.parameters import CAMERA, LANDING_PAD
from drone_bridge.telemetry.topics import TOPICS, Translation
from drone_bridge.wire.jpeg import read_size

IMAGES, ROVER = "camera/image_raw/compressed", "rover/odom"
#: Before the first image: the size in the protocol's document.
DOCUMENTED_SIZE = (320, 240)
#: Messages that belong to one document if their stamps are equal; the Imu comes first.
STAMPED = ("height", "altitude", "velocity", "landing_pad")


class DroneSources:
    """Subscribes to the drone's topics, and reports when the messages of one moment are complete."""

    def __init__(self, node: LinkNode, translation: Translation, on_telemetry: Callable[[], None]) -> None:
        """Create the subscriptions. `on_telemetry` is called, in the executor, when a moment is complete.

        Raises ValueError with a sentence for parameters that contradict each other.
        """
        get = node.parameters.__getitem__
        self._node = node
        self._on_telemetry = on_telemetry
        self._translation = translation
        self._pending: Time | None = None  # the stamp of a moment that is not complete yet
        self._image: tuple[bytes, tuple[int, int]] | None = None  # the next one to send, and its size
        self._size = DOCUMENTED_SIZE
        # Images first, as the executor handles subscriptions in this order.
        sensor = qos_profile_sensor_data
        if get("images_from") == "compressed":
            node.make_subscription(CompressedImage, IMAGES, self._take_jpeg, sensor)
        elif get("images_from") == "raw":
            node.make_subscription(Image, "camera/image_raw", self._take_raw, sensor)
        # A pad that is to be found by our own search of the images is taken from no topic.
        left_out = {IMAGES, ROVER, *([LANDING_PAD] if get("pad_from") == CAMERA else [])}
        table = [row for row in TOPICS if row.name not in left_out]
        self._topics = TopicSubscriptions(node, table, self._translation, self._take)
        self._pad = PadSource(node, self._topics, translation.names)

    @property
    def missing(self) -> str | None:
        """The topics of a mandatory value that is missing at present, or None."""
        if self._topics.message("imu/data") is None:
            return "imu/data"
        try:
            self._telemetry(Camera(*self._size), None)
        except MissingTopicError as missing:
            return str(missing)
        return None

    def telemetry(self, takes_image: bool) -> DroneTelemetry | None:
        """Return the drone's state, None while a mandatory value is missing. Each image is returned once."""
        message = self._topics.message("imu/data")
        if message is None:
            return None
        try:
            telemetry = self._telemetry(Camera(*self._size), seconds_of(message.header.stamp))
        except MissingTopicError:
            return None
        return replace(telemetry, camera=self._camera(takes_image))

    def begin(self) -> None:
        """Start for a new operator: discard the image that was not sent yet."""
        self._image = None
        self._pad.begin()

    def end(self) -> None:
        """Stop until `begin`."""
        self._pad.end()

    def _telemetry(self, camera: Camera, timestamp: float | None) -> DroneTelemetry:
        pad = self._pad.newest()

        def value(topic: str) -> Any:
            if topic == LANDING_PAD:
                return self._translation.wire_pad(pad) if pad else None
            return self._topics.value(topic)

        return self._translation.telemetry(value, camera, timestamp)

    def _camera(self, takes_image: bool) -> Camera:
        fov = self._topics.value("camera/camera_info") or self._node.parameters["default_fov"]
        jpeg = None
        if takes_image and self._image:
            jpeg, self._size = self._image
            self._image = None
        return Camera(*self._size, fov, jpeg)

    def _take(self, topic: str, message: Any) -> None:
        if topic == "imu/data":
            self._pad.take_imu(message)
            if self._pending is not None:
                self._complete()  # the rest of the previous moment is missing
            self._pending = message.header.stamp
        self._topics.put(topic, message)
        if self._pending is not None and self._is_complete(self._pending):
            self._complete()

    def _is_complete(self, stamp: Time) -> bool:
        """Return whether all stamped messages have this stamp."""
        stamped = [message for topic in STAMPED if (message := self._topics.message(topic))]
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
