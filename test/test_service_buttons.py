# SPDX-License-Identifier: Apache-2.0
"""What dronegui_server says of a drone's services that it can't call."""

import pytest
from plain_node import PlainNode

from drone_bridge.dronegui.server.buttons import ServiceButtons

TARGETS = {name: f"bridge/{name}" for name in ("takeoff", "land", "reset", "hover")}


@pytest.fixture
def node():
    node = PlainNode()
    node.conditions = []
    node.reports.update_condition = lambda name, problem, advice: node.conditions.append((problem, advice))
    node.make_timer = lambda period_s, look: setattr(node, "look", look)
    return node


def test_a_bridge_that_hangs_is_not_taken_for_a_target_that_nobody_offers(node):
    has_gone = True
    buttons = ServiceButtons(node, TARGETS, lambda name: None, lambda name: has_gone)
    buttons.press("takeoff")
    node.spin()
    node.look()
    ((problem, advice),) = node.conditions
    for sentence in (problem, *node.warned):
        assert "hangs or has ended" in sentence
        assert "no node offers" not in sentence
    assert "target" not in advice
    assert not node.called
    has_gone = False
    node.look()
    assert node.conditions[-1][0] is None


def test_a_service_that_nobody_offers_is_named_with_what_to_set(node):
    buttons = ServiceButtons(node, TARGETS, lambda name: None)
    buttons._clients["takeoff"].service_is_ready = lambda: False
    buttons.press("takeoff")
    node.spin()
    node.look()
    assert node.warned == ["takeoff was pressed, but no node offers /bridge/takeoff."]
    assert node.conditions == [("no node offers /bridge/takeoff", "set target.* to the drone's own")]
