# SPDX-License-Identifier: Apache-2.0
"""What `drone-bridge doctor` says of bridges and servers that run: the judgement, without processes or a graph."""

import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from drone_bridge.kind import kinds, load
from drone_bridge.tools.doctor.running_nodes import Endpoint, NodeTopic, RunningNode, problems, shared_frames

BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=10)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
ROWS = {row.name: row for row in load(kinds()["testbed"].topics).rows if row.from_ros}
IMU, IMAGE, ODOM = "sensor_msgs/msg/Imu", "sensor_msgs/msg/Image", "nav_msgs/msg/Odometry"
PROPERTIES, RATES = "drone_bridge/msg/DroneProperties", "drone_bridge/msg/CommandRates"
TWIST = "geometry_msgs/msg/Twist"
BOTH = (LATCHED, BEST_EFFORT)  # as a node asks where not every publisher is latched


def taken(topic, type_name, *others, requests=(BEST_EFFORT,)):
    """A topic that testbed_server takes, and who publishes it."""
    own = [Endpoint("/testbed_server", type_name, request) for request in requests]
    return NodeTopic(f"/{topic}", True, own, list(others), ROWS.get(topic))


def given(topic, type_name, *others, offer=RELIABLE):
    return NodeTopic(f"/{topic}", False, [Endpoint("/testbed_server", type_name, offer)], list(others))


def vehicle(type_name, qos=RELIABLE, node="/vehicle"):
    return Endpoint(node, type_name, qos)


def healthy():
    """A drone with two cameras behind testbed_server, as its owner has written it."""
    return {
        "imu/data": taken("imu/data", IMU, vehicle(IMU)),
        "left/image_raw": taken("left/image_raw", IMAGE, vehicle(IMAGE, BEST_EFFORT)),
        "right/image_raw": taken("right/image_raw", IMAGE, vehicle(IMAGE)),
        "odom": taken("odom", ODOM),
        "drone_properties": taken("drone_properties", PROPERTIES, vehicle(PROPERTIES, LATCHED), requests=BOTH),
        "cmd_rates": given("cmd_rates", RATES, vehicle(RATES)),
        "cmd_vel": given("cmd_vel", TWIST),
        "pressed": given("pressed", "std_msgs/msg/Empty"),
    }


def said(**changes):
    topics = {**healthy(), **{node_topic.topic.removeprefix("/"): node_topic for node_topic in changes.values()}}
    return [f"{topic}: {sentence}" for topic, sentence in problems(topics.values())]


def test_of_a_vehicle_that_fits_nothing_is_said():
    assert said() == []


@pytest.mark.parametrize(
    ("node_topic", "sentence"),
    [
        (
            taken("imu/data", IMU, vehicle(ODOM)),
            f"/imu/data: /vehicle publishes {ODOM}, not {IMU}",
        ),
        (
            given("cmd_rates", RATES, vehicle(RATES), vehicle(TWIST, node="/joy")),
            f"/cmd_rates: /joy subscribes to {TWIST}, not {RATES}",
        ),
        (
            taken("drone_properties", PROPERTIES, vehicle(PROPERTIES), requests=BOTH),
            "/drone_properties: /vehicle publishes it with durability volatile instead of transient_local",
        ),
        (taken("imu/data", IMU), "/imu/data: It has no publisher"),
        (
            given("cmd_rates", RATES),
            "/cmd_rates: No node subscribes to it",
        ),
        (
            given("cmd_rates", RATES, vehicle(RATES, node="/d1/recorder")),
            "/cmd_rates: No node subscribes to it",
        ),
    ],
)
def test_each_thing_that_does_not_fit_is_said_in_one_sentence(node_topic, sentence):
    (said_of_it,) = (each for each in said(changed=node_topic) if each.startswith(f"{node_topic.topic}: "))
    assert said_of_it.startswith(sentence)


def test_qos_by_which_nothing_arrives_is_said_with_what_differs():
    (sentence,) = said(changed=given("pressed", "std_msgs/msg/Empty", vehicle("std_msgs/msg/Empty", LATCHED)))
    assert sentence.startswith("/pressed: The QoS of /vehicle ")
    assert "ransient" in sentence


def test_commands_on_another_topic_are_enough():
    assert said(rates=given("cmd_rates", RATES), velocity=given("cmd_vel", TWIST, vehicle(TWIST))) == []


def node(level=DiagnosticStatus.OK, message="connected", topics=(), name="/testbed_server", frame=""):
    status = DiagnosticStatus(level=level, message=message)
    return RunningNode(name, "virtual testbed", status, list(topics), frame)


def test_vehicles_that_share_a_frame_are_named():
    frames = {"/a/robot_bridge": "base_link", "/b/robot_bridge": "base_link", "/c": "c/base_link", "/d": "", "/e": ""}
    ((frame, sentence),) = shared_frames([node(name=name, frame=each) for name, each in frames.items()])
    assert frame == "base_link"
    assert sentence.startswith("/a/robot_bridge and /b/robot_bridge have it: ")
