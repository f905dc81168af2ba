# SPDX-License-Identifier: Apache-2.0
"""How a node leaves its link, and what it publishes meanwhile, without DDS."""

import threading
from collections import Counter
from types import SimpleNamespace

import pytest

from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.publishers import PUBLISHER_ERRORS


@pytest.mark.parametrize("is_ended", [True, False])
@pytest.mark.parametrize("is_flushed", [True, False])
@pytest.mark.parametrize("has_log", [True, False])
@pytest.mark.parametrize("has_loop", [True, False])
def test_a_node_leaves_once_and_says_what_did_not_end(has_loop, has_log, is_flushed, is_ended):
    done, logged = [], []

    def step(name, result=None):
        return lambda: done.append(name) or result

    node = SimpleNamespace(
        _leaving=threading.Lock(),
        _loop=SimpleNamespace(stop=step("stop", is_ended)) if has_loop else None,
        _return_keeper=step("keeper"),
        link_ended=step("ended"),
        wire_log=SimpleNamespace(close=step("log", is_flushed)) if has_log else None,
        hold=SimpleNamespace(finish=step("hold")),
        report=SimpleNamespace(end_condition=lambda name: None),
        get_logger=lambda: SimpleNamespace(error=logged.append),
        _is_publishing=True,
    )
    ProtocolNode.leave(node)
    assert done == ["stop", "keeper", "ended"] * has_loop + ["log"] * has_log + ["hold"]
    assert len(logged) == (has_loop and not is_ended) + (has_log and not is_flushed)
    assert not node._is_publishing
    done.clear()
    ProtocolNode.leave(node)
    assert done == ["hold"]


@pytest.mark.parametrize("is_publishing", [True, False])
def test_a_node_that_has_left_publishes_nothing_and_counts_failures(is_publishing):
    def fail(message):
        raise PUBLISHER_ERRORS[0]

    node = SimpleNamespace(_is_publishing=is_publishing, report=SimpleNamespace(counts=Counter()))
    ProtocolNode.publish(node, SimpleNamespace(publish=fail), "message")
    assert node.report.counts == Counter(dropped_messages=1 if is_publishing else 0)


def test_what_configure_registered_is_undone_at_cleanup():
    done = []
    node = SimpleNamespace(cleanup=SimpleNamespace(close=lambda: done.append("cleanup")), _kept_subscriptions=["odom"])
    node.destroy_subscription = done.append
    ProtocolNode._clean_up(node)
    assert done == ["cleanup", "odom"]
