# SPDX-License-Identifier: Apache-2.0
"""How a node leaves its link, and what it publishes meanwhile, without DDS."""

import functools
import threading
from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from drone_bridge.msg import HoldStatus
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import LinkError
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.publishers import PUBLISHER_ERRORS
from drone_bridge.session.duplicate_nodes import DuplicateNodes
from drone_bridge.session.obstacles import Obstacle


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
        _sign=step("sign"),
        hold=SimpleNamespace(finish=step("hold")),
        report=SimpleNamespace(end_condition=done.append),
        get_logger=lambda: SimpleNamespace(error=logged.append),
        _is_publishing=True,
    )
    ProtocolNode.leave(node)
    of_link = ["stop", Obstacle.UNREACHABLE.key, "keeper", "ended"]
    assert done == of_link * has_loop + ["log"] * has_log + ["sign", "hold"]
    assert len(logged) == (has_loop and not is_ended) + (has_log and not is_flushed)
    assert not node._is_publishing
    done.clear()
    ProtocolNode.leave(node)
    assert done == ["sign", "hold"]


@pytest.mark.parametrize("is_publishing", [True, False])
def test_a_node_that_has_left_publishes_nothing_and_counts_failures(is_publishing):
    fail = Mock(side_effect=PUBLISHER_ERRORS[0])
    node = SimpleNamespace(_is_publishing=is_publishing, report=SimpleNamespace(counts=Counter()))
    ProtocolNode.publish(node, SimpleNamespace(publish=fail), "message")
    assert node.report.counts == Counter(dropped_messages=1 if is_publishing else 0)


def test_what_configure_registered_is_undone_at_cleanup():
    done = []
    node = SimpleNamespace(cleanup=SimpleNamespace(close=lambda: done.append("cleanup")), _kept_subscriptions=["odom"])
    node.destroy_subscription = done.append
    ProtocolNode.clean_up(node)
    assert done == ["cleanup", "odom"]


def test_a_new_node_gives_way_until_the_other_one_of_its_name_has_left():
    done = []
    node = SimpleNamespace(
        _duplicates=DuplicateNodes("b", elapsed_s()), has_link=True, get_fully_qualified_name=lambda: "/robot_bridge"
    )
    for name in ("trigger_deactivate", "trigger_cleanup", "start"):
        setattr(node, name, functools.partial(done.append, name))
    ProtocolNode._follow_duplicate(node, HoldStatus(run="b", is_active=True, is_settled=True))
    ProtocolNode._follow_duplicate(node, HoldStatus(run="c", is_active=True))
    ProtocolNode._check_duplicates(node)
    assert not done
    ProtocolNode._follow_duplicate(node, HoldStatus(run="a", is_active=True))
    assert done == ["trigger_deactivate", "trigger_cleanup", "start"]
    with pytest.raises(LinkError, match="/robot_bridge"):
        ProtocolNode._check_duplicates(node)
    node.has_link = False
    ProtocolNode._follow_duplicate(node, HoldStatus(run="a", is_active=True))
    ProtocolNode._follow_duplicate(node, HoldStatus(run="a", is_settled=True))
    ProtocolNode._check_duplicates(node)
    assert len(done) == 3
