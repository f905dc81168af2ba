# SPDX-License-Identifier: Apache-2.0
"""telemetry_server's own search for the pad in the images that it serves, between a test's images and Imus."""

import math
import queue
import sys

import pytest
from markers import photograph_of_pad
from sensor_msgs.msg import CameraInfo, Imu
from telemetry_peer import jpeg

from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.frames import set_quaternion
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.telemetry.server.pad import PadFinder, Photo, pinhole
from drone_bridge.telemetry.topics import LandingFrameNames, TelemetrySigns, Translation
from drone_bridge.vision.markers import MarkerParameters

TIMEOUT_S = 60.0
SIZE = (320, 240)
FOCAL = 160 / math.tan(math.radians(30.0))  # of 60 degrees
PINHOLE = pinhole(None, *SIZE, 60.0)
GROUND = jpeg(*SIZE)


class Finder:
    """A PadFinder, and what it says."""

    def __init__(self, is_levelled=True, markers=MarkerParameters()):  # noqa: B008 # frozen
        self.sightings, self.refusals, self.failures = queue.Queue(), queue.Queue(), []
        self._finder = PadFinder(
            markers,
            "base_stabilized" if is_levelled else "base_link",
            is_levelled=is_levelled,
            longest_s=lambda: 1.0,
            refuse=self.refusals.put,
            fail=self.failures.append,
            found=lambda sighting, _: self.sightings.put(sighting),
        )
        self._finder.start()

    def take(self, jpeg, stamp_s=1.0, size=SIZE):
        self._finder.take_image(Photo(jpeg, size, time_from_seconds(stamp_s), PINHOLE, 5.0))

    def feel(self, stamp_s=1.0, roll=0.0, pitch=0.0, yaw=0.0):
        imu = Imu()
        imu.header.stamp = time_from_seconds(stamp_s)
        set_quaternion(imu.orientation, quaternion_from_euler(roll, pitch, yaw))
        self._finder.take_imu(imu)

    def pad(self):
        """Return what was found next."""
        return self.sightings.get(timeout=TIMEOUT_S).pad

    def close(self):
        self._finder.stop()
        assert self.failures == []


@pytest.fixture
def finder(closing):
    return closing(Finder())


def test_the_pad_has_the_meaning_and_the_signs_of_landing_pad(finder):
    finder.take(photograph_of_pad(3.0, ahead=0.4, left=0.2, focal=FOCAL))
    finder.feel()
    pad = finder.pad()
    assert pad.detected
    assert (pad.offset_x, pad.offset_y, pad.distance) == pytest.approx((0.4, 0.2, 3.0), abs=0.06)
    assert pad.header.frame_id == "base_stabilized"
    assert pad.header.stamp == time_from_seconds(1.0)
    wire = Translation(LandingFrameNames(), TelemetrySigns(relative_y=-1)).wire_pad(pad)
    assert (wire.relative_x, wire.relative_y, wire.distance) == pytest.approx((0.4, -0.2, 3.0), abs=0.06)
    assert 0.8 < wire.confidence <= 1.0


def test_an_image_without_the_pad_says_that_it_is_out_of_sight(finder):
    finder.take(GROUND)
    finder.feel()
    pad = finder.pad()
    assert not pad.detected
    assert math.isnan(pad.offset_x)
    assert Translation(LandingFrameNames(), TelemetrySigns()).wire_pad(pad) is None


@pytest.mark.parametrize("is_levelled", [True, False])
def test_the_tilt_at_the_time_of_the_image_is_removed_for_level_axes(is_levelled, closing):
    """The image is of a level drone. One whose nose is raised sees it so where the pad is farther ahead."""
    tilt = -0.1
    finder = closing(Finder(is_levelled))
    finder.feel(stamp_s=0.5, pitch=1.0)
    finder.feel(stamp_s=0.9, pitch=tilt, yaw=2.0)  # the nearest
    finder.take(photograph_of_pad(2.0, focal=FOCAL))
    finder.feel(stamp_s=1.5, pitch=1.0)
    pad = finder.pad()
    found = (pad.offset_x, pad.offset_y, -pad.distance)
    in_the_body = (0.0, 0.0, -2.0)
    level = rotation_from_angles(0.0, tilt, 0.0) @ in_the_body
    assert found == pytest.approx(tuple(level) if is_levelled else in_the_body, abs=0.1)
    assert level[0] > 0.15


def test_an_unusable_image_is_reported_and_the_next_one_searched(finder):
    finder.take(b"\xff\xd8 no image")
    finder.feel()
    assert "it begins with ff d8 20 6e, and not as a JPEG" in finder.refusals.get(timeout=TIMEOUT_S)
    finder.take(GROUND, size=(5000, 10))
    assert "has 5000 x 10 pixels, and 4096 are allowed" in finder.refusals.get(timeout=TIMEOUT_S)
    finder.take(GROUND, stamp_s=9.0)
    finder.take(GROUND, stamp_s=0.7)  # the one before has not got an attitude, and does not get one any more
    assert "8 s away from the nearest of imu/data" in finder.refusals.get(timeout=TIMEOUT_S)
    assert not finder.pad().detected


def test_without_opencv_there_is_a_sentence_and_no_pad(finder, monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    finder.take(GROUND)
    finder.feel()
    assert "Images are not searched for the pad: that needs OpenCV" in finder.refusals.get(timeout=TIMEOUT_S)


def test_a_dictionary_that_opencv_lacks_is_reported(closing):
    finder = closing(Finder(markers=MarkerParameters(marker_dictionary="DICT_9X9")))
    finder.take(GROUND)
    finder.feel()
    assert "marker_dictionary has to be one" in finder.refusals.get(timeout=TIMEOUT_S)


def test_the_camera_of_an_image_that_was_made_smaller():
    info = CameraInfo(width=640, height=480)
    info.k = [500.0, 0.0, 329.5, 0.0, 510.0, 239.5, 0.0, 0.0, 1.0]
    camera = pinhole(info, 320, 240, 60.0)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (250.0, 255.0, 164.5, 119.5)
    assert pinhole(CameraInfo(width=640, height=480), *SIZE, 60.0) == PINHOLE  # not calibrated
    assert (PINHOLE.fx, PINHOLE.cx) == pytest.approx((FOCAL, 159.5))
