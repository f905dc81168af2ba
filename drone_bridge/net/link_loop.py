# SPDX-License-Identifier: Apache-2.0
"""LinkLoop: the one thread that runs a session on a link.

Each turn: has the process stood still? Then what waited in the loop, and on a link of datagrams, is dropped, and the
session resumes. Otherwise work that other threads have posted, what has arrived on the link, and the session's tick
when it is due. The actions that the session returns are done at once, by the same thread: `Send` and `Close` by the
link, the others by a `Stage`. Only notes come after all others, and sentences for the log have a thread of their own
(`net.note_queue`): whatever blocks that, the link's thread goes on, and neutral is sent. Other threads only append to a
deque and wake the thread by a pipe, whose end is the one thing that is locked.

A turn begins when something arrives or is posted, when the session is due, and at least every StallDetector.PERIOD_S. A
peer that floods the link delays a tick by one datagram at most.
"""

import contextlib
import math
import os
import select
import threading
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from drone_bridge.net.clock import Clock
from drone_bridge.net.connector import (
    Backoff,
    LinkCancelledError,
    LinkClosedError,
    LinkError,
    LinkRefusedError,
    Selectable,
)
from drone_bridge.net.note_queue import NoteQueue
from drone_bridge.net.thread_end import STOP_TIMEOUT_S, ends_within
from drone_bridge.session.session import Actions, Call, Close, Note, Outcome, Publish, Send, Session
from drone_bridge.session.stall_detector import StallDetector

#: Work that waits for the thread; of more, the oldest is dropped.
MAX_POSTED = 64
#: Datagrams that are read in a turn, until posted work is looked at again.
MAX_READ = 32
#: More than that can't wait in a socket.
MAX_DRAINED = 1000
#: Before a link that has failed is opened again: a vehicle may be waiting for its next command.
LONGEST_PAUSE_S = 1.0
#: How long a session may take to leave.
END_S = 1.0
#: Counters of what the loop itself notices.
INTERNAL_ERRORS, LOST_LINKS, DROPPED_WORK, DROPPED_BY_STALL = (
    "internal_errors",
    "lost_connections",
    "dropped_work",
    "dropped_after_a_stall",
)

#: Why what was decided is not sent.
OUTDATED = "This process stood still after it was decided what to send: it was left out."

#: What another thread wants done: gets the time, and returns actions.
Work = Callable[[float], Actions]


class Received(NamedTuple):
    """What has arrived."""

    data: bytes
    source: Any  # as the session gets it


class Filled(NamedTuple):
    """How much has arrived, in memory that was handed out for it."""

    size: int
    source: Any


class Connected(NamedTuple):
    """A stream has begun."""

    source: Any


class Disconnected(NamedTuple):
    """A stream has ended."""

    source: Any
    sentence: str
    is_regular: bool = False  # the peer has announced that it will send no more


class Link(Protocol):
    """A transport. All but `cancel` are for the loop's thread; nothing blocks but `open`."""

    @property
    def port(self) -> int:
        """The port in use, 0 if there is none."""

    def open(self) -> None:
        """Open, or open again, however long that takes. Raises LinkCancelledError."""

    def cancel(self) -> None:
        """End `open`, now and later."""

    def files(self) -> Sequence[Selectable]:
        """Return what becomes readable when something has arrived."""

    def receive(self) -> Received | Filled | Connected | Disconnected | None:
        """Return what has arrived first, None if nothing has.

        Raises LinkRefusedError if nobody listened to what was sent, LinkError if the link has to be opened again.
        """

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send. Raises LinkRefusedError about what was sent before, and LinkError."""

    def close(self) -> None:
        """Close, once what was sent has been taken or had its time."""


@runtime_checkable
class StreamLink(Link, Protocol):
    """A link of streams, whose bytes are never dropped."""

    #: The pauses before it is opened again.
    backoff: Backoff

    def disconnect(self, peer: Any) -> None:
        """End the stream to a peer, once it has taken what it was sent; nothing of it is received any more."""

    def disconnect_all(self) -> None:
        """End all streams alike, and wait until their peers have taken what they were sent, or had their time."""


class Stage(Protocol):
    """The node of a session: it executes the actions beside sending, in the loop's thread."""

    def publish_event(self, message: Any) -> None:
        """Publish a wire message on its topics."""

    def note(self, note: Note) -> None:
        """Count and log; notes with a sentence in a thread of their own, as a log may block."""

    def call_service(self, name: str, tag: Any) -> None:
        """Call a service, see `session.Call`."""

    def resolve(self, outcome: Outcome) -> None:
        """Answer a request."""

    def link_opened(self) -> None:
        """Handle the opening of the link."""

    def link_turned(self, session: Session) -> None:
        """Follow the session's state, after each turn of the loop."""


class Intake:
    """Commands that wait until the loop's thread takes them. This one never has any."""

    @property
    def due_s(self) -> float:
        """When `look` has to be called next, s."""
        return math.inf

    def opened(self) -> None:
        """Note that the link has been opened."""

    def look(self, now_s: float) -> None:
        """Take what has come, and report, at the end of each turn."""

    def closed(self) -> None:
        """Note that the link has ended, or is to be opened again."""


class LinkLoop:
    """Runs a session on a link until it is stopped; the session is left with its last action done."""

    def __init__(
        self,
        name: str,
        link: Link,
        session: Session,
        stage: Stage,
        clock: Clock | None = None,
        *,
        intake: Intake | None = None,
    ) -> None:
        """`name` is the thread's, `clock` has the time that the session is given, and `intake` has its commands."""
        self.link, self.session = link, session
        self._stage, self._clock, self._intake = stage, clock or Clock(), intake or Intake()
        self._stalls = StallDetector()
        #: When it was decided what is being done now, by the session's clock.
        self.decided_s = -math.inf
        self._streams = link if isinstance(link, StreamLink) else None
        self._backoff = self._streams.backoff if self._streams else Backoff(longest_s=LONGEST_PAUSE_S)
        self._posted: deque[Work] = deque()
        self._kept: deque[Work] = deque()
        self._notes = NoteQueue(stage.note, f"{name} log")
        self._noted: list[Note] = []  # of the actions that are being done
        self._depth = 0  # of actions within actions
        self._is_stopping = self._is_closed = self._has_ended = self._was_lost = False
        self._closing = threading.Lock()  # of the pipe, while others may wake
        self._woken, self._waking = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waking, False)
        # It is waited for, but must not keep a process alive should it ever hang.
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def port(self) -> int:
        return self.link.port

    def start(self) -> None:
        self._notes.start()
        self._thread.start()

    def post(self, work: Work, *, is_kept: bool = False) -> bool:
        """Have the thread call a function with the time, and do the actions that it returns. Thread-safe.

        A caller waits for what is kept: it outlives stalls and lost links, and the session decides whether it is stale.
        Return whether the work was accepted; False once the loop has ended.
        """
        if is_kept:
            self._kept.append(work)
            if self._has_ended:  # it may have been answered in that moment, and is gone then
                with contextlib.suppress(ValueError):
                    self._kept.remove(work)
                    return False
        else:
            if len(self._posted) >= MAX_POSTED:
                with contextlib.suppress(IndexError):  # the thread has just taken them
                    self._posted.popleft()
                    self._stage.note(Note(DROPPED_WORK))
            self._posted.append(work)
        self._wake()
        return not self._has_ended or is_kept

    def stop(self) -> bool:
        """End the session and join the thread. Return whether that finished in time. For any other thread."""
        self._is_stopping = True
        self.link.cancel()
        self._wake()
        if not ends_within(self._thread, STOP_TIMEOUT_S):
            return False
        with self._closing:
            self._is_closed = True
            os.close(self._waking)
            os.close(self._woken)
        self._notes.finish()
        return True

    # The thread.

    def _run(self) -> None:
        try:
            self._stage.link_turned(self.session)
            while not self._is_stopping:
                try:
                    self.link.open()
                    self._begin()
                    self._serve()
                except LinkCancelledError:
                    break
                except Exception as error:
                    self._was_lost = True
                    self._lose()  # first: a traceback's lines are read from the disk
                    if not isinstance(error, LinkError):
                        self._notes.put(_internal(error))
                    elif not isinstance(error, LinkClosedError):
                        self._notes.put(Note(LOST_LINKS, str(error)))
                    self._pause()
        finally:
            try:
                self.end()
            finally:
                self.link.close()

    def _begin(self) -> None:
        """Begin on an open link: what was posted while there was none is old, and that time was no stall."""
        self._stalls = StallDetector()
        self._posted.clear()
        if self._was_lost:
            self._drain()
        self._stage.link_opened()
        self._intake.opened()
        now_s = self.session.fresh_since_s = self._clock.now_s()
        self._act(self.session.opened(now_s), now_s)
        self._stage.link_turned(self.session)

    def _serve(self) -> None:
        """Run the session until it is to end. Raises LinkError when the link has to be opened again."""
        files = tuple(self.link.files())
        poll = self._poll(*files)
        self.turn()  # what was connected while the link was opened makes no file readable
        while not self._is_stopping:
            if files != (files := tuple(self.link.files())):  # one may come later, or be replaced
                poll = self._poll(*files)
            due_s = min(self.session.due_s, self._intake.due_s)
            wait_s = min(due_s - self._clock.now_s(), StallDetector.PERIOD_S)
            ready = poll.poll(0.0 if self._posted or self._kept else max(0.0, wait_s) * 1000)
            if (self._woken, select.POLLIN) in ready:
                self._forget_wakes()
            if not self._is_stopping:
                self.turn()

    def turn(self) -> None:
        """Do what there is to do now. Raises LinkError, and whatever a fault raises: the link is opened again then."""
        self._now()
        self._do_posted()
        self._read()
        self._tick()
        self._intake.look(self._clock.now_s())
        self._stage.link_turned(self.session)

    def _do_posted(self) -> None:
        for posted in (self._kept, self._posted):
            for _ in range(len(posted)):
                if (now_s := self._now()) is None or not posted:  # dropped, as it stood still during the one before
                    return
                self._act(posted.popleft()(now_s), now_s)
                self._tick()

    def _read(self) -> None:
        for _ in range(MAX_READ):
            try:
                received = self.link.receive()
            except LinkRefusedError as error:
                self._refused(error)
                continue
            if received is None:
                return
            if (now_s := self._now()) is None:
                if not self._streams:
                    return  # what was just read is as old as what still waits
                now_s = self.session.fresh_since_s
            self._act(self._taken(received, now_s), now_s)
            self._tick()

    def _taken(self, received: Received | Filled | Connected | Disconnected, now_s: float) -> Actions:
        """Have the session take what has arrived."""
        if isinstance(received, Connected):
            return self.session.connected(received.source, now_s)
        if isinstance(received, Disconnected):
            take = self.session.left if received.is_regular else self.session.disconnected
            actions = take(received.source, received.sentence, now_s)
        elif isinstance(received, Filled):
            actions = self.session.filled(received.size, received.source, now_s)
        else:
            actions = self.session.receive(received.data, received.source, now_s)
        if self.session.is_proven:
            self._backoff.reset()
        return actions

    def _tick(self) -> None:
        if (now_s := self._now()) is not None and now_s >= self.session.due_s:
            self._act(self.session.tick(now_s), now_s)

    def _now(self) -> float | None:
        """Return the time; None if the process has stood still just now, and the session has resumed."""
        now_s = self._clock.now_s()
        if not self._stalls.has_stalled(now_s):
            return now_s
        self._resume(now_s)
        return None

    def _resume(self, now_s: float) -> None:
        """Drop stale work and datagrams, and resume the session, in one step, whatever the link reports meanwhile."""
        dropped = len(self._posted)
        self._posted.clear()
        dropped += self._drain()
        self.session.fresh_since_s = now_s
        self._act(self.session.resume(now_s), now_s)
        if dropped:
            sentence = f"This process was stalled (machine overloaded?). Dropped {dropped} stale messages."
            self._notes.put(Note(DROPPED_BY_STALL, sentence))

    def _drain(self) -> int:
        """Drop what waits on a link of datagrams; return how many."""
        if self._streams:
            return 0
        dropped = 0
        for _ in range(MAX_DRAINED):
            try:
                if self.link.receive() is None:
                    break
                dropped += 1
            except LinkError:  # of what was sent; or the link is broken, which the next reading raises again
                continue
        return dropped

    def _lose(self) -> None:
        """Have the session leave the vehicle neutral, and answer who waits; whatever goes wrong is only counted."""
        now_s = self.session.fresh_since_s = self._clock.now_s()
        self._try(self.session.lost, now_s)
        self._answer_all(now_s)
        self._intake.closed()
        self._stage.link_turned(self.session)
        if self._streams:
            self._streams.disconnect_all()

    def _answer_all(self, now_s: float) -> None:
        """Have the session answer who waits."""
        while self._kept:
            self._try(self._kept.popleft(), now_s)

    def _try(self, work: Work, now_s: float) -> None:
        """Do some work and its actions; whatever goes wrong is only counted."""
        try:
            self._act(work(now_s), now_s)
        except Exception as error:
            self._notes.put(_internal(error))

    def end(self) -> None:
        """Have the session say its last, which may take some repeats."""
        now_s = self._clock.now_s()
        until_s = now_s + END_S
        self._try(self.session.end, now_s)
        while not self.session.is_over and now_s < until_s:
            self._clock.sleep(min(max(1e-3, self.session.due_s - now_s), END_S))
            now_s = self._clock.now_s()
            self._try(self.session.tick, now_s)
        self._intake.closed()
        self._stage.link_turned(self.session)
        self._has_ended = True  # whoever posts from now on is told
        self._answer_all(now_s)

    def _refused(self, error: LinkRefusedError) -> None:
        now_s = self._clock.now_s()
        self._act(self.session.refused(str(error), now_s), now_s)

    def _act(self, actions: Actions, now_s: float) -> None:
        """Do what was decided at a time. Nothing is sent if the process has been stalled since, except at the end.

        Of a stream everything is sent, as the rest could not be read: the session resumes right after that. Notes come
        after all other actions, those of actions within actions too: only after neutral is anything logged.

        What is published has the time at which it was decided with it, `decided_s`: an old command is left out there,
        and a neutral one is not. Raises the first error after all actions were tried.
        """
        outer_s, self.decided_s = self.decided_s, now_s
        self._depth += 1
        failure: Exception | None = None
        for action in actions:
            try:
                if isinstance(action, Send):
                    self._send(action, now_s)
                elif isinstance(action, Publish):
                    self._stage.publish_event(action.message)
                elif isinstance(action, Note):
                    self._noted.append(action)
                elif isinstance(action, Call):
                    self._stage.call_service(action.name, action.tag)
                elif isinstance(action, Close):
                    assert self._streams
                    self._streams.disconnect(action.peer)
                else:
                    self._stage.resolve(action)
            except Exception as error:
                failure = failure or error
        self.decided_s = outer_s  # of the actions among which these were
        self._depth -= 1
        if self._noted and not self._depth:
            noted, self._noted = self._noted, []
            for note in noted:
                (self._notes.put if note.sentence else self._stage.note)(note)
        if failure:
            raise failure

    def _send(self, action: Send, decided_s: float) -> None:
        is_stale = self._clock.now_s() - decided_s > StallDetector.STALL_S
        if is_stale and not (self._streams or self._is_stopping):
            self._unsent(action, OUTDATED)
            return
        try:
            self.link.send(action.data, action.to)
        except LinkRefusedError as error:
            self._refused(error)
        except LinkError as error:
            self._unsent(action, str(error))
            return
        self._noted.extend(map(Note, action.if_sent))

    def _unsent(self, action: Send, sentence: str) -> None:
        now_s = self._clock.now_s()
        self._act(self.session.unsent(action, sentence, now_s), now_s)

    def _poll(self, *files: Selectable) -> select.poll:
        poll = select.poll()
        for number in (self._woken, *(file.fileno() for file in files)):
            poll.register(number, select.POLLIN)
        return poll

    def _pause(self) -> None:
        """Wait before the link is opened again, but not for longer than until it is to end."""
        end_s = self._clock.now_s() + self._backoff.next_delay_s()
        poll = self._poll()
        while not self._is_stopping and (left_s := end_s - self._clock.now_s()) > 0:
            poll.poll(left_s * 1000)
            self._forget_wakes()

    def _wake(self) -> None:
        with self._closing, contextlib.suppress(BlockingIOError):  # a full pipe wakes as well
            if not self._is_closed:
                os.write(self._waking, b"w")

    def _forget_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)


def _internal(error: Exception) -> Note:
    """Return the note of a fault of ours, with its traceback."""
    return Note(INTERNAL_ERRORS, "".join(traceback.format_exception(error)))
