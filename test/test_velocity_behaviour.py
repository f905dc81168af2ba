# SPDX-License-Identifier: Apache-2.0
"""drone_controller's behaviour `velocity`, between an emulated testbed and whoever commands velocities."""

import sys

import pytest
from controller_pilot import LATCHED, properties
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from processes import executable, when_listening
from ros_session import wait_until
from stamped_commander import TOPIC, Commander
from testbed_trajectory import motion_between, rows_of

from drone_bridge.msg import CommandRates, ControllerState, DroneProperties

# Else the bridge would follow velocities by itself.
HIDDEN = ("-r", "cmd_vel:=not_for_the_bridge", "-r", f"{TOPIC}:=not_for_the_bridge_either")


@pytest.fixture
def flight(start_child, tmp_path):
    """Start testbed, bridge and controller; give the trajectory."""
    trajectory = tmp_path / "flight.csv"
    options = ("--layout", "pose", "--realtime", "--width", 32, "--height", 32, "--trajectory", trajectory)
    testbed = start_child(sys.executable, "-m", "drone_bridge.testbed.emulator", "--port", 0, *options)
    port = when_listening(testbed).port
    start_child(
        executable("testbed_bridge"),
        *("--ros-args", "-p", f"port:={port}", "-p", "stamp_source:=wire", *HIDDEN),
    )
    controller = start_child(
        executable("drone_controller"),
        *("--ros-args", "-p", "behaviour:=velocity"),
        *("-p", "velocity.stamp_source:=wire", "-p", "velocity.command_timeout:=2.0"),
    )
    controller.wait_for_line("Behaviour velocity is ready")
    return trajectory


def test_velocities_are_followed_by_rates(ros, flight):
    odometry = ros.subscribe(Odometry, "odom")
    rates = ros.subscribe(CommandRates, "cmd_rates")
    plain, stamped = ros.publisher(Twist, "cmd_vel"), ros.publisher(TwistStamped, TOPIC)

    def hold(forward, left_turn, frames=180):
        twist = Twist()
        twist.linear.x, twist.angular.z = forward, left_turn
        for _ in range(frames):
            header = odometry.wait().header
            if left_turn:
                stamped.publish(TwistStamped(header=header, twist=twist))
            else:
                plain.publish(twist)
        return header.stamp.sec + header.stamp.nanosec / 1e9

    rates.wait()
    odometry.clear()
    ends = [(leg, hold(*leg)) for leg in ((0.5, 0.0), (0.0, 0.5), (0.0, 0.0))]
    # Nobody commands any more.
    end = ends[-1][1] + 3
    odometry.wait(lambda message: message.header.stamp.sec > end)
    wait_until(lambda: rows_of(flight)[-1]["time"] > end, "the trajectory")
    rows = rows_of(flight)
    for (forward, turn), ended_s in [*ends, ((0.0, 0.0), end)]:
        assert motion_between(rows, ended_s - 1, ended_s) == pytest.approx([forward, 0.0, 0.0, turn], abs=0.08)


class Drone:
    """Stands in for the bridge: odometry of a drone that hangs in the air, and what the controller tells of it."""

    def __init__(self, ros):
        self._ros = ros
        self._odometry = ros.publisher(Odometry, "odom")
        self._properties = ros.publisher(DroneProperties, "drone_properties", LATCHED)
        self._properties.publish(properties())
        self._states = ros.subscribe(ControllerState, "drone_controller/state")
        self._state = ""

    def state(self):
        """Publish odometry, and return the newest state."""
        odometry = Odometry()
        odometry.header.stamp = self._ros.node.get_clock().now().to_msg()
        odometry.pose.pose.orientation.w = 1.0
        self._odometry.publish(odometry)
        while len(self._states):
            self._state = self._states.wait().state
        return self._state


def test_stamped_velocities_that_waited_are_refused(ros, start_child):
    controller = start_child(executable("drone_controller"), "--ros-args", "-p", "behaviour:=velocity")
    drone, commander = Drone(ros), Commander(ros, behind_s=0.0)

    def give_until(state, ago_s=0.0):
        commander.give_until(lambda: drone.state() == state, f"the state {state}", ago_s=ago_s, forward=0.5)

    give_until("moving")
    give_until("hovering", ago_s=30.0)
    allowed = r"old, and 0\.5 s \(velocity\.command_timeout\) are allowed"
    controller.wait_for_line(rf"WARN.*{TOPIC} was refused: it is (29|3\d)\.\d+ s {allowed}")
    give_until("moving")
