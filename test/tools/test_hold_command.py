# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge hold` without ROS, with a fake clock: its calls and their times, and its exit status."""

from collections import Counter
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import rclpy
from std_srvs.srv import SetBool

from drone_bridge.ros import hold_services
from drone_bridge.ros.hold_services import REPEAT_S, SERVICE_TYPE
from drone_bridge.tools import hold


class Graph:
    """Vehicles that appear at a time, in s, and answer each call at once, or none, or not the first one."""

    def __init__(self, monkeypatch, silent=(), loses_first=(), **from_s):
        self.now_s, self.called_s, self.calls = 0.0, {}, Counter()
        self._loses_first = loses_first
        self._from_s, self._silent = {f"/{name}/bridge/hold": time_s for name, time_s in from_s.items()}, silent
        for module in (hold, hold_services):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr(rclpy, "spin_once", self._spin_once)

    def _spin_once(self, _, timeout_sec):
        self.now_s += timeout_sec

    def get_service_names_and_types(self):
        return [(name, [SERVICE_TYPE]) for name, time_s in self._from_s.items() if time_s <= self.now_s]

    def create_client(self, _, service):
        name = service.split("/")[1]

        def call_async(request):
            self.called_s.setdefault(name, self.now_s)
            self.calls[name] += 1
            answer = Future()
            is_lost = name in self._silent or (name in self._loses_first and self.calls[name] == 1)
            if not is_lost:
                answer.set_result(SetBool.Response(success=True, message=f"held: {request.data}"))
            return answer

        return SimpleNamespace(service_is_ready=lambda: True, call_async=call_async)


def test_all_are_held_as_soon_as_each_is_found_though_one_is_silent(monkeypatch, capsys):
    graph = Graph(monkeypatch, silent=["a"], a=0.0, b=0.0, c=2.0)
    assert hold._set(graph, [], is_held=True) == hold.FAILED
    assert graph.called_s["a"] == graph.called_s["b"] == 0.0
    assert graph.called_s["c"] == pytest.approx(2.0, abs=0.2)
    output = capsys.readouterr()
    assert "/b/bridge: held: True" in output.out
    assert "/a/bridge" in output.err


def test_one_that_is_not_found_fails_and_the_others_are_held(monkeypatch, capsys):
    graph = Graph(monkeypatch, a=0.0)
    assert hold._set(graph, ["/a", "/b"], is_held=True) == hold.FAILED
    assert "a" in graph.called_s
    assert "/b" in capsys.readouterr().err


def test_it_ends_once_those_that_are_named_have_answered(monkeypatch):
    graph = Graph(monkeypatch, a=0.0, b=0.0)
    assert hold._set(graph, ["a"], is_held=False) == 0
    assert graph.called_s.keys() == {"a"}
    assert graph.now_s == 0.0


def test_the_first_one_may_be_discovered_late(monkeypatch, capsys):
    assert hold._set(Graph(monkeypatch, a=7.0), [], is_held=True) == 0
    late = Graph(monkeypatch, silent=["a"], a=9.0)
    assert hold._set(late, ["a"], is_held=True) == hold.FAILED
    assert late.now_s >= late.called_s["a"] + hold.ANSWER_S
    assert "/a/bridge: no answer in time" in capsys.readouterr().err


def test_a_vehicle_whose_response_is_lost_is_called_again(monkeypatch, capsys):
    graph = Graph(monkeypatch, loses_first=["a"], a=0.0, b=0.0)
    assert hold._set(graph, ["a", "b"], is_held=True) == 0
    assert graph.calls == {"a": 2, "b": 1}
    assert REPEAT_S <= graph.now_s < hold.ANSWER_S
    assert "/a/bridge: held: True" in capsys.readouterr().out


def test_without_vehicles_it_fails(monkeypatch):
    assert hold._set(Graph(monkeypatch), [], is_held=True) == hold.FAILED
