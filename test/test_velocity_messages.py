# SPDX-License-Identifier: Apache-2.0
"""cmd_vel as others have it: its type, its frame, and what is said to whoever publishes or takes another type."""

import math

import pytest
from diagnostic_msgs.msg import DiagnosticArray
from diagnostics import values_of
from geometry_msgs.msg import Twist, TwistStamped
from processes import Process, executable
from ros_session import wait_until

from drone_bridge.ros.velocity_messages import VelocityFrames

NAME = "enable_stamped_cmd_vel"
#: The type that a node has on cmd_vel by this parameter, and the other one.
TYPES = {False: (Twist, TwistStamped), True: (TwistStamped, Twist)}


def command(forward=0.0, left=0.0, turn=0.0, frame=""):
    message = TwistStamped()
    message.header.frame_id = frame
    message.twist.linear.x, message.twist.linear.y, message.twist.angular.z = forward, left, turn
    return message


def count(inbox, name):
    return int(values_of(inbox.wait()).get(name, 0))


@pytest.mark.parametrize("is_stamped", [False, True])
def test_a_publisher_of_the_other_type_is_told_of_once_and_one_of_ours_is_followed(ros, free_port, is_stamped):
    ours, other = TYPES[is_stamped]
    reports = ros.subscribe(DiagnosticArray, "/diagnostics")
    with Process.node("robot_bridge", port=free_port, **{NAME: is_stamped}) as node:
        publisher = ros.publisher(ours, "cmd_vel")
        wait_until(lambda: publisher.publish(ours()) or count(reports, "commands") > 0, "a command that is followed")
    ros.node.destroy_publisher(publisher)
    with Process.node("robot_bridge", port=free_port, **{NAME: is_stamped}) as node:
        ros.node.create_publisher(other, "cmd_vel", 1)
        line = rf"WARN.* publishes geometry_msgs/msg/{other.__name__} on /cmd_vel, .*takes .*/{ours.__name__}: .*{NAME}"
        node.wait_for_line(line)
        for _ in range(3):  # a look for others comes once per second, as a report does
            reports.wait()
        assert node.count_lines(line) == 1


@pytest.mark.parametrize("is_stamped", [False, True])
def test_a_server_publishes_the_type_and_tells_of_a_vehicle_that_takes_the_other(ros, free_port, is_stamped):
    ours, other = TYPES[is_stamped]
    ros.node.create_subscription(other, "cmd_vel", lambda message: None, 1)
    with Process.node("telemetry_server", port=free_port, **{NAME: is_stamped}) as node:
        node.wait_for_line(
            rf"WARN.* takes geometry_msgs/msg/{other.__name__} on /cmd_vel, .*publishes .*/{ours.__name__}"
        )


def test_a_controller_publishes_the_type(ros, start_child):
    start_child(executable("rover_controller"), "--ros-args", "-p", f"{NAME}:=true", "-p", "pattern:=circular")
    inbox = ros.subscribe(TwistStamped, "cmd_vel")
    inbox.wait(lambda message: message.twist.linear.x > 0 and message.header.stamp.sec > 0)


@pytest.mark.parametrize("frame", ["odom", "map"])
def test_the_worlds_x_is_to_the_right_of_a_body_that_looks_along_y(frame):
    frames = VelocityFrames("base_link", {"odom", "map"}, lambda: math.pi / 2)
    message = command(1.0, 0.5, 0.2, frame)
    message.twist.linear.z, message.twist.angular.x = 0.3, 0.1
    linear, angular = frames.in_body(message).linear, frames.in_body(message).angular
    assert (linear.x, linear.y, linear.z) == pytest.approx((0.5, -1.0, 0.3))
    assert (angular.x, angular.y, angular.z) == pytest.approx((0.0, -0.1, 0.2))
