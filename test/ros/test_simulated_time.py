# SPDX-License-Identifier: Apache-2.0
"""Tests of the watch of a node on simulated time, without a graph."""

from types import SimpleNamespace

from drone_bridge.ros.node.simulated_time import REPORTS, TimeWatch, clock_conflict


def test_a_clock_that_nobody_publishes_is_reported_until_it_runs():
    clock = SimpleNamespace(ros_time_is_active=True, now=lambda: now)
    now = SimpleNamespace(nanoseconds=0)
    watch = TimeWatch(SimpleNamespace(get_clock=lambda: clock))
    assert [watch.facts(False) for _ in range(REPORTS + 2)] == [None] * REPORTS + [{}, {}]
    assert watch.facts(True) is None
    now.nanoseconds = 1
    assert [watch.facts(False) for _ in range(2 * REPORTS)] == [None] * 2 * REPORTS


def test_a_publisher_whose_node_is_not_known_yet_is_no_second_one():
    names = ["bridge", "_NODE_NAME_UNKNOWN_"]  # as for a moment after the start of a bridge
    node = SimpleNamespace(
        get_publishers_info_by_topic=lambda _: [SimpleNamespace(node_name=name, node_namespace="/") for name in names]
    )
    assert clock_conflict(node, "/odom") is None
    names += ["player"]
    assert clock_conflict(node, "/odom") == {"nodes": "/bridge and /player", "topic": "/odom"}
