# SPDX-License-Identifier: Apache-2.0
"""How services get results from a link's thread: always, whatever happens to the link."""

import asyncio
import threading

import pytest

from drone_bridge.ros.link_requests import MAX_UNANSWERED, MAX_WAITING, LinkRequests, ServiceResult


class Given(list):
    """Answers, without an executor."""

    def complete(self, future, result):
        self.append((future, result))


def link_requests():
    given = Given()
    opened = LinkRequests(given, "robot")
    opened.open()
    return opened, given


def test_a_request_is_done_once_and_gets_its_result():
    opened, given = link_requests()
    link_request = opened.submit("dig")
    assert opened.take() == [link_request]
    assert opened.take() == []
    opened.finish(link_request, "dug")
    opened.close("The end.")
    assert given == [(link_request.result, "dug")]


def test_all_requests_even_those_begun_get_a_result_when_the_link_ends():
    opened, given = link_requests()
    begun = opened.submit("dig")
    opened.take()
    waiting = opened.submit("dive")
    opened.close("The end.")
    assert given == [(link_request.result, ServiceResult(False, "The end.")) for link_request in (begun, waiting)]
    with pytest.raises(ValueError, match="There is no connection to the robot now"):
        opened.submit("dig")


def test_waiting_for_a_result_is_bounded():
    opened, _ = link_requests()
    for _ in range(MAX_WAITING):
        opened.submit("dig")
    with pytest.raises(ValueError, match=f"{MAX_WAITING} requests are waiting already"):
        opened.submit("dig")


def test_requests_without_a_result_time_out():
    opened, _ = link_requests()
    for _ in range(MAX_UNANSWERED):
        link_request = opened.submit("dig")
        opened.take()
    with pytest.raises(ValueError, match=f"{MAX_UNANSWERED} requests have no answer yet"):
        opened.submit("dig")
    opened.finish(link_request, "dug")
    opened.submit("dig")


def test_an_answer_that_comes_at_once_needs_no_second_turn():
    opened, given = link_requests()

    def do():
        (link_request,) = opened.take()
        opened.finish(link_request, link_request.task + " is done")

    assert asyncio.run(opened.run("digging", do, patience_s=0.0)) == "digging is done"
    assert given == []


def test_an_answer_that_comes_late_is_awaited():
    opened, given = link_requests()
    waiting = opened.run("dig", lambda: None, patience_s=0.0)
    waiting.send(None)  # the executor has its thread back
    (link_request,) = opened.take()
    opened.finish(link_request, "dug")
    assert given == [(link_request.result, "dug")]
    link_request.result.set_result("dug")
    with pytest.raises(StopIteration) as end:
        waiting.send(None)
    assert end.value.value == "dug"


def test_who_waits_on_the_spot_is_told_when_the_link_ends():
    opened, given = link_requests()
    closing = opened.run("dig", lambda: threading.Thread(target=opened.close, args=["The end."]).start(), 60.0)
    assert asyncio.run(closing) == ServiceResult(False, "The end.")
    assert given == []
