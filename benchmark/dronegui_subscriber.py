# SPDX-License-Identifier: Apache-2.0
"""Receives the images of the AR.Drone's camera.

Prints `ready` with the first one, and on SIGINT one line of JSON: for each image its stamp and arrival time, s of
CLOCK_REALTIME.
"""

import json
import sys
import time

from nodes import ros, spin
from rclpy.node import Node
from sensor_msgs.msg import Image


class Subscriber(Node):
    """Subscribes to the decoded images."""

    def __init__(self, namespace: str) -> None:
        super().__init__("benchmark_subscriber", namespace=namespace)
        self.came: list[tuple[float, float]] = []
        self.create_subscription(Image, "image_raw", self._came, 1)

    def _came(self, image: Image) -> None:
        self.came.append((image.header.stamp.sec + image.header.stamp.nanosec / 1e9, time.time()))
        if len(self.came) == 1:
            print("ready", flush=True)


def main() -> int:
    """Run until SIGINT."""
    with ros():
        subscriber = Subscriber(sys.argv[1])
        spin(subscriber)
        print(json.dumps(subscriber.came), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
