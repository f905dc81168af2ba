# SPDX-License-Identifier: Apache-2.0
"""Hold that begins while an operator's command is on its way, on every server: without ROS."""

from geometry_msgs.msg import Twist
from plain_node import PlainNode
from twists import twist

from drone_bridge.ros.last_word import LastWord

FORWARD = twist(forward=1.0)


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
