# SPDX-License-Identifier: Apache-2.0
"""One client of simulator_server, whose requests are answered in order, locally or by a service. For the loop."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from drone_bridge.net.tcp_clients import Connection
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.device.requests import HangUpError, Quirks, ServedClient
from drone_bridge.simulator.device.world import RefusedError
from drone_bridge.simulator.server.service_calls import ServiceCall, failure
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
        self._pending: sim.Request | None = None  # which a service is answering
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
        call = self._server.forwarder.call_for(self, request)
        if isinstance(call, ServiceCall):
            self._pending, self._ahead_bytes = request, 0
            self._send(call)
        else:
            self.answer(call or self._server.answer_locally(self, request))
        return True

    def flush(self) -> None:
        """Send what is queued, for the other clients and the vehicle as well."""
        self._server.flush()

    def _send(self, call: ServiceCall) -> None:
        def take(response: object) -> None:
            if self._has_left:
                return
            self._server.update_time()
            is_done = response is not None and response.success  # type: ignore[attr-defined] # all of them have it
            make = call.on_success if is_done else call.on_failure or failure
            try:
                result: sim.Response | ServiceCall = make(response)
            except RefusedError as error:
                result = error.answer
            except ValueError as error:
                result = sim.Error(0, str(error))
            if isinstance(result, ServiceCall):
                self._send(result)
                return
            self._pending = None
            self.answer(result)
            self._connection.proceed()

        self._server.bridge.call(call.service, call.request, take)

    def send_queued(self) -> None:
        """Send queued messages, and drop a client that does not read them."""
        for piece in self.take():
            self._connection.send(piece)
        if self.drop_reason:
            self._connection.abort(self.drop_reason)

    def leave(self, reason: str) -> None:
        self._has_left = True
        self._server.session_ended(self, reason)
