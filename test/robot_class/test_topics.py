# SPDX-License-Identifier: Apache-2.0
"""Topics of a robot in one class: images, own topics, and missing values."""

import math
from dataclasses import astuple

import pytest
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped
from own_robots import Pioneer, RoboMaster, Tello

from drone_bridge.motion.quaternions import quaternion_from_euler, rotated_back
from drone_bridge.robot_class import BodyVelocity, Camera, Packets, Picture, Robot, Telemetry, Udp
from drone_bridge.robot_class.connection import StatePacket, conversation
from drone_bridge.robot_class.robot import image_of
from drone_bridge.robot_class.topics import RAW, RobotClassTranslation, assemble, make_rows, make_table
from drone_bridge.ros.qos import latched
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.jpeg_images import encoded
from drone_bridge.ros.topics.table import MissingTopicError
from drone_bridge.ros.topics.wheel_odometry import TWIST_VARIANCES

STAMP = Time(sec=3)
PIXELS = Picture(4, 2, bytes(range(24)))


class RawCamera(Robot):
    """Robot with a camera of either type, and an own topic."""

    name, control, camera = "camera", Udp(1), Camera("rgb8")
    topics = {"heard": "geometry_msgs/PointStamped"}  # noqa: RUF012


class JpegCamera(RawCamera):
    """Such a robot with JPEG images."""

    name, camera = "jpeg_camera", Camera("jpeg")


class Drone(Robot):
    """Drone that reports its attitude."""

    name, control, topics = "drone", Udp(1), ("odom", "velocity", "imu/data", "flying")


class Climber(Drone):
    """Such a drone without a position."""

    name, topics = "climber", ("velocity", "imu/data")


def made(robot, telemetry, refuse_image=pytest.fail):
    """Return the messages of telemetry by topic."""
    translation = RobotClassTranslation(DroneFrameNames("own/"), image_of(robot), refuse_image=refuse_image)
    rows = [(row.name, row.to_ros(translation, StatePacket(b"", telemetry), STAMP)) for row in make_rows(robot)]
    return {name: message for name, message in rows if message is not None}


def hop(robot, messages, refuse_image=pytest.fail):
    """Return the telemetry that a server assembles from messages."""
    translation = RobotClassTranslation(DroneFrameNames("own/"), image_of(robot), refuse_image=refuse_image)
    rows = {row.name: row for row in make_rows(robot) if row.from_ros}

    def value(name):
        return rows[name].from_ros(translation, messages[name]) if name in messages else None

    return assemble(robot, translation, value, STAMP).meaning


def test_pixels_are_converted_to_an_image_in_the_optical_frame_and_back():
    messages = made(RawCamera, Telemetry(image=PIXELS))
    image = messages["camera/image_raw"]
    assert (image.width, image.height, image.encoding, image.header.stamp) == (4, 2, "rgb8", STAMP)
    assert image.header.frame_id == "own/camera_optical_frame"
    assert hop(RawCamera, messages).image == PIXELS
    image.encoding = "bgr8"
    assert hop(RawCamera, messages).image.rgb8[:3] == PIXELS.rgb8[2::-1]


def test_a_jpeg_of_huge_size_is_refused_before_it_is_decoded():
    refused = []
    header = bytes.fromhex("ffd8 ffc0 0011 08 ffff ffff 03 011100 021100 031100")
    messages = made(JpegCamera, Telemetry(image=header), refused.append)
    assert list(messages) == ["camera/image_raw/compressed"]
    assert "65535 x 65535" in refused[0]


@pytest.mark.parametrize(
    ("robot", "image"),
    [
        (RawCamera, Picture(4, 2, b"short")),
        (RawCamera, Picture(0, 0, b"")),
        (RawCamera, Picture(-1, -1, b"rgb")),
        (JpegCamera, b"no JPEG"),
    ],
    ids=["too few", "none", "negative", "no JPEG"],
)
def test_only_the_unconvertible_image_is_refused(robot, image):
    refused = []
    messages = made(robot, Telemetry(image=image, extra={"heard": PointStamped()}), refused.append)
    assert len(refused) == 1
    assert "heard" in messages
    assert RAW not in messages


def test_a_server_refuses_only_the_image_of_another_encoding():
    messages = made(RawCamera, Telemetry(image=PIXELS, extra={"heard": PointStamped()}))
    messages[RAW].encoding = "16UC1"
    refused = []
    telemetry = hop(RawCamera, messages, refused.append)
    assert len(refused) == 1
    assert telemetry.image is None
    assert telemetry.extra


def test_a_server_does_not_report_a_non_finite_position():
    messages = made(Pioneer, Telemetry((1.0, 2.0, 0.0), 0.5))
    messages["odom"].pose.pose.position.x = math.nan
    assert hop(Pioneer, messages).position is None


def test_a_jpeg_is_published_unchanged_and_decoded_for_subscribers():
    jpeg = encoded(made(RawCamera, Telemetry(image=PIXELS))["camera/image_raw"], 4, 90)
    messages = made(JpegCamera, Telemetry(image=jpeg))
    assert bytes(messages["camera/image_raw/compressed"].data) == jpeg
    assert (messages["camera/image_raw"].width, messages["camera/image_raw"].height) == (4, 2)
    assert hop(JpegCamera, messages).image == jpeg


def test_own_topics_get_stamp_and_frame():
    messages = made(RawCamera, Telemetry(extra={"heard": PointStamped()}))
    assert messages["heard"].header.frame_id == "own/base_link"
    assert messages["heard"].header.stamp == STAMP
    assert hop(RawCamera, messages).extra["heard"] == messages["heard"]


def test_latched_own_topics_are_states():
    states = type("States", (RawCamera,), {"name": "states", "latched": ("heard",)})
    for robot in (RawCamera, states):
        (row,) = (each for each in make_rows(robot) if each.name == "heard")
        assert (row.only_changes, row.qos is latched) == (robot is states, robot is states)


def test_unreported_values_are_not_published():
    assert made(Pioneer, Telemetry()) == {}
    messages = made(Tello, Telemetry(charge=0.5))
    assert list(messages) == ["battery_state"]
    assert messages["battery_state"].voltage != messages["battery_state"].voltage, "unknown"


def test_odometry_has_pose_and_velocity_and_is_required_by_a_server():
    told = Telemetry((1.0, 2.0, 0.0), 0.5, BodyVelocity(0.3, turn=0.1), 12.0)
    messages = made(Pioneer, told)
    assert hop(Pioneer, messages).position == told.position
    assert hop(Pioneer, messages).yaw == pytest.approx(0.5)
    assert hop(Pioneer, messages).velocity == told.velocity
    assert messages["/tf"].transforms[0].child_frame_id == "own/base_link"
    for robot in (Pioneer, Tello):  # of which one needs odometry, and the other any value
        with pytest.raises(MissingTopicError):
            hop(robot, {})


def test_a_missing_velocity_has_a_large_covariance():
    for velocity, variances in ((BodyVelocity(0.3), TWIST_VARIANCES), (None, (UNKNOWN_VARIANCE,) * 6)):
        odometry = made(Pioneer, Telemetry((1.0, 2.0, 0.0), 0.0, velocity))["odom"]
        assert tuple(odometry.twist.covariance[::7]) == variances
        assert set(odometry.pose.covariance[::7]) == {UNKNOWN_VARIANCE}, "its errors accumulate"


TILTED = Telemetry(
    (1.0, 2.0, 3.0),
    0.3,
    BodyVelocity(1.0, -0.5, 0.25, 0.1, 0.2, 0.3),
    roll=0.1,
    pitch=-0.2,
    rates=(0.01, 0.02, 0.03),
    acceleration=(0.0, 0.0, 9.81),
    is_flying=True,
)


def test_a_tilted_drone_s_reports_survive_a_hop():
    back = hop(Drone, made(Drone, TILTED))
    for name in ("position", "yaw", "roll", "pitch", "rates", "acceleration", "is_flying"):
        assert getattr(back, name) == pytest.approx(getattr(TILTED, name)), name
    assert astuple(back.velocity) == pytest.approx(astuple(TILTED.velocity))


def test_odometry_of_a_tilted_drone_has_a_twist_in_body_axes():
    messages = made(Drone, TILTED)
    body = rotated_back(quaternion_from_euler(0.1, -0.2, 0.0), 1.0, -0.5, 0.25)
    twist = messages["odom"].twist.twist.linear
    assert (twist.x, twist.y, twist.z) == pytest.approx(body)
    assert messages["odom"].pose.pose.orientation == messages["imu/data"].orientation
    linear = messages["velocity"].twist.twist.linear
    assert (messages["velocity"].header.frame_id, linear.x, linear.y) == ("own/base_footprint", 1.0, -0.5)
    del messages["velocity"]
    assert astuple(hop(Drone, messages).velocity) == pytest.approx(astuple(TILTED.velocity)), "level again"


def test_a_velocity_in_body_axes_is_levelled_by_the_attitude():
    body = made(Drone, TILTED)["odom"].twist.twist
    messages = {"velocity": TwistWithCovarianceStamped(), "imu/data": made(Drone, TILTED)["imu/data"]}
    messages["velocity"].header.frame_id = "own/base_link"
    messages["velocity"].twist.twist = body
    assert astuple(hop(Climber, messages).velocity) == pytest.approx(astuple(TILTED.velocity))
    messages["velocity"].twist.covariance[0] = UNKNOWN_VARIANCE
    assert hop(Climber, messages).velocity is None


def test_an_imu_without_rates_or_acceleration_marks_them_as_missing():
    message = made(Drone, Telemetry(yaw=0.3, roll=0.1, pitch=0.2))["imu/data"]
    assert message.angular_velocity_covariance[0] == message.linear_acceleration_covariance[0] == -1.0
    assert message.orientation_covariance[0] == 0.0, "unknown"
    assert "imu/data" not in made(Drone, Telemetry(yaw=0.3))


@pytest.mark.parametrize(
    ("told", "covariance", "read"),
    [
        (Telemetry(yaw=1.0, rates=(0.0, 0.0, 0.5)), -1.0, {"rates": (0.0, 0.0, 0.5)}),
        (Telemetry(yaw=1.0, imu_yaw=0.25), UNKNOWN_VARIANCE, {"imu_yaw": 0.25}),
        (Telemetry(yaw=1.0), None, {}),
    ],
)
def test_an_imu_without_tilt_has_its_own_heading_or_rates_alone(told, covariance, read):
    message = made(Climber, told).get("imu/data")
    assert covariance == (message and message.orientation_covariance[0])
    translation = RobotClassTranslation(DroneFrameNames(), "")
    assert {
        name: pytest.approx(each) for name, each in (translation.wire_imu(message) if message else {}).items()
    } == read


@pytest.mark.parametrize(("is_charging", "status"), [(None, 0), (True, 1), (False, 2)])
def test_a_battery_is_charged_or_not(is_charging, status):
    message = made(Pioneer, Telemetry(voltage=12.0, is_charging=is_charging))["battery_state"]
    assert message.power_supply_status == status
    back = RobotClassTranslation(DroneFrameNames(), "").wire_battery(message)
    assert back.get("is_charging") is is_charging


def test_a_drone_that_has_landed_is_not_flying():
    assert made(Drone, Telemetry(is_flying=False))["flying"].data is False
    assert "flying" not in made(Drone, Telemetry())


def test_a_report_over_a_further_link_with_another_framing_is_a_sample():
    class Mixed(RoboMaster):
        name, state = "mixed", Udp(40924, Packets(b"P", length_at=1), listen=True)

        def decode_report(self, packet):
            return None if packet == b"ok;" else int("no report")

        def decode_state(self, packet):
            return Telemetry((float(packet[2:]), 0.0, 0.0), 0.0)

        def encode_report(self, telemetry):
            return b"P\x03%.1f" % telemetry.position[0]

    (sample,) = make_table(Mixed).samples()
    assert (type(sample), sample.meaning.position) == (StatePacket, (1.0, 0.0, 0.0))
    assert not any(isinstance(each.message, StatePacket) for each in conversation(Mixed))


def test_a_missing_message_type_is_an_error_of_the_description():
    class Wrong(Robot):
        name, control, topics = "wrong", Udp(1), {"heard": "geometry_msgs/Nothing"}

    with pytest.raises(AttributeError):
        make_rows(Wrong)
