# SPDX-License-Identifier: Apache-2.0
"""pad_finder as a process, between a test's images and Imus."""

import math

import pytest
from markers import photograph_of_pad
from processes import Process
from ros_session import wait_until
from sensor_msgs.msg import CompressedImage, Imu

from drone_bridge.msg import LandingPad
from drone_bridge.ros.time import time_from_seconds

FOCAL = 160 / math.tan(math.radians(30.0))  # of 60 degrees
PERIOD_S = 0.04
#: VehiclePose another node says that the pad is, m ahead.
ELSEWHERE = 7.0


class Drone:
    """A drone that publishes a photograph, and one that is none, and its attitude; and perhaps where the pad is."""

    def __init__(self, ros):
        self._images = ros.node.create_publisher(CompressedImage, "camera/image_raw/compressed", 1)
        self._attitudes = ros.node.create_publisher(Imu, "imu/data", 10)
        self._pads = ros.node.create_publisher(LandingPad, "landing_pad", 1)
        self._seen = ros.subscribe(LandingPad, "landing_pad", 100)
        self._photographs = [b"\xff\xd8 no image", photograph_of_pad(3.0, ahead=0.4, left=0.2, focal=FOCAL)]
        self._count = 0

    def found(self, *, says_pad=False):
        """Publish the next moment; return what others have said about the pad since the last one."""
        self._count += 1
        stamp = time_from_seconds(1000 + self._count * PERIOD_S)
        photograph = CompressedImage(format="jpeg", data=self._photographs[self._count % 2])
        imu, pad = Imu(), LandingPad(detected=True, offset_x=ELSEWHERE, distance=5.0, confidence=0.5)
        photograph.header.stamp = imu.header.stamp = pad.header.stamp = stamp
        if says_pad:
            self._pads.publish(pad)
        self._images.publish(photograph)
        self._attitudes.publish(imu)
        return [pad for pad in (self._seen.wait() for _ in range(len(self._seen))) if pad.offset_x != ELSEWHERE]


def test_the_node_finds_the_pad_and_gives_way_to_another_node(ros):
    with Process.node("pad_finder", frame_prefix="d1/") as finder:
        drone = Drone(ros)
        pad = wait_until(drone.found, "a pad", period_s=PERIOD_S)[0]
        assert pad.detected
        assert (pad.offset_x, pad.offset_y, pad.distance) == pytest.approx((0.4, 0.2, 3.0), abs=0.06)
        assert pad.header.frame_id == "d1/base_stabilized"
        said = "An image was not searched for the pad: it begins with ff d8 20 6e, and not as a JPEG"
        # Of two images that wait, the newer one is searched.
        wait_until(lambda: drone.found() and finder.count_lines(said), said, period_s=PERIOD_S)
        silent = 0  # moments in a row

        def is_silent():
            nonlocal silent
            silent = 0 if drone.found(says_pad=True) else silent + 1
            return silent >= 25

        wait_until(is_silent, "silence", period_s=PERIOD_S)
        assert wait_until(drone.found, "a pad again", period_s=PERIOD_S)[0].detected
        assert finder.stop() == 0
