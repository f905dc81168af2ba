# SPDX-License-Identifier: Apache-2.0
"""How services get results from a link's thread: always, whatever happens to the link."""

import asyncio
import threading

import pytest

from drone_bridge.ros.link_requests import MAX_UNANSWERED, LinkRequests, ServiceResult

PATIENCE_S = 60.0


class Executor:
    """An executor that counts how often it was woken."""

    def __init__(self):
        self.wakes = 0

    def wake(self):
        self.wakes += 1

    def create_task(self, callback, *arguments):
        """Do nothing: nobody has asked to be called back."""


class Node:
    """A node with an executor."""

    def __init__(self):
        self.executor = Executor()


@pytest.fixture
def opened():
    requests = LinkRequests(Node(), "robot")
    requests.open()
    return requests


def test_a_request_is_done_once_and_gets_its_result(opened):
    link_request = opened.submit("dig")
    assert opened.take() == [link_request]
    assert opened.take() == []
    opened.finish(link_request, "dug")
    opened.close("The end.")
    assert link_request.result.result() == "dug"


def test_all_requests_even_those_begun_get_a_result_when_the_link_ends(opened):
    begun = opened.submit("dig")
    opened.take()
    waiting = opened.submit("dive")
    opened.close("The end.")
    assert {request.result.result() for request in (begun, waiting)} == {ServiceResult(False, "The end.")}
    with pytest.raises(ValueError, match="There is no connection to the robot now"):
        opened.submit("dig")


def test_requests_without_a_result_are_bounded(opened):
    for _ in range(MAX_UNANSWERED):
        link_request = opened.submit("dig")
        opened.take()
    with pytest.raises(ValueError, match=f"{MAX_UNANSWERED} requests have no answer yet"):
        opened.submit("dig")
    opened.finish(link_request, "dug")
    opened.submit("dig")


def test_an_answer_that_comes_at_once_needs_no_second_turn(opened):
    def do():
        (link_request,) = opened.take()
        opened.finish(link_request, link_request.task + " is done")

    assert asyncio.run(opened.run("digging", do, PATIENCE_S)) == "digging is done"


def test_an_answer_that_comes_late_is_awaited_and_wakes_the_executor():
    node = Node()
    late = LinkRequests(node, "robot")
    late.open()
    waiting = late.run("dig", lambda: None, patience_s=0.0)
    waiting.send(None)  # the executor has its thread back
    (link_request,) = late.take()
    late.finish(link_request, "dug")
    assert node.executor.wakes == 1
    with pytest.raises(StopIteration) as end:
        waiting.send(None)
    assert end.value.value == "dug"


def test_who_waits_on_the_spot_is_told_when_the_link_ends(opened):
    def close():
        threading.Thread(target=opened.close, args=["The end."]).start()

    assert asyncio.run(opened.run("dig", close, PATIENCE_S)) == ServiceResult(False, "The end.")
