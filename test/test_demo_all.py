# SPDX-License-Identifier: Apache-2.0
"""All bridges at once, and the meter that watches them."""

import re

import pytest
import rclpy
from processes import Process, executable
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool, Float32

from drone_bridge.tools.demo import all_bridges
from drone_bridge.tools.demo.rates import ExpectedTopic, RateMeter

FAST = ExpectedTopic("/fast", "std_msgs/msg/Float32", 100.0)
SLOW = ExpectedTopic("/slow", "std_msgs/msg/Float32", 100.0)
ONCE = ExpectedTopic("/once", "std_msgs/msg/Bool")
NEVER = ExpectedTopic("/never", "std_msgs/msg/Bool")
OTHER = ExpectedTopic("/other", "std_msgs/msg/Bool", 10.0)
TOPICS = (FAST, SLOW, ONCE, NEVER, OTHER)


@pytest.fixture
def meter():
    rclpy.init()
    meter = RateMeter(TOPICS)
    yield meter
    meter.destroy_node()
    rclpy.shutdown()


def test_the_meter_tells_what_comes_what_is_late_and_what_is_missing(ros, meter, monkeypatch):
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    ros.node.create_publisher(Bool, "once", latched).publish(Bool())
    for name, period_s in (("fast", 0.01), ("slow", 0.02)):
        publisher = ros.node.create_publisher(Float32, name, 10)
        ros.node.create_timer(period_s, lambda publisher=publisher: publisher.publish(Float32()))
    wrong = ros.node.create_publisher(Float32, "other", 10)  # of another type
    ros.node.create_timer(0.1, lambda: wrong.publish(Float32()))
    assert not meter.wait_for_all(2.0)
    meter.measure(2.0)
    assert meter.rate_hz(FAST) == pytest.approx(100.0, rel=0.15)
    assert meter.rate_hz(SLOW) == pytest.approx(50.0, rel=0.15)
    monkeypatch.setattr(all_bridges, "TOPICS", {"some_bridge": TOPICS})
    slow, never, other = all_bridges.problems_of(meter)
    assert re.fullmatch(r"/slow came [45]\d\.\d times per second instead of 100", slow)
    assert (never, other) == ("/never did not come", "/other did not come")
    rows = {name: (expected, measured) for name, _, expected, measured, _ in all_bridges.rows_of(meter)}
    assert rows["/once"] == ("latched", "came")
    assert rows["/never"] == ("latched", "missing")
    assert rows["/other"] == ("10.0 Hz", "0.0 Hz")


def test_all_bridges_together_bring_their_topics(tmp_path):
    with Process(executable("drone-bridge"), "demo", "all", "--duration", 6, "--folder", tmp_path) as demo:
        assert demo.wait(90) == 0
    table = [line.split() for line in demo.lines if line.startswith("/")]
    for node, topic in ((node, topic) for node, topics in all_bridges.TOPICS.items() for topic in topics):
        row = next(row for row in table if row[0] == topic.name)
        assert row[1] == topic.type_name
        assert row[-1].isdigit() == node.endswith("_bridge"), "bridges say how many messages they have dropped"
        if topic.rate_hz:
            # More often than expected would mean that the launch file says something else.
            assert float(row[4]) == pytest.approx(topic.rate_hz, rel=0.3, abs=0.3), topic.name
