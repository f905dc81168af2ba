# SPDX-License-Identifier: Apache-2.0
"""All bridges at once, and the meter that watches them."""

import re

import pytest
import rclpy
from processes import Process, executable
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import undisturbed
from std_msgs.msg import Bool, Float32

from drone_bridge.tools.demo import all_bridges
from drone_bridge.tools.demo.rates import ExpectedTopic, RateMeter

FAST = ExpectedTopic("/fast", "std_msgs/msg/Float32", 20.0)
SLOW = ExpectedTopic("/slow", "std_msgs/msg/Float32", 20.0)
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


def test_the_meter_reports_rates_and_late_and_missing_topics(ros, meter, monkeypatch):
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    ros.node.create_publisher(Bool, "once", latched).publish(Bool())
    for name, period_s in (("fast", 0.05), ("slow", 0.1)):
        publisher = ros.node.create_publisher(Float32, name, 10)
        ros.node.create_timer(period_s, lambda publisher=publisher: publisher.publish(Float32()))
    wrong = ros.node.create_publisher(Float32, "other", 10)  # of another type
    ros.node.create_timer(0.1, lambda: wrong.publish(Float32()))
    assert not meter.wait_for_all(2.0)

    def measure():
        meter.measure(2.0)
        return meter.rate_hz(FAST), meter.rate_hz(SLOW), meter.counts[ONCE.name]

    undisturbed(measure, lambda measured: measured == pytest.approx((20.0, 10.0, 1), rel=0.15))
    monkeypatch.setattr(all_bridges, "TOPICS", {"some_bridge": TOPICS})
    slow, never, other = all_bridges.problems_of(meter)
    assert re.fullmatch(r"/slow came (8|9|10|11)\.\d times per second instead of 20", slow)
    assert (never, other) == ("/never was not received", "/other was not received")
    rows = {name: (expected, measured) for name, _, expected, measured, _ in all_bridges.rows_of(meter)}
    assert rows["/once"] == ("latched", "received")
    assert rows["/never"] == ("latched", "missing")
    assert rows["/other"] == ("10.0 Hz", "0.0 Hz")


def test_all_bridges_together_bring_their_topics(tmp_path):
    with Process(executable("drone-bridge"), "demo", "all", "--duration", 5, "--folder", tmp_path) as demo:
        status = demo.wait(300)
    # A machine that is busy elsewhere for two seconds costs messages, which is rightly told; nothing else may be wrong.
    assert demo.count_lines("was not received|exited cleanly") == 0, demo.output
    assert status == bool(demo.count_lines("times per second instead of")), demo.output
    table = [line.split() for line in demo.lines if line.startswith("/")]
    for node, topic in ((node, topic) for node, topics in all_bridges.TOPICS.items() for topic in topics):
        row = next(row for row in table if row[0] == topic.name)
        assert row[1] == topic.type_name
        assert row[-1].isdigit() == node.endswith("_bridge"), "bridges say how many messages they have dropped"
        if topic.rate_hz:
            # More often than expected would mean that the launch file says something else.
            assert 0.6 * topic.rate_hz - 0.3 < float(row[4]) < 1.3 * topic.rate_hz + 0.3, topic.name
