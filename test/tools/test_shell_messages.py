# SPDX-License-Identifier: Apache-2.0
"""Messages as YAML in a shell: parsed from a person's input, and printed."""

import json
import re
import subprocess
import sys

import pytest
import yaml
from geometry_msgs.msg import PoseArray, Twist, TwistStamped
from nav_msgs.msg import Odometry
from rcl_interfaces.msg import ParameterValue
from sensor_msgs.msg import Image, Imu, LaserScan

from drone_bridge.srv import AddCamera
from drone_bridge.tools.shell.messages import SHOWN_ELEMENTS, as_yaml, field_of, filled
from drone_bridge.tools.shell.node import CommandFailedError


def test_fields_that_are_named_are_filled_and_whole_numbers_become_floats():
    twist = filled(Twist(), "{linear: {x: 1}, angular: {y: 1e-1, z: -0.5}}")
    assert (twist.linear.x, twist.linear.y, twist.angular.y, twist.angular.z) == (1.0, 0.0, 0.1, -0.5)
    assert filled(Twist(), "") == Twist()
    for header in ("auto", "{stamp: now}"):  # as ros2 topic pub accepts it
        assert filled(TwistStamped(), f"{{header: {header}}}") == TwistStamped()


def test_lists_are_filled_of_numbers_and_of_messages():
    assert list(filled(LaserScan(), "{ranges: [1, 2.5]}").ranges) == [1.0, 2.5]
    poses = filled(PoseArray(), "{poses: [{position: {x: 1}}, {position: {y: 2}}]}").poses
    assert [(pose.position.x, pose.position.y) for pose in poses] == [(1.0, 0.0), (0.0, 2.0)]
    assert list(filled(AddCamera.Request(), "{targets: [6]}").targets) == [6]
    assert list(filled(Imu(), f"{{orientation_covariance: {[1] * 9}}}").orientation_covariance) == [1.0] * 9


#: Texts for a type, and the words that name the fault.
INVALID = [
    ("geometry_msgs/msg/Twist", "{linear: {x: fast}}", "linear.x is 'fast' but must be double"),
    ("geometry_msgs/msg/Twist", "{linear: {x: yes}}", "linear.x is True but must be double"),
    ("geometry_msgs/msg/Twist", "{linear: {x: 2020-01-01}}", "linear.x"),
    ("geometry_msgs/msg/Twist", "{linear: {x: 2020-01-40}}", "YAML"),
    ("geometry_msgs/msg/Twist", "{linear: {x: [1]}}", "linear.x"),
    ("geometry_msgs/msg/Twist", "{linear: {u: 1}}", "linear.u"),
    ("geometry_msgs/msg/Twist", "{linear: 3}", "linear is 3 but"),
    ("geometry_msgs/msg/Twist", "[1, 2]", "message"),
    ("geometry_msgs/msg/Twist", "{linear: ", "YAML"),
    ("geometry_msgs/msg/PoseArray", "{poses: [{position: {x: '1'}}]}", "poses\\[0\\].position.x"),
    ("nav_msgs/msg/Odometry", "{pose: {covariance: 5}}", "pose.covariance"),
    ("nav_msgs/msg/Odometry", "{pose: {covariance: [1, 2]}}", "pose.covariance"),
    ("std_msgs/msg/Int32", "{data: 99999999999}", "data is 99999999999 but must be int32"),
    ("std_msgs/msg/Int32", "{data: 1.5}", "data"),
    ("std_msgs/msg/Bool", "{data: 3}", "data"),
    ("std_msgs/msg/String", "{data: 5}", "data"),
]
#: Fills messages as a shell command does: the shell is imported before any message.
FILL = """
import json, sys
from drone_bridge.tools.shell.messages import filled
from drone_bridge.tools.shell.node import CommandFailedError, imported
for type_name, text, _ in json.loads(sys.argv[1]):
    try:
        print("filled", filled(imported("msg", type_name)(), text))
    except CommandFailedError as error:
        print(error)
"""


def test_an_invalid_field_is_refused_by_name_and_type():
    asked = [sys.executable, "-c", FILL, json.dumps(INVALID)]
    lines = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.splitlines()
    for (type_name, text, named), line in zip(INVALID, lines, strict=True):
        assert re.search(named, line), (type_name, text, line)
        assert not line.startswith("filled")


@pytest.mark.parametrize("kind", [Odometry, ParameterValue, LaserScan, PoseArray, AddCamera.Response])
def test_printed_messages_can_be_parsed_again(kind):
    assert filled(kind(), as_yaml(kind())) == kind()


def test_a_long_array_is_cut():
    shown = yaml.safe_load(as_yaml(Image(data=bytes(10_000))))["data"]
    assert len(shown) == SHOWN_ELEMENTS + 1
    assert "10000" in shown[-1]


def test_a_field_is_printed_alone():
    odometry = filled(Odometry(), "{pose: {pose: {position: {x: 1.5}}}}")
    assert as_yaml(field_of(odometry, "pose.pose.position.x")) == "1.5\n"
    assert as_yaml(field_of(odometry, "pose.pose.position")) == "x: 1.5\ny: 0.0\nz: 0.0\n"
    with pytest.raises(CommandFailedError, match=r"pose.pos: pos is not a field; there are pose, covariance"):
        field_of(odometry, "pose.pos")
