# SPDX-License-Identifier: Apache-2.0
"""What is called without Python's lock does what rclpy does, and rclpy does it where its private parts are others."""

import threading
import time

import pytest
import rclpy
from geometry_msgs.msg import Twist
from processes import TIMEOUT_S
from rclpy.exceptions import InvalidHandle
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.publisher import Publisher
from std_srvs.srv import Trigger

from drone_bridge.ros import rclpy_hooks, topics
from drone_bridge.ros.rclpy_hooks import PATIENCE_S, PUBLISHING, BoundedCalls, UnlockedPublisher, resend_if_lost

OURS, RCLPYS = "ours", "rclpy's"


@pytest.fixture(params=[OURS, RCLPYS])
def way(request, monkeypatch):
    """Where rclpy lacks what is needed, its own way is taken."""
    if request.param == RCLPYS:
        monkeypatch.setattr(rclpy_hooks, "_HAS_ALL", False)
    return request.param


def test_what_is_published_arrives(ros, way):
    inbox = ros.subscribe(Twist, "published")
    publisher = ros.node.create_publisher(Twist, "published", 1, publisher_class=UnlockedPublisher)
    assert (publisher.prepared(Twist()).func.__module__ == rclpy_hooks.__name__) == (way == OURS)
    message = Twist()
    message.linear.x, message.angular.z = 1.5, -2.5
    deadline_s = time.monotonic() + TIMEOUT_S
    while not len(inbox) and time.monotonic() < deadline_s:
        publisher.publish(message)
        time.sleep(0.02)
    assert inbox.wait() == message


@pytest.mark.parametrize("wrong", [None, Trigger.Request(), "text"])
def test_another_type_is_refused(ros, way, wrong):
    publisher = ros.node.create_publisher(Twist, "refused", 1, publisher_class=UnlockedPublisher)
    with pytest.raises(TypeError):
        publisher.publish(wrong)


def test_errors_are_those_of_rclpy(way):
    context, errors = rclpy.Context(), []
    rclpy.init(context=context)
    node = rclpy.create_node("ended", context=context)
    publishers = [node.create_publisher(Twist, "x", 1, publisher_class=each) for each in (UnlockedPublisher, Publisher)]
    context.handle.shutdown()
    for publisher in publishers:
        with pytest.raises(rclpy_implementation.RCLError) as error:
            publisher.publish(Twist())
        errors.append(str(error.value))
        node.destroy_publisher(publisher)
        with pytest.raises(InvalidHandle):
            publisher.publish(Twist())
    node.destroy_node()
    assert errors[0] == errors[1]


def test_a_service_answers(ros, way):
    service = ros.node.create_service(Trigger, "answering", lambda _, response: response)
    resend_if_lost(ros.node, service)
    assert ros.call(Trigger, "answering", Trigger.Request()) == Trigger.Response()


def test_while_a_call_hangs_nobody_waits_and_the_newest_is_kept():
    calls, called, going_on = BoundedCalls("test"), [], threading.Event()
    began_s = time.monotonic()
    assert calls.call([("a", going_on.wait)]) == 0
    assert time.monotonic() - began_s >= PATIENCE_S
    replaced = [calls.call([(key, lambda key=key, n=n: called.append((key, n)))]) for n in range(3) for key in "ab"]
    assert sum(replaced) == 4
    assert called == []
    last = threading.Event()
    calls.call([("c", last.set)])
    going_on.set()
    assert last.wait(TIMEOUT_S)
    assert called == [("a", 2), ("b", 2)]
    calls.call([("a", lambda: called.append("again"))])
    assert called[-1] == "again"


def test_what_was_put_off_has_been_called_after_waiting_for_it():
    calls, called, going_on = BoundedCalls("test"), [], threading.Event()
    assert calls.wait(TIMEOUT_S), "nothing to wait for"
    calls.call([("hangs", going_on.wait)])
    calls.call([("later", lambda: called.append("later"))])
    assert not calls.wait(0.01)
    going_on.set()
    assert calls.wait(TIMEOUT_S)
    assert called == ["later"]


def test_the_last_message_is_sent_before_its_delivery_is_waited_for(ros, monkeypatch):
    monkeypatch.setattr(topics, "DELIVERY_TIMEOUT_S", TIMEOUT_S)
    inbox = ros.subscribe(Twist, "last")
    publisher, going_on = ros.publisher(Twist, "last"), threading.Event()
    slow = lambda: (going_on.wait(TIMEOUT_S), publisher.publish(Twist()))  # noqa: E731
    PUBLISHING.call([(publisher, slow)])  # returns after PATIENCE_S
    threading.Timer(PATIENCE_S, going_on.set).start()
    topics.wait_for_delivery(publisher)
    ros.node.destroy_publisher(publisher)
    assert inbox.wait() == Twist()


def test_a_call_that_fails_ends_nothing(capfd):
    calls, called = BoundedCalls("test"), []
    calls.call([("a", lambda: 1 / 0), ("b", lambda: called.append("b"))])
    calls.call([("c", lambda: called.append("c"))])
    assert called == ["b", "c"]
    assert "ZeroDivisionError" in capfd.readouterr().err


def test_lines_are_logged_while_another_hangs(ros, capfd):
    going_on = threading.Event()
    rclpy_hooks.LOGGING.call([("hangs", going_on.wait)])
    began_s = time.monotonic()
    for number in range(20):
        ros.node.get_logger().warning(f"line {number}, 100 %s")
    assert time.monotonic() - began_s < 20 * PATIENCE_S
    last = threading.Event()
    rclpy_hooks.LOGGING.call([("last", last.set)])
    going_on.set()
    assert last.wait(TIMEOUT_S)
    lines = capfd.readouterr().err
    assert [f"line {number}, 100 %s" in lines for number in range(20)] == [True] * 20
