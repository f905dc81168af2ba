# SPDX-License-Identifier: Apache-2.0
"""Conclusions of servers from a bridge's reports on /diagnostics. No process, and a fake clock."""

import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from plain_node import PlainNode

from drone_bridge.ros.node.link_report import LINK_STATUS, PEER_SILENT
from drone_bridge.ros.servers import bridge_watch
from drone_bridge.ros.servers.bridge_watch import GONE_AFTER_S, SILENT_AFTER_S, BridgeWatch

BRIDGE = "/field/robot_bridge"


class Subscriber(PlainNode):
    """Records the callbacks, for tests to call."""

    def make_subscription(self, kind, topic, callback, depth):
        self.take = callback

    def make_timer(self, period_s, callback):
        self.look = callback


class Watched:
    """A watch and its observations: whether the bridge has disappeared, and whether its vehicle is silent."""

    def __init__(self, bridges=(BRIDGE,)):
        self.node = Subscriber()
        self.noticed = []
        self.watch = BridgeWatch(self.node, lambda: set(bridges), self._note)

    def _note(self):
        self.noticed.append((self.watch.is_gone, self.watch.is_vehicle_silent))

    def report(self, name=BRIDGE, silent="0.1", ending=LINK_STATUS):
        values = [] if silent is None else [KeyValue(key=PEER_SILENT, value=silent)]
        self.node.take(DiagnosticArray(status=[DiagnosticStatus(name=f"{name.lstrip('/')}{ending}", values=values)]))


@pytest.fixture
def watched(clock, monkeypatch):
    monkeypatch.setattr(bridge_watch, "elapsed_s", lambda: clock[0])
    return Watched()


def test_a_bridge_that_reports_each_second_is_present(watched, clock):
    for _ in range(10):
        watched.report()
        clock[0] += 1.0
        watched.node.look()
    assert watched.noticed == []


def test_a_bridge_without_reports_is_gone_until_the_next_report(watched, clock):
    watched.report()
    clock[0] += GONE_AFTER_S
    watched.node.look()
    assert watched.noticed == []
    clock[0] += 0.1
    watched.node.look()
    watched.node.look()
    assert watched.noticed == [(True, False)]
    watched.report()
    assert watched.noticed == [(True, False), (False, False)]


@pytest.mark.parametrize("other", ["/other/robot_bridge", "/field/robot_server"])
def test_a_node_that_never_reported_counts_as_present(watched, clock, other):
    watched.report(name=other)
    watched.report(ending=": battery")
    clock[0] += 60.0
    watched.node.look()
    assert watched.noticed == []


def test_a_bridge_reports_whether_its_vehicle_is_silent(watched):
    for silent in ("0.1", str(SILENT_AFTER_S), "2.5", "", None, "many", "0.0", "nan"):
        watched.report(silent=silent)
    assert watched.noticed == [(False, True), (False, False)]


def test_the_state_of_the_vehicle_is_unknown_without_its_bridge(watched, clock):
    watched.report(silent="5.0")
    clock[0] += GONE_AFTER_S + 0.1
    watched.node.look()
    assert watched.noticed == [(False, True), (True, False)]
