# SPDX-License-Identifier: Apache-2.0
"""The executor of our nodes: it serves all that is ready, and does not look twice for nothing."""

import threading

import pytest
import rclpy
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.task import Future

from drone_bridge.ros.rclpy_hooks import FrugalExecutor

WAIT_S = 0.05  # for nothing


@pytest.fixture
def node():
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node("watched", context=context)
    yield node
    node.destroy_node()
    context.shutdown()


def executor_for(node, base=FrugalExecutor):
    class CountingExecutor(base):
        """Counts how often it looks at a guard condition of the node."""

        looks = 0

        def can_execute(self, entity):
            self.looks += entity is next(iter(node.guards), None)
            return super().can_execute(entity)

    executor = CountingExecutor(context=node.context)
    executor.add_node(node)
    return executor


def looks_after_a_callback(node, base):
    guard = node.create_guard_condition(lambda: None)
    executor = executor_for(node, base)
    guard.trigger()
    executor.spin_once(WAIT_S)
    executor.looks = 0
    executor.spin_once(WAIT_S)
    executor.shutdown()
    return executor.looks


def test_it_looks_once_after_a_callback(node):
    assert looks_after_a_callback(node, FrugalExecutor) < looks_after_a_callback(node, SingleThreadedExecutor)


def test_all_that_is_ready_is_served_in_turns(node):
    served = []
    for name in "ab":
        guard = node.create_guard_condition(lambda name=name: served.append(name))
        guard.trigger()
    executor = executor_for(node)
    for _ in range(2):
        executor.spin_once()
    executor.shutdown()
    assert sorted(served) == ["a", "b"]


def test_what_waits_in_a_callback_is_resumed_when_another_thread_wakes_the_executor(node):
    answer, resumed = Future(), Future()

    async def wait_for_answer():
        assert await answer == 42
        resumed.set_result(True)

    group = ReentrantCallbackGroup()
    waiting = node.create_guard_condition(wait_for_answer, group)
    answering = node.create_guard_condition(lambda: answer.set_result(42), group)
    executor = executor_for(node)
    thread = threading.Thread(target=executor.spin_until_future_complete, args=[resumed])
    thread.start()
    waiting.trigger()
    executor.create_task(answering.trigger)
    thread.join(60)
    executor.shutdown()
    assert resumed.done()
