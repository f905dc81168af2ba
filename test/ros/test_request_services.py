# SPDX-License-Identifier: Apache-2.0
"""Requests of services to a session: refusals and waiting. Without ROS."""

from types import SimpleNamespace

import pytest
from std_srvs.srv import Trigger

from drone_bridge.ros.node import request_services
from drone_bridge.ros.node.request_services import LINK_TIMEOUT_S, RequestServices
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.session.session import EMERGENCY, LAND, Outcome


class Node:
    """Node whose link opens, and whose executor continues, under control of the test."""

    executor = None

    def __init__(self):
        self.has_link, self.timers, self.kept, self.refused = True, [], [], []
        self.report = SimpleNamespace(is_open=False, count_and_warn=self._refuse)
        self.hold = SimpleNamespace(check=self._check_hold)
        self.is_held = self.is_old = False
        self.services = {}

    def create_service(self, kind, name, serve, *, callback_group):
        self.services[name] = serve

    def create_timer(self, period_s, call, **_):
        self.timers.append((period_s, call))
        return self.timers[-1]

    def destroy_timer(self, timer):
        self.timers.remove(timer)

    def post(self, work, *, is_kept):
        assert is_kept  # because a caller waits
        if self.has_link:
            self.kept.append(work)
        return self.has_link

    def _refuse(self, counter, sentence):
        self.refused.append((counter, sentence))

    def undeliverable(self):
        return None if self.report.is_open else "no peer is connected."

    def check_age(self, name):
        if self.is_old:
            raise ValueError("too old")

    def _check_hold(self, name):
        if self.is_held:
            raise ValueError("held")


class Call:
    """Call of a service."""

    def __init__(self, node, name):
        self.response = self._awaited = None
        self._coroutine = node.services[f"~/{name}"](Trigger.Request(), Trigger.Response())
        self.go_on()

    def go_on(self):
        if self._awaited and not self._awaited.done():  # which rclpy allows to await once
            return
        try:
            self._awaited = self._coroutine.send(None)
        except StopIteration as returned:
            self.response = returned.value


def ask(request, now_s):
    return [Outcome(request, True, f"{request.name} is done")]


@pytest.fixture
def node():
    node = Node()
    names = ("takeoff", LAND, EMERGENCY)
    RequestServices(node, names, ask, outlive_cleanup=True)
    return node


def answer(node):
    """Run the loop's work."""
    for work in node.kept:
        for outcome in work(0.0):
            outcome.request.finish(outcome.is_success, outcome.sentence)
    node.kept.clear()


def look(node):
    for _, call in tuple(node.timers):
        call()


def test_an_outcome_is_the_response(node):
    node.report.is_open = True
    call = Call(node, "takeoff")
    assert call.response is None
    answer(node)
    call.go_on()
    assert (call.response.success, call.response.message) == (True, "takeoff is done")


def test_request_waits_for_the_link_of_a_just_activated_bridge(node):
    call = Call(node, "takeoff")
    look(node)
    call.go_on()
    assert not node.kept
    node.report.is_open = True
    look(node)
    call.go_on()
    answer(node)
    call.go_on()
    assert call.response.success
    assert node.timers == []


@pytest.mark.parametrize("ends", ["in time", "by deactivation"])
def test_waiting_for_a_link_is_bounded(node, ends):
    call = Call(node, "takeoff")
    ((period_s, _),) = node.timers
    if ends == "by deactivation":
        node.has_link = False
        look(node)
    else:
        for _ in range(round(LINK_TIMEOUT_S / period_s)):
            look(node)
    call.go_on()
    assert "no peer is connected" in call.response.message
    assert (node.kept, node.refused) == ([], [("refused_commands", f"takeoff: {call.response.message}")])


def test_link_that_ends_between_waiting_and_posting_is_reported(node):
    node.report.is_open, node.has_link = True, False
    call = Call(node, "takeoff")
    assert call.response is not None
    assert not call.response.success


def test_nothing_is_waited_for_while_the_node_is_inactive(node):
    node.has_link = False
    assert not Call(node, "takeoff").response.success


@pytest.mark.parametrize("why", ["is_held", "is_old"])
def test_only_landing_and_emergency_are_asked_for_on_hold_or_after_a_stall(node, why):
    setattr(node, why, True)
    node.report.is_open = True
    assert not Call(node, "takeoff").response.success
    assert Call(node, LAND).response is None
    assert Call(node, EMERGENCY).response is None
    assert len(node.kept) == 2


@pytest.mark.parametrize("waited_s", [0.0, 2.0])
def test_an_emergency_is_as_old_as_it_may_have_waited(monkeypatch, node, waited_s):
    monkeypatch.setattr(PROCESS, "waited_s", lambda: waited_s)
    monkeypatch.setattr(request_services, "elapsed_s", lambda: 100.0)
    node.report.is_open = True
    Call(node, EMERGENCY)
    (outcome,) = node.kept[0](0.0)
    assert outcome.request.asked_s == 100.0 - waited_s


def test_request_stalled_before_the_link_is_refused_except_a_timed_landing(monkeypatch, node):
    calls = [Call(node, name) for name in ("takeoff", LAND)]
    monkeypatch.setattr(PROCESS, "stalled_since", lambda moment_s: True)
    monkeypatch.setattr(request_services, "elapsed_s", lambda: 1e12)  # much later
    node.report.is_open = True
    look(node)
    for call in calls:
        call.go_on()
    assert "stalled" in calls[0].response.message
    (landing,) = node.kept
    (outcome,) = landing(0.0)
    assert outcome.request.asked_s < 1e12
