# SPDX-License-Identifier: Apache-2.0
"""Requests of drone_bridge.Vehicle to a graph that the test plays, with a fake clock: discovery, answers and errors."""

import signal
from types import SimpleNamespace

import pytest
from action_msgs.msg import GoalStatus
from nav_msgs.msg import Odometry

from drone_bridge import vehicle as module
from drone_bridge.action import GoTo
from drone_bridge.ros.hold.hold_services import SERVICE_TYPE, HoldServices
from drone_bridge.vehicle import Pose, Vehicle, VehicleError

HOLD = "/boat/boat_bridge/hold"


class Graph:
    """Node of a vehicle's client, with services, topics and nodes of others, whose calls are answered unless silent."""

    def __init__(self):
        self.services, self.topics, self.nodes, self.silent = {}, {}, [("vehicle_client", "/boat")], set()
        self.calls, self.is_willing, self.later = [], True, {}  # services that are discovered after the first call

    def get_service_names_and_types(self):
        return [(name, [kind]) for name, kind in self.services.items()]

    def get_topic_names_and_types(self):
        return [(name, [kind]) for name, kind in self.topics.items()]

    def get_node_names_and_namespaces(self):
        return self.nodes

    def get_node_names(self):
        return [name for name, _ in self.nodes]

    def count_publishers(self, name):
        return name in self.topics

    def create_client(self, kind, name):
        def call_async(request):
            self.calls.append((name, getattr(request, "data", None)))
            self.services |= self.later
            answer = SimpleNamespace(success=self.is_willing, message="Held." if self.is_willing else "Not now.")
            return SimpleNamespace(done=lambda: name not in self.silent, result=lambda: answer)

        return SimpleNamespace(service_is_ready=lambda: True, call_async=call_async)


@pytest.fixture
def now_s(monkeypatch):
    """Time, s, as a list."""
    now_s = [100.0]
    clock = SimpleNamespace(monotonic=lambda: now_s[0], sleep=lambda s: now_s.__setitem__(0, now_s[0] + s))
    monkeypatch.setattr(module, "time", clock)
    return now_s


@pytest.fixture
def graph(monkeypatch, now_s):
    monkeypatch.setattr(module, "count_services", lambda node, name: name in node.services)
    return Graph()


@pytest.fixture
def boat(graph):
    """Vehicle /boat in this graph, without a node of its own."""
    boat = object.__new__(Vehicle)
    boat._namespace, boat._node, boat._patience_s = "/boat", graph, 60.0
    boat._odometry, boat._commanded, boat._newest, boat._clients = None, set(), None, {}
    boat._holds = HoldServices(graph, boat._holds_it)
    boat.close = lambda: None
    return boat


def test_each_node_that_can_be_held_is_called_and_answers(boat, graph, now_s):
    graph.services = {HOLD: SERVICE_TYPE, "/bus/bus_bridge/hold": SERVICE_TYPE}
    graph.later = {"/boat/camera/hold": SERVICE_TYPE}
    assert boat.resume() == "/boat/boat_bridge: Held. /boat/camera: Held."
    assert sorted(graph.calls) == [(HOLD, False), ("/boat/camera/hold", False)]
    graph.is_willing = False
    with pytest.raises(VehicleError, match="/boat/boat_bridge: Not now"):
        boat.hold()
    assert graph.calls[-1][1] is True
    assert now_s[0] < 105.0


@pytest.mark.parametrize(("is_held", "may"), [(True, "not"), (False, "still")])
def test_a_node_that_does_not_answer_is_named(boat, graph, now_s, is_held, may):
    graph.services, graph.silent = {HOLD: SERVICE_TYPE}, {HOLD}
    with pytest.raises(VehicleError, match=f"{HOLD} has not answered for 60 s: the vehicle /boat may {may} be held"):
        boat.hold() if is_held else boat.resume()
    assert now_s[0] > 160.0


def test_another_vehicle_is_named_soon_and_not_called(boat, graph, now_s):
    graph.services = {"/bus/bus_bridge/hold": SERVICE_TYPE}
    with pytest.raises(VehicleError, match="no node that can be held; in this domain: /bus/bus_bridge"):
        boat.resume()
    assert (graph.calls, now_s[0] < 103.0) == ([], True)
    graph.nodes.append(("camera", "/boat"))  # which may have its bridge started later
    with pytest.raises(VehicleError, match="/bus/bus_bridge"):
        boat.resume()
    assert now_s[0] > 160.0


def test_goals_of_a_vehicle_without_a_hold_are_cancelled(boat, graph):
    boat._commanded = {"go_to"}
    assert boat.hold() == "The vehicle /boat has no hold: its goals are cancelled."
    assert graph.calls == [("/boat/go_to/_action/cancel_goal", None)]


def test_odometry_is_a_pose_and_that_of_another_namespace_is_named(boat, graph, now_s):
    graph.topics = {"/bus/odom": "nav_msgs/msg/Odometry", "/boat/odom": "std_msgs/msg/String"}
    with pytest.raises(VehicleError, match=r"no odometry on /boat/odom; there is /bus/odom: the namespace is /bus\."):
        print(boat.pose)
    assert now_s[0] < 103.0
    boat._on_odometry(odometry := Odometry())
    odometry.pose.pose.position.x, odometry.pose.pose.orientation.w = 2.0, 1.0
    assert boat.pose == Pose(2.0, 0.0, 0.0, 0.0)


def test_actions_of_the_vehicle_are_named(boat, graph):
    graph.services = dict.fromkeys(["/boat/land/_action/send_goal", "/bus/go_to/_action/send_goal"], "")
    assert (boat.serves("land"), boat.serves("go_to")) == (True, False)
    with pytest.raises(VehicleError, match=r"The vehicle /boat has no go_to: it has land\."):
        boat._wait_for_server("go_to", SimpleNamespace(server_is_ready=lambda: False))
    del graph.services["/boat/land/_action/send_goal"]
    for there in (
        r"; there is /bus/go_to: the namespace is /bus\.",
        r": start a controller \(goals:=true in launch files\)\.",
    ):
        with pytest.raises(VehicleError, match=f"No node serves /boat/go_to{there}"):
            boat._wait_for_server("go_to", SimpleNamespace(server_is_ready=lambda: False))
        graph.services.clear()


class Controller:
    """Client of an action, whose server is there, and takes a goal at the second request."""

    def __init__(self, status, result):
        self.goals, self.is_there = [], True
        ended = SimpleNamespace(done=lambda: True, result=lambda: SimpleNamespace(status=status, result=result))
        self.handle = SimpleNamespace(get_result_async=lambda: ended)

    def server_is_ready(self):
        return self.is_there

    def send_goal_async(self, goal):
        self.goals.append(goal)
        number = len(self.goals)
        return SimpleNamespace(done=lambda: number == 2, result=lambda: self.handle)


def test_a_goal_is_sent_again_until_it_is_answered(boat, now_s):
    boat._clients["go_to"] = controller = Controller(GoalStatus.STATUS_SUCCEEDED, GoTo.Result(message="Reached."))
    assert boat._complete("go_to", GoTo, "goal") == "Reached."
    assert (controller.goals, boat._commanded, boat._newest) == (["goal"] * 2, {"go_to"}, "goal")
    assert 102.0 <= now_s[0] < 103.0


@pytest.mark.parametrize("code", [GoTo.Result.REPLACED, GoTo.Result.CANCELED])
def test_a_script_that_ends_holds_unless_another_goal_replaced_its_own(boat, graph, capsys, code):
    graph.services = {HOLD: SERVICE_TYPE}
    boat._clients["go_to"] = Controller(GoalStatus.STATUS_ABORTED, GoTo.Result(error_code=code, message="Ended."))
    with pytest.raises(VehicleError, match="Ended"), boat:
        boat._complete("go_to", GoTo, "goal")
    is_held = code != GoTo.Result.REPLACED
    assert ((HOLD, True) in graph.calls) is is_held
    assert ("Ended by VehicleError. /boat/boat_bridge: Held." in capsys.readouterr().err) is is_held


def test_a_script_that_has_commanded_nothing_holds_nothing(boat, graph):
    graph.services = {HOLD: SERVICE_TYPE}
    with pytest.raises(KeyboardInterrupt), boat:
        raise KeyboardInterrupt
    assert graph.calls == []


def test_a_script_is_ended_by_other_signals_like_by_ctrl_c(monkeypatch):
    handled = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_IGN, signal.SIGTSTP: signal.SIG_DFL}
    monkeypatch.setattr(module.signal, "getsignal", handled.get)
    monkeypatch.setattr(module.signal, "signal", handled.__setitem__)
    module._end_like_by_ctrl_c()
    interrupt = signal.default_int_handler
    assert handled == {signal.SIGTERM: interrupt, signal.SIGHUP: signal.SIG_IGN, signal.SIGTSTP: interrupt}


def test_a_server_that_is_gone_ends_the_wait_for_a_result(boat):
    boat._clients["go_to"] = controller = Controller(GoalStatus.STATUS_SUCCEEDED, GoTo.Result())

    def end():
        controller.is_there = False
        return SimpleNamespace(done=lambda: False)

    controller.handle.get_result_async = end
    with pytest.raises(VehicleError, match="The node that served /boat/go_to is gone"):
        boat._complete("go_to", GoTo, "goal")
