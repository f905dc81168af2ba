# SPDX-License-Identifier: Apache-2.0
"""The bridge of a robot in one class, without a node: which requests pass while the robot is silent."""

import pytest
from own_robots import Pioneer, Tello
from robot_class_talk import ClientTalk

from drone_bridge.robot_class.client_session import CONNECTED, GREETING, WAITING

Bridge = Tello.KIND.bridge.make


class Node:
    """Node of a session in a state, whose report says that the robot can't be reached."""

    has_link, robot = True, Tello

    def __init__(self, state):
        talk = ClientTalk(Tello)
        self._session = talk.session
        if state != WAITING:
            talk.connect(*[b"ok"] * (state == CONNECTED))
        assert self._session.state == state

    def undeliverable(self):
        return "robot has been silent for 3 s."


@pytest.mark.parametrize(
    ("name", "state", "passes"),
    [
        *(("land", state, True) for state in (GREETING, CONNECTED)),
        *(("emergency", state, True) for state in (GREETING, CONNECTED)),
        *(("takeoff", state, False) for state in (GREETING, CONNECTED, WAITING)),
        ("land", WAITING, False),
    ],
)
def test_only_requests_that_end_a_flight_reach_a_silent_robot(name, state, passes):
    assert (Bridge._refusal(Node(state), name) is None) == passes


def test_only_a_robot_with_a_login_has_the_parameter_that_names_its_source():
    secured = type("Secured", (Pioneer,), {"name": "secured", "login": ""})
    own, others = ({each.name for each in robot.parts.bridge_parameters} for robot in (secured, Pioneer))
    assert own - others == {"login"}
