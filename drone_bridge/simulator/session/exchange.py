# SPDX-License-Identifier: Apache-2.0
"""Exchange: requests to a simulator over its connections, and procedures that wait for their answers. Pure.

There is one connection for requests and one for streams, since real servers interleave the two wrongly. Answers carry
no ID. They arrive in the order of their connection's requests, so that after a missing one, no answer can be matched.

A suspended simulator, for instance in a debugger, executes all requests in its buffers when it continues, in order.
Nothing more is therefore sent once an answer is overdue.

A Procedure is a generator that sends several requests in sequence. It yields a Pending request, or the time until which
to wait for an event. `ConnectedClient` continues it once that has arrived.
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
from drone_bridge.simulator.session.events import RequestRoundTrip
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import LocalProtocolError
from drone_bridge.wire.printable import printable

# Counters.
STEPS, STREAM_MESSAGES, REQUESTS, VELOCITIES = rates("steps", "stream_messages", "requests", "velocities")
UNANSWERED, UNSTEERED = problems("unanswered_requests", "unsteered_commands")
REFUSED_VELOCITIES, REFUSED_ITEMS = problems("refused_velocities", "refused_items")
MISSING_VEHICLE, UNKNOWN_HEADING, BAD_NUMBERS = problems("missing_vehicle", "unknown_heading", "bad_numbers")

#: Maximum size of a request's body, since the rest of a longer one would delay steering.
MAX_SENT_BYTES = 64 * 1024
NO_ANSWER = -1  # code of a refusal without an Error of the simulator
_STREAMS_ITEMS = (ItemType.ENTITY_STREAM, ItemType.CAMERA_STREAM, ItemType.TRIGGER)
_STREAMS_REQUESTS = (sim.StreamEntity, sim.StreamCamera, sim.AddTrigger)
STALE_REQUEST = "The request is stale: the bridge was suspended meanwhile. Please call again."
_LAST_ID = 0xFFFFFFFF  # ID that no item has
_UNUSUAL = f"The CUAUV server disconnects on empty keys and values, and on more than {MAX_REQUEST_BYTES} bytes."

OnAnswer = Callable[[Response], None]
ResultT = TypeVar("ResultT")


def ignore(_: Response) -> None:
    """Ignore an answer."""


class SimulatorRefusedError(Exception):
    """Request refused by the simulator."""

    def __init__(self, message: str, code: int = NO_ANSWER) -> None:
        super().__init__(message)
        self.code = code


def refusal(request: Request, error: Error) -> SimulatorRefusedError:
    """Return the error for a refused request, with the simulator's text if it sent one."""
    text = printable(error.message.encode(errors="surrogateescape").decode(errors="replace")).strip()
    return SimulatorRefusedError(text or f"The simulator refused {request.NAME} with code {error.code}.", error.code)


class EndedError(Exception):
    """End of the connections, with its reason, while a procedure waited."""


#: Exceptions that end a caller's procedure without success: refusals, and requests that can't be sent.
REFUSALS = (SimulatorRefusedError, LocalProtocolError, ValueError)


@dataclass(slots=True, eq=False)
class Pending:
    """A sent request."""

    request: Request
    on_answer: OnAnswer
    sent_s: float
    answer: Response | None = None


#: Generator over several answers, which returns a result.
Procedure = Generator[Pending | float, None, ResultT]


class Channel:
    """One connection, and its pending requests."""

    def __init__(self, peer: Any, timeout_s: float) -> None:
        """`timeout_s` applies to each answer."""
        self.peer = peer
        self._timeout_s = timeout_s
        self._connection = ClientConnection(max_request_bytes=MAX_SENT_BYTES)
        self._pending: deque[Pending] = deque()  # bounded by the connection's limit
        self._answered_s = -math.inf  # or the end of this process's last stall

    @property
    def unanswered_since_s(self) -> float:
        """Start of the next answer's timeout: requests sent together are answered in sequence."""
        return max(self._pending[0].sent_s, self._answered_s) if self._pending else math.inf

    @property
    def due_s(self) -> float:
        """Time at which the next answer is overdue."""
        return self.unanswered_since_s + self._timeout_s

    def resume(self, now_s: float) -> None:
        """Restart the timeout of the next answer after a stall of this process or of the simulator."""
        self._answered_s = now_s

    def send(self, request: Request, on_answer: OnAnswer, now_s: float) -> tuple[Pending, bytes]:
        """Return the bytes of a request. Raises LocalProtocolError without effect."""
        data = self._connection.send(request)
        pending = Pending(request, on_answer, now_s)
        self._pending.append(pending)
        return pending, data

    def receive(self, data: bytes, now_s: float) -> Iterator[Pending | Response]:
        """Decode a chunk. Yield the answered requests and the out-of-band messages.

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
        """Explain the end of the connection in a sentence. Raises RemoteProtocolError inside a message."""
        self._connection.receive_eof()
        self._connection.next_event()
        if not self.oldest:
            return sentence
        return (
            f"The simulator closed the connection instead of answering {self.oldest.NAME}, as the CUAUV server does "
            "to unsupported requests."
        )

    def overdue(self) -> str:
        """Return a sentence about the overdue answer."""
        assert self.oldest
        return f"The simulator has not answered {self.oldest.NAME} within {self._timeout_s:g} s."

    @property
    def oldest(self) -> Request | None:
        """Oldest pending request."""
        return self._pending[0].request if self._pending else None


class Exchange:
    """Connections of one client. Its actions are gathered in `out`."""

    def __init__(
        self,
        peers: Sequence[Any],
        vehicle: int,
        timeout_s: float,
        *,
        check_hold: Callable[[str], None],
        out: list[Action],
    ) -> None:
        """Start on new connections.

        Args:
            peers: of the connections: for requests, and for streams.
            vehicle: the entity that commands move.
            timeout_s: applies to each answer.
            check_hold: raises ValueError if the vehicle is on hold, for a request of this name that moves it.
            out: receives actions.
        """
        self.channels = self.requests, self.streams = tuple(Channel(peer, timeout_s) for peer in peers)
        #: Time of this turn.
        self.now_s = -math.inf
        #: End of this process's last stall.
        self.resumed_s = -math.inf
        #: Whether an answer is overdue: the simulator may be suspended. False again once it answers.
        self.is_overdue = False
        #: Time of the current caller's request.
        self.asked_s = -math.inf
        self.out = out
        self._vehicle, self._check_hold = vehicle, check_hold
        self._is_cuauv_server: bool | None = None  # None: unknown

    def note(self, counter: str, sentence: str = "", *, is_ongoing: bool = False) -> None:
        """Count an event and, with a sentence, log it."""
        self.out.append(Note(counter, sentence, is_ongoing=is_ongoing))

    def publish(self, message: Any) -> None:
        self.out.append(Publish(message))

    # Receiving.

    @property
    def overdue_s(self) -> float:
        """Time at which an answer is overdue."""
        return min(channel.due_s for channel in self.channels)

    def overdue(self) -> str:
        """Return a sentence about the overdue answer."""
        return min(self.channels, key=lambda channel: channel.due_s).overdue()

    def answered(self, pending: Pending) -> None:
        """Count an answer, and pass it to its callback."""
        assert pending.answer is not None
        if self.is_overdue:
            self.is_overdue = False
            self.out.append(Note("", "The simulator responds again.", is_expected=True))
            for channel in self.channels:
                channel.resume(self.now_s)
        self.note("requests")
        self.publish(RequestRoundTrip(self.now_s - pending.sent_s))
        pending.on_answer(pending.answer)

    def resume(self) -> None:
        """Continue after a stall of this process."""
        self.resumed_s = self.now_s
        for channel in self.channels:
            channel.resume(self.now_s)

    # Sending.

    def send(self, request: Request, on_answer: OnAnswer = ignore, channel: Channel | None = None) -> Pending:
        """Send a request without waiting. Raises LocalProtocolError without effect."""
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
        """Raise ValueError if the request would move a vehicle on hold, or is stale after a stall."""
        if request.moves(self._vehicle):
            self._check_hold(request.NAME)
            if self.asked_s < self.resumed_s:
                raise ValueError(STALE_REQUEST)

    # Procedures.

    def wait_for(self, *pending: Pending) -> Procedure[list[Response]]:
        """Wait for answers, which may be Errors."""
        for each in pending:
            while each.answer is None:
                yield each
        return [each.answer for each in pending if each.answer is not None]

    def ask(self, *requests: Request) -> Procedure[list[Response]]:
        """Send our own requests together. Return their answers, which may be Errors."""
        return (yield from self.wait_for(*[self.send(request) for request in requests]))

    def answers_to(self, *requests: Request) -> Procedure[list[Any]]:
        """Send our own requests together. Return their answers. Raises SimulatorRefusedError for an Error."""
        answers = yield from self.ask(*requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Error):
                raise refusal(request, answer)
        return answers

    def request_all(self, *requests: Request) -> Procedure[list[Any]]:
        """Send a caller's requests together. Return their answers. Raises REFUSALS."""
        for request in requests:
            self.check(request)
        is_unusual = any(len(each.encode()) > MAX_REQUEST_BYTES or not all(each.texts) for each in requests)
        if is_unusual and (yield from self.is_cuauv_server()):
            raise ValueError(_UNUSUAL)
        return (yield from self.answers_to(*requests))

    def is_cuauv_server(self) -> Procedure[bool]:
        """Determine whether this is the CUAUV server, which answers OK to the removal of unknown triggers."""
        if self._is_cuauv_server is None:
            (answer,) = yield from self.ask(Remove(ItemType.TRIGGER, _LAST_ID))
            self._is_cuauv_server = isinstance(answer, sim.Ok)
        return self._is_cuauv_server

    def request(self, request: Request) -> Procedure[Any]:
        """Send a caller's request. Return its answer. Raises REFUSALS."""
        return (yield from self.request_all(request))[0]
