# SPDX-License-Identifier: Apache-2.0
"""Hold that begins while an operator's command or press is on its way, on every server: without ROS."""

import pytest
from geometry_msgs.msg import Twist
from plain_node import PlainNode
from twists import twist

from drone_bridge.dronegui.server.buttons import ServiceButtons
from drone_bridge.ros.last_word import LastWord

FORWARD = twist(forward=1.0)
TARGETS = {name: f"bridge/{name}" for name in ("takeoff", "land", "reset", "hover")}


def test_no_command_comes_after_the_neutral_one_of_a_hold_that_begins_meanwhile():
    node = PlainNode()
    publisher = node.make_publisher(Twist, "cmd_vel", 1)
    last_word = LastWord(node, (publisher,), lambda: (publisher, Twist()))
    last_word.publish(publisher, FORWARD, 0.0)

    def admits(topic):
        node.hold.set(True)  # the executor's turn comes when the link's thread has just asked
        return True

    node.hold.admits = admits
    last_word.publish(publisher, FORWARD, 0.0)
    assert [message for _, message in node.published] == [FORWARD, Twist()]
    assert last_word.age_s is not None


@pytest.fixture
def node():
    return PlainNode()


@pytest.fixture
def buttons(node):
    return ServiceButtons(node, TARGETS, lambda name: None)


@pytest.mark.parametrize("name", ["takeoff", "reset", "land"])
def test_a_press_that_waits_when_hold_begins_is_not_carried_out_but_for_landing(node, buttons, name):
    buttons.press(name)
    node.hold.set(True)
    node.spin()
    assert [called for called, _ in node.called] == (["bridge/land"] if name == "land" else [])
    assert node.statistics.counts["refused presses"] == (name != "land")


def test_an_operator_does_not_let_go_of_the_hover_of_a_held_drone(node, buttons):
    node.hold.set(True)
    for is_wanted in (True, False, False):
        buttons.hold_hover(is_wanted)
        node.spin()
    assert [request.data for _, request in node.called] == [True]
    node.hold.set(False)
    buttons.hold_hover(False)
    node.spin()
    assert [request.data for _, request in node.called] == [True, False]
