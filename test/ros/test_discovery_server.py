# SPDX-License-Identifier: Apache-2.0
"""Nodes that are connected only by a discovery server (Fast DDS)."""

import os
import sys

import pytest
from composition import wait_until_recorded
from processes import executable
from repository import TESTS

PROGRAM = TESTS / "ros" / "discovery_server.py"
#: Not a session of this process: Fast DDS reuses the server of one participant for all later ones, which then can't
#: discover each other in later tests.
SUBSCRIBER = """
import rclpy
from diagnostic_msgs.msg import DiagnosticArray
rclpy.init()
node = rclpy.create_node("subscriber")
node.create_subscription(DiagnosticArray, "/diagnostics", lambda message: print("heard", len(message.status)), 10)
rclpy.spin(node)
"""

pytestmark = pytest.mark.skipif(
    "fastrtps" not in os.environ.get("RMW_IMPLEMENTATION", "rmw_fastrtps"), reason="the server is one of Fast DDS"
)


def test_bridge_subscriber_and_recorder_connect_by_a_discovery_server(start_child, domain, free_port, tmp_path):
    """A participant with a server uses no other discovery."""
    start_child(sys.executable, PROGRAM, free_port).wait_for_line("serving")
    server = {"ROS_DISCOVERY_SERVER": f"127.0.0.1:{free_port}"}
    start_child(executable("testbed_bridge"), "--ros-args", "-p", "role:=listen", "-p", "port:=0", env=server)
    start_child(executable("recorder"), "--ros-args", "-p", f"bag:={tmp_path / 'bag'}", env=server)
    subscriber = start_child(sys.executable, "-u", "-c", SUBSCRIBER, env=server)
    subscriber.wait_for_line("heard [1-9]")
    # The recorder must be told about topics that it does not publish itself.
    wait_until_recorded(tmp_path / "bag", ["/diagnostics"])
