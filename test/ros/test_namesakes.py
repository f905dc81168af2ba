# SPDX-License-Identifier: Apache-2.0
"""Two nodes with one name: detected once the other can't be a remembered killed node."""

import pytest

from drone_bridge.ros.node import namesakes

OTHERS = [("robot_bridge", "/other"), ("web_bridge", "/")]
OWN = ("robot_bridge", "/")


class Node:
    """Node in a graph."""

    def __init__(self):
        self.graph = [OWN, *OTHERS]
        self.looks = 0

    def get_name(self):
        return OWN[0]

    def get_namespace(self):
        return OWN[1]

    def get_fully_qualified_name(self):
        return "/robot_bridge"

    def get_node_names_and_namespaces(self):
        self.looks += 1
        return self.graph


@pytest.fixture
def now_s(monkeypatch):
    now_s = [100.0]
    monkeypatch.setattr(namesakes, "elapsed_s", lambda: now_s[0])
    return now_s


def problems(watch, now_s, seconds):
    """Reports, by second."""
    said = []
    for _ in range(seconds):
        now_s[0] += 1.0
        said.append(watch.problem())
    return said


def test_a_node_of_its_own_name_and_namespace_is_alone(now_s):
    node = Node()
    assert problems(namesakes.Namesakes(node), now_s, 120) == [None] * 120
    assert node.looks == 24  # the graph is not polled each second


def test_a_second_node_of_the_name_is_a_problem_until_it_has_gone(now_s):
    node = Node()
    watch = namesakes.Namesakes(node)
    node.graph = [OWN, *OTHERS, OWN]
    *before, said = problems(watch, now_s, 35)
    assert before == [None] * 34
    assert said == {"number": 2, "name": "/robot_bridge"}
    node.graph = [OWN]
    assert problems(watch, now_s, 5)[-1] is None


def test_a_node_that_was_killed_and_came_back_is_none(now_s):
    node = Node()
    node.graph = [OWN, OWN]  # until the middleware drops the first one
    watch = namesakes.Namesakes(node)
    assert problems(watch, now_s, 25) == [None] * 25
    node.graph = [OWN]
    assert problems(watch, now_s, 40) == [None] * 40
