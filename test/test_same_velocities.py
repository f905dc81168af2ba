# SPDX-License-Identifier: Apache-2.0
"""One topic of velocities, three vehicles of three protocols: they do the same."""

import math
import sys

import pytest
from geometry_msgs.msg import Twist
from processes import executable, when_listening
from sensor_msgs.msg import Imu
from trajectories import Trajectory, mean_motion

#: What each vehicle is given to follow each leg, and for how long it is then measured, in seconds of its own time.
SETTLING_S, MEASURED_S = 2.0, 1.5
FRAMES_AT_ONCE = 6  # of the testbed, 60 of which come per second
#: Of the means, m/s and rad/s: what docs/testbed.md states.
TOLERANCE = 0.05
#: Forward, m/s, and to the left, rad/s: what all of them can do.
LEGS = ((0.4, 0.0), (0.0, 0.5), (0.4, 0.5), (-0.3, -0.4), (0.0, 0.0))


def place_in_testbed(row):
    return float(row["x"]), -float(row["z"]), math.radians(90 - float(row["heading"]))


def place_of_robot(row):
    return float(row["x"]), float(row["y"]), float(row["heading"])


def place_in_simulator(row):
    """Its world is north-east-down."""
    w, x, y, z = (float(row[f"q{axis}"]) for axis in "wxyz")
    yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return float(row["y"]), float(row["x"]), math.pi / 2 - yaw


VEHICLES = {
    "testbed": (place_in_testbed, ("--layout", "pose", "--wind", "1 0 0", "--realtime", "--width", 32, "--height", 32)),
    "robot": (place_of_robot, ("--discovery-port", 0, "--no-discovery")),
    "simulator": (place_in_simulator, ("--running",)),
}


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
            states = trajectory.between(settled_s, settled_s + MEASURED_S)
            assert states[-1][0] - states[0][0] > 0.9 * MEASURED_S
            measured = mean_motion(states)
            assert measured == pytest.approx(leg, abs=TOLERANCE), (name, leg)
