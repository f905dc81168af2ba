# SPDX-License-Identifier: Apache-2.0
"""All bridges at once, and the meter that watches them."""

import pytest
import rclpy
from processes import Process, executable
from rclpy.qos import DurabilityPolicy, QoSProfile
from ros_session import wait_until
from std_msgs.msg import Bool, Float32

from drone_bridge.kind import kinds
from drone_bridge.tools.demo.all_bridges import Meter, rows_of


@pytest.fixture
def meter():
    rclpy.init()
    meter = Meter(["drone", "boat"])
    yield meter
    meter.destroy_node()
    rclpy.shutdown()


def test_the_meter_reports_rates_and_missing_topics(ros, meter):
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    ros.node.create_publisher(Bool, "/drone/once", latched).publish(Bool())
    published = {"fast": [], "slow": []}
    for (name, messages), period_s in zip(published.items(), (0.05, 0.1), strict=True):
        publisher = ros.node.create_publisher(Float32, f"/drone/{name}", 10)
        ros.node.create_timer(period_s, lambda p=publisher, m=messages: m.append(p.publish(Float32())))
    for name in ("/drone/never", "/drone/item_events", "/elsewhere/any"):
        ros.node.create_publisher(Bool, name, 1)
    watched = {f"/drone/{name}" for name in ("fast", "slow", "once", "never")}
    wait_until(lambda: meter.look_around() or meter.topics.keys() == watched, "the topics", 20)
    meter.count(0.5)

    before = {name: (len(messages), meter.topics[f"/drone/{name}"].count) for name, messages in published.items()}
    assert meter.count(2.0) >= 2.0
    for name, (published_before, counted_before) in before.items():
        count = meter.topics[f"/drone/{name}"].count - counted_before
        assert count == pytest.approx(len(published[name]) - published_before, abs=2)  # the first and the last
    assert meter.missing == ["boat", "/drone/never"]
    rows = {name: measured for name, _, measured, _ in rows_of(meter, 2.0)}
    assert rows["/drone/once"] == "received"
    assert rows["/drone/never"] == "0.0 Hz"


def test_all_bridges_together_bring_their_topics(tmp_path):
    with Process(executable("drone-bridge"), "demo", "all", "--duration", 5, "--folder", tmp_path) as demo:
        assert demo.wait(300) == 0, demo.output
    table = {name: row for name, *row in (line.split() for line in demo.lines if line.startswith("/"))}
    for kind in kinds().values():
        system = kind.launch_file.removesuffix(".launch.xml")
        own = [row for name, row in table.items() if name.startswith(f"/{system}/")]
        assert any(row[-1].isdigit() for row in own), "bridges say how many messages they have dropped"
        assert any(float(row[1]) > 10 for row in own if row[2] == "Hz"), system
