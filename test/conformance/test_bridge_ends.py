# SPDX-License-Identifier: Apache-2.0
"""Questions to each bridge that ends, in every state of its lifecycle: what is the last word to its vehicle?"""

import signal
import time

import pytest
from ros_session import wait_until
from vehicle_pair import BridgePair, assert_nothing_moved, each_kind, shared

WATCHED_S = 0.5

kind, pair = each_kind(), shared(BridgePair)


def test_a_bridge_that_is_deactivated_while_commanded(pair, ros):
    node = f"/{pair.name}/{pair.kind.name}_bridge"
    pair.drive()
    ros.transition(node, "deactivate")
    inactive_s = time.monotonic()
    assert pair.commands.is_asked or not pair.commands.is_moving
    time.sleep(WATCHED_S)
    assert_nothing_moved(pair.commands, inactive_s)
    pair.stop()
    ros.transition(node, "cleanup", "configure", "activate")
    pair.drive()


@pytest.mark.parametrize(
    ("state", "number"),
    [
        ("unconfigured", signal.SIGTERM),
        ("inactive", signal.SIGINT),
        ("active", signal.SIGTERM),
        ("active", signal.SIGINT),
    ],
)
def test_a_bridge_that_is_told_to_end(pair, ros, state, number):
    """At last, as it is another one each time."""
    pair.stop()
    if pair.program.is_running:
        assert pair.program.stop() == 0
    pair.start_program(() if state == "active" else ("-p", "autostart:=false"))
    started_s = time.monotonic()
    node = f"/{pair.name}/{pair.kind.name}_bridge"
    if state == "inactive":
        ros.transition(node, "configure")
    elif state == "unconfigured":
        wait_until(lambda: node.rpartition("/")[2] in ros.node.get_node_names(), "the node")
    else:
        pair.drive()
    status = pair.program.stop(number)
    assert status == 0, pair.program.output
    assert "Traceback" not in pair.program.output
    if state == "active":
        assert not pair.commands.is_moving
    else:
        assert_nothing_moved(pair.commands, started_s)
