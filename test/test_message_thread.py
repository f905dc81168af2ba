# SPDX-License-Identifier: Apache-2.0
"""Messages that are taken in a thread of their own, beside an executor that serves the rest of the node."""

import queue
import threading

import pytest
import rclpy
from processes import TIMEOUT_S
from std_msgs.msg import Int32, String

from drone_bridge.link_node.message_thread import MessageThread


@pytest.fixture
def thread(ros):
    """A thread, its failures in `thread.failures`; it is stopped before the session ends."""
    failures = queue.Queue()
    thread = MessageThread("quick", ros.context, failures.put)
    thread.failures = failures
    yield thread
    thread.stop()


def test_a_thread_takes_what_the_executor_leaves_to_it(ros, thread):
    taken = queue.Queue()

    def take(message):
        taken.put((threading.current_thread().name, message.data))
        if message.data == 1:
            raise ValueError("one is wrong")

    topics = {"numbers": Int32, "words": String}
    thread.add(ros.node.create_subscription(Int32, "numbers", take, 10))
    later = ros.node.create_subscription(String, "words", take, 10)
    slow = ros.subscribe(Int32, "numbers")  # the executor still serves the node's other subscriptions
    numbers, words = (
        ros.publisher(kind, topic, 10, subscribers)
        for (topic, kind), subscribers in zip(topics.items(), (2, 1), strict=True)
    )
    for number in range(3):
        numbers.publish(Int32(data=number))
    assert slow.wait(lambda message: message.data == 2)
    assert taken.empty()  # not before it has started
    thread.start()
    assert [taken.get(timeout=TIMEOUT_S) for _ in range(3)] == [("quick", 0), ("quick", 1), ("quick", 2)]
    assert "ValueError: one is wrong" in thread.failures.get(timeout=TIMEOUT_S)
    thread.add(later)
    words.publish(String(data="last"))
    assert taken.get(timeout=TIMEOUT_S) == ("quick", "last")
    # Once it has stopped, nobody takes anything.
    thread.stop()
    numbers.publish(Int32(data=3))
    assert slow.wait(lambda message: message.data == 3)
    assert taken.empty()


def test_a_thread_ends_after_its_context():
    """As in a process that SIGTERM ends, where ROS is shut down first."""
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("alone", context=context)
    failures = []
    thread = MessageThread("quick", context, failures.append)
    thread.add(node.create_subscription(Int32, "numbers", lambda _: None, 10))
    thread.start()
    rclpy.shutdown(context=context)
    thread.stop()
    assert failures == []
