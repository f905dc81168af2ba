# SPDX-License-Identifier: Apache-2.0
"""CommandStreams on real subscriptions: a spinning executor and the test's thread, as the link's, take turns."""

from collections import Counter
from types import SimpleNamespace

import pytest
from geometry_msgs.msg import Twist, TwistStamped
from ros_session import module_ros, wait_until
from twists import twist

from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.command_streams import IDLE_S, LATE_S, CommandStreams

ros = module_ros()


class LinkThread:
    """Streams of one topic, with this thread in the role of the link's."""

    def __init__(self, node, topic):
        self.posted, self.received, self.subscriptions = [], [], []
        owner = SimpleNamespace(
            create_subscription=node.create_subscription,
            keep_subscription=self.subscriptions.append,
            end_subscriptions=lambda topic: self.end(node),
            make_guard_condition=node.create_guard_condition,
            post=self.posted.append,
            report=SimpleNamespace(counts=Counter()),
        )
        self.streams = CommandStreams(owner, lambda: None)
        self.streams.add(Twist, topic, lambda message: self.received.append(message) or True)
        self.streams.opened()

    def end(self, node):
        while self.subscriptions:
            node.destroy_subscription(self.subscriptions.pop())

    @property
    def takes(self):
        return self.streams.due_s < float("inf")

    def do_posted(self):
        while self.posted:
            self.posted.pop()(elapsed_s())


@pytest.fixture
def topic(request):
    return request.node.name


def test_executor_and_link_take_in_turn(ros, topic):
    link, publisher = LinkThread(ros.node, topic), ros.node.create_publisher(Twist, topic, 1)
    for _ in range(3):
        wait_until(lambda: publisher.publish(twist(forward=1.0)) or link.received, "the executor to take a command")
        assert not link.takes
        link.do_posted()
        assert link.takes

        def takes_it():
            publisher.publish(Twist())
            return link.streams.take(elapsed_s()) and link.received[-1] == Twist()  # an earlier one may be first

        wait_until(takes_it, "the link to take a command")
        wait_until(lambda: link.streams.after_turn(elapsed_s()) or not link.takes, f"{IDLE_S} s without commands")
        link.posted.clear()
        link.received.clear()


def test_a_single_command_whose_publisher_has_gone_does_not_come_later(ros, topic):
    """It would be returned seconds later, because the subscription keeps it."""
    link, publisher = LinkThread(ros.node, topic), ros.node.create_publisher(Twist, topic, 1)
    wait_until(lambda: publisher.publish(twist(forward=1.0)) or link.received, "the executor to take a command")
    link.do_posted()
    link.received.clear()
    witness = ros.subscribe(Twist, topic)
    wait_until(lambda: publisher.publish(twist(forward=7.0)) or len(witness), "the command to arrive")
    ros.node.destroy_publisher(publisher)
    (subscription,) = link.subscriptions
    began_s = elapsed_s()
    wait_until(lambda: elapsed_s() > began_s + 2 * LATE_S, "the link's thread to be late")
    link.streams.after_turn(elapsed_s())
    assert link.received == []
    assert not link.streams.take(elapsed_s())
    ros.node.destroy_subscription(subscription)


def test_commands_are_taken_while_their_subscription_is_destroyed(ros, topic):
    publisher = ros.node.create_publisher(Twist, topic, 1)
    for _ in range(20):
        link = LinkThread(ros.node, topic)
        wait_until(lambda link=link: publisher.publish(Twist()) or link.received, "a command")
        link.do_posted()
        ros.create_task(ros.node.destroy_subscription, link.subscriptions[0])
        for _ in range(100):
            link.streams.take(elapsed_s())


def test_the_type_changes_while_the_link_s_thread_takes(ros, topic):
    """A subscription in use would be destroyed late, and DDS refuse the next one."""
    publisher = ros.node.create_publisher(Twist, topic, 1)
    link = LinkThread(ros.node, topic)
    wait_until(lambda: publisher.publish(Twist()) or link.received, "a command")
    link.do_posted()
    ros.node.destroy_publisher(publisher)
    changes = []
    for kind in [TwistStamped, Twist] * 20:
        ros.create_task(lambda kind=kind: changes.append(link.streams.add(kind, topic, lambda message: True)))
    wait_until(lambda: link.streams.take(elapsed_s()) or len(changes) == 40, "the changes", period_s=0.0)
