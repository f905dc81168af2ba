# SPDX-License-Identifier: Apache-2.0
"""pad_finder: when it searches, its pairs of image and attitude, and its messages about the pad."""

import math
from pathlib import Path
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
from ament_index_python.packages import get_package_share_directory
from builtin_interfaces.msg import Time
from markers import photograph_of_pad
from sensor_msgs.msg import CameraInfo, Imu

from drone_bridge.controllers.land_on_pad.images import attitude, heading, pad_message, sighting_in
from drone_bridge.controllers.pad_finder import ATTITUDES_KEPT, NearestAttitude, OtherPadFinder, camera_of
from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.jpeg_images import JpegDecoder
from drone_bridge.ros.topics.transforms import set_quaternion
from drone_bridge.telemetry.topics import LandingFrameNames, TelemetryTranslation
from drone_bridge.telemetry.units import Units
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.vision.marker_detector import MarkerDetector
from drone_bridge.vision.markers import MarkerParameters

SIZE = (320, 240)
EMPTY = cv2.imencode(".jpg", np.zeros((*SIZE[::-1], 3), np.uint8))[1].tobytes()
FOCAL = 160 / math.tan(math.radians(30.0))  # of 60 degrees
STAMP = time_from_seconds(1.0)


def image(stamp_s):
    return SimpleNamespace(header=SimpleNamespace(stamp=time_from_seconds(stamp_s)))


def felt(stamp_s=1.0, roll=0.0, pitch=0.0, yaw=0.0):
    imu = Imu()
    imu.header.stamp, imu.header.frame_id = time_from_seconds(stamp_s), "base_link"
    set_quaternion(imu.orientation, quaternion_from_euler(roll, pitch, yaw))
    return imu


# Other publishers of landing_pad.


def test_another_publisher_takes_precedence_until_its_timeout():
    finder = OtherPadFinder(now_s=10.0)
    assert not finder.is_free(11.0, timeout_s=1.0)  # other publishers are not known yet
    assert finder.is_free(11.1, timeout_s=1.0)
    finder.received(Time(sec=5), now_s=12.0)
    assert not finder.is_free(13.0, timeout_s=1.0)
    assert finder.is_free(13.1, timeout_s=1.0)


def test_our_own_messages_are_recognized_once_each_and_up_to_a_limit():
    finder = OtherPadFinder(now_s=0.0)
    for second in range(100):
        finder.publish(Time(sec=second))
        finder.received(Time(sec=second), now_s=10.0 + second)
        assert finder.is_free(10.0 + second, timeout_s=1.0)
    finder.received(Time(sec=99), now_s=200.0)  # another node's, with the stamp of the image
    assert not finder.is_free(200.0, timeout_s=1.0)
    for second in range(1000):  # without a subscriber
        finder.publish(Time(sec=second))
    finder.received(Time(sec=0), now_s=300.0)
    assert not finder.is_free(300.0, timeout_s=1.0)


# Pairs of image and attitude.


def test_image_waits_for_a_later_attitude_and_gets_the_nearest():
    pairs, photo = NearestAttitude(), image(1.0)
    assert pairs.take_imu(felt(0.5)) is None
    nearest = felt(0.9)
    assert pairs.take_imu(nearest) is None
    assert pairs.take_image(photo) is None
    assert pairs.take_imu(felt(1.5)) == (photo, nearest)
    assert pairs.take_imu(felt(2.0)) is None  # each image once


def test_newer_image_replaces_the_pending_one_which_gets_its_attitude():
    pairs, first, second, imu = NearestAttitude(), image(9.0), image(9.5), felt(1.0)
    assert pairs.take_image(first) is None
    assert pairs.take_image(first) is None  # no attitude at all
    pairs.take_imu(imu)
    assert pairs.take_image(second) == (first, imu)
    assert pairs.take_imu(felt(9.3)) is None
    newest = felt(9.6)
    assert pairs.take_imu(newest) == (second, newest)


def test_attitudes_are_bounded_and_dropped_when_time_goes_back():
    pairs, photo, imu = NearestAttitude(), image(1.0), felt(2.0)
    pairs.take_imu(felt(100.0))
    pairs.take_imu(imu)
    assert pairs.take_image(photo) == (photo, imu)  # at once, as it comes after its attitude
    for number in range(3, 10 * ATTITUDES_KEPT):
        pairs.take_imu(felt(number))
    _, oldest = pairs.take_image(image(0.0))
    assert oldest.header.stamp.sec == 9 * ATTITUDES_KEPT


# Detection in an image.


def test_the_camera_without_a_calibration_has_square_pixels():
    info = CameraInfo(width=320, height=240)
    info.k = [250.0, 0.0, 164.5, 0.0, 255.0, 119.5, 0.0, 0.0, 1.0]
    camera = camera_of(info, *SIZE, 60.0)
    assert (camera.fx, camera.fy, camera.cx, camera.cy) == (250.0, 255.0, 164.5, 119.5)
    for unknown in (None, CameraInfo(width=320, height=240)):
        camera = camera_of(unknown, *SIZE, 60.0)
        assert (camera.fx, camera.fy, camera.cx, camera.cy) == pytest.approx((FOCAL, FOCAL, 159.5, 119.5))
    info.k[0] = -1.0
    with pytest.raises(ValueError, match="fx is -1"):
        camera_of(info, *SIZE, 60.0)


def pad_of(data, imu, *, is_levelled=True):
    image, camera = JpegDecoder("camera").image(data, STAMP), camera_of(None, *SIZE, 60.0)
    found = sighting_in(MarkerDetector(MarkerParameters()), image, camera, imu)
    if is_levelled:
        return pad_message(found, heading(imu), "base_stabilized", STAMP)
    return pad_message(found, attitude(imu), "base_link", STAMP)


def test_the_pad_has_the_signs_of_landing_pad():
    pad = pad_of(photograph_of_pad(3.0, ahead=0.4, left=0.2, focal=FOCAL), felt(yaw=2.0))
    assert pad.detected
    assert (pad.offset_x, pad.offset_y, pad.distance) == pytest.approx((0.4, 0.2, 3.0), abs=0.06)
    assert (pad.header.frame_id, pad.header.stamp) == ("base_stabilized", STAMP)
    wire = TelemetryTranslation(LandingFrameNames(), Units(["telemetry.relative_y"])).wire_pad(pad)
    assert (wire.relative_x, wire.relative_y, wire.distance) == pytest.approx((0.4, -0.2, 3.0), abs=0.06)
    assert 0.8 < wire.confidence <= 1.0


def test_an_image_without_the_pad_reports_it_as_not_visible():
    pad = pad_of(EMPTY, felt())
    assert not pad.detected
    assert math.isnan(pad.offset_x)
    assert TelemetryTranslation(LandingFrameNames(), Units()).wire_pad(pad) is None


@pytest.mark.parametrize("is_levelled", [True, False])
def test_the_tilt_at_the_time_of_the_image_is_removed_for_level_axes(is_levelled):
    """The image is of a level drone. One whose nose is raised sees it so where the pad is farther ahead."""
    tilt = -0.1
    pad = pad_of(photograph_of_pad(2.0, focal=FOCAL), felt(pitch=tilt, yaw=2.0), is_levelled=is_levelled)
    found = (pad.offset_x, pad.offset_y, -pad.distance)
    in_the_body = (0.0, 0.0, -2.0)
    level = rotation_from_angles(0.0, tilt, 0.0) @ in_the_body
    assert found == pytest.approx(tuple(level) if is_levelled else in_the_body, abs=0.1)
    assert level[0] > 0.15


def test_an_imu_without_orientation_is_refused_with_a_sentence():
    imu = felt()
    imu.orientation_covariance[0] = -1.0
    with pytest.raises(ValueError, match="imu/data has no orientation"):
        pad_of(EMPTY, imu)


# Launch files.


@pytest.mark.parametrize(
    ("given", "is_started"), [({}, True), ({"find_pad": "false"}, False), ({"relay": "true"}, False)]
)
def test_the_server_s_launch_file_starts_it_for_drones_without_landing_pad(tmp_path, given, is_started):
    path = Path(get_package_share_directory("drone_bridge"), "launch", "telemetry_server.launch.xml")
    started = [Path(process.command[0]).name for process in evaluate(path, given, tmp_path, lambda warning: None)]
    assert "telemetry_server" in started
    assert ("pad_finder" in started) == is_started
