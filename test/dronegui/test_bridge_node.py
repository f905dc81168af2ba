# SPDX-License-Identifier: Apache-2.0
"""Functions of the node dronegui_bridge beside its session, without ROS."""

from types import SimpleNamespace

import pytest

from drone_bridge.dronegui.bridge import DroneGuiBridge
from drone_bridge.dronegui.codec import Controls
from drone_bridge.dronegui.session.controller import SentPacket


class Node:
    """Stand-in for a node that publishes."""

    _sent_states, _frame_id = "dronegui/state", "base_link"

    def __init__(self):
        self.published = []

    def is_wanted(self, publisher):
        return True

    def publish(self, publisher, message):
        self.published.append((publisher, message.seq))

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: None))


@pytest.mark.parametrize("is_out", [True, False])
def test_only_packets_that_went_out_are_published(monkeypatch, is_out):
    node = Node()
    made = SimpleNamespace(seq=7, header=SimpleNamespace(frame_id=""))
    monkeypatch.setattr("drone_bridge.dronegui.bridge.drone_gui_state", lambda *_: made)
    DroneGuiBridge.publish_event(node, SentPacket(7, Controls(hover=True), is_out))
    assert node.published == ([("dronegui/state", 7)] if is_out else [])
