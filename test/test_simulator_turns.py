# SPDX-License-Identifier: Apache-2.0
"""Who talks to the simulator: a service call itself while the link's thread just waits, else that thread."""

import contextlib
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from drone_bridge.net.connector import LinkError, Wakeup
from drone_bridge.net.shared_watch import SharedWatch
from drone_bridge.net.tcp import TcpStream
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.link import RECEIVE_BYTES, Channel
from drone_bridge.simulator.bridge.turns import Turns

TIMEOUT_S = 60.0
REQUEST = sim.frame(sim.Reassure())


class Session:
    """What turns need to know of a session, whose services ask for one thing each time."""

    def __init__(self, channel):
        self.requests = channel
        self.is_pending = False
        self.events, self.answered_in = [], []

    @property
    def is_idle(self):
        return not (self.is_pending or self.requests.outstanding)

    def handle(self, event, channel):
        self.events.append(event)

    def ask(self):
        self.requests.ask(sim.Reassure(), lambda _: self.answered_in.append(threading.current_thread()))


class Watch(SharedWatch):
    """Tells when a thread has begun to wait, and can be slow to notice that there is something to read."""

    def __init__(self, files):
        super().__init__(files)
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.may_end.set()
        self.waits = 0

    def wait(self, timeout_s):
        self.waits += 1
        self.has_begun.set()
        readable = super().wait(timeout_s)
        assert self.may_end.wait(TIMEOUT_S)
        return readable


class Conversation:
    """A session with a simulator, and a link's thread that waits for something to read."""

    def __init__(self, stream, theirs):
        self.theirs = theirs
        self.session = Session(Channel(stream, TIMEOUT_S, lambda seconds: None))
        self.turns = Turns(Session.ask)
        self.wakeup = Wakeup()
        self.watch = Watch([self.wakeup, stream])

    @contextlib.contextmanager
    def waiting(self):
        """Let the link's thread wait, which returns what there is to read."""
        with ThreadPoolExecutor(1) as link_thread:
            readable = link_thread.submit(self._wait)
            assert self.watch.has_begun.wait(TIMEOUT_S)
            try:
                yield readable
            finally:
                self.wakeup.wake()

    def _wait(self):
        with self.turns.of(self.session):
            while not any(readable := self.turns.wait(self.watch, TIMEOUT_S)):
                pass
            return readable

    def answering(self, *messages):
        """Have the simulator answer the next request with these messages."""

        def answer():
            assert self.theirs.recv(len(REQUEST), socket.MSG_WAITALL) == REQUEST
            self.theirs.sendall(b"".join(map(sim.frame, messages)))

        threading.Thread(target=answer).start()


@pytest.fixture
def conversation(cancellation):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ours = socket.create_connection(listener.getsockname())
        theirs, _ = listener.accept()
    theirs.settimeout(TIMEOUT_S)
    stream = TcpStream(ours, cancellation)
    with theirs:
        yield Conversation(stream, theirs)
    stream.close()


def test_a_call_gets_its_answer_in_its_own_thread_and_leaves_the_links_thread_asleep(conversation):
    with conversation.waiting() as readable:
        for _ in range(3):
            conversation.answering(sim.Ok())
            assert conversation.turns.call(TIMEOUT_S)
        assert conversation.session.answered_in == [threading.current_thread()] * 3
        conversation.wakeup.wake()
        assert readable.result(TIMEOUT_S) == [True, False]
        assert conversation.watch.waits == 2  # the second one as it is not sure of what it has seen after a call


def test_an_answer_that_is_late_is_for_the_links_thread(conversation):
    with conversation.waiting() as readable:
        assert not conversation.turns.call(0.0)
        conversation.answering(sim.Ok())
        assert readable.result(TIMEOUT_S) == [False, True]
    assert list(conversation.session.requests.read(memoryview(bytearray(RECEIVE_BYTES)))) == []
    assert conversation.session.answered_in == [threading.current_thread()]


def test_a_call_waits_no_longer_when_there_is_something_else_to_read(conversation):
    conversation.watch.may_end.clear()
    began_s = time.monotonic()
    with conversation.waiting() as readable:
        conversation.wakeup.wake()
        assert not conversation.turns.call(TIMEOUT_S)
        assert time.monotonic() - began_s < TIMEOUT_S
        conversation.watch.may_end.set()
        conversation.answering(sim.Ok())
        assert any(readable.result(TIMEOUT_S))  # though not at once, as the call has had a turn


def test_a_call_leaves_it_to_the_links_thread_to_start_what_is_not_alone(conversation):
    conversation.session.is_pending = True
    with conversation.waiting():
        assert not conversation.turns.call(TIMEOUT_S)
        assert not conversation.session.requests.outstanding


def test_a_call_starts_nothing_while_the_links_thread_works_or_has_gone(conversation):
    with conversation.turns.of(conversation.session):
        assert not conversation.turns.call(TIMEOUT_S)
    assert not conversation.turns.call(TIMEOUT_S)
    assert not conversation.session.requests.outstanding


def test_the_links_thread_looks_at_what_came_beside_an_answer(conversation):
    conversation.answering(sim.Completed(), sim.Ok())
    with conversation.waiting():
        assert not conversation.turns.call(TIMEOUT_S)
        assert conversation.session.events == [sim.Completed()]
        assert conversation.session.answered_in


def test_the_links_thread_hears_how_a_call_has_failed(conversation):
    with conversation.waiting() as readable:
        conversation.watch.may_end.clear()  # or it may see the end before the call does
        conversation.theirs.shutdown(socket.SHUT_WR)
        assert not conversation.turns.call(TIMEOUT_S)
        conversation.watch.may_end.set()
        with pytest.raises(LinkError, match="closed the connection"):
            readable.result(TIMEOUT_S)
