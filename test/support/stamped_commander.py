# SPDX-License-Identifier: Apache-2.0
"""Somebody who commands velocities, and stamps them by a clock of their own."""

from geometry_msgs.msg import TwistStamped
from ros_session import wait_until

from drone_bridge.ros.time import time_from_seconds

TOPIC = "cmd_vel_stamped"


class Commander:
    """Publishes as a machine does whose clock is so far behind ours; it knows no other time."""

    def __init__(self, ros, behind_s):
        self._ros = ros
        self._behind_s = behind_s
        self._publisher = ros.publisher(TwistStamped, TOPIC)

    def give(self, ago_s=0.0, forward=0.0):
        """Publish what was given so long ago: so many m/s forward."""
        message = TwistStamped()
        now_s = self._ros.node.get_clock().now().nanoseconds / 1e9
        message.header.stamp = time_from_seconds(now_s - self._behind_s - ago_s)
        message.twist.linear.x = forward
        self._publisher.publish(message)

    def give_until(self, condition, what, **options):
        wait_until(lambda: self.give(**options) or condition(), what, period_s=0.05)

    def leave(self):
        self._ros.node.destroy_publisher(self._publisher)
