# SPDX-License-Identifier: Apache-2.0
"""drone_controller's behaviour `velocity`, between an emulated testbed and whoever commands velocities."""

import sys

import pytest
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from processes import executable, when_listening
from ros_session import wait_until
from testbed_trajectory import motion_between, rows_of

from drone_bridge.msg import CommandRates

HIDDEN = "cmd_vel:=not_for_the_bridge"  # else the bridge would follow velocities by itself


@pytest.fixture
def flight(start_child, tmp_path):
    """Start testbed, bridge and controller; give the trajectory."""
    trajectory = tmp_path / "flight.csv"
    options = ("--layout", "pose", "--realtime", "--width", 32, "--height", 32, "--trajectory", trajectory)
    testbed = start_child(sys.executable, "-m", "drone_bridge.emulators.testbed", "--port", 0, *options)
    port = when_listening(testbed).port
    start_child(
        executable("testbed_bridge"),
        *("--ros-args", "-p", f"port:={port}", "-p", "stamp_source:=wire", "-r", HIDDEN),
    )
    controller = start_child(executable("drone_controller"), "--ros-args", "-p", "behaviour:=velocity")
    controller.wait_for_line("Behaviour velocity is ready")
    return trajectory


def test_velocities_are_followed_by_rates(ros, flight):
    odometry = ros.subscribe(Odometry, "odom")
    rates = ros.subscribe(CommandRates, "cmd_rates")
    publisher = ros.publisher(Twist, "cmd_vel")

    def hold(forward, left_turn, frames=180):
        message = Twist()
        message.linear.x, message.angular.z = forward, left_turn
        for _ in range(frames):
            publisher.publish(message)
            stamp = odometry.wait().header.stamp
        return stamp.sec + stamp.nanosec / 1e9

    rates.wait()
    ends = [(leg, hold(*leg)) for leg in ((0.5, 0.0), (0.0, 0.5), (0.0, 0.0))]
    # Nobody commands any more.
    end = ends[-1][1] + 3
    odometry.wait(lambda message: message.header.stamp.sec > end)
    wait_until(lambda: rows_of(flight)[-1]["time"] > end, "the trajectory")
    rows = rows_of(flight)
    for (forward, turn), ended_s in [*ends, ((0.0, 0.0), end)]:
        assert motion_between(rows, ended_s - 1, ended_s) == pytest.approx([forward, 0.0, 0.0, turn], abs=0.08)


def test_without_odometry_it_is_silent(ros, start_child):
    controller = start_child(executable("drone_controller"), "--ros-args", "-p", "behaviour:=velocity")
    controller.wait_for_line("waiting: for drone_properties and odom")
    rates = ros.subscribe(CommandRates, "cmd_rates")
    publisher = ros.publisher(Twist, "cmd_vel")
    odometry = ros.publisher(Odometry, "odom")
    bad = Odometry()  # without drone_properties, and without a rotation
    for _ in range(20):
        publisher.publish(Twist())
        odometry.publish(bad)
    assert len(rates) == 0
