# SPDX-License-Identifier: Apache-2.0
"""Gateway: the single address for viewers: the page, the Foxglove stream and the helm, by the rules of `access`.

A thread of its own runs the event loop with all connections. Other threads only open and close it, or post to its loop.
JSON documents are created on further threads, because that may wait for DDS or a disk.
"""

import asyncio
import contextlib
import functools
import gzip
import hashlib
import json
import logging
import os
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, NegotiationError
from websockets.frames import CloseCode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.typing import Subprotocol

from drone_bridge.net.connector import LinkError, LinkInUseError
from drone_bridge.net.tcp import listening_socket
from drone_bridge.stop_signals import LAUNCHED
from drone_bridge.tools.web import page
from drone_bridge.tools.web.access import VIEW_ONLY, Access
from drone_bridge.tools.web.pilots import Pilots

FOXGLOVE_SUBPROTOCOL = Subprotocol("foxglove.sdk.v1")
#: Older name of the same protocol, which older clients and Lichtblick offer.
OLDER_SUBPROTOCOL = Subprotocol("foxglove.websocket.v1")
HELM_SUBPROTOCOL = Subprotocol("drone_bridge.helm.v1")
ANY_INTERFACE = "0.0.0.0"
BACKLOG = 100
PORTS_TRIED, MAX_PORT = 20, 65535
"""Number of ports to try."""
MAX_CONNECTIONS = 400
"""Maximum number of connections of all kinds, including pages that may only stop."""
MAX_WAITING = 64
"""Maximum number of those that are not viewers or pilots. A page needs some briefly."""
MAX_MESSAGE_BYTES = 2**20
"""Maximum size of a viewer's message, such as a service request."""
PING_PERIOD_S = 5.0
PING_TIMEOUT_S = 15.0
PART_BYTES = 2**18
"""Part of a file that is sent at a time, bytes."""
PART_PERIOD_S = 0.005
REQUEST_TIMEOUT_S = 5.0
"""Timeout of the request of a new connection. The response may take longer, while a recording is read."""
MAX_STALL_S = 60
"""Timeout of a peer that does not read. Pings would wait behind unread data."""
CLOSE_TIMEOUT_S = 1.0
#: The page runs only its own code, and connects only to this server.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
    "connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

Handler = Callable[[ServerConnection, bool], Awaitable[None]]
"""Serves a viewer or pilot, with or without permission to make changes."""


class _CountedConnection(ServerConnection):
    """Counted connection. One without a request can be replaced by a newer one."""

    open_ones: int = 0
    waiting: ClassVar[dict["_CountedConnection", None]] = {}
    """Connections that are not a WebSocket yet, the oldest first."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cls = type(self)
        cls.open_ones += 1
        cls.waiting[self] = None
        stream = transport.get_extra_info("socket")
        # asyncio sets it only on sockets with an explicit protocol. Without it, messages wait for acknowledgements.
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # not on macOS
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * MAX_STALL_S)
        super().connection_made(transport)
        self._request_due = self.loop.call_later(REQUEST_TIMEOUT_S, self.transport.abort)
        # WebSockets are never replaced, and their number is limited, so these have not been admitted yet.
        if len(cls.waiting) > MAX_WAITING or cls.open_ones > MAX_CONNECTIONS:
            longest = next(iter(cls.waiting))
            cls.waiting.pop(longest)
            longest.transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        type(self).open_ones -= 1
        self._request_due.cancel()
        self.waiting.pop(self, None)
        super().connection_lost(exc)

    def admit(self) -> None:
        """Record that this is a WebSocket, which is never replaced."""
        self.waiting.pop(self, None)

    def note_request(self) -> None:
        """Record that the request has arrived."""
        self._request_due.cancel()


class Gateway:
    """Thread with an event loop that serves the address."""

    def __init__(self, access: Access, port: int, viewer: Handler, pilots: Pilots) -> None:
        """Prepare. Admitted connections are passed to `viewer` or `pilots`; `pilots` is also watched."""
        self._access = access
        self._port = port
        #: Error of the wanted port, if another one is used.
        self.taken: LinkInUseError | None = None
        self._handlers: dict[Subprotocol, Handler] = dict.fromkeys((FOXGLOVE_SUBPROTOCOL, OLDER_SUBPROTOCOL), viewer)
        self._handlers[HELM_SUBPROTOCOL] = pilots
        #: Handler of connections without a subprotocol, such as rosbridge's clients. None refuses them.
        self.without_subprotocol: Handler | None = None
        # Accepted first to tell a page the reason: browsers do not report the reason of a refused WebSocket.
        self._documents: dict[str, Callable[[], Any]] = {"/access.json": dict}
        self._files: dict[str, Callable[[str], Path | None]] = {}
        #: Gets the reason when a WebSocket is refused, which browsers don't show.
        self.on_refusal: Callable[[str], object] = lambda sentence: None
        #: Sentence for the pages when this ends, instead of that of a node.
        self.farewell = ""
        #: Event loop of all connections. Other threads use call_soon_threadsafe().
        self.loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._ready = threading.Event()
        self._failure: LinkError | None = None
        self._pilots = pilots
        self._thread = threading.Thread(target=self._run, name="gateway", daemon=True)
        self._logger = logging.getLogger("drone_bridge.web")
        self._logger.addHandler(logging.NullHandler())  # malformed requests do not belong in our log
        self._logger.propagate = False

    def offer(self, name: str, make: Callable[[], Any]) -> None:
        """Serve the result of `make`, called on a separate thread, as JSON under this name, to admitted clients."""
        self._documents[f"/{name}"] = make

    def offer_files(self, folder: str, find: Callable[[str], Path | None]) -> None:
        """Serve files by name in a folder of the address, to clients that may make changes."""
        self._files[f"/{folder}"] = find

    def open(self) -> int:
        """Listen, and return the port. If the wanted one is in use, the first free one of the next PORTS_TRIED is used.

        Raises:
            LinkError: the address can't be listened on.
        """
        self._thread.start()
        self._ready.wait()
        if self._failure:
            raise self._failure
        return self._port

    def close(self) -> None:
        """Close all connections and join the thread."""
        if self._thread.is_alive():
            self.loop.call_soon_threadsafe(self._stopping.set)
            self._thread.join()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            self.loop.close()
            self._ready.set()

    async def _serve(self) -> None:
        try:
            server = await self._listen()
        except LinkError as error:
            self._failure = error
            self._ready.set()
            return
        self._port = server.sockets[0].getsockname()[1]
        watching = asyncio.ensure_future(self._pilots.watch())
        self._ready.set()
        stop = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([stop, watching], return_when=asyncio.FIRST_COMPLETED)
        watching.cancel()
        for connection, handling in server.handlers.items():
            # For a file that is not ready, or that its client does not read to the end.
            if connection in _CountedConnection.waiting:
                handling.cancel()
        reason = self.farewell or ("The launch has ended." if os.environ.get(LAUNCHED) else "The server has ended.")
        pages = [each for each in server.handlers if each.state is State.OPEN]
        await asyncio.gather(*(page.close(CloseCode.GOING_AWAY, reason) for page in pages), return_exceptions=True)
        server.close()
        await server.wait_closed()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    async def _listen(self) -> Server:
        server: Server = await serve(
            self._dispatch,
            sock=self._free_socket(),
            process_request=self._answer,
            subprotocols=list(self._handlers),
            select_subprotocol=self._select,
            compression=None,  # images do not compress further, and compression needs memory per viewer
            max_size=MAX_MESSAGE_BYTES,
            max_queue=4,
            open_timeout=None,
            ping_interval=PING_PERIOD_S,
            ping_timeout=PING_TIMEOUT_S,
            close_timeout=CLOSE_TIMEOUT_S,
            server_header=None,
            logger=self._logger,
            create_connection=_CountedConnection,
        )
        return server

    def _select(self, _: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
        selected = next((each for each in self._handlers if each in offered), None)
        if selected is None and (offered or self.without_subprotocol is None):
            served = ", ".join((*self._handlers, *(["none (rosbridge)"] if self.without_subprotocol else [])))
            raise NegotiationError(f"The subprotocol is {', '.join(offered) or 'none'} but must be one of {served}.")
        return selected

    def _free_socket(self) -> socket.socket:
        last = min(self._port + PORTS_TRIED - 1, MAX_PORT) if self._port else 0
        for port in range(self._port, last + 1):
            try:
                return listening_socket(self._access.host or ANY_INTERFACE, port, BACKLOG)
            except LinkInUseError as error:
                if port == last:
                    raise
                self.taken = self.taken or error
        raise AssertionError("the last port raises LinkError")

    async def _answer(self, connection: ServerConnection, request: Request) -> Response | None:
        """Serve a file or an explanation; None accepts a WebSocket."""
        assert isinstance(connection, _CountedConnection)
        connection.note_request()
        protocols = (_joined(request.headers, "Upgrade") or "").lower().replace(" ", "").split(",")
        if is_websocket := "websocket" in protocols and "Sec-WebSocket-Key" in request.headers:
            del request.headers["Upgrade"]  # websockets accepts no other protocol in the list
            request.headers["Upgrade"] = "websocket"
        path = unquote(request.path.partition("?")[0])
        make, (folder, _, name) = self._documents.get(path), path.rpartition("/")
        # Browsers send the origin of module scripts, too. A proxy may have replaced the host: the page must explain it.
        is_page = not is_websocket and not make and folder not in self._files
        refusal = self._refusal(request, checks_origin=not is_page)
        if not is_websocket:
            # Files of the page are public, and a page without the secret explains that itself.
            find = self._files.get(folder)
            if refusal and (make or find or not self._access.secret):
                return _response(HTTPStatus.FORBIDDEN, "text/plain", refusal.encode())
            if find:
                return await self._answer_with_file(connection, find, name)
            if make:
                document = await self.loop.run_in_executor(None, make)  # may wait for DDS
                return _response(HTTPStatus.OK, "application/json", json.dumps(document).encode())
            return _file(request)
        if refusal:
            self.on_refusal(f"A viewer was refused: {refusal}")
            return _response(HTTPStatus.FORBIDDEN, "text/plain", refusal.encode())
        connection.admit()
        return None

    def _refusal(self, request: Request, checks_origin: bool) -> str | None:
        hosts, origins = map(request.headers.get_all, ("Host", "Origin"))
        if len(hosts) > 1 or len(origins) > 1:
            return "There is more than one Host or Origin header."
        return self._access.refusal(request.path, "".join(hosts), origins[0] if origins and checks_origin else None)

    async def _answer_with_file(
        self, connection: ServerConnection, find: Callable[[str], Path | None], name: str
    ) -> Response:
        if not self._may_change(connection):
            return _response(HTTPStatus.FORBIDDEN, "text/plain", VIEW_ONLY.encode())
        file = await self.loop.run_in_executor(None, find, name)
        if file is None:
            return _response(HTTPStatus.NOT_FOUND, "text/plain", b"File not found.")
        return await self._send_file(connection, file, f"{name}{file.suffix}")

    async def _send_file(self, connection: ServerConnection, file: Path, name: str) -> Response:
        """Send a file of any size in parts, at the client's pace. The returned response is not sent."""
        transport = connection.transport
        is_page = file.suffix == ".html"
        response = _response(HTTPStatus.OK, "text/html" if is_page else "application/octet-stream", b"")
        with file.open("rb") as content:
            left = os.fstat(content.fileno()).st_size  # a recording may still grow
            del response.headers["Content-Length"]
            response.headers["Content-Length"] = str(left)
            if is_page:  # of a bag: its scripts must not reach this server
                del response.headers["Content-Security-Policy"]
                response.headers["Content-Security-Policy"] = "sandbox allow-scripts allow-downloads"
            else:
                filename = re.sub(r"[^a-zA-Z0-9_.-]", "_", name)
                response.headers["Content-Disposition"] = f'attachment; filename="{filename}"'
            transport.write(response.serialize())
            while left and not transport.is_closing():
                part = await self.loop.run_in_executor(None, content.read, min(left, PART_BYTES))
                if not part:
                    break
                left -= len(part)
                transport.write(part)
                while transport.get_write_buffer_size() and not transport.is_closing():
                    await asyncio.sleep(PART_PERIOD_S)
        transport.close()
        return response

    async def _dispatch(self, connection: ServerConnection) -> None:
        handler = self._handlers[connection.subprotocol] if connection.subprotocol else self.without_subprotocol
        assert handler  # checked before
        with contextlib.suppress(ConnectionClosed):
            await handler(connection, self._may_change(connection))

    def _may_change(self, connection: ServerConnection) -> bool:
        forwarded_for = _joined(connection.request.headers, "X-Forwarded-For") if connection.request else None
        here, viewer = connection.local_address[0], connection.remote_address[0]
        return self._access.may_change(here, viewer, forwarded_for)


def _joined(headers: Headers, name: str) -> str | None:
    """Return a header whose value is a list, from all its lines (RFC 9110, section 5.3), or None."""
    lines = headers.get_all(name)
    return ", ".join(lines) if lines else None


def _file(request: Request) -> Response:
    """Return a file of the page, compressed if the client supports it, or 304 if the client has it."""
    found = page.find(request.path)
    if found is None:
        return _response(HTTPStatus.NOT_FOUND, "text/plain", b"File not found.")
    content_type, body = found
    tag = _tag(body)
    if tag in (_joined(request.headers, "If-None-Match") or ""):
        return _response(HTTPStatus.NOT_MODIFIED, content_type, b"")
    if "gzip" not in (_joined(request.headers, "Accept-Encoding") or ""):
        answer = _response(HTTPStatus.OK, content_type, body)
    else:
        answer = _response(HTTPStatus.OK, content_type, _compressed(body))
        answer.headers["Content-Encoding"] = "gzip"
    answer.headers["ETag"] = tag
    return answer


_compressed = functools.lru_cache(maxsize=16)(gzip.compress)


@functools.lru_cache(maxsize=16)
def _tag(body: bytes) -> str:
    return f'"{hashlib.sha256(body).hexdigest()[:16]}"'


def _response(status: HTTPStatus, content_type: str, body: bytes) -> Response:
    headers = Headers(
        [
            ("Content-Type", content_type),
            ("Content-Length", str(len(body))),
            ("Connection", "close"),
            ("Cache-Control", "no-cache"),
            ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"),
        ]
    )
    return Response(status.value, status.phrase, headers, body)
