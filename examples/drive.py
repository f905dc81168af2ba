# SPDX-License-Identifier: Apache-2.0
"""Drive or fly forward at 0.2 m/s until Ctrl-C, with any vehicle that subscribes to cmd_vel. Then it stops."""

import contextlib
import sys

try:
    import rclpy
except ModuleNotFoundError:
    sys.exit("ROS 2 is not active in this shell: run '. env/activate' in the sources of drone_bridge first.")
from geometry_msgs.msg import Twist, Vector3
from rclpy.executors import ExternalShutdownException

from drone_bridge.msg import HoldStatus
from drone_bridge.ros.hold.hold_services import refusal_of
from drone_bridge.ros.qos import latched


def say(status: HoldStatus) -> None:
    """Print whether the vehicle follows commands and, if it is held or a person is at its helm, what to do."""
    print(refusal_of(status) or "It follows commands.", flush=True)


def find_holds() -> None:
    """Subscribe to the hold_status of each node, as soon as it is discovered."""
    for topic, _ in node.get_topic_names_and_types():
        if topic.endswith("/hold_status") and topic not in found:
            found[topic] = node.create_subscription(HoldStatus, topic, say, latched())


rclpy.init()
node = rclpy.create_node("driver")
found: dict[str, object] = {}
publisher = node.create_publisher(Twist, "cmd_vel", 1)
node.create_timer(0.1, lambda: publisher.publish(Twist(linear=Vector3(x=0.2))))
node.create_timer(0.5, find_holds)
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.spin(node)
