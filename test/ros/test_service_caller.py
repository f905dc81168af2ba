# SPDX-License-Identifier: Apache-2.0
"""Calls of a vehicle's services for a server's session: conditions and results."""

import re
from types import SimpleNamespace

import pytest
from plain_node import PlainNode
from rclpy.task import Future
from std_srvs.srv import SetBool

from drone_bridge import srv
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.node.stall_watch import PROCESS
from drone_bridge.ros.servers import service_caller
from drone_bridge.ros.servers.service_caller import MAX_PENDING, MISSING, MISSING_AFTER_S, ServiceCaller

TARGETS = {name: f"bridge/{name}" for name in ("takeoff", "land", "reset", "hover")}


class Node(PlainNode):
    """Records conditions and the timer's callback."""

    def __init__(self):
        super().__init__()
        self.conditions = {}
        self.report.update_condition = lambda name, problem, advice: self.conditions.update({name: (problem, advice)})
        self.decided_s = 0.0

    def make_timer(self, period_s, look):
        self.look = look


class Vehicle:
    """Vehicle of a server: its calls, and their results."""

    def __init__(self, **options):
        self.node, self.answers, self.missing = Node(), [], []
        self.caller = ServiceCaller(
            self.node, TARGETS, 15.0, types={"hover": SetBool}, on_missing=self.missing.append, **options
        )

    def call(self, name, value=None):
        request = None if value is None else SetBool.Request(data=value)
        self.caller.call(name, self.answers.append, request, moves=name not in ("land", "hover"))
        return [called for called, _ in self.node.called]

    def hang(self):
        """Stop responding."""
        for client in self.caller._clients.values():
            client.call_async = lambda request: Future()
            client.remove_pending_request = lambda future: None


def outcomes(answers):
    return [(answer.is_success, answer.was_called, answer.has_come) for answer in answers]


def test_an_answer_comes_with_its_sentence():
    vehicle = Vehicle()
    assert vehicle.call("takeoff") == ["bridge/takeoff"]
    vehicle.call("hover", True)
    assert vehicle.node.called[-1][1].data
    assert outcomes(vehicle.answers) == [(True, True, True)] * 2


@pytest.mark.parametrize("why", ["", "the vehicle is held", "the server has just resumed after a stall"])
def test_only_safe_services_are_called_on_hold_or_after_a_stall(monkeypatch, why):
    vehicle, asked = Vehicle(), set()
    vehicle.node.hold.set("held" in why)
    monkeypatch.setattr(PROCESS, "stalled_since", lambda moment_s: asked.add(moment_s) or "stall" in why)
    vehicle.node.decided_s = 123.0
    for name in ("takeoff", "reset", "land"):
        vehicle.call(name)
    vehicle.call("hover", True)
    safe = ["bridge/land", "bridge/hover"]
    assert [name for name, _ in vehicle.node.called] == (safe if why else ["bridge/takeoff", "bridge/reset", *safe])
    if why:
        assert outcomes(vehicle.answers)[:2] == [(False, False, False)] * 2
        assert vehicle.answers[0].sentence == why
    assert asked <= {123.0}


def test_a_bridge_that_hangs_is_not_taken_for_a_target_that_nobody_offers():
    gone = {"takeoff", "land", "reset", "hover"}
    vehicle = Vehicle(is_gone=lambda name: name in gone)
    vehicle.call("takeoff")
    vehicle.node.look()
    problem, advice = vehicle.node.conditions[MISSING]
    for sentence in (problem, vehicle.answers[0].sentence):
        assert "hangs or has ended" in sentence
        assert "no node offers" not in sentence
    assert "target" not in advice
    assert not vehicle.node.called
    assert set(vehicle.missing) == gone
    gone.clear()
    vehicle.node.look()
    assert vehicle.node.conditions[MISSING][0] is None


def test_a_service_that_nobody_offers_is_named_with_what_to_set(monkeypatch):
    vehicle, now_s = Vehicle(), elapsed_s()
    for name in ("takeoff", "hover"):
        vehicle.caller._clients[name].service_is_ready = lambda: False
    vehicle.call("takeoff")
    vehicle.node.look()
    assert vehicle.answers[0].sentence == "no node offers /bridge/takeoff"
    assert vehicle.node.conditions[MISSING][0] is None, "its bridge may be starting"
    monkeypatch.setattr(service_caller, "elapsed_s", lambda: now_s + MISSING_AFTER_S)
    vehicle.node.look()
    assert vehicle.node.conditions[MISSING] == ("no node offers /bridge/takeoff", "set target.* to the vehicle's own")
    assert vehicle.missing == ["takeoff", "hover"] * 2


def test_a_call_is_given_up_once_its_time_is_over_or_its_node_is_gone(monkeypatch):
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(service_caller, "elapsed_s", lambda: clock.now_s)
    gone = set()
    vehicle = Vehicle(is_gone=gone.__contains__)
    vehicle.hang()
    vehicle.call("takeoff")
    vehicle.call("land")
    clock.now_s += 14.0
    vehicle.node.look()
    assert not vehicle.answers
    gone.add("land")
    vehicle.node.look()
    gone.clear()
    clock.now_s += 2.0
    for _ in range(2):
        vehicle.node.look()
    assert outcomes(vehicle.answers) == [(False, True, False)] * 2
    late = [re.fullmatch(r"(\S+) .* within (\S+) s", answer.sentence).groups() for answer in vehicle.answers]
    assert late == [("/bridge/land", "14.0"), ("/bridge/takeoff", "16.0")]
    assert not any(answer.was_displaced for answer in vehicle.answers)


def test_an_urgent_call_reaches_a_node_whose_reports_have_stopped(monkeypatch):
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(service_caller, "elapsed_s", lambda: clock.now_s)
    vehicle = Vehicle(is_gone=lambda name: True)
    vehicle.caller.call("land", vehicle.answers.append, moves=False, even_if_gone=True)
    assert [name for name, _ in vehicle.node.called] == ["bridge/land"]
    vehicle.hang()
    vehicle.caller.call("land", vehicle.answers.append, moves=False, even_if_gone=True)
    vehicle.node.look()
    assert outcomes(vehicle.answers) == [(True, True, True)], "it gets time to answer"
    clock.now_s += service_caller.SILENT_TIMEOUT_S + 0.01
    vehicle.node.look()
    assert outcomes(vehicle.answers[1:]) == [(False, True, False)]
    for client in vehicle.caller._clients.values():
        client.service_is_ready = lambda: False
    vehicle.caller.call("land", vehicle.answers.append, moves=False, even_if_gone=True)
    assert outcomes(vehicle.answers[2:]) == [(False, False, False)]


def test_an_answer_that_came_while_this_process_stood_still_is_waited_for(monkeypatch):
    clock = SimpleNamespace(now_s=100.0)
    monkeypatch.setattr(service_caller, "elapsed_s", lambda: clock.now_s)
    vehicle = Vehicle()
    vehicle.hang()
    vehicle.call("takeoff")
    clock.now_s += 60.0
    monkeypatch.setattr(PROCESS, "running_s", lambda: 0.1)
    vehicle.node.look()
    assert not vehicle.answers


def test_what_a_hung_node_is_called_with_does_not_grow():
    vehicle = Vehicle()
    vehicle.hang()
    for number in range(100):
        vehicle.call("hover", number % 2 == 0)
    assert len(vehicle.answers) == 100 - MAX_PENDING
    assert set(outcomes(vehicle.answers)) == {(False, True, False)}
    assert all(answer.was_displaced for answer in vehicle.answers)


class Bridge(Vehicle):
    """A vehicle with services of other types."""

    def __init__(self, **options):
        self.node, self.answers, self.missing = Node(), [], []
        types = {"spawn": srv.Spawn, "pause": srv.SimulatorRequest}
        targets = {name: f"bridge/{name}" for name in types}
        self.caller = ServiceCaller(
            self.node, targets, 15.0, types=types, on_missing=self.missing.append, max_pending=2, **options
        )

    def call(self, name, request, *, moves):
        self.caller.call(name, self.answers.append, request, moves=moves)
        return self.node.called


def test_other_services_get_their_requests_and_give_their_responses():
    bridge = Bridge()
    request = srv.Spawn.Request(mass=2.0)
    assert bridge.call("spawn", request, moves=False) == [("bridge/spawn", request)]
    assert isinstance(bridge.answers[0].response, srv.Spawn.Response)


def test_services_that_a_vehicle_may_lack_are_missed_without_complaint():
    bridge = Bridge(is_gone=lambda name: name == "spawn")
    assert (bridge.caller.offers("spawn"), bridge.caller.offers("pause")) == (False, True)
    bridge.node.look()
    assert bridge.node.conditions[MISSING][0] is None
    assert bridge.missing == ["spawn"]
    bridge.hang()
    for _ in range(3):
        bridge.call("pause", srv.SimulatorRequest.Request(), moves=False)
    assert [answer.was_displaced for answer in bridge.answers] == [True]
