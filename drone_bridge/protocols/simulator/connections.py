# SPDX-License-Identifier: Apache-2.0
"""The two ends of a conversation in the simulator protocol."""

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from drone_bridge.protocols.errors import LocalProtocolError, RemoteProtocolError
from drone_bridge.protocols.events import NEED_DATA, ConnectionClosed, NeedData
from drone_bridge.protocols.simulator import (
    cameras,
    entities,
    entity_streams,
    extended,
    objects,
    triggers,
    world,
)
from drone_bridge.protocols.simulator.entity_streams import EntityData, EntityDataLayout, entity_data_layout
from drone_bridge.protocols.simulator.wire import Message, Request, Response
from drone_bridge.protocols.simulator.world import Error
from drone_bridge.protocols.wire import MisfitError

TCP_PORT: Final = 7772
VEHICLE: Final = 0  # the ID of the entity that is there from the start
MAX_BODY_BYTES: Final = 16 << 20  # of what is read
MAX_REQUEST_BYTES: Final = 1024  # of the body of a request: the CUAUV server closes on a longer one
MAX_OUTSTANDING: Final = 1024  # requests without an answer


_MODULES: Final = (
    cameras,
    entities,
    entity_streams,
    extended,
    objects,
    triggers,
    world,
)


def _by_id(base: type[Any]) -> dict[int, Any]:
    """Return all that the modules define of requests or of responses, by type ID."""
    things: list[Any] = [thing for module in _MODULES for thing in vars(module).values() if isinstance(thing, type)]
    return {kind.ID: kind for kind in things if issubclass(kind, base) and kind is not base}


REQUESTS: Final[dict[int, type[Request]]] = _by_id(Request)
RESPONSES: Final[dict[int, type[Response]]] = _by_id(Response)

_HEADER: Final = struct.Struct(">BI")  # type ID, bytes of the body
_STREAM_ID: Final = struct.Struct(">I")
_MAX_KNOWN_STREAMS: Final = 1024  # more than that, and the peer makes them up


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to a request."""

    request: Request
    response: Response  # of the request's ANSWER, or Error


def frame(message: Message) -> bytes:
    """Return a message with its header, for any connection. Raises LocalProtocolError for what does not fit the wire.

    What a server sends to many clients needs to be framed only once.
    """
    body = message.encode()
    return _HEADER.pack(message.ID, len(body)) + body


class _Messages:
    """Cuts received bytes into messages and reads them; what both roles share."""

    def __init__(self, peer: str, kinds: dict[int, Any], max_body_bytes: int) -> None:
        self._peer = peer
        self._kinds = kinds
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._start = 0  # of the first message in the buffer that has not been read
        self._ended = False
        self._failure: RemoteProtocolError | None = None
        self._layouts: dict[int, EntityDataLayout] = {}  # of the last EntityData, by stream

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        if self._failure or self._ended:
            return
        if self._start:
            del self._buffer[: self._start]
            self._start = 0
        self._buffer += data

    def end(self) -> None:
        self._ended = True

    def next(self) -> Any:
        """Return the next message, NEED_DATA or ConnectionClosed. Raises RemoteProtocolError, again at each call."""
        if self._failure:
            raise self._failure
        buffer, start = self._buffer, self._start
        available = len(buffer) - start
        if available < _HEADER.size:
            return self._at_end("a header", _HEADER.size)
        kind, length = _HEADER.unpack_from(buffer, start)
        message = self._kinds.get(kind)
        if message is None:
            raise self.fail(f"sent a message of type {kind}, which it does not have")
        if length != message.BODY_BYTES:
            if message.BODY_BYTES is not None:
                raise self.fail(f"sent {message.__name__} with {length} bytes instead of {message.BODY_BYTES}")
            if length > self._max_body_bytes:
                raise self.fail(f"sent {message.__name__} with {length} bytes; {self._max_body_bytes} are allowed")
        if available < _HEADER.size + length:
            return self._at_end(message.__name__, _HEADER.size + length)
        body = start + _HEADER.size
        self._start = body + length
        if message is EntityData and length >= _STREAM_ID.size:
            layout = self._layouts.get(_STREAM_ID.unpack_from(buffer, body)[0])
            if layout and layout.size == length and (data := layout.decode(buffer, body)):
                return data
        try:
            event = message.decode(bytes(memoryview(buffer)[body : self._start]))
        except MisfitError as error:
            raise self.fail(f"sent a broken {message.__name__}: {error}") from None
        if message is EntityData:
            if len(self._layouts) >= _MAX_KNOWN_STREAMS:
                self._layouts.clear()
            self._layouts[event.id] = entity_data_layout(event.attributes)
        return event

    @property
    def inside_message(self) -> bool:
        return len(self._buffer) > self._start

    def fail(self, deed: str) -> RemoteProtocolError:
        """Return what to raise from now on."""
        self._failure = RemoteProtocolError(f"The {self._peer} {deed}.")
        self._buffer.clear()
        self._layouts.clear()
        return self._failure

    def _at_end(self, inside: str, needed: int) -> NeedData | ConnectionClosed:
        if not self._ended:
            return NEED_DATA
        got = len(self._buffer) - self._start
        if got:
            raise self.fail(f"closed inside {inside}, after {got} of {needed} bytes")
        return ConnectionClosed()


class ClientConnection:
    """A client's side. `next_event` gives Answers in the order of the requests, and what is sent out of band."""

    def __init__(
        self,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_outstanding: int = MAX_OUTSTANDING,
    ) -> None:
        """`max_body_bytes` is for what is read, `max_request_bytes` for what is sent, both without headers."""
        self._messages = _Messages("simulator", RESPONSES, max_body_bytes)
        self._max_request_bytes = max_request_bytes
        self._max_outstanding = max_outstanding
        self._requests: deque[Request] = deque()

    @property
    def outstanding(self) -> int:
        """How many requests have no answer yet."""
        return len(self._requests)

    @property
    def oldest(self) -> Request | None:
        """The request that the next answer is to."""
        return self._requests[0] if self._requests else None

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes. What follows a broken message is ignored."""
        self._messages.receive(data)

    def receive_eof(self) -> None:
        """Say that the peer has closed its side: the regular end between messages, an error inside one.

        A server closes without a word when it does not like a request, so `outstanding` may be above 0 at the end.
        """
        self._messages.end()

    def next_event(self) -> Answer | Response | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        event = self._messages.next()
        if isinstance(event, Response) and event.is_in_band:
            return self._answer(event)
        return event  # type: ignore[no-any-return]

    def send(self, request: Request) -> bytes:
        """Return the bytes of a request, to be written at once: the CUAUV server can't read it in pieces.

        Raises LocalProtocolError for what is no request or does not fit the wire, for a body that is too long for the
        server, and when too many requests have no answer yet. Then nothing may be sent, and nothing is expected.
        """
        if REQUESTS.get(getattr(request, "ID", -1)) is not type(request):
            raise LocalProtocolError(f"A client does not send {type(request).__name__}.")
        if len(self._requests) >= self._max_outstanding:
            raise LocalProtocolError(
                f"{len(self._requests)} requests wait for an answer; no more than {self._max_outstanding} may."
            )
        data = frame(request)
        if len(data) - _HEADER.size > self._max_request_bytes:
            raise LocalProtocolError(
                f"{type(request).__name__} has {len(data) - _HEADER.size} bytes, "
                f"and the simulator takes {self._max_request_bytes}."
            )
        self._requests.append(request)
        return data

    def _answer(self, response: Response) -> Answer:
        if not self._requests:
            raise self._messages.fail(f"sent {type(response).__name__}, and nothing had been asked")
        request = self._requests[0]
        if not isinstance(response, Error) and not (
            isinstance(response, request.ANSWER) and request.is_answered_by(response)
        ):
            raise self._messages.fail(f"answered {request!r} with {response!r}"[:1000])
        self._requests.popleft()
        return Answer(request, response)


class ServerConnection:
    """The server's side, for one client. `next_event` gives requests; each has to be answered, in order."""

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """`max_body_bytes` is for what is read, without headers; the CUAUV server's is MAX_REQUEST_BYTES."""
        self._messages = _Messages("client", REQUESTS, max_body_bytes)
        self._requests: deque[Request] = deque()

    @property
    def outstanding(self) -> int:
        """How many requests have no answer yet."""
        return len(self._requests)

    @property
    def inside_message(self) -> bool:
        """Whether received bytes wait for the rest of their message, when `next_event` has given NEED_DATA."""
        return self._messages.inside_message

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes. What follows a broken message is ignored."""
        self._messages.receive(data)

    def receive_eof(self) -> None:
        """Say that the peer has closed its side: the regular end between messages, an error inside one."""
        self._messages.end()

    def next_event(self) -> Request | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA.

        Raises RemoteProtocolError, again at each call, for what the document does not allow, a request that it does
        not have included. The CUAUV server closes then, without an answer.
        """
        event = self._messages.next()
        if isinstance(event, Request):
            self._requests.append(event)
        return event  # type: ignore[no-any-return]

    def send(self, response: Response) -> bytes:
        """Return the bytes of a response.

        Raises LocalProtocolError for what is no response or does not fit the wire, and for an answer that the oldest
        request without one can't have.
        """
        kind = type(response)
        if RESPONSES.get(getattr(response, "ID", -1)) is not kind:
            raise LocalProtocolError(f"A simulator does not send {kind.__name__}.")
        if not response.is_in_band:
            return frame(response)
        if not self._requests:
            raise LocalProtocolError(f"{kind.__name__} is an answer, and nothing has been asked.")
        request = self._requests[0]
        if kind is not Error and not (kind is request.ANSWER and request.is_answered_by(response)):
            raise LocalProtocolError(f"{response!r} is no answer to {request!r}.")
        data = frame(response)
        self._requests.popleft()
        return data
