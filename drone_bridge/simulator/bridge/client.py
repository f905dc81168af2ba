# SPDX-License-Identifier: Apache-2.0
"""A client of a simulator: its connections, and requests that wait for their answers.

There is one connection for requests and one for streams, which real servers interleave wrongly on a single one. The
link's thread asks, and waits for the answer in `Client.wait`, of which steering is a part: so velocities go while any
answer is outstanding. Another thread reads the streams, and hands over the answers that come on their connection.
"""

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from drone_bridge.net.connector import (
    FIRST_DELAY_S,
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
    MakeTap,
    Selectable,
    Watch,
)
from drone_bridge.net.tcp import TcpConnector, TcpStream, Wakeup
from drone_bridge.ros.diagnostics import LinkStatistics
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import (
    NEED_DATA,
    Answer,
    ClientConnection,
    ConnectionClosed,
    Error,
    ItemType,
    Remove,
    Request,
    Response,
    Spy,
)
from drone_bridge.simulator.topics.services import explanation
from drone_bridge.wire.events import RemoteProtocolError

RECEIVE_BYTES = 65536
NO_ANSWER = -1  # code of a refusal that no Error of the simulator stands behind
STREAM_TYPES = (ItemType.ENTITY_STREAM, ItemType.CAMERA_STREAM)
_STREAMS_ITEMS = (*STREAM_TYPES, ItemType.TRIGGER, ItemType.SPY)
_STREAMS_REQUESTS = (sim.StreamEntity, sim.StreamCamera, sim.AddTrigger, Spy)
_UNIMPLEMENTED = (
    "The CUAUV server does not implement this request: it closes the connection, or gives an undefined answer."
)
_EMPTY = "The CUAUV server closes the connection on an empty key or value."

OnAnswer = Callable[[Response], None]


def ignore(_: Response) -> None:
    """Do nothing with an answer."""


class RefusedError(Exception):
    """The simulator has refused a request."""

    def __init__(self, message: str, code: int = NO_ANSWER) -> None:
        super().__init__(message)
        self.code = code


# One connection.


@dataclass(slots=True, eq=False)
class Pending:
    """A request that was sent."""

    request: Request
    #: Called with the answer: the first by the thread that reads it, the second by the link's.
    on_read: OnAnswer
    on_answer: OnAnswer
    sent_s: float = field(default_factory=time.monotonic)
    answered_s: float = math.inf
    answer: Response | None = None


class Channel:
    """One connection, which one thread writes to and one reads."""

    def __init__(self, stream: TcpStream, timeout_s: float) -> None:
        """`timeout_s` applies to each answer."""
        self.stream = stream
        self._connection = ClientConnection()
        self._timeout_s = timeout_s
        self._pending: deque[Pending] = deque()  # as long as the connection allows
        self._answered_s = 0.0
        self._buffer = memoryview(bytearray(RECEIVE_BYTES))

    @property
    def outstanding(self) -> int:
        return len(self._pending)

    @property
    def due_s(self) -> float:
        """When the next answer is overdue, on the monotonic clock."""
        try:
            oldest = self._pending[0]
        except IndexError:
            return math.inf
        # Those that were sent together are answered one after the other, and while we stood still we did not listen.
        resumed_s = time.monotonic() - PROCESS.running_s()
        return max(oldest.sent_s, self._answered_s, resumed_s) + self._timeout_s

    def send(self, request: Request, on_answer: OnAnswer = ignore, on_read: OnAnswer = ignore) -> Pending:
        """Send a request. Raises LocalProtocolError, and nothing has happened then; and what sending raises."""
        data = self._connection.send(request)
        pending = Pending(request, on_read, on_answer)
        self._pending.append(pending)
        self.stream.send_all(data, self._timeout_s)
        return pending

    def read(self) -> Iterator[Pending | Response]:
        """Receive data: yield the requests that are answered by it, and out-of-band messages.

        Raises RemoteProtocolError, and LinkError at the simulator's end of the connection.
        """
        connection = self._connection
        if count := self.stream.receive_into(self._buffer, timeout_s=0.0):
            connection.receive_data(self._buffer[:count])
        else:
            connection.receive_eof()
        while (event := connection.next_event()) is not NEED_DATA:
            if isinstance(event, Answer):
                self._answered_s = time.monotonic()
                pending = self._pending.popleft()
                pending.answered_s, pending.answer = self._answered_s, event.response
                pending.on_read(event.response)
                yield pending
            elif isinstance(event, ConnectionClosed):
                raise LinkError(self._closing())
            else:
                yield event

    def check(self, now_s: float) -> None:
        """Raise LinkTimeoutError if an answer is overdue, as later ones could not be matched to requests."""
        if now_s >= self.due_s:
            raise LinkTimeoutError(f"The simulator has not answered {self._oldest} within {self._timeout_s:g} s.")

    @property
    def _oldest(self) -> str:
        with contextlib.suppress(IndexError):  # answered by now
            return self._pending[0].request.NAME
        return "nothing"

    def _closing(self) -> str:
        if not self._pending:
            return "The simulator closed the connection."
        return (
            f"The simulator closed the connection instead of answering {self._oldest}, as the CUAUV server does with a "
            "request that it does not know or like."
        )


# All connections to a simulator.


class Client:
    """Asks, waits and steers. For the link's thread, but for what says otherwise."""

    def __init__(
        self,
        link: "SimulatorLink",
        timeout_s: float,
        statistics: LinkStatistics,
        cancellation: Cancellation,
        wakeup: Wakeup,
    ) -> None:
        """`timeout_s` applies to each answer; `wakeup` ends a wait."""
        self.requests = Channel(link.requests, timeout_s)
        self.streams = Channel(link.streams, timeout_s)
        self.probe = Channel(link.probe, timeout_s) if link.probe else None
        #: Sends the velocities that are due, and returns when the next ones are.
        self.steer: Callable[[float], float] = lambda _: math.inf
        #: Gets out-of-band messages, and the channel that they came on.
        self.handle: Callable[[Response, Channel], None] = lambda event, channel: None
        #: Raises ValueError for a request that moves a vehicle that is held.
        self.check_hold: Callable[[Request], None] = lambda request: None
        #: Whether something has come since this was last set to False: whoever looks for work has to look again.
        self.is_stirred = False
        self._statistics = statistics
        self._interrupts: list[Selectable] = [cancellation, wakeup]
        self._wakeup = wakeup
        self._answered: deque[Pending] = deque()  # read by any thread
        self._failure: Exception | None = None
        self._read_by_us: list[Channel] = []
        self.read_requests()

    def read_requests(self, *, streams_too: bool = True) -> None:
        """Read the answers to requests here, and the streams' connection unless another thread does so."""
        channels = [self.requests]
        if streams_too:
            channels.append(self.streams)
        if self.probe:
            channels.append(self.probe)
        self._read_by_us = channels
        self._watch = Watch([*self._interrupts, *(channel.stream for channel in channels)])

    # For the thread that reads streams.

    def read_streams(self) -> None:
        """Read what has come on the streams' connection, and hand over its answers. Raises as `Channel.read` does."""
        if self._read(self.streams):
            self._wakeup.wake()

    def fail(self, failure: Exception) -> None:
        """End the conversation, as the other thread can't go on."""
        self._failure = failure
        self._wakeup.wake()

    def _read(self, channel: Channel) -> bool:
        """Return whether there is something for the link's thread."""
        is_for_us = False
        for event in channel.read():
            if isinstance(event, Pending):
                self._answered.append(event)
                is_for_us = True
            else:
                self.handle(event, channel)
                is_for_us |= isinstance(event, sim.Completed | sim.Spied)
        self._statistics.liveness.heard()
        return is_for_us

    # Asking.

    def channel_for(self, request: Request) -> Channel:
        """Return the channel of a request: streams and triggers send to the connection that added them."""
        is_of_stream = isinstance(request, _STREAMS_REQUESTS) or (
            isinstance(request, Remove) and request.type in _STREAMS_ITEMS
        )
        return self.streams if is_of_stream else self.requests

    def send(self, request: Request, on_answer: OnAnswer = ignore, on_read: OnAnswer = ignore) -> Pending:
        """Send a request, and go on. Raises as `Channel.send` does."""
        return self.channel_for(request).send(request, on_answer, on_read)

    def exchange(self, *requests: Request) -> list[Response]:
        """Send requests together; return their answers, which may be Errors. Raises LinkError."""
        return [self.wait_for(pending) for pending in [self.send(request) for request in requests]]

    def request(self, request: Request) -> Any:
        """Send a request that somebody asked for, and return its answer. Raises as `request_all` does."""
        return self.request_all([request])[0]

    def request_all(self, requests: Sequence[Request]) -> list[Any]:
        """Send requests together, and return their answers.

        Raises RefusedError for an Error, ValueError as `check` does, LocalProtocolError for what can't be sent, and
        LinkError.
        """
        for request in requests:
            self.check(request)
        return self.answers_to(requests)

    def answers_to(self, requests: Sequence[Request]) -> list[Any]:
        """Send requests of our own together, and return their answers. Raises RefusedError for an Error."""
        answers = self.exchange(*requests)
        for request, answer in zip(requests, answers, strict=True):
            if isinstance(answer, Error):
                raise RefusedError(explanation(request, answer), answer.code)
        return answers

    def check(self, request: Request) -> None:
        """Raise ValueError for a request that somebody asked for, and that is not to be sent.

        It moves a vehicle that is held, or the CUAUV server closes the connection on it.
        """
        self.check_hold(request)
        if not request.is_implemented:
            raise ValueError(_UNIMPLEMENTED)
        if not all(request.texts):
            raise ValueError(_EMPTY)

    def wait_for(self, pending: Pending) -> Response:
        """Wait for an answer, which may be an Error. Raises LinkError."""
        while pending.answer is None:
            self.wait(math.inf)
        return pending.answer

    @property
    def outstanding(self) -> int:
        return self.requests.outstanding + self.streams.outstanding

    # Waiting.

    def wait(self, until_s: float) -> None:
        """Steer, and wait for an answer, a wake-up, or the time.

        Raises LinkError, RemoteProtocolError, and what the thread that reads streams failed with.
        """
        self._statistics.facts["outstanding requests"] = str(self.outstanding)
        now_s = time.monotonic()
        due_s = min(until_s, self.steer(now_s), self.requests.due_s, self.streams.due_s)
        timeout_s = None if due_s == math.inf else max(0.0, due_s - time.monotonic())
        is_cancelled, is_woken, *are_readable = self._watch.wait(timeout_s)
        if is_cancelled:
            raise LinkCancelledError("Talking to the simulator was cancelled.")
        if is_woken:
            self._wakeup.clear()
        for channel, is_readable in zip(tuple(self._read_by_us), are_readable, strict=True):
            if is_readable and channel is self.probe:
                self._read_probe(channel)
            elif is_readable:
                self._read(channel)
        self.is_stirred |= is_woken or any(are_readable)
        if self._failure:
            raise self._failure
        self._tell_answers()
        now_s = time.monotonic()
        self.requests.check(now_s)
        self.streams.check(now_s)

    def _tell_answers(self) -> None:
        while self._answered:
            pending = self._answered.popleft()
            self._statistics.counts["requests"] += 1
            self._statistics.took("request round trip", pending.answered_s - pending.sent_s)
            assert pending.answer is not None
            pending.on_answer(pending.answer)

    # The connection that tries a request which may close it.

    def try_on_probe(self, request: Request) -> Response | None:
        """Send a request on a connection of its own, and close that; return the answer, None if there is none."""
        if self.probe is None:
            return None
        pending = self.probe.send(request)
        while self.probe and pending.answer is None and time.monotonic() < self.probe.due_s:
            self.wait(self.probe.due_s)
        self._close_probe()
        return pending.answer

    def _read_probe(self, probe: Channel) -> None:
        try:
            for _ in probe.read():
                continue
        except LinkCancelledError:
            raise
        except (LinkError, RemoteProtocolError):
            self._close_probe()

    def _close_probe(self) -> None:
        if self.probe:
            probe, self.probe = self.probe, None
            is_ours = self.streams in self._read_by_us
            self.read_requests(streams_too=is_ours)
            probe.stream.close()


# Opening and leaving them.


class SimulatorLink:
    """The open connections to one simulator."""

    def __init__(self, requests: TcpStream, streams: TcpStream, probe: TcpStream | None) -> None:
        self.requests, self.streams, self.probe = requests, streams, probe
        for stream in self.all:
            stream.acknowledge_at_once()

    @property
    def peer(self) -> str:
        return self.requests.peer

    @property
    def all(self) -> list[TcpStream]:
        """The connections."""
        return [self.requests, self.streams, *([self.probe] if self.probe else [])]

    def leave(self, last_requests: list[bytes], timeout_s: float) -> None:
        """Send the last requests, and close once the simulator has closed, or after `timeout_s`.

        SIGPIPE kills the CUAUV server when it writes twice to a closed connection, as it may at each step. A connection
        that is only closed for writing accepts data until the server has noticed.
        """
        deadline_s = time.monotonic() + timeout_s
        for stream in self.all:
            last = last_requests if stream is self.requests else []
            stream.leave(last, max(0.0, deadline_s - time.monotonic()))

    def close(self) -> None:
        for stream in self.all:
            stream.close()


class SimulatorEndpoint:
    """Opens the connections, retrying forever."""

    def __init__(
        self,
        host: str,
        port: int,
        cancellation: Cancellation,
        on_failure: Callable[[str, float], None],
        *,
        wire_log: MakeTap | None = None,
        has_probe: bool,
    ) -> None:
        """`has_probe`: open a further connection to try a request that may close it."""
        self._make_connector = partial(TcpConnector, host, port, cancellation, on_failure, wire_log=wire_log)
        self._on_failure = on_failure
        self._connector = self._make_connector()
        self._has_probe = has_probe

    @property
    def backoff(self) -> Backoff:
        """How long to wait between attempts."""
        return self._connector.backoff

    @property
    def port(self) -> int:
        return self._connector.port

    def open(self) -> SimulatorLink:
        """Wait for the simulator. Raises LinkCancelledError."""
        while True:
            opened = [self._connector.open()]
            try:
                streams = self._open_further(opened)
                probe = self._open_further(opened) if self._has_probe else None
            except LinkError as error:
                for stream in opened:
                    stream.close()
                if isinstance(error, LinkCancelledError):
                    raise
                self._on_failure(str(error), FIRST_DELAY_S)
            else:
                return SimulatorLink(opened[0], streams, probe)

    def _open_further(self, opened: list[TcpStream]) -> TcpStream:
        opened.append(self._make_connector().open_once())
        return opened[-1]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
