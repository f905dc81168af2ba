# SPDX-License-Identifier: Apache-2.0
"""Views and commands the vehicle of hosts_vehicle.py from another machine, and logs arrivals.

It prints, in s since 1970: `command NUMBER TIME`, `image TIME-OF-STAMP TIME-OF-ARRIVAL BYTES`, and `refused COUNT` from
the bridge's diagnostics.
"""

import argparse
import math
import signal
import threading
import time
from typing import Any

import rclpy
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import CompressedImage

from drone_bridge.msg import CommandRates

#: Numbers the commands, degrees/s. A neutral one never rotates as fast: the bridge tilts by 4 rad/s at most.
FIRST_ROLL_RATE = 1000


def main() -> None:
    """View and command until SIGINT."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rate", type=float, help="commands per second")
    parser.add_argument("--unstamped", action="store_true", help="send commands without stamps")
    arguments = parser.parse_args()
    rclpy.init(signal_handler_options=SignalHandlerOptions.NO)
    is_over = threading.Event()
    signal.signal(signal.SIGINT, lambda *_: is_over.set())  # an exception could interrupt rclpy anywhere
    node = rclpy.create_node("operator")
    publisher = node.create_publisher(CommandRates, "cmd_rates", 10)
    number = 0

    def command() -> None:
        nonlocal number
        number += 1
        now_s = time.time()
        message = CommandRates(roll_rate=math.radians(FIRST_ROLL_RATE + number), thrust=9.81)
        if not arguments.unstamped:
            message.header.stamp = Time(sec=int(now_s), nanosec=int(now_s % 1 * 1e9))
        publisher.publish(message)
        print(f"command {number} {now_s:.6f}", flush=True)

    def see(image: Any) -> None:
        stamp_s = image.header.stamp.sec + image.header.stamp.nanosec / 1e9
        print(f"image {stamp_s:.6f} {time.time():.6f} {len(image.data)}", flush=True)

    def read(diagnostics: DiagnosticArray) -> None:
        for value in (value for status in diagnostics.status for value in status.values):
            if value.key == "refused_commands":
                print(f"refused {value.value}", flush=True)

    node.create_subscription(CompressedImage, "left/image_raw/compressed", see, QoSProfile(depth=1))
    node.create_subscription(DiagnosticArray, "/diagnostics", read, 10)
    node.create_timer(1 / arguments.rate, command)
    while not is_over.is_set():
        rclpy.spin_once(node)
    node.destroy_node()
    rclpy.shutdown()


main()
