# SPDX-License-Identifier: Apache-2.0
"""Session: what is sent when in one direction of a protocol, without socket, thread or clock.

Theory of operation, as in h11, with time as one more input:

- A session is given what has happened, each with the time at which it happened: the link was `opened`, `receive` a
  datagram or document, `tick` when `due_s` has come, `refused` when nobody listens at the other end, `resume` after
  this process stood still, `end` when it has to leave. Each returns a list of actions, in the order in which they are
  to be done: `Send`, `Publish`, `Note`, `Call`, `Outcome`, `Close`. What a protocol adds, as the state that a server
  has to send, is a method of the same kind.
- All of it happens in one thread, that of `net.link_loop.LinkLoop`, which waits on the link, hands over the time, and
  does the actions. No lock is needed, and none is between the neutral command and the wire.
- `due_s` is when `tick` is wanted at the latest; an earlier tick does nothing that is not due. Repeats, pauses between
  two last packets, silence: all of them are states and times in here, never a sleep.
- When the link fails, or a fault raises in here or in what publishes, the session is `lost`: it says neutral if it can,
  forgets commands, and answers requests. Then the link is `opened` again.
- After a stall whatever waited, on the link and in the loop, has been dropped before `resume` is called. What is heard
  from then on is new, and the silence before was this process's own.
- After `end` nothing is received any more; the session goes on being ticked until it `is_over`.

Over a stream, as TCP, there may be several peers, and connections come and go while the link stays open:

- `connected` and `disconnected` are things received, in order with the bytes. The session has a connection of its codec
  for each peer, to which `receive` gives chunks of its stream, cut anywhere; `send` goes to one peer, and `Close` ends
  one after what it was sent. Of a peer that was closed nothing is heard any more. Who may have a place, and by when a
  message has to be whole, is for the session to decide: `session.clients` has it.
- Nothing of a stream is dropped after a stall, as the rest would be unreadable: what was to be sent is sent, so that
  what moves a vehicle has to be stopped by `resume`. It is parsed on, and what is received within SETTLING_S after
  that may be old. `connected` and `disconnected` always count.
- A link that connects out has one peer. When that has gone, or was closed, the session is `lost`, and the next link is
  opened after a pause that grows until the peer `is_proven`.

Attributes are written by that thread and read by any: each is replaced as a whole.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar

from drone_bridge.session.stall_detector import StallDetector
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

#: How often a last packet is sent, as datagrams get lost, and how far apart, so that they don't share one fate.
FINAL_REPEATS = 3
FINAL_GAP_S = 0.02
#: For how long after a stall of this process commands are refused: what had waited elsewhere is read by then, or who
#: reads it has stood still once more.
SETTLING_S = StallDetector.STALL_S
#: The counter of datagrams that nobody listened to.
REFUSED_DATAGRAMS = "refused_datagrams"
#: The counter of commands right after a stall.
AFTER_STALLS = "commands_after_a_stall"
MAY_HAVE_WAITED = "A command was refused, as this process has just stood still, and it may have waited meanwhile."

MessageT = TypeVar("MessageT")


@dataclass(frozen=True, slots=True)
class Send:
    """Bytes for the wire."""

    data: bytes | memoryview
    """Over a stream without a copy: it has to stay as it is until the peer has taken it."""
    to: Any = None
    """Where, as the link names its peers; None where there is only one."""
    if_lost: str = "unsent_datagrams"
    """The counter of those that could not be sent."""
    if_sent: tuple[str, ...] = ()
    """The counters of those that were."""


@dataclass(frozen=True, slots=True)
class Publish:
    """A wire message whose topics are to be published."""

    message: Any


class Note(NamedTuple):
    """Something to count, unless the counter is empty, and with a sentence to log."""

    counter: str
    sentence: str = ""
    is_expected: bool = False
    """Whether the sentence is no warning."""
    is_ongoing: bool = False
    """Whether it is logged ever less often while it goes on."""
    is_usual_at_start: bool = False
    """Whether what goes on is no warning right after the start, when others are not there yet."""


@dataclass(frozen=True, slots=True)
class Call:
    """A service of the vehicle in ROS that is to be called by its name here; what comes of it is posted with `tag`."""

    name: str
    tag: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a Call, with a clause about it."""

    is_success: bool
    sentence: str
    was_called: bool = True
    """Whether there was somebody to call, and nothing against it."""
    has_come: bool = True
    """Whether the vehicle has answered in time."""
    was_displaced: bool = False
    """Whether it was given up for a newer call of the same service."""
    response: Any = None
    """The service's, where it says more than that."""


class Request(Protocol):
    """What somebody here asks for, and waits for the outcome of."""

    asked_s: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request that somebody here waits for."""

    request: Any
    is_success: bool
    sentence: str
    result: Any = None
    """What else it brought."""


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the connection to a peer, once it has what it was sent; it is not heard of again."""

    peer: Any = None
    """Which, as the link names its peers."""


Action = Send | Publish | Note | Call | Outcome | Close
Actions = Sequence[Action]


class Session(ABC):
    """One direction of a protocol, with one peer at a time. Times are seconds of one clock that goes on in suspension.

    `state` is for people, in logs and diagnostics.
    """

    state: str = ""
    peer: str = ""
    #: Whether what is sent can reach a peer.
    is_open: bool = False
    #: When `tick` is wanted at the latest.
    due_s: float = math.inf
    #: When the peer was last heard, and since when it is to be heard; None without a peer.
    heard_s: float | None = None
    since_s: float | None = None
    is_over: bool = False
    #: Whether the peer has proved useful: one that comes and goes without that is waited for ever longer.
    is_proven: bool = True
    #: What was requested before is old: the process stood still then, or there was no link. Set by the loop.
    fresh_since_s: float = -math.inf

    def opened(self, now_s: float) -> Actions:
        """Begin on a link that has just been opened, perhaps again."""
        return []

    def filled(self, size: int, peer: Any, now_s: float) -> Actions:
        """Take so many bytes of a stream, which are in the memory that the session has handed out for them."""
        raise NotImplementedError(f"{type(self).__name__} hands out no memory.")

    @abstractmethod
    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a whole datagram or document, or the next chunk of a stream.

        `source` is an address as sockets have it, a topic, or the stream's peer, whose name is its text.
        """

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Take that a stream to a peer has begun."""
        return []

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Take that a stream has ended, for another reason than `Close`; `sentence` says which."""
        return []

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Take that a peer has ended its stream regularly; by default no other end than any."""
        return self.disconnected(peer, sentence, now_s)

    @abstractmethod
    def tick(self, now_s: float) -> Actions:
        """Do what is due."""

    @abstractmethod
    def resume(self, now_s: float) -> Actions:
        """Go on after this process stood still."""

    def lost(self, now_s: float) -> Actions:
        """Leave the vehicle neutral, as far as that can be, after the link or something here has failed."""
        return []

    @abstractmethod
    def end(self, now_s: float) -> Actions:
        """Begin to leave, with the neutral command first."""

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Take that nobody listened to what was sent; `sentence` says where."""
        return [Note(REFUSED_DATAGRAMS, sentence, is_ongoing=True, is_usual_at_start=True)]

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Take that what was to be sent was not, as the link refuses it, or this process stood still meanwhile."""
        return [Note(action.if_lost, sentence)]

    def silent_s(self, now_s: float) -> float:
        """Return for how long the peer has been silent; 0 without one."""
        since_s = self.heard_s if self.heard_s is not None else self.since_s
        return 0.0 if since_s is None else max(0.0, now_s - since_s)


def encode(
    send: Callable[[MessageT], bytes], message: MessageT, neutral: MessageT | None, notes: list[Action]
) -> bytes | None:
    """Return what `send` makes of a message, or of the neutral one, see `encoded`; append what is wrong to `notes`."""
    return encoded(send, message, neutral, lambda sentence: notes.append(Note(UNENCODABLE, sentence)))


def next_due(due_s: float, period_s: float, now_s: float) -> float:
    """Return when something periodic that was due is due again; what a delay has cost is not made up for."""
    next_s = due_s + period_s
    return next_s if next_s > now_s else now_s + period_s
