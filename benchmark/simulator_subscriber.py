# SPDX-License-Identifier: Apache-2.0
"""Receives all topics of a simulator's streams, and records their ages.

The northern coordinate is CLOCK_MONOTONIC when the state was sent. It prints `ready` when all topics have arrived,
`step` for each step to report, and on SIGINT one line of JSON: for each kind of topic the times at which the states
were sent, and their ages, in s, and the last /diagnostics of the bridge.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped, TwistStamped
from nav_msgs.msg import Odometry
from nodes import ros, spin
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Imu
from simulator_topics import OTHERS, pose_topic, twist_topic
from tf2_msgs.msg import TFMessage

DEPTH = 10
TF_DEPTH = 100


class Subscriber(Node):
    """Subscribes to everything."""

    def __init__(self, namespace: str) -> None:
        super().__init__("benchmark_subscriber", namespace=namespace)
        self._missing: set[str] = set()
        self._ages: list[tuple[float, float]] = []
        self._diagnostics: dict[str, str] = {}
        self._take(Odometry, "odom", lambda message: self._on_position(message.pose.pose.position))
        for entity in OTHERS:
            self._take(PoseStamped, pose_topic(entity), lambda message: self._on_position(message.pose.position))
            self._take(TwistStamped, twist_topic(entity))
        self._take(Imu, "imu/data")
        self._take(TFMessage, "/tf", depth=TF_DEPTH)
        self._take(Clock, "/clock")
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, DEPTH)

    def results(self) -> dict[str, object]:
        return {"ages": self._ages, "diagnostics": self._diagnostics}

    def _take(
        self, kind: type, topic: str, use: Callable[[Any], object] = lambda message: None, depth: int = DEPTH
    ) -> None:
        self._missing.add(topic)
        self.create_subscription(kind, topic, partial(self._on_message, topic, use), depth)

    def _on_message(self, topic: str, use: Callable[[Any], object], message: Any) -> None:
        use(message)
        if topic in self._missing:
            self._missing.remove(topic)
            if not self._missing:
                print("ready", flush=True)

    def _on_position(self, position: Any) -> None:
        """Handle a position in ROS's axes: x east, y north."""
        self._ages.append((position.y, time.monotonic() - position.y))
        if position.x:
            print("step", flush=True)

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self._diagnostics |= {value.key: value.value for status in message.status for value in status.values}


def main() -> int:
    """Run until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    arguments = parser.parse_args()
    with ros():
        subscriber = Subscriber(arguments.namespace)
        spin(subscriber)
        print(json.dumps(subscriber.results()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
