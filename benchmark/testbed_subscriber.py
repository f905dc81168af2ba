# SPDX-License-Identifier: Apache-2.0
"""Receives a bridge's topics, checks the marks in the images, and measures their age.

It prints `ready` when all topics of its load have arrived, and on SIGINT one line of JSON: for each measurement the
number of images, and for each complete frame the seconds from sending its first byte to receiving its second image.
CONTROLLED answers each complete frame, with the frame's stamp, on cmd_rates. COMMANDED publishes a velocity on cmd_vel
at 20 Hz.
"""

import argparse
import json
import sys
import time
from collections import Counter, defaultdict
from functools import partial
from typing import Any

import testbed_marks as marks
from geometry_msgs.msg import Twist, Vector3
from nav_msgs.msg import Odometry
from nodes import ros, spin
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, Imu
from testbed_loads import Load, load_named
from testbed_marks import SIDES, Mark
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import CommandRates

NOTHING = Mark(0, 0, 0)
COMMAND_PERIOD_S = 0.05


class Subscriber(Node):
    """Subscribes to both images and, unless the load has only these, to all other topics of a frame."""

    def __init__(self, namespace: str, load: Load) -> None:
        super().__init__("benchmark_subscriber", namespace=namespace)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        self._newest = dict.fromkeys(SIDES, NOTHING)
        self._missing: dict[str, type[Any]] = {}  # until ready
        if load not in (Load.IMAGES, Load.BESIDE_C, Load.BESIDE_ENDPOINT):
            self._missing = {"imu/data": Imu, "odom": Odometry, "/tf": TFMessage}
            self._missing |= {f"{side}/camera_info": CameraInfo for side in SIDES}
        self._is_ready = False
        self._images: Counter[int] = Counter()
        self._latencies_s: dict[int, list[float]] = defaultdict(list)
        self._answers = self.create_publisher(CommandRates, "cmd_rates", 1) if load is Load.CONTROLLED else None
        if load is Load.COMMANDED:
            velocity, twist = self.create_publisher(Twist, "cmd_vel", 1), Twist(linear=Vector3(x=0.5))
            self.create_timer(COMMAND_PERIOD_S, lambda: velocity.publish(twist))
        self.create_subscription(Image, "left/image_raw", self._on_left, qos)
        self.create_subscription(Image, "right/image_raw", self._on_right, qos)
        for topic, message_type in self._missing.items():
            self.create_subscription(message_type, topic, partial(self._on_other, topic), qos)

    def results(self) -> dict[int, dict[str, object]]:
        """Return the received messages, by measurement."""
        return {
            number: {"images": images, "latencies_s": self._latencies_s[number]}
            for number, images in self._images.items()
        }

    def _on_left(self, image: Image) -> None:
        self._on_image("left", image)

    def _on_right(self, image: Image) -> None:
        self._on_image("right", image)

    def _on_other(self, topic: str, message: Any) -> None:
        if isinstance(message, CameraInfo) and not (message.width and message.k[0]):
            raise ValueError(f"{topic} does not contain the camera.")
        self._missing.pop(topic, None)

    def _on_image(self, side: str, image: Image) -> None:
        came_ns = time.monotonic_ns()
        mark = self._check(side, image)
        self._newest[side] = mark
        self._images[mark.measurement] += 1
        if self._newest["left"] != self._newest["right"]:
            return
        self._latencies_s[mark.measurement].append((came_ns - mark.sent_ns) / 1e9)
        if self._answers:
            answer = CommandRates(thrust=mark.thrust)
            answer.header.stamp = image.header.stamp
            self._answers.publish(answer)
        if not self._is_ready and not self._missing:
            self._is_ready = True
            print("ready", flush=True)

    def _check(self, side: str, image: Image) -> Mark:
        if image.encoding != "rgb8" or image.step != 3 * image.width or len(image.data) != image.step * image.height:
            raise ValueError(f"The {side} image's fields contradict each other: {image.encoding}, step {image.step}.")
        mark = marks.read(memoryview(image.data), side)
        if mark.sent_ns <= self._newest[side].sent_ns:
            raise ValueError(f"The {side} image of {mark} arrived after the one of {self._newest[side]}.")
        return mark


def main() -> int:
    """Run until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("load", type=load_named)
    arguments = parser.parse_args()
    with ros():
        subscriber = Subscriber(arguments.namespace, arguments.load)
        spin(subscriber)
        print(json.dumps(subscriber.results()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
