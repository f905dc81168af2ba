# SPDX-License-Identifier: Apache-2.0
"""Drive or fly forward at 0.2 m/s until Ctrl-C, with any vehicle that subscribes to cmd_vel. Then it stops."""

import contextlib
import signal
import sys

try:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the imports without a traceback
    from drone_bridge.ros.process.environment import complete_environment

    complete_environment(may_start_again=False)  # or say which other ROS is in the way
    import rclpy
except ModuleNotFoundError:
    sys.exit("ROS 2 is not active in this shell: run '. env/activate' in the sources of drone_bridge first.")
from geometry_msgs.msg import Twist, Vector3
from rclpy.executors import ExternalShutdownException

from drone_bridge.ros.hold.hold_services import CommandRefusals


def say() -> None:
    """Print who follows commands or, if the vehicle is held, steered by a person or not connected, what to do."""
    for sentence in followers.changes():
        print(sentence, flush=True)


signal.signal(signal.SIGINT, signal.default_int_handler)
with contextlib.suppress(KeyboardInterrupt, ExternalShutdownException):
    rclpy.init()
    node = rclpy.create_node("driver")
    followers = CommandRefusals(node, Twist, "cmd_vel")
    publisher = node.create_publisher(Twist, "cmd_vel", 1)
    node.create_timer(0.1, lambda: publisher.publish(Twist(linear=Vector3(x=0.2))))
    node.create_timer(1.0, say)
    rclpy.spin(node)
