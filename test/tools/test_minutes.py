# SPDX-License-Identifier: Apache-2.0
"""Whatever lies in captures/minutes, sent by real robots, through the bridge: odom, battery, no dropped packet."""

import pytest
from captured_logs import CAPTURES
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from nav_msgs.msg import Odometry
from ports import free_ports
from processes import Process, executable
from ros_session import module_ros, wait_until
from sensor_msgs.msg import BatteryState

from drone_bridge.kind import load
from drone_bridge.tools.wire.log_file import LogFile

ros = module_ros()
MINUTES = sorted((CAPTURES / "minutes").glob("*.mcap"))


@pytest.mark.parametrize("path", MINUTES, ids=[each.stem for each in MINUTES])
def test_a_minute_of_a_real_robot_becomes_its_topics(path, start_child, ros):
    with LogFile(path) as log:
        kind = log.source.kind
    ports = dict(zip((each.parameter for each in kind.ports), free_ports(len(kind.ports)), strict=True))
    node = kind.bridge
    given = [word for name, number in ports.items() for word in ("-p", f"{name}:={number}")]
    bridge = start_child(
        executable(node.executable or f"{kind.name}_bridge"), *node.arguments, "--ros-args", *given, make=Process
    )
    declared = {row.name for row in load(kind.topics).rows}
    inboxes = [
        ros.subscribe(message, topic)
        for topic, message in (("odom", Odometry), ("battery_state", BatteryState))
        if topic in declared
    ]
    wait_until(lambda: ros.node.count_publishers("battery_state"), "its topics")
    options = [f"--{name.replace('_', '-')}={number}" for name, number in ports.items()]
    robot = start_child(executable("drone-bridge"), "emulate", kind.name, "--replay", path, *options, make=Process)
    for inbox in inboxes:
        inbox.wait()
    robot.wait_for_line("The log ends here")
    values = values_of(ros.subscribe(DiagnosticArray, "/diagnostics").wait())
    assert int(values["rejected_input"]) == 0, bridge.output
    assert bridge.stop() == 0
