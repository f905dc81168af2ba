# SPDX-License-Identifier: Apache-2.0
"""The emulated testbed under the keys of teleop_twist_keyboard, by the clock: it flies as they say, and stands without.

The time is that of the simulation.
"""

import contextlib
import math
import tempfile
from pathlib import Path
from typing import Any

from composition import launch
from geometry_msgs.msg import Twist
from ports import free_port
from ros_session import RosSession, wait_until
from sensor_msgs.msg import Imu
from step import Verdict
from testbed_trajectory import motion_between, rows_of
from twists import twist

CALM_SEED = 25  # whose wind is 0.002 m/s
#: teleop_twist_keyboard's bindings: x, y, z and turn, times its speeds at start.
SPEED, TURN = 0.5, 1.0
KEYS = {
    "i": (1, 0, 0, 0),
    ",": (-1, 0, 0, 0),
    "J": (0, 1, 0, 0),
    "j": (0, 0, 0, 1),
    "o": (1, 0, 0, -1),
    "t": (0, 0, 1, 0),
    "b": (0, 0, -1, 0),
    "k": (0, 0, 0, 0),
    "nothing": (0, 0, 0, 0),  # nobody at the keyboard: it hovers as well
}
PRESSED = ("i", "J", ",", "t", "j", "b", "o", "k", "i", "nothing")
HELD_S = 2.2
MEASURED_S = 0.7  # at the end of each
STANDS_BELOW = 0.2  # m/s


class Keyboard:
    """A key that is held repeats."""

    def __init__(self, session: Any) -> None:
        self._publisher = session.publisher(Twist, "cmd_vel")
        self._attitudes = session.subscribe(Imu, "imu/data")

    def time_s(self) -> float:
        """Wait for the next attitude, and return its time."""
        stamp = self._attitudes.wait().header.stamp
        return float(stamp.sec + stamp.nanosec / 1e9)

    def hold(self, key: str) -> float:
        """Hold a key, and return until when."""
        began_s = now_s = self.time_s()
        x, y, z, turn = KEYS[key]
        message = twist(x * SPEED, y * SPEED, z * SPEED, turn * TURN)
        while now_s < began_s + HELD_S:
            if key != "nothing":
                self._publisher.publish(message)
            now_s = self.time_s()
        return now_s


def main(short: bool) -> int:
    """Press the keys, once or some times, and print how far the motion is from what they say."""
    verdict = Verdict()
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        trajectory, session = Path(folder, "flight.csv"), RosSession()
        stack.callback(session.close)
        options: dict[str, object] = {"testbed_rate": 30.0, "testbed_image_width": 32, "testbed_image_height": 32}
        options |= {"testbed_seed": CALM_SEED, "testbed_trajectory": trajectory, "testbed_port": free_port()}
        with launch("testbed.launch.xml", emulate=True, stamp_source="wire", **options):
            keyboard = Keyboard(session)
            held = [(key, keyboard.hold(key)) for key in PRESSED * (1 if short else 5)]
            wait_until(lambda: rows_of(trajectory)[-1]["time"] > held[-1][1], "the trajectory")
        rows = rows_of(trajectory)
    worst_speed, worst_turn = 0.0, 0.0
    for key, ended_s in held:
        *flown, turned = motion_between(rows, ended_s - MEASURED_S, ended_s)
        *wanted, turn = KEYS[key]
        speed = math.dist(flown, [SPEED * each for each in wanted])
        worst_speed, worst_turn = max(worst_speed, speed), max(worst_turn, abs(turned - TURN * turn))
        print(f"{key}: {speed:.2f} m/s and {abs(turned - TURN * turn):.2f} rad/s off", flush=True)
        if key in ("k", "nothing"):
            verdict.stopped(speed < STANDS_BELOW, f"it flies {speed:.2f} m/s {HELD_S:g} s after {key}")
    lowest = min(row["y"] for row in rows)
    verdict.figure(f"keys are followed within {worst_speed:.2f} m/s and {worst_turn:.2f} rad/s, lowest {lowest:+.2f} m")
    return verdict.status
