# SPDX-License-Identifier: Apache-2.0
"""Publishes data for web_bridge: 30 images of 320 x 240 per second, and 60 odometries and transforms.

The stamps are the time of day when the message was published. Prints `ready`, and ends on SIGINT.
"""

import sys
import time
from array import array

from geometry_msgs.msg import TransformStamped
from nav_msgs.msg import Odometry
from nodes import publish, ros, spin
from rclpy.node import Node
from rclpy.qos import QoSProfile
from sensor_msgs.msg import Image
from tf2_msgs.msg import TFMessage

RATE_HZ = 60.0
WIDTH, HEIGHT = 320, 240


class Source(Node):
    """A camera and a vehicle."""

    def __init__(self) -> None:
        super().__init__("benchmark_source")
        self._image = Image(height=HEIGHT, width=WIDTH, encoding="rgb8", step=3 * WIDTH)
        self._image._data = array("B", bytes(3 * WIDTH * HEIGHT))
        self._images = self.create_publisher(Image, "/camera/image_raw", QoSProfile(depth=1))
        self._odometries = self.create_publisher(Odometry, "/odom", 10)
        self._transforms = self.create_publisher(TFMessage, "/tf", 10)
        self._ticks = 0
        self.create_timer(1 / RATE_HZ, self._publish)

    def _publish(self) -> None:
        self._ticks += 1
        odometry = Odometry()
        seconds, odometry.header.stamp.nanosec = divmod(time.time_ns(), 10**9)
        odometry.header.stamp.sec = seconds
        odometry.header.frame_id, odometry.child_frame_id = "odom", "base_link"
        publish(self._odometries, odometry)
        transform = TransformStamped(header=odometry.header, child_frame_id="base_link")
        publish(self._transforms, TFMessage(transforms=[transform]))
        if self._ticks % 2 == 0:
            self._image.header.stamp = odometry.header.stamp
            publish(self._images, self._image)


def main() -> int:
    """Publish until SIGINT."""
    with ros():
        source = Source()
        print("ready", flush=True)
        spin(source)
    return 0


if __name__ == "__main__":
    sys.exit(main())
