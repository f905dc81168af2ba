# SPDX-License-Identifier: Apache-2.0
"""Other nodes' endpoints that do not fit a node's topics, without a graph."""

from types import SimpleNamespace

import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

from drone_bridge.ros.node.topic_faults import TopicFaults

IMU, BOOL = "sensor_msgs/msg/Imu", "std_msgs/msg/Bool"
BEST_EFFORT = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
RELIABLE = QoSProfile(depth=10)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


def other(topic_type, qos=RELIABLE, name="vehicle"):
    return SimpleNamespace(topic_type=topic_type, qos_profile=qos, node_name=name, node_namespace="/")


class Server:
    """Node that subscribes to imu/data, flying, and cmd_vel, and publishes pressed. `others` are endpoints by topic."""

    def __init__(self):
        flying = other(BOOL, LATCHED, "server"), other(BOOL, BEST_EFFORT, "server")
        taken = {"/imu/data": [other(IMU, BEST_EFFORT, "server")], "/flying": flying, "/cmd_vel": flying[1:]}
        given = {"/pressed": [other(BOOL, RELIABLE, "server")], "/server/hold": flying[:1]}
        self.subscriptions, self.publishers = (
            [SimpleNamespace(topic_name=each) for each in by] for by in (taken, given)
        )
        self.own, self.others, self.examined = taken | given, {}, []

    def get_name(self):
        return "server"

    def get_namespace(self):
        return "/"

    def get_fully_qualified_name(self):
        return "/server"

    def count_publishers(self, topic):
        return len(self.others.get(topic, ()))

    def get_publishers_info_by_topic(self, topic):
        self.examined.append(topic)
        return [*self.others.get(topic, ()), *self.own[topic]]

    count_subscribers, get_subscriptions_info_by_topic = count_publishers, get_publishers_info_by_topic


@pytest.mark.parametrize(
    ("topic", "endpoint", "problem"),
    [
        ("/imu/data", other(IMU), ""),
        ("/imu/data", other(IMU, BEST_EFFORT), ""),
        ("/imu/data", other(BOOL), f"its type is {BOOL} instead of {IMU}"),
        ("/imu/data", other(BOOL, name="_ros2cli_1"), ""),
        ("/flying", other(BOOL, LATCHED), ""),
        ("/flying", other(BOOL), "volatile"),
        ("/pressed", other(BOOL, BEST_EFFORT), ""),
        ("/pressed", other(BOOL, LATCHED), "ransient"),
        ("/pressed", other(IMU), f"its type is {IMU} instead of {BOOL}"),
        ("/server/hold", other(IMU), ""),
        ("/cmd_vel", other(BOOL), ""),
    ],
)
def test_what_does_not_fit_a_topic_is_named(topic, endpoint, problem):
    server = Server()
    server.others = {topic: [endpoint]}
    facts = TopicFaults(server).facts()
    assert bool(facts) is bool(problem)
    if facts:
        assert (facts["topic"], facts["node"]) == (topic, "/vehicle")
        assert problem in facts["problem"]


def test_a_topic_is_examined_again_when_its_endpoints_change_or_it_has_a_fault():
    server = Server()
    faults, bad = TopicFaults(server), other(BOOL)
    assert faults.facts() is None
    server.others["/imu/data"] = [other(BOOL, name="_NODE_NAME_UNKNOWN_")]
    assert faults.facts() is None, "not discovered yet"
    server.others["/imu/data"] = [bad]
    assert faults.facts()
    server.others["/imu/data"] = [other(IMU)]
    assert faults.facts() is None
    server.examined.clear()
    assert (faults.facts(), server.examined) == (None, [])
