# SPDX-License-Identifier: Apache-2.0
"""LinkLoop: the single thread that runs a session on a link.

Each turn first checks for a stall of the process. After a stall, posted work and waiting datagrams are dropped, and the
session resumes. Otherwise the turn executes the work posted by other threads, handles received data, and ticks the
session if it is due. The session's actions are executed at once, in the same thread: `Send` and `Close` by the link,
the others by a `Stage`. Notes are handled after all other actions. Their sentences are logged by a separate thread
(`net.note_queue`), so a log that blocks never delays the link's thread, or the neutral command. Other threads only
append to a deque, and wake the thread, which waits between its turns (`net.loop_thread`).

A turn begins when data arrive, when work is posted, when the session is due, and at least every StallDetector.PERIOD_S.
A peer that floods the link delays a tick by one datagram at most.
"""

import contextlib
import math
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
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
from drone_bridge.net.last_words import LastWordsKeeper, Outlet
from drone_bridge.net.loop_thread import LoopThread, Runner, Wait
from drone_bridge.net.note_queue import NoteQueue
from drone_bridge.session.obstacles import Obstacle
from drone_bridge.session.session import Action, Actions, Call, Close, Note, Outcome, Publish, Send, Session
from drone_bridge.session.stall_detector import StallDetector
from drone_bridge.wire.counters import faults, problems

#: Capacity of the queue of posted work. If it is full, the oldest work is dropped.
MAX_POSTED = 64
#: Reads per turn, before posted work is handled again.
MAX_READ = 32
#: Upper bound of the datagrams that can wait in a socket.
MAX_DRAINED = 1000
#: Longest pause before a failed link is reopened: a vehicle may be waiting for its next command.
LONGEST_PAUSE_S = 1.0
#: How long a session may take to end.
END_S = 1.0
#: Counters of the loop itself.
INTERNAL_ERRORS, LOST_LINKS = faults("internal_errors", "lost_connections")
DROPPED_WORK, DROPPED_BY_STALL = problems("dropped_work", "dropped_after_a_stall")

#: Counter of stalls in which the vehicle was stopped by last words, and its sentence.
LAST_WORDS = "last_words"
SAID = "This process was stalled. Meanwhile its child process has commanded neutral."

#: Reason for a packet that was dropped after a stall.
OUTDATED = "Dropped stale data: the process was stalled between the decision and sending."
#: Outcome of a request whose packet was dropped.
NOT_SENT = "It was not sent: the connection or this process has stalled, or is lost. Please call again."

#: Callback posted by another thread: gets the time, s, and returns actions.
Work = Callable[[float], Actions]


class ReceivedData(NamedTuple):
    """Received datagram, document, or chunk of a stream."""

    data: bytes
    source: Any  # as passed to the session


class FilledBuffer(NamedTuple):
    """Received bytes of a stream, in a buffer that the session has provided."""

    size: int
    source: Any


class Connected(NamedTuple):
    """Start of a stream."""

    source: Any


class Disconnected(NamedTuple):
    """End of a stream."""

    source: Any
    sentence: str
    is_regular: bool = False  # the peer has closed for writing


class Link(Protocol):
    """Transport. For the loop's thread, except `cancel`. Only `open` may block for long."""

    @property
    def port(self) -> int:
        """The port in use, 0 if there is none."""

    def open(self) -> None:
        """Open or reopen, without a timeout. Raises LinkCancelledError."""

    def cancel(self) -> None:
        """Cancel `open`, now and later."""

    def files(self) -> Sequence[Selectable]:
        """Return the files that become readable when data arrive."""

    def receive(self) -> ReceivedData | FilledBuffer | Connected | Disconnected | None:
        """Return the oldest event that has not been returned yet, or None.

        Raises LinkRefusedError if a sent datagram was refused, and LinkError if the link must be reopened.
        """

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """Send. Raises LinkRefusedError about an earlier datagram, and LinkError."""

    def close(self) -> None:
        """Close, after the peers have read the sent data, or after a timeout."""


@runtime_checkable
class StreamLink(Link, Protocol):
    """Link of byte streams, whose bytes are never dropped."""

    #: Delays before the link is reopened.
    backoff: Backoff

    def send(
        self,
        data: bytes | memoryview,
        to: Any,
        rest: bytes = b"",
        until_s: float | None = None,
        decided: Callable[[bool], None] | None = None,
    ) -> None:
        """Send. `rest` is that of the message, which later calls send; `until_s` see `Send`.

        Raises LinkError, also to report earlier messages that were dropped.
        """

    def disconnect(self, peer: Any) -> None:
        """End the stream to a peer once it has read the sent data. Its later data are discarded."""

    def disconnect_all(self) -> None:
        """End all streams in the same way, and wait until their peers have read the sent data, or for a timeout."""


@runtime_checkable
class OutletLink(Link, Protocol):
    """Link whose files can send the last words of a session."""

    def outlet_to(self, to: Any) -> Outlet | None:
        """Return the file through which `send` sends to a peer; None if there is no connection."""


class Stage(Protocol):
    """Node of a session, which executes all actions but sending, in the loop's thread."""

    def publish_event(self, message: Any) -> None:
        """Publish a wire message on its topics."""

    def note(self, note: Note) -> None:
        """Count and log a note. Notes with a sentence come from a separate thread, since a log may block."""

    def call_service(self, name: str, tag: Any) -> None:
        """Call a service. See `session.Call`."""

    def resolve(self, outcome: Outcome) -> None:
        """Answer a request."""

    def link_opened(self) -> None:
        """Called when the link has opened."""

    def turn_ended(self, session: Session) -> None:
        """Update the node from the session's state. Called at the end of each turn of the loop."""


class Intake:
    """Queue of commands for the loop's thread. This base class is an empty one."""

    @property
    def due_s(self) -> float:
        """Time of the next call of `after_turn`, s."""
        return math.inf

    def opened(self) -> None:
        """Called when the link has opened."""

    def after_turn(self, now_s: float) -> None:
        """Pass queued commands to the session and report. Called at the end of each turn."""

    def closed(self) -> None:
        """Called when the link has closed; it may reopen later."""


class LinkLoop:
    """Event loop of a session on a link. `stop` returns after the session's last action, or after a timeout."""

    def __init__(
        self,
        name: str,
        link: Link,
        session: Session,
        stage: Stage,
        clock: Clock | None = None,
        *,
        intake: Intake | None = None,
        keeper: LastWordsKeeper | None = None,
        runner: Runner | None = None,
    ) -> None:
        """Prepare the loop; `start` starts it.

        Args:
            name: of the thread.
            link: transport.
            session: decides what is sent.
            stage: executes all other actions.
            clock: time source of the session.
            intake: queue of its commands.
            keeper: keeps its last words.
            runner: executes the turns; None: a thread.
        """
        self.link, self.session = link, session
        self._stage, self._clock, self._intake = stage, clock or Clock(), intake or Intake()
        self._stalls = StallDetector()
        #: Decision time of the actions that are being executed, by the session's clock, s.
        self.decided_s = -math.inf
        self._streams = link if isinstance(link, StreamLink) else None
        self._outlets = link if isinstance(link, OutletLink) else None
        self._keeper = keeper if self._outlets else None
        self._backoff = self._streams.backoff if self._streams else Backoff(longest_s=LONGEST_PAUSE_S)
        self._posted: deque[Work] = deque()
        self._kept: deque[Work] = deque()
        self._notes = NoteQueue(stage.note, f"{name} log")
        self._noted: list[Note] = []  # by the actions that are being executed
        self._depth = 0  # nesting of actions
        self._is_stopping = self._has_ended = self._was_lost = False
        self._runner = runner or LoopThread(name)

    @property
    def port(self) -> int:
        return self.link.port

    def start(self) -> None:
        self._notes.start()
        self._runner.start(self.turns())

    def post(self, work: Work, *, is_kept: bool = False) -> bool:
        """Queue a callback for the loop's thread, which executes the actions that it returns. Thread-safe.

        Kept work is a request with a waiting caller. It survives stalls and lost links, and the session decides whether
        it is stale. Return True if the work was accepted, False once the loop has ended.
        """
        if is_kept:
            self._kept.append(work)
            if self._has_ended:  # the loop may have just answered and removed it
                with contextlib.suppress(ValueError):
                    self._kept.remove(work)
                    return False
        else:
            if len(self._posted) >= MAX_POSTED:
                with contextlib.suppress(IndexError):  # the thread has just emptied the queue
                    self._posted.popleft()
                    self._stage.note(Note(DROPPED_WORK))
            self._posted.append(work)
        self._runner.wake()
        return not self._has_ended or is_kept

    def stop(self) -> bool:
        """End the session and join the thread. Return True if it finished in time. Call this from another thread.

        A loop that was not started closes what it has opened itself, but not its link.
        """
        self._is_stopping = True
        self.link.cancel()
        self._runner.wake()
        if not self._runner.join():
            return False
        self._notes.finish()
        return True

    # For the loop's thread.

    def turns(self) -> Iterator[Wait]:
        """Run the session until `stop`. Yields the wait after each turn."""
        try:
            self._stage.turn_ended(self.session)
            while not self._is_stopping:
                try:
                    self.link.open()
                    self._begin()
                    yield from self._serve()
                except LinkCancelledError:
                    pass  # by `stop`
                except Exception as error:
                    self._was_lost = True
                    self._lose()  # before formatting a traceback, which reads from the disk
                    if not isinstance(error, LinkError):
                        self._notes.put(_internal(error))
                    elif not isinstance(error, LinkClosedError):
                        self._notes.put(Note(LOST_LINKS, str(error)))
                    yield from self._pause()
        finally:
            try:
                self.end()
            finally:
                self.link.close()

    def _begin(self) -> None:
        """Begin on an open link. Work posted without a link is stale, and the time without a link is not a stall."""
        self._stalls = StallDetector()
        self._posted.clear()
        if self._was_lost:
            self._drain()
        self._stage.link_opened()
        self._intake.opened()
        now_s = self.session.fresh_since_s = self._clock.now_s()
        self._act(self.session.opened(now_s), now_s)
        self._stage.turn_ended(self.session)

    def _serve(self) -> Iterator[Wait]:
        """Run the session until `stop`. Raises LinkError if the link must be reopened."""
        self.turn()  # connections made by `open` make no file readable
        while not self._is_stopping:
            files = tuple(self.link.files())
            due_s = min(self.session.due_s, self._intake.due_s)
            wait_s = min(due_s - self._clock.now_s(), StallDetector.PERIOD_S)
            yield Wait(files, 0.0 if self._posted or self._kept else max(0.0, wait_s))
            if not self._is_stopping:
                self.turn()

    def turn(self) -> None:
        """Execute one turn. After a LinkError, or an exception from a fault, the link is reopened."""
        self._now()
        self._do_posted()
        self._read()
        self._tick()
        self._intake.after_turn(self._clock.now_s())
        self._stage.turn_ended(self.session)
        if self._keeper:
            self._keeper.moved_on()

    def _do_posted(self) -> None:
        for posted in (self._kept, self._posted):
            for _ in range(len(posted)):
                if (now_s := self._now()) is None or not posted:  # dropped after a stall during the previous one
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
                    return  # the datagram is as stale as those still waiting
                now_s = self.session.fresh_since_s
            self._act(self._taken(received, now_s), now_s)
            self._tick()

    def _taken(self, received: ReceivedData | FilledBuffer | Connected | Disconnected, now_s: float) -> Actions:
        """Pass a received event to the session."""
        if isinstance(received, Connected):
            return self.session.connected(received.source, now_s)
        if isinstance(received, Disconnected):
            take = self.session.left if received.is_regular else self.session.disconnected
            actions = take(received.source, received.sentence, now_s)
            self._release(received.source)
        elif isinstance(received, FilledBuffer):
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
        """Return the time, or None after a stall, from which the session has been resumed."""
        now_s = self._clock.now_s()
        if not self._stalls.has_stalled(now_s):
            return now_s
        self._resume(now_s)
        return None

    def _resume(self, now_s: float) -> None:
        """Drop stale work and datagrams, and resume the session, regardless of errors that the link reports."""
        dropped = len(self._posted)
        self._posted.clear()
        dropped += self._drain()
        self.session.fresh_since_s = now_s
        self._count_words(now_s)
        self._act(self.session.resume(now_s), now_s)
        if dropped:
            sentence = f"{Obstacle.STALLED.reason()}. Dropped {dropped} stale messages."
            self._notes.put(Note(DROPPED_BY_STALL, sentence))

    def _count_words(self, now_s: float) -> None:
        """Record last words that were sent in a stall, once."""
        if self._keeper and (sent_at := self._keeper.was_written()) is not None:
            self._notes.put(Note(LAST_WORDS, SAID))
            self._act(self.session.neutral_sent(min(sent_at, now_s)), now_s)

    def _drain(self) -> int:
        """Drop waiting datagrams, and return their number. Streams keep their bytes."""
        if self._streams:
            return 0
        dropped = 0
        for _ in range(MAX_DRAINED):
            try:
                if self.link.receive() is None:
                    break
                dropped += 1
            except LinkError:  # a refusal, or a broken link, which the next read reports again
                continue
        return dropped

    def _lose(self) -> None:
        """Command neutral, answer waiting callers, and disconnect all streams. Session errors are only reported."""
        now_s = self.session.fresh_since_s = self._clock.now_s()
        self._try(self.session.lost, now_s)
        self._answer_all(now_s)
        self._intake.closed()
        self._stage.turn_ended(self.session)
        if self._keeper:
            self._keeper.release()
        if self._streams:
            self._streams.disconnect_all()

    def _answer_all(self, now_s: float) -> None:
        """Answer waiting callers, through the session."""
        while self._kept:
            self._try(self._kept.popleft(), now_s)

    def _try(self, work: Work, now_s: float) -> None:
        """Execute work and its actions. Errors are only counted and logged."""
        try:
            self._act(work(now_s), now_s)
        except Exception as error:
            self._notes.put(_internal(error))

    def end(self) -> None:
        """End the session: send its last packets, with repeats, for END_S at most."""
        now_s = self._clock.now_s()
        until_s = now_s + END_S
        self._try(self.session.end, now_s)
        while not self.session.is_over and now_s < until_s:
            self._clock.sleep(min(max(1e-3, self.session.due_s - now_s), END_S))
            now_s = self._clock.now_s()
            self._try(self.session.tick, now_s)
        self._intake.closed()
        self._stage.turn_ended(self.session)
        if self._keeper:
            self._keeper.release()
        self._has_ended = True  # later calls of `post` return False
        self._answer_all(now_s)

    def _refused(self, error: LinkRefusedError) -> None:
        now_s = self._clock.now_s()
        self._act(self.session.refused(str(error), now_s), now_s)

    def _act(self, actions: Actions, now_s: float) -> None:
        """Execute actions that were decided at `now_s`. After a stall datagrams are not sent, except at the end.

        Those that outlast stalls are. On a stream, where a gap would make the rest unreadable, the
        session may replace them. It resumes right afterwards. Notes are handled after all other actions, nested ones
        included: logging never precedes the neutral command.

        Publishers read the decision time from `decided_s`. They skip a stale command, but never a neutral one. Raises
        the first error, after all actions were tried.
        """
        outer_s, self.decided_s = self.decided_s, now_s
        self._depth += 1
        failure: Exception | None = None
        keeper = self._keeper if self._keeper and any(isinstance(action, Send) for action in actions) else None
        is_armed = keeper is not None and self._arm(keeper)
        for action in actions:
            if keeper:
                keeper.is_writing(action.rest if isinstance(action, Send) else None)
            try:
                self._execute(action, now_s)
            except Exception as error:
                failure = failure or error
        if keeper:
            keeper.is_writing(None)
            if not is_armed:
                keeper.disarm()  # only now: neutral is sent
        self.decided_s = outer_s  # of the enclosing actions
        self._depth -= 1
        if not self._depth:
            noted, self._noted = self._noted, []
            for note in noted:
                (self._notes.put if note.sentence else self._stage.note)(note)
        if failure:
            raise failure

    def _execute(self, action: Action, now_s: float) -> None:
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
            self._release(action.peer)
            self._streams.disconnect(action.peer)
        else:
            self._stage.resolve(action)

    def _send(self, action: Send, decided_s: float) -> None:
        now_s = self._clock.now_s()
        if now_s - decided_s > StallDetector.STALL_S and not self._is_stopping:
            if self._streams:
                self._count_words(now_s)
                action = self.session.outdated(action)
                if not action.data:
                    self._decided(action, is_sent=False)
                    return
            elif not action.outlasts_stalls:
                self._decided(action, is_sent=False)
                self._unsent(action, OUTDATED)
                return
        if action.until_s is not None and now_s >= action.until_s:
            self._decided(action, is_sent=False)
            self._unsent(action, OUTDATED)
            return
        try:
            if self._streams and (action.rest or action.until_s is not None):
                decided = (lambda is_sent: self._decided(action, is_sent=is_sent),) if action.request else ()
                self._streams.send(action.data, action.to, action.rest, action.until_s, *decided)
            else:
                self.link.send(action.data, action.to)
                self._decided(action, is_sent=True)
        except LinkRefusedError as error:
            self._refused(error)
        except LinkError as error:
            if not self._streams:  # a stream reports earlier messages
                self._decided(action, is_sent=False)
            self._unsent(action, str(error))
            return
        self._noted.extend(map(Note, action.if_sent))

    def _arm(self, keeper: LastWordsKeeper) -> bool:
        """Arm the session's last words, if any, before the actions that they follow. Return whether there are any.

        An error must not keep the actions from being executed.
        """
        assert self._outlets
        try:
            if not (words := self.session.last_words()):
                return False
            if outlet := self._outlets.outlet_to(words.to):
                keeper.keep(words, outlet)
        except Exception as error:
            self._notes.put(_internal(error))
        return True

    def _release(self, peer: Any) -> None:
        if self._keeper and self._keeper.peer is peer:
            self._keeper.release()

    def _decided(self, action: Send, *, is_sent: bool) -> None:
        """Resolve the request of a packet, if any. The first outcome counts."""
        if action.request:
            self._stage.resolve(Outcome(action.request, is_sent, "sent" if is_sent else NOT_SENT))

    def _unsent(self, action: Send, sentence: str) -> None:
        now_s = self._clock.now_s()
        self._act(self.session.unsent(action, sentence, now_s), now_s)

    def _pause(self) -> Iterator[Wait]:
        """Wait before the link is reopened. `stop` ends the wait."""
        end_s = self._clock.now_s() + self._backoff.next_delay_s()
        while not self._is_stopping and (left_s := end_s - self._clock.now_s()) > 0:
            yield Wait((), left_s)


def _internal(error: Exception) -> Note:
    """Return the note of an internal error, with its traceback."""
    return Note(INTERNAL_ERRORS, "".join(traceback.format_exception(error)))
