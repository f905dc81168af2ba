# SPDX-License-Identifier: Apache-2.0
"""A Twist that asks for what a vehicle can't do is said once per vehicle, and the rest of it is followed."""

import pytest
from geometry_msgs.msg import Twist
from processes import Process
from ros_session import wait_until

#: An axis that each bridge can't move its vehicle along or about, and a bit of what it says then.
LACKING = {
    "robot_bridge": ("linear", "y", r"linear\.y = 0\.5 m/s, .* it follows linear\.x, angular\.z\."),
    "dronegui_bridge": ("angular", "x", r"angular\.x = 0\.5 rad/s, .* it follows linear\.x, .*, angular\.z\."),
    "telemetry_bridge": ("angular", "y", r"angular\.y = 0\.5 rad/s, .* it follows linear\.x, .*, angular\.z\."),
    "testbed_bridge": ("angular", "x", r"angular\.x = 0\.5 rad/s, .* it follows linear\.x, .*, angular\.z\."),
}


@pytest.mark.parametrize("name", LACKING)
def test_unsupported_axes_are_warned_of_once(ros, free_port, name):
    part, axis, said = LACKING[name]
    able, unable = Twist(), Twist()
    able.linear.x = able.angular.z = 0.1
    setattr(getattr(unable, part), axis, 0.5)
    setattr(getattr(able, part), axis, 3.9e-14)  # a controller's rounding error
    sentence = f"cmd_vel asks for {said} The rest of the command is followed"
    with Process.node(name, port=free_port) as process:
        publisher = ros.publisher(Twist, "cmd_vel")
        for _ in range(20):
            publisher.publish(able)
        wait_until(lambda: publisher.publish(unable) or process.count_lines(sentence), "the line")
        for _ in range(20):
            publisher.publish(unable)
        publisher.publish(able)
        assert process.count_lines("asks for") == 1
    assert process.count_lines("asks for") == 1
