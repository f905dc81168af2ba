# SPDX-License-Identifier: Apache-2.0
"""Receives all topics of telemetry, and records their ages.

The stamps are CLOCK_MONOTONIC when the document was sent. It prints `ready` when all topics have arrived, and on SIGINT
one line of JSON: for each topic the stamps and ages, in s, and the last /diagnostics of the bridge. With --raw it also
subscribes to the decoded images; with --command it publishes a velocity on cmd_vel at 20 Hz.
"""

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PointStamped, Twist, TwistWithCovarianceStamped, Vector3
from nav_msgs.msg import Odometry
from nodes import ros, spin
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, CompressedImage, Image, Imu
from std_msgs.msg import Bool
from tf2_msgs.msg import TFMessage

from drone_bridge.msg import LandingPad

STAMPED: dict[str, type] = {
    "imu/data": Imu,
    "height": PointStamped,
    "velocity": TwistWithCovarianceStamped,
    "vertical_velocity": TwistWithCovarianceStamped,
    "landing_pad": LandingPad,
    "camera/camera_info": CameraInfo,
    "camera/image_raw/compressed": CompressedImage,
    "rover/odom": Odometry,
}
RAW = "camera/image_raw"
DEPTH = 10
COMMAND_PERIOD_S = 0.05
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class Subscriber(Node):
    """Subscribes to everything."""

    def __init__(self, namespace: str, *, raw: bool, commands: bool) -> None:
        super().__init__("benchmark_subscriber", namespace=namespace)
        self._missing = {*STAMPED, "/tf", "landed"}
        self._ages: dict[str, list[tuple[float, float]]] = {name: [] for name in (*STAMPED, "/tf", RAW)}
        self._diagnostics: dict[str, str] = {}
        for name, kind in STAMPED.items():
            self._subscribe(kind, name, lambda message: message.header)
        self._subscribe(TFMessage, "/tf", lambda message: message.transforms[0].header)
        if raw:
            self._subscribe(Image, RAW, lambda message: message.header)
        self.create_subscription(Bool, "landed", partial(self._came, "landed"), LATCHED)
        self.create_subscription(DiagnosticArray, "/diagnostics", self._on_diagnostics, DEPTH)

        if commands:
            self._velocity = self.create_publisher(Twist, "cmd_vel", 1)
            self.create_timer(COMMAND_PERIOD_S, self._command)

    def results(self) -> dict[str, object]:
        return {"ages": self._ages, "diagnostics": self._diagnostics}

    def _subscribe(self, kind: type, name: str, header: Callable[[Any], Any]) -> None:
        self.create_subscription(kind, name, partial(self._on_message, name, header), DEPTH)

    def _on_message(self, name: str, header: Callable[[Any], Any], message: Any) -> None:
        came_s = time.monotonic()
        stamp = header(message).stamp
        sent_s = stamp.sec + stamp.nanosec / 1e9
        self._ages[name].append((sent_s, came_s - sent_s))
        self._came(name)

    def _came(self, name: str, _: object = None) -> None:
        if name in self._missing:
            self._missing.discard(name)
            if not self._missing:
                print("ready", flush=True)

    def _command(self) -> None:
        """Fly a winding line, so that each command is different."""
        self._velocity.publish(Twist(linear=Vector3(x=0.2), angular=Vector3(z=0.2 * math.sin(time.monotonic()))))

    def _on_diagnostics(self, message: DiagnosticArray) -> None:
        self._diagnostics |= {value.key: value.value for status in message.status for value in status.values}


def main() -> int:
    """Run until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("namespace")
    parser.add_argument("--raw", action="store_true", help="also subscribe to the decoded images")
    parser.add_argument("--command", action="store_true", help="publish a velocity on cmd_vel at 20 Hz")
    arguments = parser.parse_args()
    with ros():
        subscriber = Subscriber(arguments.namespace, raw=arguments.raw, commands=arguments.command)
        spin(subscriber)
        print(json.dumps(subscriber.results()), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
