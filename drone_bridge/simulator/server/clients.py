# SPDX-License-Identifier: Apache-2.0
"""The clients of simulator_server, all in one asyncio loop on the link's thread, and what the loop gets from topics."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from drone_bridge.net.tcp_clients import Connection
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.device.requests import HangUpError, Quirks, ServedClient
from drone_bridge.simulator.device.world import RefusedError
from drone_bridge.wire.events import RemoteProtocolError

if TYPE_CHECKING:
    from drone_bridge.simulator.server.node import SimulatorServer

MAX_AHEAD_BYTES = 1 << 20  # of requests received while a service call is pending
#: Errors that end a client's connection, with their text as the reason.
ENDS = (RemoteProtocolError, HangUpError)


class ClientSession(ServedClient):
    """One connected client."""

    def __init__(
        self, connection: Connection, server: "SimulatorServer", quirks: Quirks, heard: Callable[[], None]
    ) -> None:
        super().__init__(quirks)
        self._connection = connection
        self._server = server
        self._heard = heard
        self._pending: asyncio.Task[None] | None = None  # a request that a service is answering
        self._ahead_bytes = 0
        self._has_left = False

    @property
    def peer(self) -> str:
        return self._connection.peer

    @property
    def inside_message(self) -> bool:
        """See Client. While a service answers, what comes after has not been looked at."""
        return not self._pending and self.protocol.inside_message

    def receive_data(self, data: bytes) -> None:
        """Take what was received. Raises HangUpError."""
        self._heard()
        self.receive(data)
        if self._pending:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > MAX_AHEAD_BYTES:
                raise HangUpError(f"it has sent more than {MAX_AHEAD_BYTES} bytes ahead of an answer")
        self._server.update_time()

    def handle_next(self) -> bool:
        """Answer a request, or have a service answer it. Raises RemoteProtocolError and HangUpError."""
        if self._pending or self.drop_reason or (request := self.next_request()) is None:
            return False
        answer = self._server.answer(self, request)
        if isinstance(answer, sim.Response):
            self.answer(answer)
        else:
            self._ahead_bytes = 0
            self._pending = asyncio.create_task(self._answer_later(answer))
        return True

    def flush(self) -> None:
        """Send what is queued, for the other clients and the vehicle as well."""
        self._server.flush()

    async def _answer_later(self, answering: Coroutine[Any, Any, sim.Response]) -> None:
        try:
            answer = await answering
        except RefusedError as error:
            answer = error.answer
        except ValueError as error:
            answer = sim.Error(0, str(error))
        self._pending = None
        if self._has_left:
            self._server.remove_items_of(self)  # one was added just now
            return
        self.answer(answer)
        self._connection.proceed()

    def post(self, response: sim.Response) -> None:
        """Queue a message that answers no request."""
        self._server.encode(super().post, response)

    def answer(self, response: sim.Response) -> None:
        """Queue the answer to the oldest request; an error in place of one that the wire can't carry."""
        self._server.encode(super().answer, response, sim.Error(0, "The answer can't be encoded."))

    def send_queued(self) -> None:
        """Send queued messages, and drop a client that does not read them."""
        for piece in self.take():
            self._connection.send(piece)
        if self.drop_reason:
            self._connection.abort(self.drop_reason)

    def leave(self, reason: str) -> None:
        self._has_left = True
        self._server.session_ended(self, reason)


#: Messages that wait for the loop; the oldest are dropped.
MAX_QUEUED = 1000


class LoopQueue:
    """Has the loop handle one message at a time, and serve clients in between.

    So a client that was dropped, because it does not read, costs nothing more. `put` may be called from any thread, the
    rest from the loop's.
    """

    def __init__(
        self, handle: Callable[[Callable[..., None], tuple[Any, ...]], None], on_dropped: Callable[[], None]
    ) -> None:
        """`handle` gets what was put; `on_dropped` is called when a message is dropped while there is a loop."""
        self._handle = handle
        self._on_dropped = on_dropped
        self._queued: deque[tuple[Callable[..., None], tuple[Any, ...]]] = deque(maxlen=MAX_QUEUED)
        self._is_handling_due = False  # whether the loop was told to handle them
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def is_attached(self) -> bool:
        """Whether there is a loop."""
        return self._loop is not None

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over to this loop from now on."""
        self._loop = loop

    def detach(self) -> None:
        """Hand over to no loop."""
        self._loop = None

    def put(self, take: Callable[..., None], *arguments: Any) -> None:
        """Queue a message and its handler."""
        if len(self._queued) == MAX_QUEUED and self._loop:
            self._on_dropped()
        self._queued.append((take, arguments))
        if not self._is_handling_due and (loop := self._loop):
            self._is_handling_due = True
            with contextlib.suppress(RuntimeError):  # it has just been closed
                loop.call_soon_threadsafe(self.handle_next)

    def handle_next(self) -> None:
        """Handle one message, and leave the others for the next round of the loop."""
        self._is_handling_due = False
        if not self._queued:
            return
        self._handle(*self._queued.popleft())
        if self._queued and not self._is_handling_due and self._loop:
            self._is_handling_due = True
            self._loop.call_soon(self.handle_next)

    def clear(self) -> None:
        """Drop what is queued."""
        self._queued.clear()
