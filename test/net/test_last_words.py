# SPDX-License-Identifier: Apache-2.0
"""LastWordsKeeper and Sender: words of a process that ends or stalls, by real sockets and a pseudo-terminal."""

import contextlib
import math
import os
import pty
import select
import socket
import threading
import tty

import pytest
from patience import TIMEOUT_S, wait_until
from tcp_peer import Task

from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.last_words import LastWordsKeeper, shared_memory
from drone_bridge.net.last_words_sender import ROUNDS, Sender
from drone_bridge.net.serial_line import SerialLine
from drone_bridge.net.tcp_peer import TcpPeer
from drone_bridge.session.session import LastWords

MOVE, NEUTRAL, BYE = b"move 1.00\n", b"neutral00\n", b"bye\n"
LONG_S = 1000.0


class Child:
    """Sender in a thread, and the keeper that it serves."""

    def __init__(self):
        self.memory = shared_memory()
        self._threads = []
        self.keeper = LastWordsKeeper(self.memory, self.start())
        self.keeper.command_timeout = lambda: LONG_S

    def start(self):
        """Start another sender. Return the keeper's end of its socket."""
        self.ours, control = socket.socketpair()
        sender = Sender(control.detach(), self.memory)
        self._threads.append(threading.Thread(target=sender.run, daemon=True))
        self._threads[-1].start()
        return self.ours

    def end(self):
        """End the process that keeps the words, as far as the sender can see."""
        self.ours.close()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive()


@pytest.fixture
def child():
    child = Child()
    yield child
    child.end()
    os.close(child.memory)


@pytest.fixture
def datagrams(udp_socket):
    """Link, and the socket of its peer."""
    link, peer = DatagramPort("127.0.0.1", 0), udp_socket()
    link.peer = peer.getsockname()
    yield link, peer
    with contextlib.suppress(OSError):
        link.close()


def assert_receives(peer, *datagrams):
    """Assert that these datagrams arrive, and no others."""
    assert [peer.recv(100) for _ in datagrams] == [*datagrams]
    assert not select.select([peer], [], [], 0)[0]


def read(peer, size=math.inf):
    """Return what a stream carries until this size, or its end."""
    data = b""
    while len(data) < size and (chunk := peer.recv(65536)):
        data += chunk
    return data


def keep(child, link, *last, to=None):
    """Keep neutral and these words, for the peer of a link."""
    to = to or link.peer
    child.keeper.keep(LastWords((NEUTRAL,), last, to), link.outlet_to(to))


@pytest.fixture
def stream():
    """Link with small buffers, and the socket of its peer."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        link = TcpPeer("127.0.0.1", server.getsockname()[1], lambda *_: None)
        link.open()
        peer, _ = server.accept()
    with peer:
        peer.settimeout(TIMEOUT_S)
        connection = link.receive()
        link.peer = connection.source
        yield link, peer
    link.close()


def test_datagrams_are_repeated_at_the_end(child, datagrams):
    link, peer = datagrams
    keep(child, link, BYE)
    child.end()
    assert_receives(peer, *[NEUTRAL] * ROUNDS, BYE)


def test_neutral_is_sent_during_a_stall_and_reported_afterwards(child, datagrams):
    link, peer = datagrams
    child.keeper.command_timeout = lambda: -0.1
    keep(child, link, BYE)
    assert peer.recv(100) == NEUTRAL
    assert child.keeper.was_written()
    assert child.keeper.was_written() is None


def test_a_released_port_can_be_bound_again(child, datagrams):
    link, _ = datagrams
    port = link.port
    keep(child, link)
    child.keeper.release()
    link.close()
    DatagramPort("127.0.0.1", port).close()


def test_another_child_gets_the_file_and_the_words(child, datagrams):
    link, peer = datagrams
    keep(child, link)
    child.keeper._control.close()
    wait_until(lambda: not child._threads[0].is_alive(), "the end of the first child")
    assert_receives(peer, *[NEUTRAL] * ROUNDS)  # as its node seems to have ended
    child.keeper.reconnect(child.start())
    child.keeper.moved_on()
    child.end()
    assert_receives(peer, *[NEUTRAL] * ROUNDS)


@pytest.mark.parametrize("sent", [(), (MOVE,), (MOVE, MOVE)])
def test_a_stream_ends_with_neutral(child, stream, sent):
    link, peer = stream
    for data in sent:
        keep(child, link, BYE)
        link.send(data, link.peer)
    child.end()
    link.close()
    assert read(peer) == (b"".join((*sent, NEUTRAL, BYE)) if sent else b"")


@pytest.mark.parametrize("cut", [1, 4, len(MOVE) - 1])
def test_a_message_in_pieces_is_completed(child, stream, cut):
    """The node ends between two pieces."""
    link, peer = stream
    keep(child, link, BYE)
    link.send(MOVE, link.peer)
    link.send(MOVE[:cut], link.peer, MOVE[cut:])
    child.end()
    link.close()
    assert read(peer) == MOVE + MOVE + NEUTRAL + BYE


def test_a_message_that_was_written_in_part_is_completed(child, stream):
    """The peer does not read, until the system accepts only a part of a message. Queued messages are dropped."""
    link, peer = stream
    keep(child, link)
    while not link.has_unsent(link.peer):
        link.send(MOVE * 299, link.peer)
    link.send(MOVE, link.peer)
    reader = Task(read, peer)
    child.end()
    link._by_peer[link.peer].unsent.clear()  # a killed process sends no more
    link.close()
    data = reader.result()
    assert data.endswith(NEUTRAL)
    assert set(data.split(b"\n")) == {MOVE.strip(), NEUTRAL.strip(), b""}


@pytest.mark.parametrize("continues", [True, False])
def test_a_stalled_process_may_finish_a_piece_before_its_stream_is_closed(child, stream, continues):
    link, peer = stream
    child.keeper.command_timeout = lambda: -0.1
    link.send(MOVE[:4], link.peer, MOVE[4:])
    keep(child, link)
    child.keeper.is_writing(b"")
    if continues:
        assert not child.keeper.was_written()
        child.keeper.is_writing(None)
        child.keeper.moved_on()
    assert read(peer, len(MOVE + NEUTRAL)) == MOVE + NEUTRAL
    if not continues:
        assert peer.recv(100) == b""


def test_stalled_process_that_writes_a_whole_message_is_not_waited_for(child, stream):
    """It may have been stopped there, and the vehicle moves meanwhile."""
    link, peer = stream
    child.keeper.command_timeout = lambda: -0.1
    link.send(MOVE, link.peer)
    keep(child, link)
    child.keeper.is_writing(b"")
    assert read(peer, len(MOVE + NEUTRAL)) == MOVE + NEUTRAL


def test_a_serial_line_ends_with_neutral(child):
    master, slave = pty.openpty()
    tty.setraw(slave)
    link = SerialLine(os.ttyname(slave), 115200, lambda *_: None)
    link.open()
    peer = link.receive().source
    keep(child, link, BYE, to=peer)
    link.send(MOVE, peer)
    child.end()
    data = b""
    while len(data) < len(MOVE + NEUTRAL + BYE):
        data += os.read(master, 100)
    assert data == MOVE + NEUTRAL + BYE
    link.close()
    os.close(slave)
    os.close(master)
