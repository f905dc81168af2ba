# SPDX-License-Identifier: Apache-2.0
"""A node whose activation fails half-way: what it has opened by then."""

import os
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from rclpy.lifecycle import TransitionCallbackReturn

from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.net.wire_log import WireLog
from drone_bridge.ros.node.protocol_node import ProtocolNode

LINKS = (
    lambda: TcpPort("127.0.0.1", 0),
    lambda: TcpPeer("127.0.0.1", 9, print),
    lambda: DatagramPort("127.0.0.1", 0),
    lambda: DatagramPeer("127.0.0.1", 9, print),
)


def node(make_link, folder, **steps):
    """Return the steps of an activation. Given ones replace those that succeed."""
    made = SimpleNamespace(
        _open_wire_log=lambda: WireLog(folder, "log", {}, print),
        make_transport=make_link,
        make_session=lambda: None,
        _borrowed_keeper=lambda: None,
        _return_keeper=lambda: None,
        link_begins=lambda: None,
        link_ended=lambda: None,
        _check_duplicates=lambda: None,
        _sign=lambda: None,
        report=SimpleNamespace(start_link=lambda: None),
        observed=SimpleNamespace(restart=lambda: None),
        parameters=SimpleNamespace(publish=lambda *_: None),
        get_name=lambda: "node",
        get_logger=lambda: SimpleNamespace(error=print),
        note=None,
        intake=None,
        context=SimpleNamespace(ok=lambda: True),
        transition_failed=print,
        wire_log=None,
    )
    vars(made).update(steps)
    return made


@pytest.mark.parametrize("make_link", LINKS, ids=("TcpPort", "TcpPeer", "DatagramPort", "DatagramPeer"))
@pytest.mark.parametrize("step", ["make_transport", "make_session", "link_begins"])
@pytest.mark.parametrize("error", [LinkError("taken."), ValueError("wrong."), OSError("a fault")])
def test_an_activation_that_fails_half_way_leaves_nothing_open(make_link, step, error, tmp_path):
    failing = node(make_link, tmp_path, **{step: Mock(side_effect=error)})
    before = sorted(os.listdir("/dev/fd"))
    expected = TransitionCallbackReturn.ERROR if isinstance(error, OSError) else TransitionCallbackReturn.FAILURE
    assert ProtocolNode.on_activate(failing, None) is expected
    assert sorted(os.listdir("/dev/fd")) == before
    assert failing.wire_log is None


def test_an_activation_that_fails_last_ends_what_runs_beside_the_link(tmp_path):
    ended = []
    failing = node(LINKS[0], tmp_path, link_ended=lambda: ended.append(1))
    failing.parameters.publish = Mock(side_effect=ValueError("a fault"))
    before = sorted(os.listdir("/dev/fd"))
    ProtocolNode.on_activate(failing, None)
    assert ended == [1]
    assert sorted(os.listdir("/dev/fd")) == before
