# SPDX-License-Identifier: Apache-2.0
"""Exchange: requests to a simulator over its connections, and procedures that wait for their answers. Pure.

There is one connection for requests and one for streams, which real servers interleave wrongly on a single one. Answers
carry no ID: they come in the order of the requests of their connection, so that after one that does not come nothing
can be matched any more.

A simulator that leaves a request unanswered for UNANSWERED_S is taken for suspended, as by a breakpoint. When it
continues it carries out all that is in its buffers, in order: so nothing more is sent until it answers.

A Procedure is a generator that asks for several things, one after the other. It yields what it waits for: a Pending
request, or the time until which something else may happen. Nothing of it happens but by `Conversation`, which goes on
with it as soon as that has come.
"""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from drone_bridge.session.session import Action, Note, Publish, Send
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import (
    MAX_REQUEST_BYTES,
    NEED_DATA,
    Answer,
    ClientConnection,
    Error,
    ItemType,
    Remove,
    Request,
    Response,
)
from drone_bridge.simulator.session.published import RoundTrip
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.printable import printable

#: A simulator on this machine answers within a millisecond, a busy one within a few hundredths of a second.
UNANSWERED_S = 0.3
#: Of a body; what steers the vehicle waits for the rest of it.
MAX_SENT_BYTES = 64 * 1024
NO_ANSWER = -1  # code of a refusal that no Error of the simulator stands behind
_STREAMS_ITEMS = (ItemType.ENTITY_STREAM, ItemType.CAMERA_STREAM, ItemType.TRIGGER, ItemType.SPY)
_STREAMS_REQUESTS = (sim.StreamEntity, sim.StreamCamera, sim.AddTrigger, sim.Spy)
OUTDATED = "This process has stood still since that was asked for: call it again."
_LAST_ID = 0xFFFFFFFF  # that there could be of an item, and is not
_UNUSUAL = f"The CUAUV server closes the connection on empty keys and values, and on over {MAX_REQUEST_BYTES} bytes."

OnAnswer = Callable[[Response], None]
ResultT = TypeVar("ResultT")


def ignore(_: Response) -> None:
    """Do nothing with an answer."""


class RefusedError(Exception):
    """The simulator has refused a request."""

    def __init__(self, message: str, code: int = NO_ANSWER) -> None:
        super().__init__(message)
        self.code = code


def refusal(request: Request, error: Error) -> RefusedError:
    """Return what the simulator says of a request that it refused, or at least that it did."""
    text = printable(error.message.encode(errors="surrogateescape").decode(errors="replace")).strip()
    return RefusedError(text or f"The simulator refused {request.NAME} with code {error.code}.", error.code)


class EndedError(Exception):
    """The connections have ended, with this reason, while a procedure waited."""


#: What ends a procedure that somebody asked for without success: refusals, and requests that can't be sent.
REFUSALS = (RefusedError, LocalProtocolError, ValueError)


@dataclass(slots=True, eq=False)
class Pending:
    """A request that was sent."""

    request: Request
    on_answer: OnAnswer
    sent_s: float
    answer: Response | None = None


#: Something that takes several answers, and what comes of it.
Procedure = Generator[Pending | float, None, ResultT]


class Channel:
    """One connection, and its requests without an answer."""

    def __init__(self, peer: Any, timeout_s: float) -> None:
        """`timeout_s` applies to each answer."""
        self.peer = peer
        self._timeout_s = timeout_s
        self._connection = ClientConnection(max_request_bytes=MAX_SENT_BYTES)
        self._pending: deque[Pending] = deque()  # as long as the connection allows
        self._answered_s = -math.inf  # or since when this process listens again

    @property
    def unanswered_since_s(self) -> float:
        """Since when the next answer is due: those that were sent together are answered one after the other."""
        return max(self._pending[0].sent_s, self._answered_s) if self._pending else math.inf

    @property
    def due_s(self) -> float:
        """When the next answer is overdue."""
        return self.unanswered_since_s + self._timeout_s

    def resume(self, now_s: float) -> None:
        """Restart the timeout of the next answer: this process was suspended, or the simulator was."""
        self._answered_s = now_s

    def send(self, request: Request, on_answer: OnAnswer, now_s: float) -> tuple[Pending, bytes]:
        """Return the bytes of a request. Raises LocalProtocolError, and nothing has happened then."""
        data = self._connection.send(request)
        pending = Pending(request, on_answer, now_s)
        self._pending.append(pending)
        return pending, data

    def receive(self, data: bytes, now_s: float) -> Iterator[Pending | Response]:
        """Take a chunk: yield the requests that are answered by it, and out-of-band messages.

        Raises RemoteProtocolError.
        """
        self._connection.receive_data(data)
        while (event := self._connection.next_event()) is not NEED_DATA:
            if isinstance(event, Answer):
                self._answered_s = now_s
                pending = self._pending.popleft()
                pending.answer = event.response
                yield pending
            elif isinstance(event, Response):
                yield event

    def ended(self, sentence: str) -> str:
        """Return, in a sentence, what the connection's end means. Raises RemoteProtocolError amid a message."""
        self._connection.receive_eof()
        self._connection.next_event()
        if not self.oldest:
            return sentence
        return (
            f"The simulator closed the connection instead of answering {self.oldest.NAME}, as the CUAUV server does "
            "with a request that it does not know or like."
        )

    def overdue(self) -> str:
        """Return, in a sentence, what the simulator has not answered."""
        assert self.oldest
        return f"The simulator has not answered {self.oldest.NAME} within {self._timeout_s:g} s."

    @property
    def oldest(self) -> Request | None:
        """The request that the next answer is for."""
        return self._pending[0].request if self._pending else None


class Exchange:
    """The connections of one conversation. What is to be done gathers in `out`."""

    def __init__(
        self,
        peers: Sequence[Any],
        vehicle: int,
        timeout_s: float,
        *,
        check_hold: Callable[[str], None],
        out: list[Action],
    ) -> None:
        """Begin.

        Args:
            peers: of the connections: for requests, and for streams.
            vehicle: the entity that commands move.
            timeout_s: applies to each answer.
            check_hold: raises ValueError if the vehicle is held, for a request of this name that moves it.
            out: gets actions.
        """
        self.channels = self.requests, self.streams = tuple(Channel(peer, timeout_s) for peer in peers)
        #: The time of this turn.
        self.now_s = -math.inf
        #: When this process went on after it had stood still.
        self.resumed_s = -math.inf
        #: Whether the simulator is taken for suspended, until it answers.
        self.is_suspended = False
        #: When somebody asked for what is being done.
        self.asked_s = -math.inf
        self.out = out
        self._vehicle, self._check_hold = vehicle, check_hold
        self._is_cuauv_server: bool | None = None  # not known yet

    def note(self, counter: str, sentence: str = "", *, is_ongoing: bool = False) -> None:
        """Have something counted and, with a sentence, logged."""
        self.out.append(Note(counter, sentence, is_ongoing=is_ongoing))

    def publish(self, message: Any) -> None:
        self.out.append(Publish(message))

    # What comes.

    @property
    def unanswered_due_s(self) -> float:
        """When the simulator is to be taken for suspended."""
        return min(channel.unanswered_since_s for channel in self.channels) + UNANSWERED_S

    @property
    def overdue_s(self) -> float:
        """When an answer is overdue."""
        return min(channel.due_s for channel in self.channels)

    def overdue(self) -> str:
        """Return, in a sentence, which answer is overdue."""
        return min(self.channels, key=lambda channel: channel.due_s).overdue()

    def answered(self, pending: Pending) -> None:
        """Count an answer, and pass it on to the caller."""
        assert pending.answer is not None
        if self.is_suspended:
            self.is_suspended = False
            for channel in self.channels:
                channel.resume(self.now_s)
        self.note("requests")
        self.publish(RoundTrip(self.now_s - pending.sent_s))
        pending.on_answer(pending.answer)

    def resume(self) -> None:
        """Go on after this process stood still."""
        self.resumed_s = self.now_s
        for channel in self.channels:
            channel.resume(self.now_s)

    # Asking.

    def send(self, request: Request, on_answer: OnAnswer = ignore, channel: Channel | None = None) -> Pending:
        """Send a request, and go on. Raises LocalProtocolError, and nothing has happened then."""
        channel = channel or self._channel_for(request)
        pending, data = channel.send(request, on_answer, self.now_s)
        self.out.append(Send(data, channel.peer, "unsent requests"))
        return pending

    def _channel_for(self, request: Request) -> Channel:
        """Return the channel of a request: streams and triggers send to the connection that added them."""
        is_of_stream = isinstance(request, _STREAMS_REQUESTS) or (
            isinstance(request, Remove) and request.type in _STREAMS_ITEMS
        )
        return self.streams if is_of_stream else self.requests

    def check(self, request: Request) -> None:
        """Raise ValueError for what would move the vehicle, if that is held or the request is older than a stall."""
        if request.moves(self._vehicle):
            self._check_hold(request.NAME)
            if self.asked_s < self.resumed_s:
                raise ValueError(OUTDATED)

    # Procedures.

    def wait_for(self, *pending: Pending) -> Procedure[list[Response]]:
        """Wait for answers, which may be Errors."""
        for each in pending:
            while each.answer is None:
                yield each
        return [each.answer for each in pending if each.answer is not None]

    def ask(self, *requests: Request) -> Procedure[list[Response]]:
        """Send requests of our own together; return their answers, which may be Errors."""
        return (yield from self.wait_for(*[self.send(request) for request in requests]))

    def answers_to(self, *requests: Request) -> Procedure[list[Any]]:
        """Send requests of our own together; return their answers. Raises RefusedError for an Error."""
        answers = yield from self.ask(*requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Error):
                raise refusal(request, answer)
        return answers

    def request_all(self, *requests: Request) -> Procedure[list[Any]]:
        """Send requests that somebody asked for together, and return their answers. Raises REFUSALS."""
        for request in requests:
            self.check(request)
        is_unusual = any(len(each.encode()) > MAX_REQUEST_BYTES or not all(each.texts) for each in requests)
        if is_unusual and (yield from self.is_cuauv_server()):
            raise ValueError(_UNUSUAL)
        return (yield from self.answers_to(*requests))

    def is_cuauv_server(self) -> Procedure[bool]:
        """Find out whether this is the CUAUV server, which accepts the removal of unknown triggers."""
        if self._is_cuauv_server is None:
            (answer,) = yield from self.ask(Remove(ItemType.TRIGGER, _LAST_ID))
            self._is_cuauv_server = isinstance(answer, sim.Ok)
        return self._is_cuauv_server

    def request(self, request: Request) -> Procedure[Any]:
        """Send a request that somebody asked for, and return its answer. Raises REFUSALS."""
        return (yield from self.request_all(request))[0]
