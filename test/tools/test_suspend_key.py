# SPDX-License-Identifier: Apache-2.0
"""Ctrl-Z at the terminal of a program that starts others."""

import re
import signal

import pytest
from patience import wait_until
from processes import executable

from drone_bridge.ros.hold.wish_file import EVERY_NODE, WishFiles
from drone_bridge.tools.shared import suspend_key


def outcome(nodes, monkeypatch):
    """Hold nodes for a moment. Return the sentence, and the names in wish files then, by domain."""
    said = []
    monkeypatch.setattr(suspend_key, "HELD_S", 0.0)
    read = lambda: {number: [wish.name for wish in WishFiles(number).read()] for number in (7, 8)}  # noqa: E731
    suspend_key.hold_briefly(nodes, lambda sentence: said.append((sentence, read())))
    wait_until(lambda: said and not any(read().values()), "the end of the wish")
    return said[0]


def test_nodes_are_held_for_a_moment_in_their_domains(monkeypatch, tmp_path):
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    sentence, names = outcome([(7, "/a/bridge"), (8, "/bridge"), (7, "/b/bridge")], monkeypatch)
    assert names == {7: ["/a/bridge", "/b/bridge"], 8: ["/bridge"]}
    assert re.search("suspends nothing.*holds the vehicles.*drone-bridge resume.*Ctrl-C", sentence)


@pytest.mark.parametrize(("nodes", "says"), [([(7, "/bridge")], "can't hold the vehicles"), ([], "nothing; Ctrl-C")])
def test_nothing_is_promised_that_is_not_so(monkeypatch, tmp_path, nodes, says):
    (tmp_path / "held").write_text("no folder")
    monkeypatch.setenv("ROS_HOME", str(tmp_path))
    assert says in outcome(nodes, monkeypatch)[0]


def test_ctrl_z_at_the_page_holds_all_and_the_page_stays(start_child, domain):
    page = start_child(executable("drone-bridge"), "view", "--port", "0", "--no-browser")
    page.wait_for_line("Open in a browser")
    page.send(signal.SIGTSTP)
    page.wait_for_line("Ctrl-Z suspends nothing, and holds")
    assert [wish.name for wish in WishFiles(domain).read()] == [EVERY_NODE]
    page.send(signal.SIGINT)
    assert page.wait() == 0
