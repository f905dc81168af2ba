# SPDX-License-Identifier: Apache-2.0
"""Events of connections, and the errors of a conversation, by the end that caused them."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Literal, TypeVar


class ProtocolError(Exception):
    """A violation of the protocol; the text is a human-readable sentence."""


class LocalProtocolError(ProtocolError):
    """Our side tried to send what the protocol does not allow. Nothing was sent."""


class RemoteProtocolError(ProtocolError):
    """The peer sent what the protocol does not allow. Its later bytes can't be trusted."""


EventT = TypeVar("EventT")


class _Signal(Enum):
    NEED_DATA = "NEED_DATA"

    def __repr__(self) -> str:
        return self.value


NeedData = Literal[_Signal.NEED_DATA]
#: Everything received has been turned into events; more bytes are needed for the next one.
NEED_DATA = _Signal.NEED_DATA


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The peer closed the connection where the protocol allows it."""


class EventSource(ABC, Generic[EventT]):
    """The event interface of a connection."""

    @abstractmethod
    def next_event(self) -> EventT | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError."""

    def events(self) -> Iterator[EventT]:
        """Return the available events, until more data are needed or the connection has closed.

        Raises what `next_event` does; of documents and datagrams, those after a refused one are left for another call.
        """
        while (event := self.next_event()) is not NEED_DATA:
            yield event
            if isinstance(event, ConnectionClosed):
                return


class EventQueue(Generic[EventT]):
    """The events of whole datagrams or documents, in order; errors are raised when their turn comes."""

    def __init__(self) -> None:
        self._outcomes: deque[EventT | RemoteProtocolError] = deque()

    def put(self, outcome: EventT | RemoteProtocolError) -> None:
        """Append an event or an error."""
        self._outcomes.append(outcome)

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
            del outcome  # whose traceback holds this frame: each would keep the other, and the whole document
