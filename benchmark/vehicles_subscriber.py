# SPDX-License-Identifier: Apache-2.0
"""Receives a vehicle's topics. On request, it also makes the vehicle take off, and commands it.

It prints `ready` when all topics have arrived, and the vehicle flies if requested, and on SIGINT one line of JSON: the
time of arrival of each message, s of CLOCK_MONOTONIC.
"""

import argparse
import json
import math
import sys
import time
from functools import partial
from importlib import import_module

from geometry_msgs.msg import Twist, Vector3
from nodes import ros, spin
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Bool, Empty

DEPTH = 100
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
COMMAND_PERIOD_S = 0.05
TAKE_OFF_PERIOD_S = 1.0
FORWARD = 0.5  # m/s
TURN = 0.5  # rad/s, maximum to either side


class Subscriber(Node):
    """Subscribes to everything."""

    def __init__(self, namespace: str, topics: list[str], *, takes_off: bool, commands: bool) -> None:
        super().__init__("benchmark_subscriber", namespace=namespace)
        self._missing = set(topics)
        self._came_s: list[float] = []
        for topic in topics:
            package, kind, name = topic.split(":")
            message = getattr(import_module(f"{package}.msg"), kind)
            self.create_subscription(message, name, partial(self._came, topic), DEPTH)
        if takes_off:
            self._missing.add("flying")
            self._take_off = self.create_publisher(Empty, "takeoff", 1)
            self.create_subscription(Bool, "flying", self._on_flying, LATCHED)
            self.create_timer(TAKE_OFF_PERIOD_S, self._ask_to_take_off)
        if commands:
            self._velocity = self.create_publisher(Twist, "cmd_vel", 1)
            self.create_timer(COMMAND_PERIOD_S, self._command)

    def results(self) -> dict[str, object]:
        return {"came_s": self._came_s}

    def _came(self, topic: str, _: object) -> None:
        self._came_s.append(time.monotonic())
        self._has(topic)

    def _on_flying(self, message: Bool) -> None:
        if message.data:
            self._has("flying")

    def _has(self, name: str) -> None:
        if name in self._missing:
            self._missing.remove(name)
            if not self._missing:
                print("ready", flush=True)

    def _ask_to_take_off(self) -> None:
        if "flying" in self._missing:
            self._take_off.publish(Empty())

    def _command(self) -> None:
        """Follow a winding line, so that each command is different."""
        turn = TURN * math.sin(time.monotonic())
        self._velocity.publish(Twist(linear=Vector3(x=FORWARD), angular=Vector3(z=turn)))


def main() -> int:
    """Run until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("topics", nargs="+", metavar="PACKAGE:TYPE:TOPIC")
    parser.add_argument("--take-off", action="store_true")
    parser.add_argument("--command", action="store_true", help="publish a velocity on cmd_vel at 20 Hz")
    arguments = parser.parse_args()
    with ros():
        subscriber = Subscriber(
            arguments.namespace, arguments.topics, takes_off=arguments.take_off, commands=arguments.command
        )
        spin(subscriber)
        print(json.dumps(subscriber.results()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
