# SPDX-License-Identifier: Apache-2.0
"""Goals of the page: sending them to a controller, and reporting their state."""

import math
from types import SimpleNamespace
from unittest.mock import Mock

import browser as chromium
import pytest
from played_vehicle import Vehicle
from processes import Process
from rclpy.clock import Clock
from rclpy.task import Future
from ros_session import Inbox, wait_until

from drone_bridge.tools.web.client_goals import ClientGoals
from drone_bridge.tools.web.goals import Goals, Place, goal_of

browser = chromium.module_browser()


def action_of(ros):
    return goal_of("", dict(ros.node.get_service_names_and_types()), ros.node)


class Graph:
    """Node that lists the publishers and subscriptions of topics, and counts the servers of the action."""

    def __init__(self, odometry=(), goals=(), servers=1):
        self.odometry, self.goals, self.servers = odometry, goals, servers

    def count_services(self, name):
        return self.servers if name == "/d1/go_to/_action/send_goal" else 0

    def get_publishers_info_by_topic(self, topic):
        return [SimpleNamespace(topic_type=each) for each in self.odometry if topic == "/d1/odom"]

    def get_subscriptions_info_by_topic(self, topic):
        return [SimpleNamespace(topic_type=each) for each in self.goals if topic == "/d1/goal_pose"]


def test_goals_are_accepted_only_with_odometry():
    action = {"/d1/go_to/_action/send_goal": ["drone_bridge/action/GoTo_SendGoal"]}
    odometry, pose = ("nav_msgs/msg/Odometry",), ("geometry_msgs/msg/PoseStamped",)
    assert goal_of("/d1", action, Graph()) == ""
    assert goal_of("/d1", {}, Graph(goals=pose)) == ""
    assert goal_of("/d1", action, Graph(odometry=pose)) == ""
    assert goal_of("/d1", action, Graph(odometry)) == "/d1/go_to"
    assert goal_of("/d1", {}, Graph(odometry, pose)) == "/d1/goal_pose"


def test_an_action_that_only_clients_know_accepts_no_goals():
    """Its controller has ended, or has not started."""
    action = {"/d1/go_to/_action/send_goal": ["drone_bridge/action/GoTo_SendGoal"]}
    odometry, pose = ("nav_msgs/msg/Odometry",), ("geometry_msgs/msg/PoseStamped",)
    assert goal_of("/d1", action, Graph(odometry, servers=0)) == ""
    assert goal_of("/d1", action, Graph(odometry, pose, servers=0)) == "/d1/goal_pose"


@pytest.fixture
def asked():
    """Goals of one vehicle, whose controller has not responded to any yet: goals, sent states, and requests."""
    told, requests, clients = [], [], {}

    def make_client(node, kind, name):
        send = lambda *_: requests.append(Future()) or requests[-1]  # noqa: E731
        clients[name] = Mock(send_goal_async=send, destroy=lambda: clients.pop(name))
        return clients[name]

    node, inbox = Mock(get_clock=Clock), Mock(put=lambda work: work())
    goals = Goals(node, ClientGoals(node, inbox, make_client), lambda topic, state: told.append(state["state"]))
    goals.set("/cmd_vel", "/go_to", Place("odom", 2.0, 1.0, 1.0))
    goals.clients = clients
    return goals, told, requests


def accept(request):
    handle = Mock(accepted=True, get_result_async=Future)
    request.set_result(handle)
    return handle.cancel_goal_async


def test_a_goal_that_is_canceled_before_its_controller_responds_is_not_flown(asked):
    goals, told, [request] = asked
    goals.cancel("/cmd_vel")
    assert told == ["ended"]
    accept(request).assert_called_once()
    assert told == ["ended"]


def test_cancel_ends_a_goal_and_the_one_that_has_just_been_sent(asked):
    goals, told, requests = asked
    cancel_first = accept(requests[0])
    goals.set("/cmd_vel", "/go_to", Place("odom", 3.0, 1.0, 1.0))
    cancel_first.assert_not_called()
    goals.cancel("/cmd_vel")
    cancel_first.assert_called_once()
    accept(requests[1]).assert_called_once()
    assert told == ["ended"]


def test_an_action_has_a_client_while_it_is_shown_or_its_goal_is_followed(asked):
    goals, told, [request] = asked
    goals.show({"/d1/go_to", "/d2/goal_pose", ""})
    assert goals.clients.keys() == {"/go_to", "/d1/go_to"}
    goals.show(set())
    assert goals.clients.keys() == {"/go_to"}
    request.set_result(Mock(accepted=False))
    assert (goals.clients, told) == ({}, ["refused"])


def test_a_goal_whose_controller_is_killed_is_reported(asked):
    goals, told, [request] = asked
    accept(request)
    for is_there in (True, False):
        goals.clients["/go_to"].server_is_ready.return_value = is_there
        goals.show(set())
    assert told == ["refused"]


def test_a_goal_of_the_page_is_an_action_that_reports_its_progress(ros):
    told = Inbox()
    goals = Goals(ros.node, ClientGoals(ros.node, Mock(put=lambda work: None)), lambda topic, state: told.put(state))
    ros.create_task(goals.set, "/cmd_vel", "", Place("odom", 1.0, 0.0, 0.0))
    assert told.wait()["state"] == "refused"
    with Process.node("drone_controller", behaviour="goals"):
        vehicle = Vehicle(ros)
        wait_until(lambda: action_of(ros) == "/go_to", "the action")
        ros.create_task(goals.set, "/cmd_vel", "/go_to", Place("odom", 2.0, 1.0, 1.0))
        going = told.wait(lambda state: state["state"] == "going" and (state.get("distance") or 9.0) < 1.5)
        assert math.isfinite(going["left_s"])
        done = told.wait(lambda state: state["state"] == "done")
        assert done["text"].startswith("Reached x 2.00 y 1.00 z 1.00 m")
        assert math.dist(vehicle.position, (2, 1, 1)) < 0.15
        ros.create_task(goals.set, "/cmd_vel", "/go_to", Place("odom", 1000.0, 0.0, 0.0))
        told.wait(lambda state: state.get("distance"))
        ros.create_task(goals.cancel, "/cmd_vel")
        assert told.wait(lambda state: state["state"] == "ended")["text"] == "Canceled."
        ros.create_task(goals.set, "/cmd_vel", "/go_to", Place("nowhere", 0.0, 0.0, 0.0))
        assert told.wait(lambda state: state["state"] == "ended")["text"].startswith("No transform from nowhere")
