# SPDX-License-Identifier: Apache-2.0
"""EventSource: base class for connections; events, and the errors that end a connection."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Literal, ParamSpec, TypeVar


class ProtocolError(Exception):
    """Violation of the protocol. The text is a human-readable sentence."""


class LocalProtocolError(ProtocolError):
    """Violation by our own side: the message is not allowed. Nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """Violation by the peer. Its later bytes can't be trusted."""


class DisconnectPeerError(Exception):
    """Raised to close the connection to a peer, as the original program would. The text is the reason."""


EventT = TypeVar("EventT")
P = ParamSpec("P")


class _Signal(Enum):
    NEED_DATA = "NEED_DATA"

    def __repr__(self) -> str:
        return self.value


NeedData = Literal[_Signal.NEED_DATA]
#: All received bytes have been converted to events. The next event needs more bytes.
NEED_DATA = _Signal.NEED_DATA


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """Regular end of the connection: the peer closed it where the protocol allows that."""


class EventSource(ABC, Generic[EventT]):
    """Base class for the event interface of a connection."""

    @abstractmethod
    def next_event(self) -> EventT | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError."""

    def events(self) -> Iterator[EventT]:
        """Iterate over the available events, until more data are needed or the connection has closed.

        Raises the errors of `next_event`. Datagrams or documents after a malformed one remain for the next call.
        """
        while (event := self.next_event()) is not NEED_DATA:
            yield event
            if isinstance(event, ConnectionClosed):
                return


class EventQueue(Generic[EventT]):
    """Queue of events of whole datagrams or documents. Errors are queued too, and raised in order."""

    def __init__(self) -> None:
        self._outcomes: deque[EventT | RemoteProtocolError] = deque()

    def put(self, outcome: EventT | RemoteProtocolError) -> None:
        """Append an event or an error."""
        self._outcomes.append(outcome)

    def read(self, reader: Callable[P, EventT], *args: P.args, **kwargs: P.kwargs) -> None:
        """Append the event that a reader returns, or the RemoteProtocolError that it raises."""
        try:
            self.put(reader(*args, **kwargs))
        except RemoteProtocolError as error:
            self.put(error)

    def next_event(self) -> EventT | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError."""
        if not self._outcomes:
            return NEED_DATA
        outcome = self._outcomes.popleft()
        try:
            if isinstance(outcome, RemoteProtocolError):
                raise outcome
            return outcome
        finally:
            del outcome  # breaks the reference cycle with the traceback, which would keep the whole document alive


class MessageSource(EventSource[EventT]):
    """Base class for a connection that receives whole datagrams or documents, which its `receive_data` queues."""

    def __init__(self) -> None:
        self._queue: EventQueue[EventT] = EventQueue()

    def next_event(self) -> EventT | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, once per refused message."""
        return self._queue.next_event()
