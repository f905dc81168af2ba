# SPDX-License-Identifier: Apache-2.0
"""The landing pad's position, from the topic landing_pad or from the images that are served."""

import time
from typing import Final

from builtin_interfaces.msg import Time
from sensor_msgs.msg import Imu

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.msg import LandingPad
from drone_bridge.node.described_parameters import read
from drone_bridge.servers.latest_messages import LatestMessages
from drone_bridge.telemetry.server.pad_finder import PadFinder, Photo, Sighting, pinhole
from drone_bridge.telemetry.server.parameters import CAMERA, LANDING_PAD, PAD
from drone_bridge.telemetry.topics.to_ros import LandingFrameNames
from drone_bridge.vision.markers import MarkerParameters

BAD_IMAGES: Final = "unusable images"


class PadSource:
    """Chooses between landing_pad and the PadFinder by the parameter pad_from. For the executor."""

    def __init__(self, node: LinkNode, messages: LatestMessages, names: LandingFrameNames) -> None:
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
            info = self._messages.fresh("camera/camera_info")
            camera = pinhole(info, *size, self._node.parameters["default_fov"])
            self._finder.take_image(Photo(jpeg, size, stamp, camera, time.monotonic()))

    def newest(self) -> LandingPad | None:
        """Return the pad's position, or that it is out of sight; None if that is unknown or older than allowed."""
        facts = self._node.statistics.facts
        if message := self._messages.fresh(LANDING_PAD):
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
        return is_young or self._messages.fresh(LANDING_PAD) is not None

    def _timeout_s(self) -> float:
        return float(self._node.parameters["source_timeout"])
