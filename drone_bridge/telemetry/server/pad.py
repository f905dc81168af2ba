# SPDX-License-Identifier: Apache-2.0
"""Finds the landing pad in the images that are served, if no other node does."""

from __future__ import annotations

import math
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import CameraInfo, Imu

from drone_bridge.motion.matrices import NOT_COMPUTABLE, Matrix, rotation_from_angles
from drone_bridge.motion.quaternions import euler_from_quaternion, unit_quaternion
from drone_bridge.msg import LandingPad
from drone_bridge.ros.images import RGB8_BYTES_PER_PIXEL, JpegDecoder, opencv
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.parameters import read
from drone_bridge.ros.time import NANOSECONDS, nanoseconds_of
from drone_bridge.ros.topics import TopicSubscriptions
from drone_bridge.telemetry.topics import QUATERNION_TOLERANCE, LandingFrameNames
from drone_bridge.vision.markers import MarkerParameters, confidence
from drone_bridge.vision.pinhole import Pinhole

if TYPE_CHECKING:
    from drone_bridge.vision.marker_detector import MarkerDetector


#: Where the pad comes from: the topic, our own search of the images, or the latter where the former is silent.
AUTO = "auto"
LANDING_PAD = "landing_pad"
CAMERA = "camera"
#: Prefix of what is printed on the pad.
PAD = "pad"
#: Larger images are not searched.
MAX_SIDE_PIXELS = 4096
#: Attitudes that are kept to find the nearest one to an image among.
_ATTITUDES_KEPT = 200
_STOP_TIMEOUT_S = 1.0


class Photo(NamedTuple):
    """An image that is to be searched."""

    jpeg: bytes
    size: tuple[int, int]  # pixels across and down
    stamp: Time
    pinhole: Pinhole
    came_s: float  # by time.monotonic


class Sighting(NamedTuple):
    """What an image showed: `pad.detected` says whether the pad is in it."""

    pad: LandingPad
    came_s: float  # when the image came


class PadFinder:
    """Searches images for the pad's markers, in a thread of its own and for at most half of its time.

    `take_image` and `take_imu` are for the executor. An image waits for an attitude that is not older; the newest one
    that has its attitude waits for the search. Newer images replace waiting ones.
    """

    def __init__(
        self,
        markers: MarkerParameters,
        frame_id: str,
        *,
        is_levelled: bool,
        longest_s: Callable[[], float],
        refuse: Callable[[str], None],
        fail: Callable[[str], None],
        found: Callable[[Sighting, float], None],
    ) -> None:
        """Prepare to search.

        Args:
            markers: of the pad.
            frame_id: of what is found.
            is_levelled: whether that is along level axes, or along those of the tilted body.
            longest_s: how far the stamps of an image and of its attitude may be apart, s.
            refuse: gets a sentence about an image that can't be searched, or about why none can.
            fail: gets the traceback of anything else.
            found: gets, in the finder's thread, what an image showed, and how long the search took, s.
        """
        self._markers = markers
        self._frame_id = frame_id
        self._is_levelled = is_levelled
        self._longest_s = longest_s
        self._refuse = refuse
        self._fail = fail
        self._found = found
        self._attitudes: deque[tuple[int, Imu]] = deque(maxlen=_ATTITUDES_KEPT)
        self._waiting: Photo | None = None  # for its attitude
        self._next: tuple[Photo, Matrix] | None = None  # to be searched
        self._changed = threading.Condition()
        self._is_stopped = True
        self._thread: threading.Thread | None = None
        self._detector: MarkerDetector | None = None
        self._decoder = JpegDecoder(frame_id)

    def prepare(self) -> None:
        """Load the detector now instead of with the first image. Raises ValueError if images can't be searched."""
        self._detector = self._detector or _detector(self._markers)

    def start(self) -> None:
        self._waiting, self._next, self._is_stopped = None, None, False
        self._thread = threading.Thread(target=self._run, name="pad finder", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        if self._thread:
            self._thread.join(_STOP_TIMEOUT_S)

    def take_image(self, photo: Photo) -> None:
        """Search this image as soon as there is an attitude for it."""
        if self._waiting:
            self._match(self._waiting)  # its attitude does not come any more
        self._waiting = photo
        if self._attitudes and self._attitudes[-1][0] >= nanoseconds_of(photo.stamp):
            self._match(photo)

    def take_imu(self, imu: Imu) -> None:
        """Keep the attitude of one moment."""
        stamp_ns = nanoseconds_of(imu.header.stamp)
        if self._attitudes and stamp_ns < self._attitudes[-1][0]:  # time has run back
            self._attitudes.clear()
        self._attitudes.append((stamp_ns, imu))
        if self._waiting and stamp_ns >= nanoseconds_of(self._waiting.stamp):
            self._match(self._waiting)

    def _match(self, photo: Photo) -> None:
        """Have an image searched with the attitude nearest to it, if there is one near enough."""
        self._waiting = None
        if not self._attitudes:
            return
        stamp_ns = nanoseconds_of(photo.stamp)
        nearest_ns, imu = min(self._attitudes, key=lambda attitude: abs(attitude[0] - stamp_ns))
        away_s = abs(nearest_ns - stamp_ns) / NANOSECONDS
        if away_s > self._longest_s():
            self._refuse(
                f"An image was not searched for the pad: its stamp is {away_s:.3g} s away from the nearest of imu/data."
            )
            return
        orientation = unit_quaternion(imu.orientation, QUATERNION_TOLERANCE)
        if orientation is None or imu.orientation_covariance[0] < 0:
            return  # without an orientation no document is sent either, which is reported
        roll, pitch, _ = euler_from_quaternion(orientation)
        with self._changed:
            self._next = photo, rotation_from_angles(roll, pitch, 0.0)
            self._changed.notify()

    # In the thread.

    def _run(self) -> None:
        while task := self._next_task():
            photo, level = task
            began_s = time.monotonic()
            try:
                self.prepare()
            except ValueError as error:
                self._refuse(f"Images are not searched for the pad: {error}.")
                return
            try:
                pad = self._search(photo, level)
            except NOT_COMPUTABLE as error:
                self._refuse(f"An image was not searched for the pad: it {error}.")
            except Exception:
                self._fail(traceback.format_exc())
            else:
                self._found(Sighting(pad, photo.came_s), time.monotonic() - began_s)
            with self._changed:
                self._changed.wait_for(lambda: self._is_stopped, time.monotonic() - began_s)

    def _next_task(self) -> tuple[Photo, Matrix] | None:
        """Wait for an image, with what turns the body's axes into level ones; None when stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self._next or self._is_stopped)
            task, self._next = self._next, None
            return None if self._is_stopped else task

    def _search(self, photo: Photo, level: Matrix) -> LandingPad:
        """Return what an image shows."""
        assert self._detector
        width, height = photo.size
        if max(width, height) > MAX_SIDE_PIXELS:
            raise ValueError(f"has {width} x {height} pixels, and {MAX_SIDE_PIXELS} are allowed")
        image = self._decoder.image(photo.jpeg, photo.stamp)
        pixels = np.frombuffer(image.data, np.uint8).reshape(height, width, RGB8_BYTES_PER_PIXEL)
        view = self._detector.locate(self._detector.detect(pixels), photo.pinhole, level)
        pad = LandingPad(detected=view is not None)
        pad.header.stamp, pad.header.frame_id = photo.stamp, self._frame_id
        pad.offset_x = pad.offset_y = pad.distance = pad.confidence = math.nan
        if view:
            offset = view.offset if self._is_levelled else level.T @ view.offset
            pad.offset_x, pad.offset_y, up = offset.tolist()
            pad.distance, pad.confidence = -up, confidence(view.deviation)
        return pad


def pinhole(info: CameraInfo | None, width: int, height: int, default_fov: float) -> Pinhole:
    """Return the camera of an image of this size, which may have been made smaller since; `default_fov` is degrees.

    Without a calibrated CameraInfo, pixels are assumed square, with the optical axis in the image's centre.
    """
    if info and info.width and info.height and 0.0 < info.k[0] < math.inf and 0.0 < info.k[4] < math.inf:
        across, down = width / info.width, height / info.height
        # ROS counts pixels from the centre of the first one.
        centre_x, centre_y = (info.k[2] + 0.5) * across - 0.5, (info.k[5] + 0.5) * down - 0.5
        return Pinhole(width, height, info.k[0] * across, info.k[4] * down, centre_x, centre_y)
    focal = width / 2 / math.tan(math.radians(default_fov) / 2)
    return Pinhole(width, height, focal, focal, (width - 1) / 2, (height - 1) / 2)


def _detector(markers: MarkerParameters) -> MarkerDetector:
    try:
        opencv()
    except ValueError as error:
        raise ValueError(f"that {error}") from error
    from drone_bridge.vision.marker_detector import MarkerDetector

    return MarkerDetector(markers)


# The landing pad's position, from the topic landing_pad or from the images that are served.


BAD_IMAGES = "unusable images"


class PadSource:
    """Chooses between landing_pad and the PadFinder by the parameter pad_from. For the executor."""

    def __init__(self, node: LinkNode, messages: TopicSubscriptions, names: LandingFrameNames) -> None:
        """Prepare, and raise ValueError with a sentence if images are to be searched and can't be."""
        self._node = node
        self._messages = messages
        self._source: str = node.parameters["pad_from"]
        self._began_s = time.monotonic()
        self._sighting: Sighting | None = None  # replaced as one, by the finder's thread
        self._finder: PadFinder | None = None
        if self._source != LANDING_PAD:
            self._publisher = node.make_publisher(LandingPad, "~/landing_pad", 10)
            self._finder = self._make_finder(names)

    def begin(self) -> None:
        """Forget what was seen before, and search images from now on."""
        self._sighting = None
        self._began_s = time.monotonic()
        if self._finder:
            self._finder.start()

    def end(self) -> None:
        """Search no more images. For the link's thread, as `begin` is."""
        if self._finder:
            self._finder.stop()

    def take_imu(self, imu: Imu) -> None:
        """Take the attitude of one moment."""
        if self._finder:
            self._finder.take_imu(imu)

    def take_image(self, jpeg: bytes, size: tuple[int, int], stamp: Time) -> None:
        """Search an image, unless landing_pad is published."""
        if self._finder and not self._expects_topic():
            info = self._messages.message("camera/camera_info")
            camera = pinhole(info, *size, self._node.parameters["default_fov"])
            self._finder.take_image(Photo(jpeg, size, stamp, camera, time.monotonic()))

    def newest(self) -> LandingPad | None:
        """Return the pad's position, or that it is out of sight; None if that is unknown or older than allowed."""
        facts = self._node.statistics.facts
        if message := self._messages.message(LANDING_PAD):
            facts["landing pad from"] = LANDING_PAD
            return message
        sighting = self._sighting
        if sighting is None or time.monotonic() - sighting.came_s > self._timeout_s():
            facts.pop("landing pad from", None)
            return None
        facts["landing pad from"] = CAMERA
        return sighting.pad

    def _make_finder(self, names: LandingFrameNames) -> PadFinder:
        node = self._node
        is_levelled = node.parameters["is_levelled"]
        finder = PadFinder(
            read(MarkerParameters, PAD, node.parameters),
            names.stabilized if is_levelled else names.base_link,
            is_levelled=is_levelled,
            longest_s=self._timeout_s,
            refuse=lambda sentence: node.count_and_warn(BAD_IMAGES, sentence),
            fail=lambda trace: node.count_and_warn("internal errors", trace),
            found=self._found,
        )
        if self._source == CAMERA:
            if node.parameters["images_from"] == "none":
                raise ValueError("pad_from is camera and images_from is none, so there are no images to search.")
            try:
                finder.prepare()
            except ValueError as error:
                raise ValueError(f"Images can't be searched for the landing pad: {error}.") from error
        return finder

    def _found(self, sighting: Sighting, took_s: float) -> None:
        self._sighting = sighting
        self._node.publish(self._publisher, sighting.pad)
        statistics = self._node.statistics
        statistics.took("image searched for the pad", took_s)
        statistics.counts["searched images"] += 1
        statistics.counts["images with the pad"] += sighting.pad.detected

    def _expects_topic(self) -> bool:
        """Return whether landing_pad is published, or may be: nothing is known at the beginning."""
        if self._source == CAMERA:
            return False
        is_young = time.monotonic() - self._began_s <= self._timeout_s()
        return is_young or self._messages.message(LANDING_PAD) is not None

    def _timeout_s(self) -> float:
        return float(self._node.parameters["source_timeout"])
