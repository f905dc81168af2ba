# SPDX-License-Identifier: Apache-2.0
"""One topic of velocities, three vehicles of three protocols: they do the same."""

import csv
import itertools
import math
import sys

import pytest
from geometry_msgs.msg import Twist
from processes import executable, when_listening
from sensor_msgs.msg import Imu

#: What each vehicle is given to follow each leg, and for how long it is then measured, in seconds of its own time.
SETTLING_S, MEASURED_S = 2.0, 1.5
FRAMES_AT_ONCE = 6  # of the testbed, 60 of which come per second
#: Of the means, m/s and rad/s: what docs/testbed.md states.
TOLERANCE = 0.05
#: Forward, m/s, and to the left, rad/s: what all of them can do.
LEGS = ((0.4, 0.0), (0.0, 0.5), (0.4, 0.5), (-0.3, -0.4), (0.0, 0.0))


def place_in_testbed(row):
    return row["x"], -row["z"], math.radians(90 - row["heading"])


def place_of_robot(row):
    return row["x"], row["y"], row["heading"]


def place_in_simulator(row):
    """Its world is north-east-down."""
    w, x, y, z = (row[f"q{axis}"] for axis in "wxyz")
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return row["y"], row["x"], math.pi / 2 - yaw


VEHICLES = {
    "testbed": (place_in_testbed, ("--layout", "pose", "--wind", "1 0 0", "--realtime", "--width", 32, "--height", 32)),
    "robot": (place_of_robot, ("--discovery-port", 0, "--no-discovery")),
    "simulator": (place_in_simulator, ("--running",)),
}


class Trajectory:
    """Time, x, y and yaw of each state that an emulator has written so far, in ENU."""

    def __init__(self, path, place):
        self._path = path
        self._place = place
        self._file = None
        self._names = []
        self._rest = ""
        self.states = []

    def read(self):
        """Read what has been written since the last time, and return the time of the last state."""
        if self._file is None:
            self._file = self._path.open()
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        for values in csv.reader(lines):
            if not self._names:
                self._names = values
                continue
            row = {name: float(value) for name, value in zip(self._names, values, strict=True)}
            self.states.append((row["time"], *self._place(row)))
        return self.states[-1][0] if self.states else 0.0

    def between(self, began_s, ended_s):
        return [state for state in self.states if began_s <= state[0] <= ended_s]

    def close(self):
        if self._file:
            self._file.close()


def mean_motion(states):
    """Return the speed forward, m/s, and the turning, rad/s."""
    forward = turned = 0.0
    for (_, x, y, yaw), (_, next_x, next_y, next_yaw) in itertools.pairwise(states):
        turn = math.remainder(next_yaw - yaw, math.tau)
        forward += math.cos(yaw + turn / 2) * (next_x - x) + math.sin(yaw + turn / 2) * (next_y - y)
        turned += turn
    duration_s = states[-1][0] - states[0][0]
    assert duration_s > 0.9 * MEASURED_S
    return forward / duration_s, turned / duration_s


def test_the_same_velocities_are_followed_by_testbed_simulator_and_robot(ros, tmp_path, start_child, closing):
    trajectories = {}
    for name, (place, options) in VEHICLES.items():
        path = tmp_path / f"{name}.csv"
        module = f"drone_bridge.{name}.emulator"
        emulator = start_child(sys.executable, "-m", module, "--port", 0, "--trajectory", path, *options)
        port = when_listening(emulator).port
        parameters = ("-p", f"port:={port}", "-r", f"__ns:=/{name}", "-r", f"/{name}/cmd_vel:=/cmd_vel")
        # So that a machine that holds the test up does not stop vehicles meanwhile.
        parameters += ("-p", "command_timeout:=10.0")
        if name == "simulator":  # which runs already, so that the bridge can't learn how the vehicle's axes lie
            parameters += ("-p", "body_to_model:=[1.0, 0.0, 0.0, 0.0]")
        bridge = start_child(executable(f"{name}_bridge"), "--ros-args", *parameters)
        bridge.wait_for_line("Connected to")
        trajectories[name] = closing(Trajectory(path, place))
    publisher = ros.publisher(Twist, "cmd_vel", subscribers=len(VEHICLES))
    attitudes = ros.subscribe(Imu, "testbed/imu/data")
    followed = []
    for forward, left_turn in LEGS:
        message = Twist()
        message.linear.x, message.angular.z = forward, left_turn
        publisher.publish(message)
        began_s = {name: trajectory.read() for name, trajectory in trajectories.items()}
        while any(trajectories[name].read() < began_s[name] + SETTLING_S + MEASURED_S for name in trajectories):
            for _ in range(FRAMES_AT_ONCE):
                attitudes.wait()
                publisher.publish(message)
        followed.append(began_s)
    for name, trajectory in trajectories.items():
        for leg, began_s in zip(LEGS, followed, strict=True):
            settled_s = began_s[name] + SETTLING_S
            measured = mean_motion(trajectory.between(settled_s, settled_s + MEASURED_S))
            assert measured == pytest.approx(leg, abs=TOLERANCE), (name, leg)
