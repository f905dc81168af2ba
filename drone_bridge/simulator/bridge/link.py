# SPDX-License-Identifier: Apache-2.0
"""The connections to a simulator: one for requests and one for streams, which interfere on a single one."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from drone_bridge.net.connector import (
    FIRST_DELAY_S,
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
)
from drone_bridge.net.tcp import TcpConnector, TcpStream
from drone_bridge.ros.link_requests import ServiceResult
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.simulator.codec import NEED_DATA, ClientConnection, ConnectionClosed, Request, Response
from drone_bridge.simulator.codec import Answer as ProtocolAnswer

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog

RECEIVE_BYTES: Final = 65536

#: What has come of a request: the answer, which may be an Error, or ServiceResult(False, why there is none).
Outcome = Response | ServiceResult
OnOutcome = Callable[[Outcome], None]


def ignore(outcome: Outcome) -> None:
    """Do nothing with an outcome."""


class Channel:
    """One connection, with its pending requests. For one thread at a time."""

    def __init__(self, stream: TcpStream, timeout_s: float, measured: Callable[[float], None]) -> None:
        """`timeout_s` applies to each answer. `measured` gets each round trip, s."""
        self.stream = stream
        self._connection = ClientConnection()
        self._timeout_s = timeout_s
        self._measured = measured
        self._waiting: deque[tuple[OnOutcome, float]] = deque()  # as long as the connection allows
        self._answered_s = 0.0

    @property
    def outstanding(self) -> int:
        return len(self._waiting)

    @property
    def due_s(self) -> float:
        """When the next answer is overdue, on the monotonic clock."""
        if not self._waiting:
            return float("inf")
        # Those that were sent together are answered one after the other, and while we stood still we did not listen.
        resumed_s = time.monotonic() - PROCESS.running_s()
        return max(self._waiting[0][1], self._answered_s, resumed_s) + self._timeout_s

    def ask(self, request: Request, on_outcome: OnOutcome) -> None:
        """Send a request; `on_outcome` is called once, by `read` or `fail`.

        Raises LocalProtocolError, and nothing has happened then; and what sending raises.
        """
        data = self._connection.send(request)
        self._waiting.append((on_outcome, time.monotonic()))
        self.stream.send_all(data, self._timeout_s)

    def read(self, buffer: memoryview) -> Iterator[Response]:
        """Receive data: pass on answers, and yield out-of-band messages.

        Raises RemoteProtocolError, and LinkError at the simulator's end of the connection.
        """
        connection = self._connection
        if count := self.stream.receive_into(buffer, timeout_s=0.0):
            connection.receive_data(buffer[:count])
        else:
            connection.receive_eof()
        while (event := connection.next_event()) is not NEED_DATA:
            if isinstance(event, ProtocolAnswer):
                on_outcome, sent_s = self._waiting.popleft()
                self._answered_s = time.monotonic()
                self._measured(self._answered_s - sent_s)
                on_outcome(event.response)
            elif isinstance(event, ConnectionClosed):
                raise LinkError(self._closing())
            else:
                yield event

    def check(self, now_s: float) -> None:
        """Raise LinkTimeoutError if an answer is overdue, as later ones could not be matched to requests."""
        if now_s >= self.due_s:
            raise LinkTimeoutError(f"The simulator has not answered {self._oldest} within {self._timeout_s:g} s.")

    def fail(self, reason: str) -> None:
        """Fail all pending requests."""
        while self._waiting:
            self._waiting.popleft()[0](ServiceResult(False, reason))

    @property
    def _oldest(self) -> str:
        oldest = self._connection.oldest
        return oldest.NAME if oldest else "nothing"

    def _closing(self) -> str:
        if not self._waiting:
            return "The simulator closed the connection."
        return (
            f"The simulator closed the connection instead of answering {self._oldest}, as the CUAUV server does with a "
            "request that it does not know or like."
        )


class SimulatorLink:
    """The open connections to one simulator."""

    def __init__(self, requests: TcpStream, streams: TcpStream | None, probe: TcpStream | None) -> None:
        """Without `streams`, the connection for requests is used for streams, too."""
        self.requests = requests
        self.streams = streams or requests
        self.probe = probe
        for stream in self.all:
            stream.acknowledge_at_once()

    @property
    def peer(self) -> str:
        return self.requests.peer

    @property
    def all(self) -> list[TcpStream]:
        """The connections, each once."""
        streams = [self.requests]
        if self.streams is not self.requests:
            streams.append(self.streams)
        if self.probe:
            streams.append(self.probe)
        return streams

    def leave(self, last_words: list[bytes], timeout_s: float) -> None:
        """Send the last requests, and close once the simulator has closed, or after `timeout_s`.

        SIGPIPE kills the CUAUV server when it writes twice to a closed connection, as it may at each step. A connection
        that is only closed for writing accepts data until the server has noticed.
        """
        deadline_s = time.monotonic() + timeout_s
        for stream in self.all:
            words = last_words if stream is self.requests else []
            stream.leave(words, max(0.0, deadline_s - time.monotonic()))

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
        wire_log: "WireLog | None" = None,
        is_single: bool,
        has_probe: bool,
    ) -> None:
        """`is_single`: use one connection. `has_probe`: open another one to try a request that may close it."""
        self._make_connector = partial(TcpConnector, host, port, cancellation, on_failure, wire_log=wire_log)
        self._on_failure = on_failure
        self._connector = self._make_connector()
        self._is_single = is_single
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
                streams = None if self._is_single else self._open_further(opened)
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
