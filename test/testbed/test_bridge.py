# SPDX-License-Identifier: Apache-2.0
"""testbed_bridge as a process, with real sockets and real DDS."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from geometry_msgs.msg import Twist
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from ros_session import wait_until
from sensor_msgs.msg import CameraInfo, Image, Imu
from testbed_peer import HOVER, TestbedPeer, bridge, pixels
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import DroneProperties
from drone_bridge.ros.time import time_from_seconds

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


@pytest.fixture
def peer(closing):
    return closing(TestbedPeer())


# From the wire.


def test_a_frame_becomes_topics(ros, peer):
    cameras = {"image_raw": Image, "camera_info": CameraInfo}
    topics = {f"{side}/{topic}": kind for side in ("left", "right") for topic, kind in cameras.items()}
    topics["imu/data"] = Imu
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
        assert info.header == image.header
    assert got["right/camera_info"].p[3] == pytest.approx(-8.0 * 0.25)
    # Nose 30 degrees down, looking east.
    assert got["imu/data"].orientation.y == pytest.approx(math.sin(math.radians(15)))
    assert properties.mass == 1.5
    assert "d1/left_camera_optical_frame" in [transform.child_frame_id for transform in static.transforms]


def exchange_until_subscribed(peer, *inboxes, **fields):
    """Exchange frames until each inbox has a message, so that discovery is complete."""
    wait_until(lambda: peer.exchange(**fields) and all(map(len, inboxes)), "messages on every topic")


def test_the_qos_of_one_topic_can_be_overridden_and_of_no_other(ros, peer):
    def reliability(topic):
        return [info.qos_profile.reliability for info in ros.node.get_publishers_info_by_topic(topic)]

    with bridge(peer, **{"qos_overrides./left/image_raw.publisher.reliability": "best_effort"}):
        wait_until(lambda: reliability("right/image_raw") and reliability("left/image_raw"), "both topics")
        assert reliability("left/image_raw") == [ReliabilityPolicy.BEST_EFFORT]
        assert reliability("right/image_raw") == [ReliabilityPolicy.RELIABLE]


# To the wire.


def test_a_slow_reliable_subscriber_does_not_hold_up_the_testbed(ros, peer):
    # A subscriber that is not spun: its history is full after one image, and never read.
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


def test_commands_that_reach_no_vehicle_are_counted_and_warned_of(ros, peer):
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    commands = ros.publisher(Twist, "cmd_vel", subscribers=0)

    def is_counted(report):
        commands.publish(Twist())
        return int(values_of(report)["undelivered_commands"]) > 1

    with bridge(peer, silence_warning=2.0, autostart=True) as node:
        peer.open().exchange()
        node.wait_for_line("attitude_layout")  # it is silent until its first frame
        wait_until(commands.get_subscription_count, "the bridge")
        line = r"Commands on cmd_vel may be lost: 127\.0\.0\.1:\d+ has been silent for \d+ s"
        wait_until(lambda: commands.publish(Twist()) or node.count_lines(line), "the warning", period_s=0.05)
        reports.wait(is_counted)
        assert node.count_lines(line) == 1  # for any number of commands
        peer.close()
    with bridge(peer) as node:
        wait_until(commands.get_subscription_count, "the bridge")
        reports.wait(is_counted)
        line = r"Commands on cmd_vel reach no vehicle: there is no link: .*refused"
        wait_until(lambda: commands.publish(Twist()) or node.count_lines(line), "the warning", period_s=0.05)
