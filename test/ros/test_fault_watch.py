# SPDX-License-Identifier: Apache-2.0
"""FaultWatch: which faults save the wire, each once."""

from collections import Counter
from types import SimpleNamespace

import pytest

from drone_bridge.ardrone.session.client import SILENCES as LOST_NAVDATA
from drone_bridge.net.link_loop import LOST_LINKS
from drone_bridge.ros.node import fault_watch
from drone_bridge.ros.node.link_report import SILENCES
from drone_bridge.session.clients import LOST
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import REJECTED

HELD = f"hold: {Obstacle.DISOBEYS.reason(reason='it is lifted')}"
COUNTERS = REJECTED, LOST_LINKS, LOST, SILENCES, LOST_NAVDATA


@pytest.fixture
def watched(monkeypatch):
    saved, services, now = [], {}, [""]
    node = SimpleNamespace(
        report=SimpleNamespace(counts=Counter(), conditions={}),
        hold=SimpleNamespace(state=SimpleNamespace(now=now)),
        wire_log=SimpleNamespace(save=lambda reason: saved.append(reason) or "The last minute ..."),
        create_service=lambda kind, name, serve: services.update({name: serve}),
    )
    monkeypatch.setattr(fault_watch, "PROCESS", SimpleNamespace(stalled_since=lambda since_s: False))
    watch = fault_watch.FaultWatch(node, node.report, node.hold, lambda: node.wire_log)
    watch.look()
    return SimpleNamespace(node=node, watch=watch, saved=saved, services=services, now=now)


@pytest.mark.parametrize("counter", COUNTERS)
def test_a_fault_that_is_counted_saves_each_time(watched, counter):
    for number in (1, 2):
        watched.node.report.counts[counter] += number
        watched.watch.look()
        watched.watch.look()
        assert watched.saved == [counter.replace("_", " ")] * number


@pytest.mark.parametrize("condition", [Obstacle.DOUBT, Obstacle.NO_PACKET])
def test_a_condition_saves_when_it_begins(watched, condition):
    for number in (1, 2):
        watched.node.report.conditions[condition.key] = "something"
        watched.watch.look()
        watched.watch.look()
        assert len(watched.saved) == number
        watched.node.report.conditions.clear()
        watched.watch.look()


def test_a_hold_saves_by_its_reason_and_a_stall_once(watched, monkeypatch):
    for reason in (HELD, HELD, "", HELD):
        watched.now[0] = reason.removeprefix("hold: ")
        watched.watch.look()
    assert watched.saved == [HELD, HELD]
    for has_stalled in (True, False, True):
        monkeypatch.setattr(fault_watch.PROCESS, "stalled_since", lambda _, found=has_stalled: found)
        watched.watch.look()
    assert watched.saved[2:] == ["stall", "stall"]


@pytest.mark.parametrize("log", [None, SimpleNamespace(save=lambda reason: "")])
def test_the_service_saves_and_says_where_or_why_not(watched, log):
    serve = watched.services["~/save_wire"]
    response = serve(None, SimpleNamespace())
    assert (response.success, response.message, watched.saved) == (True, "The last minute ...", ["requested"])
    watched.node.wire_log = log
    response = serve(None, SimpleNamespace())
    assert not response.success
    assert response.message
