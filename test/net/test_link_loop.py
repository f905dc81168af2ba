# SPDX-License-Identifier: Apache-2.0
"""LinkLoop with a fake link, session and clock: order of actions, and dropped data."""

import os
import threading
import time
from collections import Counter
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from patience import TIMEOUT_S, wait_until

from drone_bridge.net import link_loop
from drone_bridge.net.connector import Backoff, LinkCancelledError, LinkClosedError, LinkError, LinkRefusedError
from drone_bridge.net.link_loop import (
    DROPPED_BY_STALL,
    DROPPED_WORK,
    MAX_POSTED,
    NOT_SENT,
    OUTDATED,
    Connected,
    Disconnected,
    LinkLoop,
    ReceivedData,
)
from drone_bridge.net.loop_thread import LoopThread, Wait
from drone_bridge.net.note_queue import MAX_WAITING, NoteQueue
from drone_bridge.session.session import Call, Close, Note, Outcome, Publish, Send, Session
from drone_bridge.session.stall_detector import StallDetector

STALL_S = StallDetector.STALL_S + 0.1


class OwnClock:
    def __init__(self):
        self.time_s = 100.0

    def now_s(self):
        return self.time_s

    def sleep(self, duration_s):
        self.time_s += duration_s


class FakeLink:
    """Link whose queued items are received in order. Queued exceptions are raised."""

    port = 0

    def __init__(self):
        self.waiting, self.sent, self.fails, self.opened = [], [], None, 0

    def open(self):
        self.opened += 1

    def cancel(self):
        pass

    def files(self):
        return ()

    def receive(self):
        item = self.waiting.pop(0) if self.waiting else None
        item = item() if callable(item) else item
        if isinstance(item, Exception):
            raise item
        return ReceivedData(item, "peer") if isinstance(item, bytes) else item

    def send(self, data, to):
        if self.fails:
            raise self.fails
        self.sent.append((data, to))

    def close(self):
        pass


class Recorder(Session):
    """Session that records its calls. `answers` are its actions by the name of the call."""

    def __init__(self):
        self.calls = []
        self.answers = {}

    def _called(self, name, *given):
        self.calls.append((name, *given))
        return self.answers.get(name, [])

    def opened(self, now_s):
        return self._called("opened")

    def receive(self, data, source, now_s):
        return self._called("receive", data)

    def tick(self, now_s):
        self.due_s = now_s + 0.05
        return self._called("tick")

    def resume(self, now_s):
        return self._called("resume")

    def lost(self, now_s):
        return self._called("lost")

    def end(self, now_s):
        self.is_over = True
        return self._called("end")

    def refused(self, sentence, now_s):
        return self._called("refused", sentence)

    def unsent(self, action, sentence, now_s):
        return [*self._called("unsent", action.data, sentence), *super().unsent(action, sentence, now_s)]


class FakeStage:
    def __init__(self):
        self.published, self.counts, self.sentences = [], Counter(), []
        self.called, self.resolved = [], []
        self.resolve = self.resolved.append

    def publish_event(self, message):
        self.published.append(message)

    def note(self, note):
        self.counts[note.counter] += 1
        self.sentences.append(note.sentence)

    def call_service(self, name, tag):
        self.called.append((name, tag))

    def link_opened(self):
        pass

    def turn_ended(self, session):
        pass


@pytest.fixture
def link():
    return FakeLink()


@pytest.fixture
def session():
    return Recorder()


@pytest.fixture
def stage():
    return FakeStage()


@pytest.fixture
def clock():
    return OwnClock()


@pytest.fixture
def loop(link, session, stage, clock):
    made = LinkLoop("test", link, session, stage, clock)
    made.turn()  # the first poll, which detects no stall
    session.calls.clear()
    return made


def names(session):
    return [call[0] for call in session.calls]


def decide(loop, *actions, late_s=0.0):
    """Run a turn in which the session decides on these actions, which takes some time."""

    def decide_slowly(now_s):
        loop._clock.time_s += late_s
        return list(actions)

    loop.post(decide_slowly)
    loop.turn()


def test_data_are_received_in_order_after_posted_work(loop, link, session):
    link.waiting = [b"1", b"2"]
    loop.post(lambda now_s: session._called("posted", now_s))
    loop.turn()
    assert session.calls == [("posted", 100.0), ("receive", b"1"), ("receive", b"2")]


def test_work_posted_by_the_loop_itself_does_not_wake_it(loop, session):
    def post_again(now_s):
        loop.post(lambda now_s: session._called("posted"))
        return []

    loop.post(post_again)
    loop.turn()
    loop.turn()
    assert names(session) == ["posted"]


def test_only_other_threads_wake_a_loop():
    runner, durations_s = LoopThread("test"), []

    def turns():
        runner.wake()
        for wait in (Wait((), 0.2), Wait((), 600.0)):
            began_s = time.monotonic()
            yield wait
            durations_s.append(time.monotonic() - began_s)

    runner.start(turns())
    wait_until(lambda: durations_s, "the first wait")
    runner.wake()
    assert runner.join()
    assert durations_s[0] >= 0.2


def test_actions_are_executed_in_order(loop, link, session, stage):
    session.answers["receive"] = [Send(b"neutral", "there"), Publish("message"), Note("documents")]
    link.waiting = [b"1"]
    loop.turn()
    assert link.sent == [(b"neutral", "there")]
    assert stage.published == ["message"]
    assert stage.counts == {"documents": 1}


def test_a_tick_comes_when_due(loop, session, clock):
    session.due_s = 100.1
    loop.turn()
    assert session.calls == []
    clock.time_s = 100.1
    loop.turn()
    assert names(session) == ["tick"]


@pytest.mark.parametrize("what", ["datagrams", "work"])
def test_a_flood_delays_a_tick_by_one_piece(loop, link, session, clock, what):
    def slow(*_):
        clock.time_s += 0.02
        return b"x" if what == "datagrams" else session._called("work")

    session.due_s = 100.03
    if what == "datagrams":
        link.waiting = [slow] * 10
    else:
        for _ in range(10):
            loop.post(slow)
    loop.turn()
    each = "receive" if what == "datagrams" else "work"
    assert names(session)[:4] == [each, each, "tick", each]


def test_data_from_before_a_stall_are_dropped_before_the_session_resumes(loop, link, session, stage, clock):
    loop.post(lambda now_s: session._called("posted"))
    link.waiting = [b"old", b"older"]
    clock.time_s += STALL_S
    loop.turn()
    assert names(session) == ["resume"]
    assert stage.counts[DROPPED_BY_STALL] == 1
    assert "Dropped 3 " in stage.sentences[0]
    link.waiting = [b"new"]
    loop.turn()
    assert session.calls[1:] == [("receive", b"new")]


def test_a_datagram_read_just_before_a_stall_is_detected_is_dropped(loop, link, session, clock):
    def read_then_stopped():
        clock.time_s += STALL_S
        return b"old"

    link.waiting = [b"new", read_then_stopped, b"old"]
    loop.turn()
    assert session.calls == [("receive", b"new"), ("resume",)]


def test_stall_drops_decided_packets_and_publications_keep_their_age(loop, link, session, stage, clock):
    outcome, call = Outcome("request", False, "too late"), Call("land", "tag")
    decided = []
    stage.publish_event = lambda message: decided.append(loop.decided_s)
    began_s = clock.time_s
    decide(loop, Send(b"old"), Publish("old"), outcome, call, late_s=STALL_S)
    assert (link.sent, session.calls) == ([], [("unsent", b"old", OUTDATED), ("resume",)])
    assert decided == [began_s]  # which drops a command
    assert (stage.resolved, stage.called) == ([outcome], [(call.name, call.tag)])


@pytest.mark.parametrize(("stall_s", "is_sent"), [(2.9, True), (3.1, False)])
def test_a_packet_may_outlast_a_stall(loop, link, session, clock, stall_s, is_sent):
    cut = Send(b"cut the motors", until_s=clock.time_s + 3.0, outlasts_stalls=True)
    decide(loop, cut, late_s=stall_s)
    assert link.sent == [(b"cut the motors", None)] * is_sent
    assert session.calls == [("unsent", b"cut the motors", OUTDATED)] * (not is_sent) + [("resume",)]


def test_packets_are_counted_when_sent_and_failures_by_their_kind(loop, link, session, stage):
    decide(loop, Send(b"1", if_sent=("documents", "images")))
    assert stage.counts == {"documents": 1, "images": 1}
    link.fails = LinkError("The network is down.")
    decide(loop, Send(b"2", None, "undelivered_commands", ("documents",)), Note("commands"))
    assert session.calls == [("unsent", b"2", "The network is down.")]
    assert stage.counts == {"documents": 1, "images": 1, "undelivered_commands": 1, "commands": 1}
    assert "The network is down." in stage.sentences


@pytest.fixture
def order(link, stage):
    """Return sent, published and noted items, in order."""
    done = []
    send, note = link.send, stage.note

    def sent(data, to):
        send(data, to)
        done.append(data)

    def noted(given):
        note(given)
        done.append(given.counter)

    link.send, stage.note, stage.publish_event = sent, noted, done.append
    return done


def test_notes_follow_all_other_actions_including_nested_ones(order, loop, session, link):
    session.answers["unsent"] = [Send(b"neutral"), Note("nested")]

    def fail_once(data, to):
        link.send = send
        raise LinkError("The network is down.")

    send, link.send = link.send, fail_once
    decide(loop, Note("first"), Send(b"lost"), Send(b"next", if_sent=("sent",)), Publish("message"))
    assert order == [b"neutral", b"next", "message", "first", "nested", "unsent_datagrams", "sent"]


def test_only_notes_with_a_sentence_wait_for_the_log(loop, stage):
    queued, loop._notes.put = [], lambda note: queued.append(note.counter)
    decide(loop, Note("a"), Note("b", "!"))
    assert (stage.counts, queued) == ({"a": 1}, ["b"])


def test_a_failing_action_does_not_prevent_others_and_the_first_error_counts(loop, link, stage):
    def fail(message):
        raise message

    stage.publish_event = fail
    with pytest.raises(LinkError):
        decide(loop, Publish(LinkError("1")), Publish(KeyError("2")), Send(b"neutral"), Note("counted"))
    assert [data for data, _ in link.sent] == [b"neutral"]
    assert stage.counts == {"counted": 1}


def test_a_session_resumes_before_its_stall_is_logged(order, loop, session, clock):
    session.answers["resume"] = [Send(b"neutral")]
    loop.post(lambda _: [])
    clock.time_s += STALL_S
    loop.turn()
    assert order == [b"neutral", DROPPED_BY_STALL]


@pytest.mark.parametrize("fault", [LinkError("the link broke"), KeyError("a fault of ours")])
def test_neutral_is_sent_and_the_loop_ends_even_if_the_log_fails(link, session, stage, fault):
    """The log of a stopped terminal blocks."""
    is_blocked, goes_on = threading.Event(), threading.Event()

    def block(note):
        if note.sentence:
            is_blocked.set()
            goes_on.wait()

    stage.note = block
    session.answers.update(lost=[Send(b"neutral")], tick=[Send(b"tick")], end=[Send(b"last")])
    link.waiting = [fault]
    session.due_s = 0.0
    loop = LinkLoop("test", link, session, stage)
    loop.start()
    wait_until(is_blocked.is_set, "a log that blocks")
    assert (b"neutral", None) in link.sent
    before = len(link.sent)
    wait_until(lambda: len(link.sent) > before, "the next tick")
    assert loop.stop()
    assert link.sent[-1] == (b"last", None)
    goes_on.set()


def test_notes_dropped_by_a_blocked_log_are_counted():
    goes_on, is_blocked, counts, sentences = threading.Event(), threading.Event(), Counter(), []

    def do(note):
        counts[note.counter] += 1
        if note.sentence:
            is_blocked.set()
            goes_on.wait()
            sentences.append(note.sentence)

    notes = NoteQueue(do, "log")
    notes.start()
    notes.put(Note("counted", "first"))
    is_blocked.wait()
    for number in range(2 * MAX_WAITING):
        notes.put(Note("counted", str(number)))
    goes_on.set()
    notes.finish()
    wait_until(lambda: len(sentences) == 1 + MAX_WAITING, "the log to have taken the others")
    assert counts == {"counted": 1 + 2 * MAX_WAITING}
    assert sentences[-1] == str(2 * MAX_WAITING - 1)


def test_work_posted_after_the_end_of_the_loop_is_refused(loop, session):
    assert loop.post(lambda _: session._called("before"), is_kept=True)
    loop.end()
    assert names(session) == ["end", "before"]
    assert not loop.post(lambda _: session._called("after"), is_kept=True)
    assert names(session) == ["end", "before"]


def test_kept_work_survives_a_stall_and_the_session_gets_its_time(loop, session, clock):
    loop.post(lambda now_s: session._called("kept"), is_kept=True)
    clock.time_s += STALL_S
    loop.turn()
    loop.turn()
    assert names(session) == ["resume", "kept"]
    assert session.fresh_since_s == clock.time_s


def test_work_during_a_stall_is_the_last_posted_work_executed(loop, session, clock, stage):
    def stand_still(now_s):
        clock.time_s += STALL_S
        return session._called("work")

    for _ in range(3):
        loop.post(stand_still)
    loop.turn()
    assert names(session) == ["work", "resume"]
    assert stage.counts == {DROPPED_BY_STALL: 1}


@pytest.mark.parametrize("fault", [LinkRefusedError("Nobody listens."), LinkError("broken")])
def test_the_session_resumes_even_if_the_link_fails_while_data_are_dropped(loop, link, session, clock, fault):
    link.waiting = [b"old", fault, b"older"]
    clock.time_s += STALL_S
    loop.turn()
    assert names(session) == ["resume"]
    assert link.waiting == []


def test_a_pause_below_a_stall_drops_nothing(loop, link, session, clock):
    link.waiting = [b"1"]
    clock.time_s += StallDetector.STALL_S
    loop.turn()
    assert names(session) == ["receive"]


def test_the_time_before_the_first_turn_is_no_stall(link, session, stage, clock):
    loop = LinkLoop("test", link, session, stage, clock)
    clock.time_s += 10.0
    link.waiting = [b"1"]
    loop.turn()
    assert names(session) == ["receive"]


def test_refusals_are_passed_to_the_session_from_reading_and_sending(loop, link, session):
    link.waiting = [LinkRefusedError("Nobody listens at a."), b"1"]
    session.answers["receive"] = [Send(b"answer")]
    link.fails = LinkRefusedError("Nobody listens at b.")
    loop.turn()
    first, second = (("refused", f"Nobody listens at {name}.") for name in "ab")
    assert session.calls == [first, ("receive", b"1"), second]


def test_on_overflow_the_oldest_posted_work_is_dropped(loop, session, stage):
    for number in range(MAX_POSTED + 2):
        loop.post(lambda now_s, number=number: session._called(number))
    loop.turn()
    assert names(session) == list(range(2, MAX_POSTED + 2))
    assert stage.counts[DROPPED_WORK] == 2


class Leaving(Recorder):
    """Session that sends three last packets, 20 ms apart."""

    def end(self, now_s):
        self.left = 3
        return self._final(now_s)

    def tick(self, now_s):
        return self._final(now_s) if now_s >= self.due_s else []

    def _final(self, now_s):
        self.left -= 1
        self.due_s, self.is_over = now_s + 0.02, not self.left
        return [Send(b"neutral")]


def test_the_loop_waits_for_the_end_of_the_session(link, stage, clock):
    loop = LinkLoop("test", link, Leaving(), stage, clock)
    loop.end()
    assert [data for data, _ in link.sent] == [b"neutral"] * 3
    assert clock.time_s == pytest.approx(100.04)


def test_the_last_command_is_sent_even_after_a_stall(link, stage, clock):
    session = Leaving()
    loop = LinkLoop("test", link, session, stage, clock)
    loop._is_stopping = True
    decide = session.end

    def end(now_s):
        clock.time_s += STALL_S
        return decide(now_s)

    session.end = end
    loop.end()
    assert len(link.sent) == 3


def test_a_fault_at_the_end_causes_no_delay_and_keeps_the_repeats(link, stage, clock):
    session, asked = Leaving(), []
    loop = LinkLoop("test", link, session, stage, clock)
    decide = session.end

    def end(now_s):
        decide(now_s)
        raise ZeroDivisionError

    session.end = end
    loop.post(Mock(side_effect=ZeroDivisionError), is_kept=True)
    loop.post(lambda now_s: asked.append("answered") or [], is_kept=True)
    loop.end()
    assert [data for data, _ in link.sent] == [b"neutral"] * 2  # the first one was not even returned
    assert asked == ["answered"]
    assert stage.counts["internal_errors"] == 2


def test_descriptors_that_a_link_opens_later_are_polled(link, session, stage):
    runner, ends = LoopThread("test"), os.pipe()
    os.write(ends[1], b"x")
    runner.wait((), 0.0)
    began_s = time.monotonic()
    runner.wait((SimpleNamespace(fileno=lambda: ends[0]),), 600.0)
    assert time.monotonic() - began_s < 300.0
    assert runner.join()
    for end in ends:
        os.close(end)


def test_events_from_opening_a_link_are_received_before_waiting(link, session, stage):
    link.waiting = [b"first"]
    next(LinkLoop("test", link, session, stage).turns())
    assert ("receive", b"first") in session.calls


def test_a_session_that_never_ends_times_out(link, session, stage, clock):
    session.end = lambda now_s: []
    LinkLoop("test", link, session, stage, clock).end()
    assert clock.time_s >= 100.0 + link_loop.END_S


def test_a_thread_runs_until_stopped_and_executes_the_last_action(link, stage, monkeypatch):
    monkeypatch.setattr(link_loop, "END_S", TIMEOUT_S)  # on a busy machine
    session = Leaving()
    loop = LinkLoop("test", link, session, stage)
    began = os.pipe()
    loop.post(lambda now_s: os.write(began[1], b"x") and [], is_kept=True)
    loop.start()
    assert os.read(began[0], 1) == b"x"
    assert loop.stop()
    assert [data for data, _ in link.sent] == [b"neutral"] * 3
    loop.post(lambda now_s: [])  # posting too late is harmless
    for end in began:
        os.close(end)


def test_a_cancelled_opening_ends_the_loop_and_the_session(link, session, stage):
    turns, closed = [], []
    stage.turn_ended = turns.append
    link.open, link.close = Mock(side_effect=LinkCancelledError), lambda: closed.append(1)
    loop = LinkLoop("test", link, session, stage)
    loop.start()
    assert loop.stop()
    assert (names(session), turns, closed) == (["end"], [session, session], [1])


def run_until(loop, condition):
    """Run a loop's own thread until a condition holds, then stop it."""
    loop.start()
    try:
        wait_until(condition, "what the loop does")
    finally:
        assert loop.stop()


def test_a_fault_sends_neutral_and_the_session_continues(link, session, stage):
    session.answers["lost"] = [Send(b"neutral")]
    loop = LinkLoop("test", link, session, stage)
    loop.post(lambda now_s: [])  # which is dropped, as the link opens
    session.answers["opened"] = []
    loop.start()
    wait_until(lambda: link.opened, "an open link")
    loop.post(Mock(side_effect=KeyError("fault")), is_kept=True)
    wait_until(lambda: link.opened == 2, "the link to be opened again")
    assert loop.stop()
    assert stage.counts["internal_errors"] == 1
    assert link.sent[0] == (b"neutral", None)
    assert [name for name in names(session) if name in ("opened", "lost", "end")] == ["opened", "lost", "opened", "end"]


def test_a_lost_link_sends_neutral_before_reopening_and_counts_as_no_stall(link, session, stage, clock):
    loop = LinkLoop("test", link, session, stage, clock)
    asked = []
    link.waiting = [b"1", LinkError("The network is down.")]
    session.answers["lost"] = [Note("left neutral")]

    def sleepy_open():
        link.opened += 1
        clock.time_s += 10.0 if link.opened == 2 else 0.0
        if link.opened == 2:
            loop.post(lambda now_s: asked.append("old") or [])
            link.waiting = [b"while there was no link"]

    link.open = sleepy_open
    stage.link_opened = lambda: link.waiting.extend([b"2"] if link.opened == 2 else [])
    loop._pause = lambda: ()
    run_until(loop, lambda: ("receive", b"2") in session.calls)
    called = [name for name in names(session) if name != "tick"]
    assert called == ["opened", "receive", "lost", "opened", "receive", "end"]
    assert stage.counts["lost_connections"] == stage.counts["left neutral"] == 1
    assert (asked, stage.counts[DROPPED_BY_STALL]) == ([], 0)


# Streams.


class FakeStreams(FakeLink):
    """Link of streams with queued events."""

    def __init__(self):
        super().__init__()
        self.backoff = Backoff()

    def send(self, data, to, *rest_and_limit):
        self.sent.append((data, to, *rest_and_limit))

    def disconnect(self, peer):
        self.sent.append("the end of " + peer)

    def disconnect_all(self):
        self.sent.append("the end of all")


class StreamRecorder(Recorder):
    def connected(self, peer, now_s):
        return self._called("connected", peer)

    def receive(self, data, source, now_s):
        return self._called("receive", data, source)

    def disconnected(self, peer, sentence, now_s):
        return self._called("disconnected", peer, sentence)


@pytest.fixture
def streams():
    return FakeStreams()


@pytest.fixture
def stream_session():
    return StreamRecorder()


@pytest.fixture
def stream_loop(streams, stream_session, stage, clock):
    made = LinkLoop("test", streams, stream_session, stage, clock)
    made.turn()
    stream_session.calls.clear()
    return made


def test_connections_are_received_in_order_with_their_bytes(stream_loop, streams, stream_session):
    streams.waiting = [Connected("a"), ReceivedData(b"1", "a"), Disconnected("a", "It has gone.")]
    stream_loop.turn()
    assert stream_session.calls == [("connected", "a"), ("receive", b"1", "a"), ("disconnected", "a", "It has gone.")]


def test_a_stream_is_closed_after_its_last_data(stream_loop, streams, stream_session):
    stream_session.answers["connected"] = [Send(b"full", "a"), Close("a")]
    streams.waiting = [Connected("a")]
    stream_loop.turn()
    assert streams.sent == [(b"full", "a"), "the end of a"]


def test_stream_is_read_after_a_stall_once_the_session_has_resumed(stream_loop, streams, stream_session, stage, clock):
    stream_loop.post(lambda now_s: stream_session._called("posted"))
    streams.waiting = [ReceivedData(b"1", "a"), Disconnected("a", "It has gone.")]
    clock.time_s += STALL_S
    stream_loop.turn()
    assert names(stream_session) == ["resume", "receive", "disconnected"]
    assert stage.counts == {DROPPED_BY_STALL: 1}  # what was posted


def test_stream_data_decided_before_a_stall_is_sent_before_resuming(stream_loop, streams, stream_session):
    """Otherwise, a peer would wait for the rest of a message, and a session for an answer to lost data."""
    decide(stream_loop, Send(b"he", "a"), Send(b"llo", "a"), late_s=STALL_S)
    assert streams.sent == [(b"he", "a"), (b"llo", "a")]
    assert names(stream_session) == ["resume"]


def test_a_session_can_replace_a_stale_message_on_a_stream(stream_loop, streams, stream_session):
    go, stop = Send(b"go", "a"), Send(b"stop", "a")
    stream_session.outdated = lambda action: stop if action == go else action
    decide(stream_loop, go)
    decide(stream_loop, go, late_s=STALL_S)
    assert streams.sent == [(b"go", "a"), (b"stop", "a")]


def test_a_message_is_not_sent_after_its_time_limit(stream_loop, streams, stream_session):
    late, go = Send(b"late", "a", until_s=100.1), Send(b"go", "a", until_s=100.2)
    decide(stream_loop, late, go, Send(b"on", "a"), late_s=0.1)
    assert streams.sent == [(b"go", "a", b"", 100.2), (b"on", "a")]
    assert stream_session.calls[0][:2] == ("unsent", b"late")


def test_last_words_count_before_stale_messages_which_may_be_dropped(stream_loop, streams, stream_session):
    said = [100.0]
    do_nothing = lambda *_: None  # noqa: E731
    keeper = SimpleNamespace(was_written=lambda: said.pop() if said else None, is_writing=do_nothing)
    keeper.disarm = keeper.moved_on = do_nothing
    stream_loop._keeper, stream_loop._outlets = keeper, streams
    stream_session.neutral_sent = lambda now_s: stream_session._called("neutral_sent")
    stream_session.outdated = lambda action: Send(b"", action.to) if stream_session.calls else action
    decide(stream_loop, Send(b"go", "a"), Send(b"on", "a"), late_s=STALL_S)
    assert streams.sent == []
    assert names(stream_session)[:2] == ["neutral_sent", "resume"]


def test_chunk_read_before_a_detected_stall_arrives_after_resuming(stream_loop, streams, stream_session, clock):
    def read_then_stopped():
        clock.time_s += STALL_S
        return ReceivedData(b"old", "a")

    streams.waiting = [read_then_stopped]
    stream_loop.turn()
    assert names(stream_session) == ["resume", "receive"]


def test_after_a_fault_all_streams_end_before_the_link_is_opened_again(streams, stream_session, stage):
    stream_session.answers["lost"] = [Send(b"stop", "a")]
    streams.waiting = [ZeroDivisionError()]
    streams.backoff.next_delay_s = lambda: 0.0
    run_until(LinkLoop("test", streams, stream_session, stage), lambda: streams.opened == 2)
    assert streams.sent[:2] == [(b"stop", "a"), "the end of all"]


def test_a_peer_may_prove_useful_by_its_disconnection(stream_loop, streams, stream_session):
    resets = []
    streams.backoff.reset = lambda: resets.append(stream_session.is_proven)
    for stream_session.is_proven in (False, True):
        streams.waiting = [Disconnected("a", "It has gone.")]
        stream_loop.turn()
    assert resets == [True]


def test_disconnect_is_no_fault_and_reconnecting_backs_off_until_proven(streams, stream_session, stage):
    delays_s = []
    streams.backoff.next_delay_s = lambda: delays_s.append("delay") or 0.0
    streams.backoff.reset = lambda: delays_s.append("reset")
    stream_session.is_proven = False

    def prove():
        stream_session.is_proven = True
        return ReceivedData(b"2", "a")

    streams.waiting = [ReceivedData(b"1", "a"), LinkClosedError("gone"), prove, LinkClosedError("gone"), None]
    run_until(LinkLoop("test", streams, stream_session, stage), lambda: streams.opened == 3)
    assert delays_s[:3] == ["delay", "reset", "delay"]
    assert stage.counts["lost_connections"] == 0
    called = [name for name in names(stream_session) if name in ("opened", "lost")]
    assert called[:4] == ["opened", "lost", "opened", "lost"]


@pytest.mark.parametrize(
    ("late_s", "until_s", "outcomes"),
    [(0.0, None, [True]), (0.0, 0.5, []), (0.3, 0.2, [False]), (STALL_S, None, [False])],
)
def test_a_request_on_a_stream_is_decided_when_its_packet_is_sent_or_dropped(
    stream_loop, streams, stream_session, stage, late_s, until_s, outcomes
):
    stream_session.outdated = lambda action: Send(b"", request=action.request)
    decide(stream_loop, Send(b"go", "a", until_s=until_s and 100.0 + until_s, request="asked"), late_s=late_s)
    assert [(each.request, each.is_success) for each in stage.resolved] == [("asked", each) for each in outcomes]
    if not outcomes:
        *_, decided = streams.sent[-1]
        decided(True)
        assert [each.is_success for each in stage.resolved] == [True]


@pytest.mark.parametrize(("late_s", "is_sent"), [(0.1, True), (STALL_S, False)])
def test_a_request_by_datagram_is_decided_when_it_is_sent_or_dropped(loop, stage, late_s, is_sent):
    decide(loop, Send(b"go", "a", request="asked"), late_s=late_s)
    assert stage.resolved == [Outcome("asked", is_sent, "sent" if is_sent else NOT_SENT)]


@pytest.mark.parametrize("is_stream", [True, False])
def test_a_failure_decides_a_datagram_but_reports_an_earlier_message_of_a_stream(
    loop, link, stream_loop, streams, stage, is_stream
):
    link.send = streams.send = Mock(side_effect=LinkError("broken"))
    decide(stream_loop if is_stream else loop, Send(b"go", "a", request="asked"))
    assert [each.is_success for each in stage.resolved] == ([] if is_stream else [False])


def test_a_message_with_a_rest_is_sent_with_it(stream_loop, streams):
    decide(stream_loop, Send(b"go", "a", rest=b" on"))
    assert streams.sent == [(b"go", "a", b" on", None)]


# Last words.


class OutletStreams(FakeStreams):
    """Link of streams with an outlet to a peer."""

    def outlet_to(self, to):
        return "outlet" if to == "a" else None


class Keeper:
    """Keeper that records its calls among what is sent."""

    peer, said = "a", ()

    def __init__(self, done):
        self.keep = lambda words, outlet: done.append((words, outlet))
        self.is_writing = done.append
        self.disarm, self.release, self.moved_on = (
            lambda name=name: done.append(name) for name in ("disarm", "release", "moved on")
        )

    def was_written(self):
        return self.said.pop() if self.said else None


@pytest.fixture
def kept_loop(stream_session, stage, clock):
    """Loop whose link records calls of its keeper, as well."""
    link = OutletStreams()
    made = LinkLoop("test", link, stream_session, stage, clock, keeper=Keeper(link.sent))
    made.turn()
    link.sent.clear()
    stream_session.calls.clear()
    return made


def done_by(loop, *actions):
    """Return what a turn with these actions does."""
    loop.link.sent.clear()
    decide(loop, *actions)
    return loop.link.sent[:]


def test_words_are_armed_before_what_they_follow_and_disarmed_after_neutral(kept_loop, stream_session):
    words = SimpleNamespace(to="a")
    stream_session.last_words = lambda: words
    go = Send(b"go", "a", rest=b" on")
    expected = [(words, "outlet"), None, b" on", (b"go", "a", b" on", None), None, "moved on"]
    assert done_by(kept_loop, Note("first"), go) == expected
    stream_session.last_words = lambda: None
    assert done_by(kept_loop, Send(b"stop", "a")) == [b"", (b"stop", "a"), None, "disarm", "moved on"]
    assert done_by(kept_loop, Note("nothing is sent")) == ["moved on"]


@pytest.mark.parametrize(("words", "faults"), [(SimpleNamespace(to="b"), 0), (None, 1)])
def test_words_that_cannot_be_armed_leave_armed_ones_and_block_nothing(kept_loop, stream_session, stage, words, faults):
    stream_session.last_words = lambda: words if words else {}["a fault"]
    kept_loop._notes.put = stage.note
    assert done_by(kept_loop, Send(b"go", "a")) == [b"", (b"go", "a"), None, "moved on"]
    assert stage.counts["internal_errors"] == faults


def test_words_are_released_with_their_stream(kept_loop):
    assert done_by(kept_loop, Close("b")) == ["the end of b", "moved on"]
    assert done_by(kept_loop, Close("a")) == ["release", "the end of a", "moved on"]


@pytest.mark.parametrize("way", ["_lose", "end"])
def test_words_are_released_after_the_last_neutral(kept_loop, stream_session, stage, way):
    stream_session.answers.update(lost=[Send(b"stop", "a")], end=[Send(b"stop", "a")])
    seen, answered = [], []
    kept_loop._intake = SimpleNamespace(closed=lambda: seen.append("closed"))
    stage.turn_ended = lambda session: seen.append("turn")
    kept_loop.post(lambda now_s: answered.append(now_s) or [], is_kept=True)
    getattr(kept_loop, way)()
    released = kept_loop.link.sent.index("release")
    assert kept_loop.link.sent.index((b"stop", "a")) < released
    assert kept_loop.link.sent[released + 1 :] == ["the end of all"] * (way == "_lose")
    assert (seen, answered) == (["closed", "turn"], [100.0])


def test_words_said_in_a_stall_are_noted_before_the_session_resumes(kept_loop, stream_session, stage, clock):
    kept_loop._keeper.said = [100.05]
    kept_loop._notes.put = stage.note
    stream_session.neutral_sent = lambda now_s: stream_session._called("neutral_sent", now_s)
    clock.time_s += STALL_S
    kept_loop.turn()
    assert stream_session.calls[0] == ("neutral_sent", 100.05)
    assert names(stream_session)[:2] == ["neutral_sent", "resume"]
    assert stage.counts == {link_loop.LAST_WORDS: 1}
