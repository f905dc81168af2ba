# SPDX-License-Identifier: Apache-2.0
"""The emulated testbed under the keys of teleop_twist_keyboard."""

import pytest
from composition import launch
from geometry_msgs.msg import Twist
from ros_session import wait_until
from sensor_msgs.msg import Imu
from testbed_trajectory import motion_between, rows_of

CALM_SEED = 25  # whose wind is 0.002 m/s
#: teleop_twist_keyboard's bindings: x, y, z and turn, times its speeds at start.
SPEED, TURN = 0.5, 1.0
KEYS = {
    "i": (1, 0, 0, 0),
    ",": (-1, 0, 0, 0),
    "J": (0, 1, 0, 0),
    "L": (0, -1, 0, 0),
    "j": (0, 0, 0, 1),
    "l": (0, 0, 0, -1),
    "o": (1, 0, 0, -1),
    "t": (0, 0, 1, 0),
    "b": (0, 0, -1, 0),
    "k": (0, 0, 0, 0),
}
PRESSED = ("i", "J", ",", "t", "j", "b", "o", "k")
HELD_S = 2.2  # simulated


def twist_of(key):
    x, y, z, turn = KEYS[key]
    message = Twist()
    message.linear.x, message.linear.y, message.linear.z = x * SPEED, y * SPEED, z * SPEED
    message.angular.z = turn * TURN
    return message


class Keyboard:
    """A key that is held repeats; the time is that of the simulation."""

    def __init__(self, ros):
        self._publisher = ros.publisher(Twist, "cmd_vel")
        self._attitudes = ros.subscribe(Imu, "imu/data")

    def time_s(self):
        stamp = self._attitudes.wait().header.stamp
        return stamp.sec + stamp.nanosec / 1e9

    def hold(self, key, held_s=HELD_S):
        """Hold a key, or none, and return from when until when."""
        began_s = now_s = self.time_s()
        while now_s < began_s + held_s:
            if key:
                self._publisher.publish(twist_of(key))
            now_s = self.time_s()
        return key, began_s, now_s


def test_teleop_twist_keyboard_flies(ros, tmp_path, free_port):
    trajectory = tmp_path / "flight.csv"
    with launch(
        "testbed.launch.xml",
        emulate=True,
        testbed_port=free_port,
        stamp_source="wire",
        testbed_seed=CALM_SEED,
        testbed_trajectory=trajectory,
        testbed_rate=30.0,
        testbed_image_width=32,
        testbed_image_height=32,
    ) as composition:
        keyboard = Keyboard(ros)
        held = [keyboard.hold(key) for key in PRESSED]
        held.append(("k", *keyboard.hold(None)[1:]))  # nobody at the keyboard: it hovers as well
        wait_until(lambda: rows_of(trajectory)[-1]["time"] > held[-1][2], "the trajectory")
        assert composition.count_lines("WARN|ERROR") == 0
    rows = rows_of(trajectory)
    for key, began_s, ended_s in held:
        x, y, z, turn = KEYS[key]
        flown = motion_between(rows, ended_s - 0.7, ended_s)
        assert flown == pytest.approx([x * SPEED, y * SPEED, z * SPEED, turn * TURN], abs=0.12), (key, began_s)
    # What went up came down again, and nothing fell, as when zero once cut the thrust.
    assert all(row["thrust"] > 5 for row in rows[1:])
    assert abs(rows[-1]["y"]) < 0.6
    assert max(abs(row["y"]) for row in rows) < 3
    assert max(max(abs(row["pitch"]), abs(row["roll"])) for row in rows) < 31
