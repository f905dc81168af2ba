# SPDX-License-Identifier: Apache-2.0
"""Session: state machine of one direction of a protocol, without socket, thread or clock.

Theory of operation, as in h11, with time as a further input:

- A session gets events, each with its time: `opened` for the link, `receive` for a datagram or document, `tick` at
  `due_s`, `refused` if nothing listens at the other end, `resume` after a stall of this process, and `end` to shut
  down. Each returns a list of actions in the order of their execution: `Send`, `Publish`, `Note`, `Call`, `Outcome`,
  `Close`. A protocol adds methods of the same kind, such as one for the state that a server has to send.
- All of this happens in one thread, that of `net.link_loop.LinkLoop`, which waits on the link, passes the time, and
  executes the actions. No lock is needed, and none delays the neutral command on its way to the wire.
- `due_s` is the latest time of the next `tick`. An earlier tick does nothing that is not due. Repeats, pauses between
  last packets, and silence are states and times of the session, never a sleep.
- When the link fails, or when the session or a publisher raises, the session is `lost`: it sends neutral if it can,
  drops commands, and answers requests. Then the link is `opened` again.
- After a stall, data that waited on the link and in the loop are dropped before `resume` is called. Data received from
  then on are fresh, and the silence before is not the peer's.
- `last_words` are what `end` would send. They are kept up to date, and sent by another process if this one is killed or
  stalls. `neutral_sent` reports the latter.
- After `end` nothing more is received. The session is ticked until it `is_over`.

A stream link, such as TCP, may have several peers, and connections come and go while the link stays open:

- `connected` and `disconnected` are received in order with the bytes. The session has a codec connection for each peer,
  which gets the chunks of the stream from `receive`, cut anywhere. `Send` goes to one peer. `Close` ends the connection
  to a peer after its queued data are sent; nothing more is received from it. The session decides which peers are
  admitted, and when a message times out: see `session.clients`.
- After a stall no part of a stream is dropped, since the rest would be unreadable. Pending data are sent, or
  what `outdated` returns, so `resume` has to stop a moving vehicle. Received data are parsed, and may be stale if they
  arrive within SETTLING_S after the stall. `connected` and `disconnected` are always valid.
- An outgoing link has one peer. When that peer has disconnected or was closed, the session is `lost`. The link is
  reopened after a pause that grows until the peer `is_proven`.

Attributes are written by that thread and read by any thread: each is replaced as a whole.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol, TypeVar

from drone_bridge.session.stall_detector import StallDetector
from drone_bridge.wire.counters import Counter, FaultCounter, ProblemCounter
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

#: Number of repeats of a last packet, since datagrams get lost, and the gap between them, s, to survive a short outage.
FINAL_REPEATS = 3
FINAL_GAP_S = 0.02
#: How long commands are refused after a stall of this process. By then data that waited elsewhere have been read, or
#: their reader has stalled again.
SETTLING_S = StallDetector.STALL_S
#: Names of requests that end a flight.
LAND, EMERGENCY = ENDS_FLIGHT = "land", "emergency"
#: Limit of an emergency request's age, s: the person who called it has seen the result meanwhile.
EMERGENCY_AGE_S = 3.0
#: Counters of connections, and of invalid messages.
CONNECTIONS, REJECTED = Counter("connections"), FaultCounter("rejected_input")
#: Counter of refused datagrams.
REFUSED_DATAGRAMS = ProblemCounter("refused_datagrams")
#: Counter of datagrams that could not be sent.
UNSENT_DATAGRAMS = ProblemCounter("unsent_datagrams")
#: Counter of commands that were refused after a stall.
AFTER_STALLS = ProblemCounter("commands_after_stall")
MAY_HAVE_WAITED = "Ignored a command that may be stale: the process has just resumed after a stall."

MessageT = TypeVar("MessageT")


@dataclass(frozen=True, slots=True)
class Send:
    """Packet for the wire."""

    data: bytes | memoryview
    """Payload. A stream does not copy it: it must not change until the peer has read it."""
    to: Any = None
    """Destination, as the link identifies its peers; None if there is only one."""
    if_lost: str = UNSENT_DATAGRAMS
    """Counter to increase if the packet can't be sent."""
    if_sent: tuple[str, ...] = ()
    """Counters to increase if the packet is sent."""
    rest: bytes = b""
    """Rest of the message on a stream, which later Sends carry."""
    until_s: float | None = None
    """Time limit from which it is dropped if it has not been sent, s; infinity: never. Without one, the link decides. A
    message on a stream that has a finite one is also dropped when the connection is closed. What the operating system
    has taken is sent."""
    outlasts_stalls: bool = False
    """Whether a datagram is sent even if this process has stalled since its decision."""
    request: Any = None
    """Request whose Outcome this packet decides: a success once the operating system has taken it whole, a failure if
    it is dropped."""


@dataclass(frozen=True, slots=True)
class Publish:
    """Wire message to publish on its topics."""

    message: Any


class Note(NamedTuple):
    """Report: a counter to increase, unless empty, and a sentence to log, unless empty."""

    counter: str
    sentence: str = ""
    is_expected: bool = False
    """Whether the sentence is information, not a warning."""
    is_ongoing: bool = False
    """Whether repeats of the sentence are throttled, with growing intervals."""
    is_usual_at_start: bool = False
    """Whether an ongoing report is only information right after the start, when peers may not be up yet."""


@dataclass(frozen=True, slots=True)
class Call:
    """Service of the vehicle in ROS to call, by its name in this session. The Answer is posted with `tag`."""

    name: str
    tag: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """Result of a Call, with the vehicle's or the caller's reason."""

    is_success: bool
    sentence: str
    was_called: bool = True
    """Whether the service was called: it was available, and the call was permitted."""
    has_come: bool = True
    """Whether the vehicle responded in time."""
    was_displaced: bool = False
    """Whether a newer call of the same service has replaced it."""
    response: Any = None
    """Response of the service, if it has further fields."""


class Request(Protocol):
    """Request of a local caller, who waits for its Outcome."""

    name: str
    asked_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of a request, for the waiting caller."""

    request: Any
    is_success: bool
    sentence: str
    result: Any = None
    """Further result, or None."""


@dataclass(frozen=True, slots=True)
class Close:
    """End of the connection to a peer, after its queued data are sent. The session gets no more events of it."""

    peer: Any = None
    """Peer, as the link identifies it."""


class Landing(Enum):
    """What a session does about a landing that the limits require."""

    LANDS = auto()
    """It sends what lands the vehicle."""
    GROUNDED = auto()
    """The vehicle is on the ground, as far as is known."""
    DISCONNECTED = auto()
    """No vehicle is connected, so that nothing can be sent."""
    SILENT = auto()
    """The vehicle does not report, and may not be the receiver of what would be sent."""
    UNKNOWN_FLIGHT = auto()
    """It is unknown whether the vehicle flies, and the same command would make it take off."""
    UNSUPPORTED = auto()
    """The vehicle neither sinks by a velocity nor has a request to land."""


class LastWords(NamedTuple):
    """Packets that leave the vehicle neutral if this process ends or stalls. Another one sends them (`net.last_words`).

    They are all sent at the end of this process. While it stalls, only `neutral` is.
    """

    neutral: tuple[bytes, ...]
    """The neutral command, in one or several packets. Empty if the peer expects none from a stalled process."""
    leaves: tuple[bytes, ...] = ()
    """Packets that follow at the end."""
    to: Any = None
    """Destination, as in Send."""


Action = Send | Publish | Note | Call | Outcome | Close
Actions = Sequence[Action]


class Session(ABC):
    """Base class for one direction of a protocol. Times are seconds of a clock that counts a suspended machine's time.

    `state` is human-readable text for logs and diagnostics.
    """

    state: str = ""
    peer: str = ""
    #: Whether packets can reach a peer.
    is_open: bool = False
    #: Latest time of the next `tick`, s.
    due_s: float = math.inf
    #: Time of the last packet of the peer, and the time from which packets are expected; None without a peer.
    received_s: float | None = None
    since_s: float | None = None
    is_over: bool = False
    #: Whether a peer has sent anything, although it may not be greeted yet.
    is_heard: bool = False
    #: Whether the peer has proved useful. Reconnecting to one that has not backs off further.
    is_proven: bool = True
    #: Names of requests that no stall makes stale, but an emergency by its age.
    never_stale: Collection[str] = (LAND,)
    #: Requests from before this time are stale: the process was stalled, or there was no link. Set by the loop.
    fresh_since_s: float = -math.inf
    #: Commands that are received before this time may be stale: the process was stalled. Set by `resume`.
    settled_s: float = -math.inf

    def opened(self, now_s: float) -> Actions:
        """Begin on a link that was just opened or reopened."""
        return []

    def filled(self, size: int, peer: Any, now_s: float) -> Actions:
        """Decode bytes of a stream that were read into the session's own buffers. `size` is their number."""
        raise NotImplementedError(f"{type(self).__name__} hands out no memory.")

    @abstractmethod
    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a whole datagram or document, or the next chunk of a stream.

        `source` is a socket address, a topic, or the peer of the stream, whose `str` is its name.
        """

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Start a conversation on a new stream to a peer."""
        return []

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """End the conversation on a stream whose end was not caused by `Close`. `sentence` is the reason."""
        return []

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """End the conversation after the peer has closed its stream. By default the same as `disconnected`."""
        return self.disconnected(peer, sentence, now_s)

    @abstractmethod
    def tick(self, now_s: float) -> Actions:
        """Execute everything that is due."""

    def resume(self, now_s: float) -> Actions:
        """Resume after a stall of this process. Sessions that command a vehicle extend it.

        The silence until now was our own, so that of the peer begins anew.
        """
        self.settled_s = now_s + SETTLING_S
        if self.received_s is not None:
            self.received_s = now_s
        elif self.since_s is not None:
            self.since_s = now_s
        return []

    def lost(self, now_s: float) -> Actions:
        """End after a failure of the link, or an internal error: command neutral if that is still possible."""
        return []

    @abstractmethod
    def end(self, now_s: float) -> Actions:
        """Begin the shutdown, with the neutral command first."""

    def last_words(self) -> LastWords | None:
        """Return what `end` would send after all actions returned so far; None if the vehicle is neutral, or unknown.

        Called for each list of actions with a Send, before it is executed: no command is in force without last words.
        """
        return None

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that `neutral` of the last words, and the rest of a Send, were sent while this process was stalled.

        `now_s` is a time in the stall: a motion that was commanded before has ended then. `resume` follows.
        """
        return []

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Report a refused datagram. `sentence` names the destination."""
        return [Note(REFUSED_DATAGRAMS, sentence, is_ongoing=True, is_usual_at_start=True)]

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Report a packet that was not sent, after a link error or a stall of this process; `sentence` names it."""
        return [Note(action.if_lost, sentence)]

    def outdated(self, action: Send) -> Send:
        """Return what to send on a stream instead of a message, after a stall of this process since its decision.

        Nothing is sent if its `data` are empty. `neutral_sent` is called before, if last words were sent.
        """
        return action

    def landing(self, now_s: float) -> Landing:
        """Return what happens about a landing that the limits require now. Thread-safe.

        Called only while that landing ranks above all else: see `session.arbiter`.
        """
        return Landing.LANDS if self.is_open else Landing.DISCONNECTED

    def expires_at(self, request: Request) -> float:
        """Return the time until which a request may be executed, s. It is the past for a stale one.

        A stall makes all requests stale but those that are `never_stale`, and an emergency for EMERGENCY_AGE_S.
        """
        if request.name == EMERGENCY:
            return request.asked_s + EMERGENCY_AGE_S
        is_fresh = request.name in self.never_stale or request.asked_s >= self.fresh_since_s
        return math.inf if is_fresh else -math.inf

    def silent_s(self, now_s: float) -> float:
        """Return how long the peer has been silent, s; 0 without a peer."""
        since_s = self.received_s if self.received_s is not None else self.since_s
        return 0.0 if since_s is None else max(0.0, now_s - since_s)


def too_old(request: Request, now_s: float) -> str:
    """Return why an emergency is not executed, as a sentence."""
    return f"The motors were not cut: the request is {now_s - request.asked_s:.1f} s old."


def encode(
    send: Callable[[MessageT], bytes], message: MessageT, neutral: MessageT | None, notes: list[Action]
) -> bytes | None:
    """Encode a message, or fall back to the neutral one, see `encoded`. Appends errors to `notes`."""
    return encoded(send, message, neutral, lambda sentence: notes.append(Note(UNENCODABLE, sentence)))


def sends_first(actions: Actions) -> Actions:
    """Return actions with all packets first, so that none, such as a stop, waits for a publisher."""
    packets: list[Action] = []
    others: list[Action] = []
    for action in actions:
        (packets if isinstance(action, Send) else others).append(action)
    return [*packets, *others]


def next_due(due_s: float, period_s: float, now_s: float) -> float:
    """Return the next time of a periodic action that was due, s. Missed periods are skipped."""
    next_s = due_s + period_s
    return next_s if next_s > now_s else now_s + period_s
