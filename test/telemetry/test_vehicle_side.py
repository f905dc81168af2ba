# SPDX-License-Identifier: Apache-2.0
"""The drone's side of the telemetry protocol without wire or clock, and ROS messages as its telemetry."""

import json
import math
from functools import partial

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu
from std_msgs.msg import Bool, String
from telemetry_documents import ROVER

from drone_bridge.motion.quaternions import quaternion_from_euler
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.jpeg_images import encoded
from drone_bridge.ros.topics.table import MissingTopicError
from drone_bridge.ros.topics.transforms import set_quaternion, set_vector
from drone_bridge.telemetry.codec import Camera, ControllerConnection
from drone_bridge.telemetry.topics import TOPICS, LandingFrameNames, TelemetryTranslation
from drone_bridge.telemetry.units import Units
from drone_bridge.wire.jpeg import read_size
from drone_bridge.wire.rate_limit import RateLimit

STAMP = Time(sec=12, nanosec=34)
NAMES = LandingFrameNames("d1/")
TRANSLATION = TelemetryTranslation(NAMES, Units())


def read(document):
    connection = ControllerConnection()
    connection.receive_data(json.dumps(document))
    return connection.next_event()


@pytest.mark.parametrize("jitters_s", [[0.0], [0.008, 0.0, -0.008]])
def test_telemetry_at_its_rate_is_all_forwarded(jitters_s):
    limit = RateLimit()
    times_s = [0.04 * number + jitters_s[number % len(jitters_s)] for number in range(100)]
    assert sum(limit.is_due(time_s, 25.0) for time_s in times_s) == 100
    faster = RateLimit()
    assert sum(faster.is_due(0.01 * number, 25.0) for number in range(400)) == pytest.approx(100, abs=2)


# Messages of ROS as telemetry.


def assembled(messages, *, is_levelled=True):
    """Return the document of messages on topics by name, for an operator that expects level or tilted axes."""
    rows = {row.name: row for row in TOPICS}
    translation = TelemetryTranslation(NAMES, Units(is_levelled=is_levelled))
    value = {name: rows[name].from_ros(translation, message) for name, message in messages.items()}.get
    return translation.telemetry(value, Camera(320, 240), None)


def test_an_imu_without_attitude_or_rates_gives_no_document():
    def document(imu):
        return assembled({"imu/data": imu, "height": PointStamped(), "velocity": TwistWithCovarianceStamped()})

    assert document(Imu())
    lacking = [Imu() for _ in range(3)]
    lacking[0].orientation_covariance[0] = lacking[1].angular_velocity_covariance[0] = -1.0
    lacking[2].orientation.w = 0.0
    for imu in lacking:
        with pytest.raises(MissingTopicError, match="the orientation or the rates of imu/data"):
            document(imu)


@pytest.mark.parametrize("is_level", [True, False])
@pytest.mark.parametrize("is_levelled", [True, False])
def test_a_velocity_is_converted_to_the_axes_that_the_operator_expects(is_level, is_levelled):
    """The drone's nose points up by 30 degrees, and it flies along its nose."""
    level, in_body = (2 * math.cos(math.pi / 6), 0.0, 1.0), (2.0, 0.0, 0.0)
    imu, velocity = Imu(), TwistWithCovarianceStamped()
    set_quaternion(imu.orientation, quaternion_from_euler(0.0, -math.pi / 6, 1.0))
    velocity.header.frame_id = NAMES.stabilized if is_level else NAMES.base_link
    set_vector(velocity.twist.twist.linear, level if is_level else in_body)
    document = assembled({"imu/data": imu, "height": PointStamped(), "velocity": velocity}, is_levelled=is_levelled)
    assert document.velocity == pytest.approx(level if is_levelled else in_body)


def test_a_rover_comes_back_and_one_that_turns_moves_where_it_looks():
    rover = read(ROVER)
    pattern = TRANSLATION.wire_pattern(TRANSLATION.rover_pattern(rover, STAMP))
    assert pattern == "circular"
    assert TRANSLATION.wire_rover(TRANSLATION.rover_odometry(rover, time_from_seconds(1.234)), pattern) == rover
    message = Odometry()
    message.twist.twist.linear.x = 1.0
    message.pose.pose.orientation.z = message.pose.pose.orientation.w = math.sqrt(0.5)  # a quarter turn to the left
    assert TRANSLATION.wire_rover(message, "?").velocity == pytest.approx((0.0, 1.0, 0.0))


def test_climb_is_the_altimeters_and_a_flying_drone_has_not_landed():
    messages = {"imu/data": Imu(), "height": PointStamped(), "velocity": TwistWithCovarianceStamped(), "flying": Bool()}
    messages["velocity"].twist.twist.linear.z = 0.5

    made = partial(assembled, messages)
    assert (made().altimeter.vertical_velocity, made().landed) == (0.5, True)
    messages["vertical_velocity"] = TwistWithCovarianceStamped()
    messages["vertical_velocity"].twist.twist.linear.z = -0.25
    messages["flying"].data = True
    assert (made().altimeter.vertical_velocity, made().landed) == (-0.25, False)
    messages["landed"] = Bool(data=True)  # which has precedence
    assert made().landed


@pytest.mark.parametrize("name", ["", "x" * 65])
def test_a_pattern_that_no_document_can_have_is_unknown(name):
    assert TRANSLATION.wire_pattern(String(data=name)) is None


# Raw images.


def image(encoding, pixels, padding=0):
    height, width = pixels.shape[:2]
    rows = pixels.reshape(height, -1)
    data = np.pad(rows, ((0, 0), (0, padding))).tobytes()
    return Image(height=height, width=width, encoding=encoding, step=rows.shape[1] + padding, data=data)


@pytest.mark.parametrize(("encoding", "red"), [("rgb8", 0), ("bgr8", 2)])
def test_a_raw_image_becomes_a_jpeg_of_the_same_colours_and_not_too_wide(encoding, red):
    pixels = np.zeros((48, 64, 3), np.uint8)
    pixels[:, :, red] = 255
    data = encoded(image(encoding, pixels, padding=5), max_width=32, quality=90)
    assert read_size(data) == (32, 24)
    decoded = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    assert decoded[12, 16].tolist() == pytest.approx([0, 0, 255], abs=6)


def test_grey_images_are_encoded_and_others_refused_with_a_sentence():
    assert read_size(encoded(image("mono8", np.zeros((8, 8), np.uint8)), 320, 70)) == (8, 8)
    with pytest.raises(ValueError, match="has the encoding '32FC1'"):
        encoded(Image(encoding="32FC1"), 320, 70)
    with pytest.raises(ValueError, match="and not 8 rows of 24"):
        encoded(Image(encoding="rgb8", width=8, height=8, step=24, data=b"123"), 320, 70)
