# SPDX-License-Identifier: Apache-2.0
"""One client of simulator_server, whose requests are answered in order, locally or by a service. For the loop."""

from collections.abc import Callable
from typing import Final, Protocol

from drone_bridge.links.tcp_clients import Connection
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.errors import RemoteProtocolError
from drone_bridge.servers.simulator.bridge_services import BridgeServices
from drone_bridge.servers.simulator.forwarding import Forwarder
from drone_bridge.servers.simulator.service_calls import ServiceCall, failure
from drone_bridge.vehicle_side.simulator.conversation import Conversation, HangUpError
from drone_bridge.vehicle_side.simulator.items import Client, RefusedError
from drone_bridge.vehicle_side.simulator.quirks import Quirks

MAX_AHEAD_BYTES: Final = 1 << 20  # of requests received while a service call is pending
#: Errors that end a client's connection, with their text as the reason.
ENDS: Final = (RemoteProtocolError, HangUpError)


class SessionHost(Protocol):
    """The server of the sessions."""

    bridge: BridgeServices
    forwarder: Forwarder

    def answer_locally(self, client: Client, request: sim.Request) -> sim.Response:
        """Answer without calling a service."""

    def update_time(self) -> None:
        """Update which states are current; called before requests are handled."""

    def flush(self) -> None:
        """Send all queued commands and messages, to all clients."""

    def session_ended(self, session: "ClientSession", reason: str) -> None:
        """Clean up after a client that disconnected."""


class ClientSession(Conversation):
    """One connected client."""

    def __init__(self, connection: Connection, host: SessionHost, quirks: Quirks, heard: Callable[[], None]) -> None:
        super().__init__(quirks)
        self._connection = connection
        self._host = host
        self._heard = heard
        self._pending: sim.Request | None = None  # which a service is answering
        self._ahead_bytes = 0
        self._has_left = False

    @property
    def peer(self) -> str:
        """The client's address."""
        return self._connection.peer

    def receive_data(self, data: bytes) -> None:
        """Answer the requests in what was received. Raises RemoteProtocolError and HangUpError."""
        self._heard()
        self.receive(data)
        if self._pending:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > MAX_AHEAD_BYTES:
                raise HangUpError(f"it has sent more than {MAX_AHEAD_BYTES} bytes ahead of an answer")
        self._host.update_time()
        try:
            self._handle_requests()
        finally:
            self._host.flush()

    def _handle_requests(self) -> None:
        while not self._pending and not self.drop_reason and (request := self.next_request()) is not None:
            call = self._host.forwarder.call_for(self, request)
            if isinstance(call, ServiceCall):
                self._pending, self._ahead_bytes = request, 0
                self._send(call)
            else:
                self.answer(call or self._host.answer_locally(self, request))

    def _send(self, call: ServiceCall) -> None:
        def take(response: object) -> None:
            if self._has_left:
                return
            self._host.update_time()
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
            try:
                self._handle_requests()
            except ENDS as error:
                self._connection.close(str(error))
            self._host.flush()

        self._host.bridge.call(call.service, call.request, take)

    def flush(self) -> None:
        """Send queued messages, and drop a client that does not read them."""
        for piece in self.take():
            self._connection.send(piece)
        if self.drop_reason:
            self._connection.abort(self.drop_reason)

    def leave(self, reason: str) -> None:
        """Handle the end of the connection."""
        self._has_left = True
        self._host.session_ended(self, reason)
