# SPDX-License-Identifier: Apache-2.0
"""Goals of the page: sending them to a controller, and reporting their state."""

import math
from types import SimpleNamespace

from played_vehicle import Vehicle
from processes import Process
from ros_session import Inbox, wait_until

from drone_bridge.tools.web.goals import Goals, Place, goal_of


def action_of(ros):
    return goal_of("", dict(ros.node.get_service_names_and_types()), ros.node)


class Graph:
    """Node that lists the publishers and subscriptions of topics."""

    def __init__(self, odometry=(), goals=()):
        self.odometry, self.goals = odometry, goals

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


def test_a_goal_of_the_page_is_an_action_that_reports_its_progress(ros):
    told = Inbox()
    goals = Goals(ros.node, lambda topic, state: told.put(state))
    goals.set("/cmd_vel", "", Place("odom", 1.0, 0.0, 0.0))
    assert told.wait()["state"] == "refused"
    with Process.node("drone_controller", behaviour="goals"):
        vehicle = Vehicle(ros)
        wait_until(lambda: action_of(ros) == "/go_to", "the action")
        goals.set("/cmd_vel", "/go_to", Place("odom", 2.0, 1.0, 1.0))
        going = told.wait(lambda state: state["state"] == "going" and (state.get("distance") or 9.0) < 1.5)
        assert math.isfinite(going["left_s"])
        done = told.wait(lambda state: state["state"] == "done")
        assert done["text"].startswith("Reached x 2.00 y 1.00 z 1.00 m")
        assert math.dist(vehicle.position, (2, 1, 1)) < 0.15
        goals.set("/cmd_vel", "/go_to", Place("odom", 1000.0, 0.0, 0.0))
        told.wait(lambda state: state.get("distance"))
        goals.cancel("/cmd_vel")
        assert told.wait(lambda state: state["state"] == "ended")["text"] == "Canceled."
        goals.set("/cmd_vel", "/go_to", Place("nowhere", 0.0, 0.0, 0.0))
        assert told.wait(lambda state: state["state"] == "ended")["text"].startswith("No transform from nowhere")
