# SPDX-License-Identifier: Apache-2.0
"""Messages as YAML in a shell: parsed from a person's input, and printed."""

import pytest
import yaml
from geometry_msgs.msg import PoseArray, Twist
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterValue
from sensor_msgs.msg import Image, Imu, LaserScan

from drone_bridge.srv import AddCamera
from drone_bridge.tools.shell.messages import SHOWN_ELEMENTS, as_yaml, filled
from drone_bridge.tools.shell.node import FailedError


def test_fields_that_are_named_are_filled_and_whole_numbers_become_floats():
    twist = filled(Twist(), "{linear: {x: 1}, angular: {z: -0.5}}")
    assert (twist.linear.x, twist.linear.y, twist.angular.z) == (1.0, 0.0, -0.5)
    assert filled(Twist(), "") == Twist()


def test_lists_are_filled_of_numbers_and_of_messages():
    assert list(filled(LaserScan(), "{ranges: [1, 2.5]}").ranges) == [1.0, 2.5]
    poses = filled(PoseArray(), "{poses: [{position: {x: 1}}, {position: {y: 2}}]}").poses
    assert [(pose.position.x, pose.position.y) for pose in poses] == [(1.0, 0.0), (0.0, 2.0)]
    assert list(filled(AddCamera.Request(), "{targets: [6]}").targets) == [6]
    assert list(filled(Imu(), f"{{orientation_covariance: {[1] * 9}}}").orientation_covariance) == [1.0] * 9


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{linear: {x: fast}}", "linear.x"),
        ("{linear: {u: 1}}", "linear.u"),
        ("{linear: 3}", "linear"),
        ("[1, 2]", "message"),
        ("{linear: ", "YAML"),
        ("{linear: {x: [1]}}", "linear.x"),
    ],
)
def test_an_invalid_field_is_named(text, named):
    with pytest.raises(FailedError, match=named):
        filled(Twist(), text)


@pytest.mark.parametrize("kind", [Odometry, ParameterValue, LaserScan, PoseArray, AddCamera.Response])
def test_printed_messages_can_be_parsed_again(kind):
    assert filled(kind(), as_yaml(kind())) == kind()


def test_a_long_array_is_cut():
    shown = yaml.safe_load(as_yaml(Image(data=bytes(10_000))))["data"]
    assert len(shown) == SHOWN_ELEMENTS + 1
    assert "10000" in shown[-1]
