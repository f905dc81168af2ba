# SPDX-License-Identifier: Apache-2.0
"""pad_finder: detects the pad in a drone's images and publishes landing_pad, unless another node publishes it."""

from __future__ import annotations

import math
import time
from collections import deque
from typing import Any

from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu

from drone_bridge.controllers.camera_messages import read_pinhole
from drone_bridge.controllers.land_on_pad.images import (
    CAMERA_INFO,
    IMAGE,
    IMU,
    LANDING_PAD,
    LEVEL_FRAME,
    attitude,
    heading,
    pad_message,
    sighting_in,
)
from drone_bridge.controllers.messages import ErrorLog
from drone_bridge.motion.matrices import NOT_COMPUTABLE
from drone_bridge.msg import LandingPad
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.publishers import try_publish
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.time import nanoseconds_of, seconds_between
from drone_bridge.ros.topics.jpeg_images import JpegDecoder
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import MarkerParameters
from drone_bridge.vision.pinhole import Pinhole
from drone_bridge.wire.jpeg import read_size

COMPRESSED, RAW = "compressed", "raw"
PAD = "pad"
PARAMETERS = (
    ParameterDeclaration(
        "images_from",
        COMPRESSED,
        "The source of images: camera/image_raw/compressed, or camera/image_raw.",
        choices=(COMPRESSED, RAW),
    ),
    ParameterDeclaration(
        "source_timeout",
        1.0,
        "Seconds without landing_pad of another node after which images are searched, and how many seconds the stamps "
        "of an image and its attitude may be apart.",
        range=(0.05, 60.0),
    ),
    ParameterDeclaration(
        "default_fov",
        60.0,
        "The camera's horizontal field of view in degrees, while camera/camera_info is not calibrated.",
        range=(1.0, 179.0),
    ),
    ParameterDeclaration(
        "is_levelled", True, "Whether landing_pad is along level axes (base_stabilized), or those of the tilted body."
    ),
    ParameterDeclaration("frame_prefix", "", "Prefix of base_stabilized, for instance drone1/."),
    *declarations(MarkerParameters, PAD),
)
#: Larger images are not searched.
MAX_SIDE_PIXELS = 4096
#: Number of recent attitudes kept, from which the nearest to an image is selected.
ATTITUDES_KEPT = 200
#: Number of our own messages remembered until they are received back.
_PUBLISHED_KEPT = 16


class OtherPadFinder:
    """Detects whether another node publishes landing_pad, in which case this one must not. Steady clock, s."""

    def __init__(self, now_s: float) -> None:
        """Begin as if another node had just published."""
        self._received_s = now_s
        self._published: deque[tuple[int, int]] = deque(maxlen=_PUBLISHED_KEPT)

    def publish(self, stamp: Time) -> None:
        """Record a message of our own, which the subscription will also receive."""
        self._published.append((stamp.sec, stamp.nanosec))

    def received(self, stamp: Time, now_s: float) -> None:
        """Note the time of another node's message. Our own ones are recognized by their stamps."""
        if (stamp.sec, stamp.nanosec) in self._published:
            self._published.remove((stamp.sec, stamp.nanosec))
        else:
            self._received_s = now_s

    def is_free(self, now_s: float, timeout_s: float) -> bool:
        """Return whether no other node has published for `timeout_s`."""
        return now_s - self._received_s > timeout_s


#: Image, an Image or CompressedImage, and the attitude nearest to it in time.
Photo = tuple[Any, Imu]


class NearestAttitude:
    """Pairs images with the nearest attitudes. The newest image waits for an attitude that is not older.

    A newer image replaces a waiting one, which is then paired with the nearest attitude received so far.
    """

    def __init__(self) -> None:
        self._attitudes: deque[tuple[int, Imu]] = deque(maxlen=ATTITUDES_KEPT)
        self._waiting: Any = None

    def take_image(self, image: Any) -> Photo | None:
        """Return the image to search now: this one, or the previous one if it was still waiting for an attitude."""
        before, self._waiting = self._waiting, image
        if self._attitudes and self._attitudes[-1][0] >= nanoseconds_of(image.header.stamp):
            return self._paired()
        return self._nearest(before) if before else None

    def take_imu(self, imu: Imu) -> Photo | None:
        """Store an attitude. Return the image that was waiting for it, if any."""
        stamp_ns = nanoseconds_of(imu.header.stamp)
        if self._attitudes and stamp_ns < self._attitudes[-1][0]:  # time jumped back
            self._attitudes.clear()
        self._attitudes.append((stamp_ns, imu))
        is_due = self._waiting and stamp_ns >= nanoseconds_of(self._waiting.header.stamp)
        return self._paired() if is_due else None

    def _paired(self) -> Photo | None:
        image, self._waiting = self._waiting, None
        return self._nearest(image)

    def _nearest(self, image: Any) -> Photo | None:
        if not self._attitudes:
            return None
        stamp_ns = nanoseconds_of(image.header.stamp)
        return image, min(self._attitudes, key=lambda each: abs(each[0] - stamp_ns))[1]


def camera_of(info: CameraInfo | None, width: int, height: int, default_fov: float) -> Pinhole:
    """Return the camera of an image of this size.

    Without a calibrated CameraInfo, pixels are square, the optical axis is in the image's centre, and `default_fov` is
    the horizontal field of view, degrees. Raises ValueError with a sentence for an invalid CameraInfo.
    """
    if info and info.k[0]:
        return read_pinhole(info, CAMERA_INFO)
    focal = width / 2 / math.tan(math.radians(default_fov) / 2)
    return Pinhole(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)


class PadFinder(Node):
    """Node that searches the newest images, for at most half of the time."""

    def __init__(self, **options: Any) -> None:
        """Declare the parameters. Raises ValueError with a sentence for invalid markers."""
        super().__init__("pad_finder", **options)
        self._declared = DeclaredParameters(self, PARAMETERS)
        self._detector = MarkerDetector(read(MarkerParameters, self._declared, PAD))
        self._errors = ErrorLog(self)
        self._other_finder = OtherPadFinder(time.monotonic())
        self._pairs = NearestAttitude()
        self._info: CameraInfo | None = None
        self._decoder = JpegDecoder("")
        self._resting_until_s = -math.inf

    def start(self) -> bool:
        self._declared.freeze_because("when the node starts, and it is running: restart it with the new value")
        self._publisher = self.create_publisher(LandingPad, LANDING_PAD, 10)
        is_raw = self._declared["images_from"] == RAW
        kind, topic = (Image, IMAGE) if is_raw else (CompressedImage, f"{IMAGE}/compressed")
        attitudes = QoSProfile(depth=ATTITUDES_KEPT, reliability=ReliabilityPolicy.BEST_EFFORT)
        # The executor handles pending messages in the order of these subscriptions.
        subscribe(self, LandingPad, LANDING_PAD, self._pad_received, qos_profile_sensor_data)
        subscribe(self, CameraInfo, CAMERA_INFO, self._take_info, qos_profile_sensor_data)
        subscribe(self, kind, topic, lambda image: self._search(self._pairs.take_image(image)), 1)
        subscribe(self, Imu, IMU, lambda imu: self._search(self._pairs.take_imu(imu)), attitudes)
        return True

    def leave(self) -> None:
        """Do nothing. Subscribers detect by themselves that landing_pad has ended."""

    def _pad_received(self, message: LandingPad) -> None:
        self._other_finder.received(message.header.stamp, time.monotonic())

    def _take_info(self, info: CameraInfo) -> None:
        self._info = info

    def _search(self, photo: Photo | None) -> None:
        """Search an image and publish the result, unless another node publishes landing_pad."""
        began_s = time.monotonic()
        is_free = self._other_finder.is_free(began_s, self._declared["source_timeout"])
        if photo is None or not is_free or began_s < self._resting_until_s:
            return
        try:
            message = self._pad(*photo)
        except NOT_COMPUTABLE as error:
            self._errors.log(f"An image was not searched for the pad: {error}")
            return
        finally:
            self._resting_until_s = 2 * time.monotonic() - began_s
        self._other_finder.publish(message.header.stamp)
        try_publish(self._publisher, message)

    def _pad(self, taken: Image | CompressedImage, imu: Imu) -> LandingPad:
        """Search an image, and return its landing_pad message. Raises ValueError with a sentence if it is unusable."""
        get, stamp = self._declared.__getitem__, taken.header.stamp
        away_s = abs(seconds_between(imu.header.stamp, stamp))
        if away_s > get("source_timeout"):
            raise ValueError(f"its stamp is {away_s:.3g} s away from the nearest of {IMU}.")
        image = taken if isinstance(taken, Image) else self._decoded(taken)
        if max(image.width, image.height) > MAX_SIDE_PIXELS:
            raise ValueError(f"it has {image.width} x {image.height} pixels, and {MAX_SIDE_PIXELS} are allowed.")
        pinhole = camera_of(self._info, image.width, image.height, get("default_fov"))
        sighting = sighting_in(self._detector, image, pinhole, imu)
        if get("is_levelled"):
            return pad_message(sighting, heading(imu), f"{get('frame_prefix')}{LEVEL_FRAME}", stamp)
        return pad_message(sighting, attitude(imu), imu.header.frame_id, stamp)

    def _decoded(self, message: CompressedImage) -> Image:
        """Return a JPEG as a raw image. Raises ValueError with a sentence."""
        data = bytes(message.data)
        try:
            if max(size := read_size(data)) <= MAX_SIDE_PIXELS:
                return self._decoder.image(data, message.header.stamp)
        except ValueError as error:
            raise ValueError(f"it {error}.") from error
        raise ValueError(f"it has {size[0]} x {size[1]} pixels, and {MAX_SIDE_PIXELS} are allowed.")


def main() -> int:
    """Run the node."""
    return run(PadFinder)
