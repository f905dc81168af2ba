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

HALF_LEG = 120  # frames of the testbed, 60 of which come per second
#: Mean of the second half of each leg, m/s and rad/s: what docs/testbed.md states.
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


def places(trajectory, place):
    """Return time, x, y and yaw of each state, in ENU."""
    with trajectory.open() as file:
        rows = [row for row in csv.DictReader(file) if None not in row.values()]
    return [(float(row["time"]), *place({name: float(value) for name, value in row.items()})) for row in rows[:-1]]


def mean_motion(states, began, ended):
    """Return the speed forward, m/s, and the turning, rad/s, between two indices."""
    chosen = states[began:ended]
    forward = turned = 0.0
    for (_, x, y, yaw), (_, next_x, next_y, next_yaw) in itertools.pairwise(chosen):
        turn = math.remainder(next_yaw - yaw, math.tau)
        forward += math.cos(yaw + turn / 2) * (next_x - x) + math.sin(yaw + turn / 2) * (next_y - y)
        turned += turn
    duration_s = chosen[-1][0] - chosen[0][0]
    return forward / duration_s, turned / duration_s


def test_the_same_velocities_are_followed_by_testbed_simulator_and_robot(ros, tmp_path, start_child):
    trajectories = {name: tmp_path / f"{name}.csv" for name in VEHICLES}
    for name, (_, options) in VEHICLES.items():
        module = f"drone_bridge.emulators.{name}"
        emulator = start_child(sys.executable, "-m", module, "--port", 0, "--trajectory", trajectories[name], *options)
        port = when_listening(emulator).port
        parameters = ("-p", f"port:={port}", "-r", f"__ns:=/{name}", "-r", f"/{name}/cmd_vel:=/cmd_vel")
        if name == "simulator":  # which runs already, so that the bridge can't learn how the vehicle's axes lie
            parameters += ("-p", "body_to_model:=[1.0, 0.0, 0.0, 0.0]")
        bridge = start_child(executable(f"{name}_bridge"), "--ros-args", *parameters)
        bridge.wait_for_line("Connected to")
    publisher = ros.publisher(Twist, "cmd_vel", subscribers=len(VEHICLES))
    attitudes = ros.subscribe(Imu, "testbed/imu/data")
    marks = []
    for forward, left_turn in LEGS:
        message = Twist()
        message.linear.x, message.angular.z = forward, left_turn
        marks.append({name: [len(places(trajectories[name], VEHICLES[name][0]))] for name in VEHICLES})
        for _ in range(2):
            for _ in range(HALF_LEG):
                attitudes.wait()
                publisher.publish(message)
            for name in VEHICLES:
                marks[-1][name].append(len(places(trajectories[name], VEHICLES[name][0])))
    for name, (place, _) in VEHICLES.items():
        states = places(trajectories[name], place)
        for leg, mark in zip(LEGS, marks, strict=True):
            _, half, end = mark[name]
            assert mean_motion(states, half, end) == pytest.approx(leg, abs=TOLERANCE), (name, leg)
