# SPDX-License-Identifier: Apache-2.0
"""Goals of the page: sending them to a controller, and reporting their state."""

import math

from played_vehicle import Vehicle
from processes import Process
from ros_session import Inbox, wait_until

from drone_bridge.tools.web.goals import Goals, Place, goal_of


def action_of(ros):
    return goal_of("", dict(ros.node.get_service_names_and_types()), ros.node)


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
