# SPDX-License-Identifier: Apache-2.0
"""Sender: when it sends last words, and what of them. With a fake wire and a clock that stands still."""

import os
import socket
import sys
import time
from types import SimpleNamespace

import pytest
from fake_wire import PLENTY, FakeWire
from kept_words import kept

from drone_bridge.net import last_words_sender
from drone_bridge.net.last_words import ENTRY_BYTES, STALL_S, Outlet
from drone_bridge.net.last_words_sender import ARMED, BUSY, FILE, RELEASE, SPEAKING, WRITTEN, Sender, written_bytes
from drone_bridge.net.send_queue import SendQueue
from drone_bridge.session.session import LastWords

GO, STOP, BYE = b"go 1.00\n", b"stop\n", b"bye\n"
WORDS = LastWords((STOP,), (BYE,))
ADDRESS = ("127.0.0.1", 7)


class Wire(FakeWire):
    """Stream that may be closed for writing. Without room, sending fails in a given way."""

    is_shut, full = False, BlockingIOError

    def send(self, data):
        if not self.room:
            raise self.full
        return super().send(data)

    def shutdown(self, how):
        self.is_shut = True


class Datagrams(FakeWire):
    """Socket for datagrams, perhaps to a peer that refuses them."""

    type = socket.SOCK_DGRAM

    def __init__(self):
        super().__init__()
        self.sent, self.is_refused = [], False

    def sendto(self, data, address):
        self.sent.append(data)
        assert address == ADDRESS
        if self.is_refused:
            raise ConnectionRefusedError
        return len(data)


class Scene:
    """Link with armed words, and the child. `while_waiting` is called in place of each wait, whose times are kept."""

    def __init__(self, wire, keeper, child):
        self.wire, self.keeper, self.child = wire, keeper, child
        self.now_ns, self.while_waiting, self.waited_s = 10**12, lambda: None, []
        self.queue = SendQueue() if wire.type == socket.SOCK_STREAM else None
        self.outlet = Outlet(wire, None if self.queue else ADDRESS, self.queue, wire if self.queue else None)

    def arm(self, words=WORDS):
        self.keeper.keep(words, self.outlet)
        self._deadline_ns = self.now_ns + round((0.5 + STALL_S) * 1e9)

    def look(self, age_s):
        """Look at the memory when the deadline has been over for `age_s`. Return the time until the next look, s."""
        self.age(age_s)
        return self.child._check_stall()

    def age(self, age_s):
        self.now_ns = self._deadline_ns + round(age_s * 1e9)

    def wait(self, duration_s):
        self.waited_s.append(duration_s)
        self.while_waiting()

    def write(self, data, count, recorded=None):
        """Write bytes of a message, which the system accepts in part, and perhaps stop before all are recorded."""
        self.queue.put(data)
        self.wire.data += data[:count]
        if recorded := count if recorded is None else recorded:
            self.queue.written(recorded)


@pytest.fixture
def make(monkeypatch):
    """Return make(wire), which returns a Scene."""
    scenes, ends = [], []

    def made(wire):
        context = kept(wire)
        scenes.append(Scene(wire, *context.__enter__()))
        ends.append(context)
        monkeypatch.setattr(time, "sleep", scenes[-1].wait)
        monkeypatch.setattr(time, "monotonic", lambda: sum(scenes[-1].waited_s))
        return scenes[-1]

    monkeypatch.setattr(time, "clock_gettime_ns", lambda clock: scenes[-1].now_ns)
    monkeypatch.setattr(last_words_sender, "ACCEPT_S", 0.01)
    monkeypatch.setattr("drone_bridge.net.last_words.written_bytes", lambda wire: len(wire.data))
    monkeypatch.setattr(last_words_sender, "written_bytes", lambda wire: len(wire.data))
    yield made
    for context in ends:
        context.__exit__(None, None, None)


@pytest.fixture
def stream(make):
    return make(Wire())


@pytest.fixture
def datagrams(make):
    return make(Datagrams())


# When.


@pytest.mark.parametrize(("late_s", "count"), [(-0.5, 3), (0.5, 3), (0.6, 0)])
def test_datagrams_of_an_ended_process_are_sent_for_half_a_second(datagrams, late_s, count):
    """Later, another bridge may have taken over, which their old number would lock out."""
    datagrams.arm()
    datagrams.age(late_s)
    datagrams.child._end()
    assert datagrams.wire.sent == [STOP] * count + [BYE] * (count > 0)
    assert datagrams.waited_s == [0, 0.02, 0.02][:count]


def test_datagrams_of_a_stalled_process_are_repeated_for_a_second(datagrams):
    datagrams.arm()
    assert datagrams.look(-0.5) == pytest.approx(0.502)
    assert datagrams.look(0.0) == pytest.approx(0.002)
    assert datagrams.wire.sent == []
    for late_s in (0.1, 0.5, 1.0, 1.1, 1.5):
        assert datagrams.look(late_s) == 0.4
    assert datagrams.wire.sent == [STOP] * 3
    assert datagrams.keeper._memory[WRITTEN : WRITTEN + 8] == bytes(8)  # counts streams only
    assert datagrams.keeper.was_written()


def test_a_stream_gets_neutral_once_in_each_stall(stream):
    for number in (1, 2):
        stream.arm()
        for late_s in (0.1, 0.5, 0.9):
            assert stream.look(late_s) == 0.4
        assert stream.wire.data == STOP * number
        assert stream.keeper.was_written()
        assert last_words_sender._Words(stream.child._memory, 1).is_complete
        stream.keeper.disarm()
    assert not stream.wire.is_shut


@pytest.mark.parametrize("link", ["stream", "datagrams"])
def test_nothing_is_sent_while_nothing_is_armed(link, request):
    scene = request.getfixturevalue(link)
    assert scene.child._check_stall() is None
    scene.arm()
    scene.keeper.disarm()
    assert scene.look(0.1) is None
    scene.child._end()
    assert (scene.wire.data, scene.keeper.was_written()) == (b"", None)


@pytest.mark.parametrize("link", ["stream", "datagrams"])
def test_words_for_another_file_are_not_sent(link, request):
    scene = request.getfixturevalue(link)
    scene.arm()
    scene.child._number = 2
    assert scene.look(0.1) == 0.4
    scene.child._end()
    assert (scene.wire.data, scene.keeper.was_written()) == (b"", None)


def test_a_stall_of_a_neutral_vehicle_needs_no_word(datagrams):
    datagrams.arm(LastWords((), (BYE,)))
    assert datagrams.look(0.1) == 0.4
    assert not datagrams.keeper.was_written()


def test_a_process_that_continues_meanwhile_speaks_for_itself(datagrams):
    datagrams.arm()
    datagrams.while_waiting = datagrams.keeper.moved_on
    datagrams.look(0.1)
    assert datagrams.wire.sent == []


def test_the_memory_shows_that_words_are_being_sent(datagrams, monkeypatch):
    memory, speaking = datagrams.keeper._memory, []
    monkeypatch.setattr(datagrams.wire, "sendto", lambda data, _: speaking.append(memory[SPEAKING]) or len(data))
    datagrams.arm()
    datagrams.look(0.1)
    assert (speaking, memory[SPEAKING]) == ([1], 0)


# What.


def test_the_newest_words_are_sent(stream):
    for number in range(4):
        stream.arm(LastWords((b"%d" % number,), ()))
    stream.child._end()
    assert (stream.wire.data, stream.wire.is_shut) == (b"3", True)


@pytest.mark.parametrize("earlier", [0, 2])
@pytest.mark.parametrize(("count", "recorded"), [(0, 0), (1, 0), (3, 0), (3, 1), (3, 3), (8, 0), (8, 3), (8, 8)])
def test_a_message_that_was_written_in_part_is_completed_and_another_dropped(stream, earlier, count, recorded):
    stream.arm()
    for _ in range(earlier):
        stream.write(GO, len(GO))
    stream.write(GO, count, recorded)
    stream.look(0.1)
    assert stream.wire.data == GO * (earlier + (count > 0)) + STOP


def test_a_system_that_counts_no_written_bytes_completes_what_is_recorded(stream, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    stream.arm()
    stream.write(GO, 3)
    stream.look(0.1)
    assert stream.wire.data == GO + STOP


@pytest.mark.parametrize(
    ("error", "room", "said"),
    [
        (BlockingIOError, 0, 0),
        (BlockingIOError, 4, 10),
        (BlockingIOError, 5, 5),
        (BlockingIOError, 7, 10),
        (BrokenPipeError, 5, 5),
        (BrokenPipeError, 7, 7),
    ],
)
def test_a_process_that_continues_writes_what_was_not_begun(stream, error, room, said):
    """What was begun of its message and of neutral is completed, unless the stream is broken."""
    stream.arm()
    stream.write(GO, 3)
    stream.wire.room, stream.wire.full = room, error

    def wait():
        if len(stream.waited_s) == 2:  # the first one is before the words
            stream.keeper.moved_on()
        elif len(stream.waited_s) == 3:
            stream.wire.room = PLENTY

    stream.while_waiting = wait
    stream.look(0.1)
    assert stream.wire.data == (GO + STOP)[: 3 + said]
    assert stream.child._written == said


def test_a_closed_stream_is_read_until_its_peer_closes(stream, monkeypatch):
    received = iter([b"report", BlockingIOError, b"report", b""])

    def recv(_):
        if (data := next(received)) is BlockingIOError:
            raise data
        return data

    monkeypatch.setattr(stream.wire, "recv", recv)
    stream.child._leave(stream.wire)
    assert list(received) == []
    assert (stream.wire.is_shut, stream.waited_s) == (True, [last_words_sender._LOOK_S])


@pytest.mark.parametrize("is_stopped_inside", [False, True])
def test_a_stream_is_closed_behind_a_message_that_the_process_may_write_again(stream, is_stopped_inside):
    stream.arm()
    stream.keeper._memory[BUSY] = is_stopped_inside
    assert stream.look(0.1) == 0.4
    assert stream.wire.data == (b"" if is_stopped_inside else STOP)  # it may finish first
    stream.look(0.5)
    assert (stream.wire.data, stream.wire.is_shut) == (STOP, is_stopped_inside)


def test_a_stream_that_accepts_nothing_stays_open_and_is_tried_again(stream):
    stream.arm()
    stream.keeper._memory[BUSY], stream.wire.room = True, 0
    stream.look(0.1)
    stream.look(0.5)
    assert not stream.wire.is_shut
    stream.wire.room = PLENTY
    stream.look(0.9)
    assert (stream.wire.data, stream.wire.is_shut) == (STOP, True)


def test_a_serial_line_gets_neutral_once_and_is_not_closed(make, monkeypatch):
    scene, written = make(Wire()), []
    scene.child._socket = None
    monkeypatch.setattr(os, "write", lambda file, data: written.append(data) or len(data))
    scene.arm()
    scene.keeper._memory[BUSY] = True
    for late_s in (0.1, 0.5, 0.9):
        scene.look(late_s)
    assert written == [STOP]


def test_datagrams_do_not_wait_for_a_process_that_was_stopped_inside_one(datagrams):
    datagrams.arm()
    datagrams.keeper._memory[BUSY] = True
    datagrams.look(0.1)
    assert datagrams.wire.sent == [STOP]


def test_nothing_follows_a_part_whose_rest_is_unknown(stream):
    stream.arm()
    stream.write(bytes(ENTRY_BYTES + 2), 1)
    stream.look(0.1)
    stream.child._end()
    assert stream.wire.data == b"\0"


def test_neutral_is_offered_until_the_system_accepts_it(stream):
    stream.arm()
    stream.wire.room = 0
    waits = []

    def wait():
        waits.append(0)
        stream.wire.room = PLENTY if len(waits) > 2 else 0

    stream.while_waiting = wait
    stream.look(0.1)
    assert stream.wire.data == STOP


def test_a_refusal_of_an_earlier_datagram_costs_one_more_try(datagrams):
    datagrams.wire.is_refused = True
    datagrams.arm()
    datagrams.look(0.1)
    assert datagrams.wire.sent == [STOP] * 2


# The child.


def test_a_new_child_continues_the_counts_and_has_no_file(stream):
    for _ in range(2):
        stream.arm()
        stream.look(0.1)
        assert stream.keeper.was_written()
        stream.keeper.disarm()
    stream.arm()
    stream.keeper._memory[SPEAKING] = 1  # of a killed one
    ours, control = socket.socketpair()
    child = Sender(control.detach(), stream.child._memory)
    assert stream.keeper._memory[SPEAKING] == 0
    stream.age(0.1)
    child._check_stall()
    assert (child._said, child._written) == (stream.child._said, stream.child._written) == (2, 2 * len(STOP))
    ours.close()
    child._control.close()


@pytest.mark.parametrize("is_socket", [True, False])
def test_a_file_is_closed_before_its_release_is_answered(is_socket):
    end, other = socket.socketpair()
    reader, writer = os.pipe()
    os.close(reader)
    file, answers = end.detach() if is_socket else writer, []
    messages = iter([RELEASE + bytes(4), b""])
    with kept(None) as (_, child), other:
        child._open(file)
        opened = child._socket
        child._control = SimpleNamespace(
            settimeout=lambda timeout: None,
            recvmsg=lambda *_: (next(messages), [], 0, None),
            send=lambda answer: answers.append((answer, child._file, child._socket)),
        )
        child.run()
    assert answers == [(RELEASE, -1, None)]
    assert (child._file, child._socket) == (-1, None)
    assert (opened is not None and opened.fileno() == -1) is is_socket
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(file)


def test_a_file_that_was_lost_on_its_way_is_none(monkeypatch):
    ours, control = socket.socketpair()
    with kept(None) as (_, child), ours:
        child._control, opened = control, []
        monkeypatch.setattr(child, "_open", opened.append)
        ours.sendall(ARMED + (6).to_bytes(4, "little") + FILE + (7).to_bytes(4, "little"))
        ours.shutdown(socket.SHUT_WR)
        child.run()
    assert (opened, child._number) == ([-1], 7)


def test_a_process_that_ends_with_an_unread_answer_has_last_words(datagrams):
    """The system reports that as an error of the socket."""
    ours, control = socket.socketpair()
    datagrams.arm()
    datagrams.child._control = control
    ours.sendall(FILE + (1).to_bytes(4, "little"))
    control.sendall(RELEASE)
    closed_after = []
    datagrams.child._open = lambda _: None
    datagrams.child._close = lambda: closed_after.append(len(datagrams.wire.sent))
    ours.close()
    datagrams.child.run()
    assert datagrams.wire.sent == [STOP] * 3 + [BYE]
    assert closed_after == [0, 4]
    control.close()


def test_written_bytes_are_counted_again_if_some_were_acknowledged_meanwhile(monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    acknowledged, queued = iter([5, 9, 9, 9]), iter([8, 4])

    class Connected:
        fileno = staticmethod(lambda: 0)

        @staticmethod
        def getsockopt(*_):
            return bytes(120) + next(acknowledged).to_bytes(8, sys.byteorder)

    monkeypatch.setattr(fcntl, "ioctl", lambda *_: next(queued).to_bytes(4, sys.byteorder))
    assert written_bytes(Connected()) == 13
