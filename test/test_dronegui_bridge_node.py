# SPDX-License-Identifier: Apache-2.0
"""What dronegui_bridge does beside its session: the node's functions alone, without ROS."""

from types import SimpleNamespace

import pytest
from std_srvs.srv import SetBool

from drone_bridge.dronegui.bridge import DroneGuiBridge
from drone_bridge.dronegui.codec import Controls
from drone_bridge.dronegui.session.controller import SentPacket
from drone_bridge.dronegui.session.flight_watch import FlightWatch

PRESSES_RESET = "takeoff will press reset, which stops the motors of a drone that flies."


class Node:
    """What those functions ask of a node."""

    has_link = True

    def __init__(self, *, bootstrap=True):
        self.parameters = {"bootstrap": bootstrap}
        self.posted, self.published = [], []
        self._sent_states, self._frame_id = "dronegui/state", "base_link"
        self._watch = FlightWatch(lambda: 1.0)
        self._session = SimpleNamespace(is_open=False, take_word=self._watch_word)
        self._requests = None

    def _watch_word(self, is_flying, now_s):
        return is_flying, now_s

    def check_age(self, name):
        assert name == "assume_flying"

    def post(self, work, *, is_kept):
        assert is_kept  # as it is not to get lost with the link
        if self.has_link:
            self.posted.append(work)
        return self.has_link

    def is_wanted(self, publisher):
        return True

    def publish(self, publisher, message):
        self.published.append((publisher, message.seq))

    def get_clock(self):
        return SimpleNamespace(now=lambda: SimpleNamespace(to_msg=lambda: None))

    _take_word = DroneGuiBridge._take_word


def assume(node, is_flying):
    serving = DroneGuiBridge._serve_assume_flying(node, SetBool.Request(data=is_flying), SetBool.Response())
    with pytest.raises(StopIteration) as ended:
        serving.send(None)
    response = ended.value.value
    assert response.success
    return response.message


def test_a_word_is_taken_at_once_while_the_link_is_not_open_and_posted_to_the_session():
    node = Node()
    assert assume(node, True) == "The drone is assumed to fly."
    (work,) = node.posted
    assert work(1.0) == (True, 1.0)
    assert node._watch.is_flying(0.0) is None  # which is the session's to say


@pytest.mark.parametrize("was_active", [True, False])
def test_a_word_is_taken_while_the_node_is_inactive(was_active):
    node = Node()
    node.has_link = False
    if not was_active:
        node._session = None
    node._watch.was_reset_pressed = True  # which the next activation forgets
    assert assume(node, False) == f"The drone is assumed to be on the ground. {PRESSES_RESET}"
    assert node._watch.is_flying(0.0) is False


@pytest.mark.parametrize("why_not", ["parameter", "pressed already"])
def test_no_reset_is_announced_where_none_will_be_pressed(why_not):
    node = Node(bootstrap=why_not != "parameter")
    node._watch.was_reset_pressed = why_not == "pressed already"
    assert assume(node, False) == "The drone is assumed to be on the ground."


@pytest.mark.parametrize("is_out", [True, False])
def test_only_packets_that_went_out_are_published(monkeypatch, is_out):
    node = Node()
    made = SimpleNamespace(seq=7, header=SimpleNamespace(frame_id=""))
    monkeypatch.setattr("drone_bridge.dronegui.bridge.drone_gui_state", lambda *_: made)
    DroneGuiBridge.publish_event(node, SentPacket(7, Controls(hover=True), is_out))
    assert node.published == ([("dronegui/state", 7)] if is_out else [])
