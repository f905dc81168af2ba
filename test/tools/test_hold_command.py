# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge hold` without ROS, with a fake clock: its calls and their times, and its exit status."""

import subprocess
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import rclpy
from std_srvs.srv import SetBool

from drone_bridge.ros.hold import wish_file
from drone_bridge.ros.hold.hold_services import SERVICE_TYPE
from drone_bridge.tools.hold import calls as hold
from drone_bridge.tools.hold import command


class Graph:
    """Vehicles that appear at a time, in s, and answer at once, or never."""

    def __init__(self, monkeypatch, silent=(), refusals=0, **from_s):
        """`refusals` of each request precede its success."""
        self.now_s, self.called_s, self.calls, self._refusals = 0.0, {}, 0, refusals
        self.wishes = []
        self._from_s, self._silent = {f"/{name}/bridge/hold": time_s for name, time_s in from_s.items()}, silent
        monkeypatch.setattr(hold, "time", SimpleNamespace(monotonic=lambda: self.now_s))
        monkeypatch.setattr(hold, "is_on_this_machine_only", lambda: False)
        monkeypatch.setattr(rclpy, "spin_once", self._spin_once)

    def _spin_once(self, _, timeout_sec):
        self.now_s += timeout_sec

    def get_service_names_and_types(self):
        return [(name, [SERVICE_TYPE]) for name, time_s in self._from_s.items() if time_s <= self.now_s]

    def create_publisher(self, kind, topic, qos):
        publish = lambda wish: self.wishes.append((topic, wish.reason))  # noqa: E731
        return SimpleNamespace(publish=publish, wait_for_all_acked=lambda timeout: True)

    def create_client(self, _, service):
        name = service.split("/")[1]

        def call_async(request):
            self.called_s[name] = self.now_s
            self.calls += 1
            answer = Future()
            if self.calls <= self._refusals:
                answer.set_result(SetBool.Response(success=False, message="The request resume may be stale."))
            elif name not in self._silent:
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


@pytest.mark.parametrize(("is_held", "is_only_here"), [(False, False), (True, True)])
def test_only_a_hold_beyond_this_machine_takes_the_time_to_miss_none(monkeypatch, is_held, is_only_here):
    graph = Graph(monkeypatch, a=0.0, b=0.5, c=2.0)
    monkeypatch.setattr(hold, "is_on_this_machine_only", lambda: is_only_here)
    assert hold._set(graph, [], is_held=is_held) == 0
    assert sorted(graph.called_s) == ["a", "b"]
    assert graph.now_s == pytest.approx(hold.SHORT_S, abs=0.2)


def test_one_that_is_not_found_fails_and_the_others_are_held(monkeypatch, capsys):
    monkeypatch.setenv("ROS_DOMAIN_ID", "62")
    graph = Graph(monkeypatch, a=0.0)
    assert hold._set(graph, ["/a", "/b"], is_held=True) == hold.FAILED
    assert "a" in graph.called_s
    assert "Found no vehicle /b yet. Vehicles in ROS domain 62: /a/bridge. It is" in capsys.readouterr().err


def test_it_ends_once_those_that_are_named_have_answered(monkeypatch):
    graph = Graph(monkeypatch, a=0.0, b=0.0)
    assert hold._set(graph, ["a"], is_held=False) == 0
    assert graph.called_s.keys() == {"a"}
    assert graph.now_s == 0.0
    assert graph.wishes == []


def test_a_hold_from_another_machine_is_a_person_s(monkeypatch):
    """There, the wish file is not read, and a call of the service alone may be a program's."""
    graph = Graph(monkeypatch, a=0.0, b=0.2)
    assert hold._set(graph, [], is_held=True) == 0
    assert graph.wishes == [(f"/{name}/bridge/hold_wish", "a person ran drone-bridge hold") for name in "ab"]


def test_the_first_one_may_be_discovered_late(monkeypatch, capsys):
    assert hold._set(Graph(monkeypatch, a=7.0), [], is_held=True) == 0
    late = Graph(monkeypatch, silent=["a"], a=9.0)
    assert hold._set(late, ["a"], is_held=True) == hold.FAILED
    assert late.now_s >= late.called_s["a"] + hold.ANSWER_S
    assert "/a/bridge: no answer in time" in capsys.readouterr().err


def test_a_named_vehicle_whose_bridge_is_starting_again_is_held(monkeypatch, capsys):
    graph = Graph(monkeypatch, a=37.0)
    assert hold._set(graph, ["/a"], is_held=True) == 0
    assert graph.called_s["a"] == pytest.approx(37.0, abs=0.2)
    assert capsys.readouterr().err.count("Found no vehicle /a yet") == 1
    monkeypatch.setenv("ROS_DOMAIN_ID", "62")
    assert hold._set(Graph(monkeypatch, a=37.0), ["/a"], is_held=False) == hold.FAILED
    assert "in ROS domain 62: none" in capsys.readouterr().err
    assert hold._set(Graph(monkeypatch, a=3600.0), ["/a"], is_held=True) == hold.FAILED
    assert "If it starts later, it follows commands." in capsys.readouterr().err


def test_without_vehicles_it_fails(monkeypatch):
    assert hold._set(Graph(monkeypatch), [], is_held=True) == hold.FAILED


@pytest.mark.parametrize("is_held", [True, False])
def test_a_refused_request_is_reported_and_not_repeated(monkeypatch, capsys, is_held):
    graph = Graph(monkeypatch, a=0.0, refusals=1)
    assert hold._set(graph, ["a"], is_held=is_held) == hold.FAILED
    assert (graph.called_s["a"], graph.calls) == (0.0, 1)
    assert "may be stale" in capsys.readouterr().err


# The wish file.


@pytest.mark.parametrize(
    ("words", "names"),
    [([], ["*"]), (["all"], ["*"]), (["--all", "d1"], ["*"]), (["d1", "/d2/bridge"], ["/d1", "/d2/bridge"])],
)
def test_while_hold_runs_its_wishes_are_in_a_file(monkeypatch, tmp_path, words, names):
    wished = run_with_file(monkeypatch, tmp_path, lambda: command.hold(words))
    assert [wish.name for wish in wished] == names
    assert len({wish.id for wish in wished}) == len(names)
    assert list((tmp_path / "held").iterdir()) == []


@pytest.mark.parametrize("name", ["robot-1", "1a", "/a//b"])
def test_a_name_that_no_vehicle_can_have_is_refused_at_once(name, capsys):
    for words, run in (([name], command.hold), (["/a/b", "a/", "/", name], command.resume)):
        with pytest.raises(SystemExit):
            run(words)
        assert f"'{name}' is no vehicle's name" in capsys.readouterr().err


def test_a_vehicle_beside_a_name_that_none_can_have_is_held(monkeypatch, tmp_path, capsys):
    wished = run_with_file(monkeypatch, tmp_path, lambda: command.hold(["/a/b", "robot-1"]))
    assert wished[0].name == "/a/b"
    assert "'robot-1' is no vehicle's name" in capsys.readouterr().err


def test_a_resume_writes_no_wish(monkeypatch, tmp_path):
    assert run_with_file(monkeypatch, tmp_path, lambda: command.resume([])) == []


@pytest.mark.parametrize("way", ["no ROS", "Ctrl-C", "Ctrl-C twice"])
def test_a_wish_is_kept_for_a_bridge_to_read_however_the_command_ends(monkeypatch, tmp_path, way):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    monkeypatch.setattr(command, "FILE_TIMEOUT_S", 10.0)
    handlers, slept = [], []
    monkeypatch.setattr(command, "handle_stop_signals", handlers.append)
    monkeypatch.setattr(command, "ignore_stop_signals", handlers.clear)

    def sleep(duration_s):
        slept.append((duration_s, len(wish_file.WishFiles(7).read())))
        for interrupt in handlers * (way == "Ctrl-C twice"):
            interrupt()

    monkeypatch.setattr(command, "time", SimpleNamespace(monotonic=lambda: 0.0, sleep=sleep))
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    if way == "no ROS":
        monkeypatch.setitem(sys.modules, hold.__name__, None)
    else:
        monkeypatch.setattr(hold, "set_all", lambda *_, **__: handlers[0]())
    with pytest.raises(ImportError if way == "no ROS" else KeyboardInterrupt):
        command.hold([])
    assert slept == [(command.KEPT_S, 1)]
    assert wish_file.WishFiles(7).read() == []


def test_a_wish_is_written_before_ros_is_imported():
    check = "import drone_bridge.tools.hold.command, sys; print([each for each in sys.modules if 'rclpy' in each])"
    assert subprocess.run([sys.executable, "-c", check], capture_output=True, check=True, text=True).stdout == "[]\n"


def run_with_file(monkeypatch, home, run):
    """Run the command without ROS, and return the wishes in files meanwhile."""
    wished = []

    def read(wanted, *, is_held):
        wished.extend(wish_file.WishFiles(7).read())
        return 0

    monkeypatch.setenv("ROS_HOME", str(home))
    monkeypatch.setenv("ROS_DOMAIN_ID", "7")
    monkeypatch.setattr(command, "FILE_TIMEOUT_S", 10.0)
    monkeypatch.setattr(command, "handle_stop_signals", lambda _: None)
    monkeypatch.setattr(command, "ignore_stop_signals", lambda: None)
    monkeypatch.setattr(hold, "set_all", read)
    assert run() == 0
    return wished
