# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge as a process, between real sockets and real DDS."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from geometry_msgs.msg import Twist
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_session import repeating, wait_until
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import CameraInfo, Image, Imu
from testbed_peer import HOVER, TestbedPeer, bridge, pixels
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.testbed.codec import MotionParameters

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def peer(closing):
    return closing(TestbedPeer())


def twist(roll=0.0, pitch=0.0, yaw=0.0, thrust=0.0):
    """A Twist of rates and thrust, for a bridge whose cmd_vel means that."""
    message = Twist()
    message.angular.x, message.angular.y, message.angular.z = roll, pitch, yaw
    message.linear.z = thrust
    return message


RATES = {"cmd_vel_mode": "rates_and_thrust"}


def command_rates(stamp, thrust=9.0):
    message = CommandRates(roll_rate=0.1, pitch_rate=0.2, yaw_rate=0.3, thrust=thrust)
    message.header.stamp = stamp
    return message


def assert_answer(answer, pitch=0.0, roll=0.0, yaw=0.0, thrust=0.0):
    expected = MotionParameters(math.degrees(pitch), math.degrees(roll), math.degrees(yaw), thrust)
    assert [answer.pitch_rate, answer.roll_rate, answer.yaw_rate, answer.thrust] == pytest.approx(
        [expected.pitch_rate, expected.roll_rate, expected.yaw_rate, expected.thrust], rel=1e-6
    )


def exchange_until(peer, wanted, publish=lambda: None):
    """Exchange frames until the answer is the wanted one; the bridge answers at once with the newest command.

    `publish` is done before each: a reader that has not found its writer yet ignores what that writes.
    """
    answers = []

    def exchange():
        publish()
        answers[:] = [peer.exchange()]
        return wanted(answers[0])

    wait_until(exchange, "the wanted answer")
    return answers[0]


def publishing(ros, topic, message):
    """Return a function that publishes the message again and again."""
    publisher = ros.publisher(type(message), topic)
    return lambda: publisher.publish(message)


# What comes from the wire.


def test_a_frame_becomes_topics(ros, peer):
    topics = {
        "left/image_raw": Image,
        "right/image_raw": Image,
        "left/camera_info": CameraInfo,
        "right/camera_info": CameraInfo,
        "imu/data": Imu,
    }
    inboxes = {topic: ros.subscribe(kind, topic) for topic, kind in topics.items()}
    with bridge(peer, frame_prefix="d1/", stamp_source="wire"):
        peer.open()
        exchange_until_subscribed(peer, *inboxes.values())
        peer.exchange(time=1000.5, pitch=30.0, yaw=90.0)
        stamp = time_from_seconds(1000.5)
        got = {topic: inbox.wait(lambda message: message.header.stamp == stamp) for topic, inbox in inboxes.items()}
        properties = ros.subscribe(DroneProperties, "drone_properties", LATCHED).wait()
        static = ros.subscribe(TFMessage, "/tf_static", LATCHED).wait()

    for side, seed in (("left", 1), ("right", 2)):
        image, info = got[f"{side}/image_raw"], got[f"{side}/camera_info"]
        assert (image.width, image.height, image.encoding, image.step) == (16, 8, "rgb8", 48)
        assert bytes(image.data) == pixels(seed)
        assert image.header.frame_id == f"d1/{side}_camera_optical_frame"
        assert info.header == image.header
        assert info.k[0] == pytest.approx(8.0)  # (16 / 2) / tan(90 / 2 degrees)
        assert info.k[4] == pytest.approx(4 / math.tan(math.radians(30)))
    assert got["right/camera_info"].p[3] == pytest.approx(-8.0 * 0.25)
    imu = got["imu/data"]
    assert imu.header.frame_id == "d1/base_link"
    # Nose 30 degrees down, then turned right from north by 90 degrees: looking east.
    assert [imu.orientation.x, imu.orientation.y, imu.orientation.z, imu.orientation.w] == pytest.approx(
        [0.0, math.sin(math.radians(15)), 0.0, math.cos(math.radians(15))], abs=1e-6
    )
    assert imu.orientation_covariance[0] == pytest.approx(math.pi**2 / 3)  # roll is not on the wire
    assert imu.angular_velocity_covariance[0] == imu.linear_acceleration_covariance[0] == -1.0

    assert (properties.mass, properties.gravity, properties.max_thrust) == pytest.approx((1.5, 10.0, 25.0))
    assert properties.max_yaw_rate == pytest.approx(math.pi)
    offsets = {
        transform.child_frame_id: (transform.header.frame_id, transform.transform.translation.y)
        for transform in static.transforms
    }
    assert offsets["d1/left_camera_link"] == ("d1/base_link", pytest.approx(0.125))
    assert offsets["d1/right_camera_link"] == ("d1/base_link", pytest.approx(-0.125))
    assert offsets["d1/left_camera_optical_frame"][0] == "d1/left_camera_link"


def exchange_until_subscribed(peer, *inboxes, **fields):
    """Exchange frames until something has come into each inbox, which says that discovery is over."""
    wait_until(lambda: peer.exchange(**fields) and all(map(len, inboxes)), "messages on every topic")


def test_wire_time_stamps_frames_and_drives_the_clock(ros, peer):
    inboxes = {"imu": ros.subscribe(Imu, "imu/data"), "clock": ros.subscribe(Clock, "/clock")}
    with bridge(peer, stamp_source="wire", publish_clock=True):
        peer.open()
        exchange_until_subscribed(peer, *inboxes.values())
        peer.exchange(time=1000.5)
        expected = time_from_seconds(1000.5)
        inboxes["imu"].wait(lambda message: message.header.stamp == expected)
        inboxes["clock"].wait(lambda message: message.clock == expected)


def test_the_qos_of_one_topic_can_be_overridden_and_of_no_other(ros, peer):
    def reliability(topic):
        return [info.qos_profile.reliability for info in ros.node.get_publishers_info_by_topic(topic)]

    with bridge(peer, **{"qos_overrides./left/image_raw.publisher.reliability": "best_effort"}):
        wait_until(lambda: reliability("right/image_raw") and reliability("left/image_raw"), "both topics")
        assert reliability("left/image_raw") == [ReliabilityPolicy.BEST_EFFORT]
        assert reliability("right/image_raw") == [ReliabilityPolicy.RELIABLE]


# What goes to the wire.


def test_cmd_vel_becomes_rates_and_thrust_with_the_wire_s_signs_where_that_was_asked_for(ros, peer):
    with bridge(peer, command_timeout=30.0, **RATES):
        peer.open()
        publish = publishing(ros, "cmd_vel", twist(roll=0.1, pitch=0.2, yaw=0.3, thrust=9.0))
        answer = exchange_until(peer, lambda answer: answer != HOVER, publish)
    assert_answer(answer, roll=0.1, pitch=0.2, yaw=-0.3, thrust=9.0)


def test_lockstep_waits_for_the_command_of_the_frame(ros, peer):
    images = ros.subscribe(Image, "left/image_raw")
    with bridge(peer, sync="lockstep", command_timeout=0.02):
        peer.open()
        publisher = ros.publisher(CommandRates, "cmd_rates")
        velocities = ros.publisher(Twist, "cmd_vel")
        exchange_until_subscribed(peer, images)
        ros.set_parameters("testbed_bridge", command_timeout=10.0)
        for index in range(5):
            stamp = peer.send_frame_to(images)

            def command(_, stamp=stamp, index=index):
                # A command for another frame is no answer to this one.
                publisher.publish(command_rates(time_from_seconds(stamp.sec + 1), thrust=1.0))
                publisher.publish(command_rates(stamp, thrust=2.0 + index))
                # And one that is for no frame at all does not keep the answer from it.
                velocities.publish(twist(thrust=1.0))

            with repeating(command):
                assert peer.reply().thrust == 2.0 + index


def test_lockstep_goes_on_without_a_controller(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with bridge(peer, sync="lockstep", command_timeout=0.05):
        peer.open()
        assert peer.exchange() == HOVER
        assert peer.exchange() == HOVER
        reports.wait(lambda report: values_of(report)["missed lockstep commands"] == "2")


def test_a_slow_reliable_subscriber_does_not_hold_up_the_testbed(ros, peer):
    # A subscriber whose node nobody spins: its history is full after one image, and it never reads it.
    reliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
    ros.idle_node().create_subscription(Image, "left/image_raw", lambda _: None, reliable)
    fresh = ros.subscribe(Image, "left/image_raw", reliable)
    with bridge(peer):
        peer.open()
        exchange_until_subscribed(peer, fresh)
        for _ in range(500):
            assert peer.exchange() == HOVER
        last = fresh.wait(lambda image: len(fresh) == 0)
    assert bytes(last.data) == pixels(1)
