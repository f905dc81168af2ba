# SPDX-License-Identifier: Apache-2.0
"""Links of datagrams: ports that are somebody else's for now, and whose datagrams are read."""

import socket

import pytest
from patience import wait_until

from drone_bridge.net import datagram_link
from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import FAILING_S, RETRY_S, DatagramPeer, PeerWithLatePort, PortWithOutlet

HOST = "127.0.0.1"


class Clock:
    now = 100.0

    def now_s(self):
        return self.now


@pytest.fixture
def peer(closing):
    """A peer's socket, for packets and from which state is sent."""
    opened = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    opened.bind((HOST, 0))
    return opened


@pytest.fixture
def taken(closing):
    """A socket on the port that state is sent to."""
    opened = closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    opened.bind((HOST, 0))
    return opened


def link_to(peer, state_port, closing, said, clock=None):
    made = PeerWithLatePort(
        HOST,
        peer.getsockname()[1],
        state_port,
        lambda *_: None,
        on_port=lambda address, problem: said.append((address, bool(problem))),
        clock=clock or Clock(),
    )
    made.open()
    return closing(made)


def received(link):
    """Wait for a datagram."""
    found = []
    wait_until(lambda: (datagram := link.receive()) and found.append(datagram) is None, "a datagram")
    return found[0]


def test_a_port_that_is_somebody_elses_is_tried_again_and_had_then(peer, taken, closing):
    said, clock, port = [], Clock(), taken.getsockname()[1]
    link = link_to(peer, port, closing, said, clock)
    assert (said, "Address already in use" in link.problem) == ([(f"{HOST}:{port}", True)], True)
    taken.close()
    assert link.receive() is None
    assert len(said) == 1  # not yet
    clock.now += RETRY_S
    assert link.receive() is None
    assert (said[1:], link.problem) == ([(f"{HOST}:{port}", False)], "")
    peer.sendto(b"state", (HOST, port))
    assert received(link).data == b"state"
    assert link.peer_host == HOST


def test_what_comes_back_to_the_port_of_packets_is_not_read(peer, taken, closing):
    said, port = [], taken.getsockname()[1]
    taken.close()
    link = link_to(peer, port, closing, said)
    link.send(b"packet", None)
    _, source = peer.recvfrom(100)
    for number in range(100):
        peer.sendto(b"nonsense %d" % number, source)
    peer.sendto(b"state", (HOST, port))
    assert received(link).data == b"state"


def test_a_link_without_a_port_for_state_receives_nothing(peer, closing):
    said = []
    link = link_to(peer, None, closing, said)
    assert (link.receive(), link.problem, said, len(link.files())) == (None, "", [], 1)


def test_everything_is_sent_from_the_outlet(peer, taken, closing):
    for wanted in (taken.getsockname()[1], 0):  # which is somebody else's
        link = closing(PortWithOutlet(HOST, 0, wanted))
        assert bool(link.problem) == bool(wanted)
        link.send(b"state", peer.getsockname())
        data, source = peer.recvfrom(100)
        assert (data, source[1]) == (b"state", link.outlet.port)
        peer.sendto(b"packet", (HOST, link.port))
        assert received(link).data == b"packet"
        assert link.loopback_host == HOST


def test_a_port_that_is_taken_is_refused(taken):
    with pytest.raises(LinkError, match="Address already in use"):
        PortWithOutlet(HOST, taken.getsockname()[1], 0)


def test_a_link_by_which_nothing_can_be_sent_for_long_is_opened_again(peer, closing, monkeypatch):
    """As after a change of this machine's address."""
    now_s = [100.0]
    monkeypatch.setattr(datagram_link, "elapsed_s", lambda: now_s[0])
    link = closing(DatagramPeer(*peer.getsockname(), lambda *_: None))
    link.open()
    too_long = bytes(70_000)

    def fail():
        with pytest.raises(LinkError, match="Nothing can be sent to"):
            link.send(too_long, None)

    fail()
    now_s[0] += FAILING_S + 0.1
    link.send(b"one that goes out", None)
    assert link.receive() is None
    fail()
    now_s[0] += FAILING_S - 0.1
    fail()
    assert link.receive() is None
    now_s[0] += 0.2
    with pytest.raises(LinkError, match="Nothing could be sent"):
        link.receive()
    link.open()
    assert link.receive() is None
