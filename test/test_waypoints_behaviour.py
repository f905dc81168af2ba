# SPDX-License-Identifier: Apache-2.0
"""drone_controller with the behaviour waypoints, as a process; the test plays the vehicle."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import Twist
from played_vehicle import Vehicle
from processes import Process
from ros_session import wait_until

from drone_bridge.msg import ControllerState

POINTS = "['x=1 y=0 z=-0.5 yaw=1.5708', 'x=1 y=1 z=-0.5']"
STILL = Twist()


def controller(**parameters):
    full = {f"waypoints.{name}": value for name, value in parameters.items()}
    return Process.node("drone_controller", behaviour="waypoints", **full)


def test_points_are_reached_and_the_last_one_is_held(ros):
    states = ros.subscribe(ControllerState, "drone_controller/state", 100)
    with controller(points=POINTS, max_speed=2.0, max_climb_speed=2.0, max_turn_rate=3.0, position_tolerance=0.1):
        waiting = states.wait()
        assert (waiting.behaviour, waiting.state, waiting.reason) == ("waypoints", "waiting", "for odometry")
        assert math.isnan(waiting.distance)
        vehicle = Vehicle(ros)
        vehicle.body = "d1/base_link"
        going = states.wait(lambda state: state.state == "going")
        assert going.reason == "to waypoint 1 of 2: x 1.00 y 0.00 z -0.50 m, yaw 90°"
        done = states.wait(lambda state: state.state == "done")
        assert done.reason == "stays at waypoint 2 of 2: x 1.00 y 1.00 z -0.50 m"
        assert done.distance < 0.15
        assert done.header.frame_id == "d1/base_link"
        wait_until(lambda: np.linalg.norm(vehicle.position - (1, 1, -0.5)) < 0.02, "coming to rest")
    assert vehicle.yaw == pytest.approx(math.pi / 2, abs=0.2)
    corner = np.linalg.norm(np.array(tuple(vehicle.path)) - (1, 0, -0.5), axis=1).min()
    assert corner < 0.15


def test_nothing_is_commanded_before_there_is_odometry_and_zero_when_it_is_stale(ros):
    commands = ros.subscribe(Twist, "cmd_vel", 100)
    states = ros.subscribe(ControllerState, "drone_controller/state", 100)
    with controller(points="['x=1000']", odometry_timeout=0.3) as process:
        for _ in range(5):
            states.wait(lambda state: state.state == "waiting")
        assert not len(commands)
        vehicle = Vehicle(ros)
        commands.wait(lambda twist: twist.linear.x == 0.5)
        vehicle.fall_silent()
        stopped = states.wait(lambda state: state.state == "stopped")
        assert stopped.reason == "no odometry for 0.3 s"
        commands.wait(lambda twist: twist == STILL)
        vehicle.speak()
        commands.wait(lambda twist: twist.linear.x == 0.5)
        process.wait_for_line("stopped: no odometry for 0.3 s")
        # Numbers that no vehicle can have are as good as none.
        vehicle.speak(x=math.nan)
        process.wait_for_line(
            r"Odometry can't be used: the orientation in odom is \(nan, .*\), and has to have length 1"
        )
        commands.wait(lambda twist: twist == STILL)
        vehicle.speak(w=0.0, z=0.0)
        process.wait_for_line(r"the orientation in odom is \(0\.0, 0\.0, 0\.0, 0\.0\), and has to have length 1")
        vehicle.speak()
        commands.wait(lambda twist: twist.linear.x == 0.5)
        assert process.count_lines("Odometry can't be used") < 20


def test_the_last_command_is_zero(ros):
    commands = ros.subscribe(Twist, "cmd_vel", 100)
    with controller(points="['x=1000 yaw=1']") as process:
        Vehicle(ros)
        commands.wait(lambda twist: twist.linear.x > 0)
        assert process.stop() == 0
    last = commands.wait()
    while last != STILL or len(commands):
        last = commands.wait()
