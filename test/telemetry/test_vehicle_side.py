# SPDX-License-Identifier: Apache-2.0
"""The drone's side of the telemetry protocol without wire or clock, and ROS messages as its telemetry."""

import json
import math

import cv2
import numpy as np
import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped, Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Image, Imu
from std_msgs.msg import Bool
from telemetry_documents import DRONE, ROVER

from drone_bridge.motion.tilt_control import Shares
from drone_bridge.ros.jpeg_images import encoded
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.telemetry.codec import Camera, ControllerConnection, DroneCommand
from drone_bridge.telemetry.topics import (
    TOPICS,
    LandingFrameNames,
    Signs,
    Translation,
    shares_from_command,
)
from drone_bridge.wire.jpeg import read_size
from drone_bridge.wire.rate_limit import RateLimit

STAMP = Time(sec=12, nanosec=34)
NAMES = LandingFrameNames("d1/")
REP_103 = Signs()
TRANSLATION = Translation(NAMES, REP_103)


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


def through_ros(document, signs=REP_103):
    """Return telemetry, and the messages that result from it: the Imu, the velocity and the pad."""
    telemetry = read(document)
    messages = Translation(NAMES, signs, 60.0, is_levelled=True)
    imu = messages.wire_imu(messages.imu(telemetry, STAMP))
    pad = messages.wire_pad(messages.landing_pad(telemetry, STAMP))
    return telemetry, imu, pad


def test_an_imu_without_attitude_or_rates_is_ignored():
    assert TRANSLATION.wire_imu(Imu()) is not None
    for field in ("orientation_covariance", "angular_velocity_covariance"):
        message = Imu()
        getattr(message, field)[0] = -1.0
        assert TRANSLATION.wire_imu(message) is None
    empty = Imu()
    empty.orientation.w = 0.0
    assert TRANSLATION.wire_imu(empty) is None


def test_a_body_that_rises_with_its_nose_up_goes_forward_and_up():
    """Along its own x axis, which points up by 30 degrees, at a negative pitch."""
    document = {**DRONE, "imu": {**DRONE["imu"], "orientation": {"roll": 0.0, "pitch": -math.pi / 6, "yaw": 1.0}}}
    _, imu, _ = through_ros(document)
    velocity = TRANSLATION.levelled(Vector3(x=2.0), False, imu)
    assert velocity == pytest.approx((2 * math.cos(math.pi / 6), 0.0, 1.0))


def test_a_rover_comes_back_and_one_that_turns_moves_where_it_looks():
    rover = read(ROVER)
    back = TRANSLATION.wire_rover(TRANSLATION.rover_odometry(rover, time_from_seconds(1.234)), "circular")
    assert back == rover
    message = Odometry()
    message.twist.twist.linear.x = 1.0
    message.pose.pose.orientation.z = message.pose.pose.orientation.w = math.sqrt(0.5)  # a quarter turn to the left
    assert TRANSLATION.wire_rover(message, "?").velocity == pytest.approx((0.0, 1.0, 0.0))


def test_the_climb_is_the_altimeter_s_own_and_a_drone_that_flies_has_not_landed():
    rows = {row.name: row for row in TOPICS}
    messages = {"imu/data": Imu(), "height": PointStamped(), "velocity": TwistWithCovarianceStamped(), "flying": Bool()}
    messages["velocity"].twist.twist.linear.z = 0.5

    def made():
        value = {name: rows[name].from_ros(TRANSLATION, message) for name, message in messages.items()}.get
        return TRANSLATION.telemetry(value, Camera(320, 240), None)

    assert (made().altimeter.vertical_velocity, made().landed) == (0.5, True)
    messages["vertical_velocity"] = TwistWithCovarianceStamped()
    messages["vertical_velocity"].twist.twist.linear.z = -0.25
    messages["flying"].data = True
    assert (made().altimeter.vertical_velocity, made().landed) == (-0.25, False)
    messages["landed"] = Bool(data=True)  # which has precedence
    assert made().landed


# Commands.


def test_positive_pitch_goes_forward_and_positive_roll_right():
    shares = shares_from_command(DroneCommand(0.5, 0.25, 0.5, -0.5), Signs())
    assert shares == Shares(thrust=0.5, pitch=0.5, roll=1.0, yaw=-1.0)


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
