# SPDX-License-Identifier: Apache-2.0
"""LastWordsKeeper and Sender: words of a process that ends or stalls, by real sockets and a pseudo-terminal."""

import contextlib
import os
import pty
import select
import socket
import threading
import tty

import pytest
from patience import TIMEOUT_S, wait_until

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
def datagrams():
    """Link, and the socket of its peer."""
    link = DatagramPort("127.0.0.1", 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.settimeout(TIMEOUT_S)
        link.peer = peer.getsockname()
        yield link, peer
    with contextlib.suppress(OSError):
        link.close()


def received(peer):
    """Return the datagrams that have arrived."""
    found = []
    while select.select([peer], [], [], 0)[0]:
        found.append(peer.recv(100))
    return found


def read_all(peer):
    """Return all that a stream has carried until its end."""
    data = b""
    while chunk := peer.recv(65536):
        data += chunk
    return data


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
    child.keeper.keep(LastWords((NEUTRAL,), (BYE,), link.peer), link.outlet_to(link.peer))
    child.end()
    assert received(peer) == [NEUTRAL] * ROUNDS + [BYE]


def test_neutral_is_sent_during_a_stall_and_reported_afterwards(child, datagrams):
    link, peer = datagrams
    child.keeper.command_timeout = lambda: -0.1
    child.keeper.keep(LastWords((NEUTRAL,), (BYE,), link.peer), link.outlet_to(link.peer))
    assert peer.recv(100) == NEUTRAL
    assert child.keeper.was_written()
    assert not child.keeper.was_written()


def test_a_released_port_can_be_bound_again(child, datagrams):
    link, _ = datagrams
    port = link.port
    child.keeper.keep(LastWords((NEUTRAL,), (), link.peer), link.outlet_to(link.peer))
    child.keeper.release()
    link.close()
    DatagramPort("127.0.0.1", port).close()


def test_another_child_gets_the_file_and_the_words(child, datagrams):
    link, peer = datagrams
    words = LastWords((NEUTRAL,), (), link.peer)
    child.keeper.keep(words, link.outlet_to(link.peer))
    child.keeper._control.close()
    wait_until(lambda: not child._threads[0].is_alive(), "the end of the first child")
    assert received(peer) == [NEUTRAL] * ROUNDS  # as its node seems to have ended
    child.keeper.reconnect(child.start())
    child.keeper.moved_on()
    child.end()
    assert received(peer) == [NEUTRAL] * ROUNDS


@pytest.mark.parametrize("sent", [(), (MOVE,), (MOVE, MOVE)])
def test_a_stream_ends_with_neutral(child, stream, sent):
    link, peer = stream
    for data in sent:
        child.keeper.keep(LastWords((NEUTRAL,), (BYE,), link.peer), link.outlet_to(link.peer))
        link.send(data, link.peer)
    child.end()
    link.close()
    assert read_all(peer) == (b"".join((*sent, NEUTRAL, BYE)) if sent else b"")


@pytest.mark.parametrize("cut", [1, 4, len(MOVE) - 1])
def test_a_message_in_pieces_is_completed(child, stream, cut):
    """The node ends between two pieces."""
    link, peer = stream
    child.keeper.keep(LastWords((NEUTRAL,), (BYE,), link.peer), link.outlet_to(link.peer))
    link.send(MOVE, link.peer)
    link.send(MOVE[:cut], link.peer, MOVE[cut:])
    child.end()
    link.close()
    assert read_all(peer) == MOVE + MOVE + NEUTRAL + BYE


def test_a_message_that_was_written_in_part_is_completed(child, stream):
    """The peer does not read, until the system accepts only a part of a message. Queued messages are dropped."""
    link, peer = stream
    child.keeper.keep(LastWords((NEUTRAL,), (), link.peer), link.outlet_to(link.peer))
    while not link.has_unsent(link.peer):
        link.send(MOVE * 299, link.peer)
    link.send(MOVE, link.peer)
    found = []
    reader = threading.Thread(target=lambda: found.append(read_all(peer)))
    reader.start()
    child.end()
    link._by_peer[link.peer].unsent.clear()  # a killed process sends no more
    link.close()
    reader.join(TIMEOUT_S)
    (data,) = found
    assert data.endswith(NEUTRAL)
    assert set(data.split(b"\n")) == {MOVE.strip(), NEUTRAL.strip(), b""}


@pytest.mark.parametrize("continues", [True, False])
def test_a_stalled_process_may_finish_a_piece_before_its_stream_is_closed(child, stream, continues):
    link, peer = stream
    child.keeper.command_timeout = lambda: -0.1
    link.send(MOVE[:4], link.peer, MOVE[4:])
    child.keeper.keep(LastWords((NEUTRAL,), (), link.peer), link.outlet_to(link.peer))
    child.keeper.is_writing(b"")
    if continues:
        assert not child.keeper.was_written()
        child.keeper.is_writing(None)
        child.keeper.moved_on()
    data = b""
    while len(data) < len(MOVE + NEUTRAL):
        data += peer.recv(100)
    assert data == MOVE + NEUTRAL
    if not continues:
        assert peer.recv(100) == b""


def test_stalled_process_that_writes_a_whole_message_is_not_waited_for(child, stream):
    """It may have been stopped there, and the vehicle moves meanwhile."""
    link, peer = stream
    child.keeper.command_timeout = lambda: -0.1
    link.send(MOVE, link.peer)
    child.keeper.keep(LastWords((NEUTRAL,), (), link.peer), link.outlet_to(link.peer))
    child.keeper.is_writing(b"")
    data = b""
    while len(data) < len(MOVE + NEUTRAL):
        data += peer.recv(100)
    assert data == MOVE + NEUTRAL


def test_a_serial_line_ends_with_neutral(child):
    master, slave = pty.openpty()
    tty.setraw(slave)
    link = SerialLine(os.ttyname(slave), 115200, lambda *_: None)
    link.open()
    peer = link.receive().source
    child.keeper.keep(LastWords((NEUTRAL,), (BYE,), peer), link.outlet_to(peer))
    link.send(MOVE, peer)
    child.end()
    data = b""
    while len(data) < len(MOVE + NEUTRAL + BYE):
        data += os.read(master, 100)
    assert data == MOVE + NEUTRAL + BYE
    link.close()
    os.close(slave)
    os.close(master)
