# SPDX-License-Identifier: Apache-2.0
"""The two ends of a conversation in the simulator protocol."""

import struct
from collections import deque
from dataclasses import dataclass
from typing import Any, ClassVar

from drone_bridge.simulator.codec import cameras, entities, entity_streams, extended, objects, triggers, world
from drone_bridge.simulator.codec.entity_streams import EntityData, EntityDataLayout, entity_data_layout
from drone_bridge.simulator.codec.wire import Request, Response
from drone_bridge.simulator.codec.world import Error
from drone_bridge.wire.events import ConnectionClosed, EventT, LocalProtocolError, NeedData
from drone_bridge.wire.layouts import Message
from drone_bridge.wire.stream import StreamConnection

DEFAULT_PORT = 7772
TCP_PORT = DEFAULT_PORT  # its name of old
VEHICLE = 0  # the ID of the entity that is there from the start
MAX_BODY_BYTES = 16 << 20  # of what is read
MAX_REQUEST_BYTES = 1024  # of the body of a request: the CUAUV server closes on a longer one
MAX_OUTSTANDING = 1024  # requests without an answer


_MODULES = (
    cameras,
    entities,
    entity_streams,
    extended,
    objects,
    triggers,
    world,
)


def _by_id(base: type[Any]) -> dict[int, Any]:
    """Return all requests or responses of the modules, by type ID."""
    things: list[Any] = [thing for module in _MODULES for thing in vars(module).values() if isinstance(thing, type)]
    return {kind.ID: kind for kind in things if issubclass(kind, base) and kind is not base}


REQUESTS: dict[int, type[Request]] = _by_id(Request)
RESPONSES: dict[int, type[Response]] = _by_id(Response)

_HEADER = struct.Struct(">BI")  # type ID, bytes of the body
_STREAM_ID = struct.Struct(">I")
_MAX_KNOWN_STREAMS = 1024  # more than that, and the peer makes them up


@dataclass(frozen=True, slots=True)
class Answer:
    """The server's answer to a request."""

    request: Request
    response: Response  # of the request's ANSWER, or Error


def frame(message: Message) -> bytes:
    """Return a message with its header, for any connection. Raises LocalProtocolError if it can't be encoded.

    What a server sends to many clients needs to be framed only once.
    """
    body = message.encode()
    if len(body) > MAX_BODY_BYTES:
        raise LocalProtocolError(f"{type(message).__name__} has {len(body)} bytes, and {MAX_BODY_BYTES} are allowed.")
    return _HEADER.pack(message.ID, len(body)) + body


class _Connection(StreamConnection[EventT]):
    """The base of both roles."""

    _header = _HEADER
    _kinds: ClassVar[dict[int, Any]]

    def __init__(self, max_body_bytes: int) -> None:
        super().__init__()
        self._max_body_bytes = max_body_bytes
        self._layouts: dict[int, EntityDataLayout] = {}  # of the last EntityData, by stream

    def _measure(self, *header: int) -> tuple[str, int]:
        kind, length = header
        message = self._kinds.get(kind)
        if message is None:
            raise self._fail(f"sent a message of type {kind}, which it does not have")
        if length != message.BODY_BYTES:
            if message.BODY_BYTES is not None:
                raise self._fail(f"sent {message.__name__} with {length} bytes instead of {message.BODY_BYTES}")
            if length > self._max_body_bytes:
                raise self._fail(f"sent {message.__name__} with {length} bytes; {self._max_body_bytes} are allowed")
        return message.__name__, length

    def _read_message(self, header: tuple[int, ...], start: int, end: int) -> Any:
        kind, length = header
        if kind != EntityData.ID or self._kinds is REQUESTS:
            return self._kinds[kind].decode(bytes(memoryview(self._buffer)[start:end]))
        if length >= _STREAM_ID.size:
            layout = self._layouts.get(_STREAM_ID.unpack_from(self._buffer, start)[0])
            if layout and layout.size == length and (known := layout.decode(self._buffer, start)):
                return known
        data = EntityData.decode(bytes(memoryview(self._buffer)[start:end]))
        if len(self._layouts) >= _MAX_KNOWN_STREAMS:
            self._layouts.clear()
        self._layouts[data.id] = entity_data_layout(data.attributes)
        return data


class ClientConnection(_Connection[Answer | Response | ConnectionClosed]):
    """A client's side. `next_event` returns Answers in the order of the requests, and out-of-band messages.

    A server closes the connection instead of answering a request that it rejects, so `outstanding` may be above 0 at
    the end.
    """

    _peer = "simulator"
    _kinds = RESPONSES

    def __init__(
        self,
        *,
        max_body_bytes: int = MAX_BODY_BYTES,
        max_request_bytes: int = MAX_REQUEST_BYTES,
        max_outstanding: int = MAX_OUTSTANDING,
    ) -> None:
        """`max_body_bytes` limits responses, `max_request_bytes` requests, both without headers."""
        super().__init__(max_body_bytes)
        self._max_request_bytes = max_request_bytes
        self._max_outstanding = max_outstanding
        self._requests: deque[Request] = deque()

    @property
    def outstanding(self) -> int:
        """The number of pending requests."""
        return len(self._requests)

    @property
    def oldest(self) -> Request | None:
        """The request that the next answer is for."""
        return self._requests[0] if self._requests else None

    def next_event(self) -> Answer | Response | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        event = super().next_event()
        if type(event) is not EntityData and isinstance(event, Response) and event.is_in_band:
            return self._answer(event)
        return event

    def send(self, request: Request) -> bytes:
        """Return the bytes of a request, to be written at once: the CUAUV server can't read it in pieces.

        Raises LocalProtocolError for what is not a request or does not fit the wire, for a body that is too long for
        the server, and when too many requests are pending. Then nothing is to be sent, and no answer is expected.
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
            raise self._fail(f"sent {type(response).__name__}, and nothing had been asked")
        request = self._requests[0]
        if not isinstance(response, Error) and not (
            isinstance(response, request.ANSWER) and request.is_answered_by(response)
        ):
            raise self._fail(f"answered {request!r} with {response!r}"[:1000])
        self._requests.popleft()
        return Answer(request, response)


class ServerConnection(_Connection[Request | ConnectionClosed]):
    """The server's side, for one client. `next_event` returns requests, each to be answered in order."""

    _peer = "client"
    _kinds = REQUESTS

    def __init__(self, *, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        """`max_body_bytes` limits requests, without headers; the CUAUV server's limit is MAX_REQUEST_BYTES."""
        super().__init__(max_body_bytes)
        self._requests: deque[Request] = deque()

    @property
    def outstanding(self) -> int:
        """The number of requests to answer."""
        return len(self._requests)

    def next_event(self) -> Request | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA.

        Raises RemoteProtocolError, again at each call, for what the document does not allow, a request that it does
        not have included. The CUAUV server closes then, without an answer.
        """
        event = super().next_event()
        if isinstance(event, Request):
            self._requests.append(event)
        return event

    def send(self, response: Response) -> bytes:
        """Return the bytes of a response.

        Raises LocalProtocolError for what is not a response or does not fit the wire, and for an answer of the wrong
        type for the oldest pending request.
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
            raise LocalProtocolError(f"{response!r} is not an answer to {request!r}.")
        data = frame(response)
        self._requests.popleft()
        return data
