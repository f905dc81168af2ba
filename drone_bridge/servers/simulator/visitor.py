# SPDX-License-Identifier: Apache-2.0
"""One client of simulator_server: its requests are answered one after the other, by us or by a service. On the loop."""

from collections.abc import Callable
from typing import Final, Protocol

from drone_bridge.links.tcp_clients import Connection
from drone_bridge.protocols import simulator as sim
from drone_bridge.protocols.errors import RemoteProtocolError
from drone_bridge.servers.simulator.calls import BridgeCalls
from drone_bridge.servers.simulator.errands import Errand, Errands
from drone_bridge.vehicle_side.simulator.conversation import Conversation, HangUpError
from drone_bridge.vehicle_side.simulator.items import Client, RefusedError
from drone_bridge.vehicle_side.simulator.quirks import Quirks

MAX_AHEAD_BYTES: Final = 1 << 20  # of requests that are sent while one waits for its answer
#: What ends the connection to a client, with its text as the reason.
ENDS: Final = (RemoteProtocolError, HangUpError)


class Desk(Protocol):
    """What visitors share."""

    calls: BridgeCalls
    errands: Errands

    def answer_here(self, client: Client, request: sim.Request) -> sim.Response:
        """Answer what no service is asked for."""

    def begin_turn(self) -> None:
        """Find out what is true now."""

    def end_turn(self) -> None:
        """Send what has come of it, to everybody."""

    def left(self, visitor: "Visitor", reason: str) -> None:
        """Note that a client has gone."""


class Visitor(Conversation):
    """A Client for TcpClients."""

    def __init__(self, connection: Connection, desk: Desk, quirks: Quirks, heard: Callable[[], None]) -> None:
        super().__init__(quirks)
        self._connection = connection
        self._desk = desk
        self._heard = heard
        self._asked: sim.Request | None = None  # of a service, and not answered yet
        self._ahead_bytes = 0
        self._has_left = False

    @property
    def peer(self) -> str:
        """Who it is."""
        return self._connection.peer

    def receive_data(self, data: bytes) -> None:
        """Take in bytes, and answer. Raises RemoteProtocolError and HangUpError."""
        self._heard()
        self.receive(data)
        if self._asked:
            self._ahead_bytes += len(data)
            if self._ahead_bytes > MAX_AHEAD_BYTES:
                raise HangUpError(f"it has sent more than {MAX_AHEAD_BYTES} bytes ahead of an answer")
        self._desk.begin_turn()
        try:
            self._go_on()
        finally:
            self._desk.end_turn()

    def _go_on(self) -> None:
        while not self._asked and not self.given_up and (request := self.next_request()) is not None:
            errand = self._desk.errands.errand_for(self, request)
            if isinstance(errand, Errand):
                self._asked, self._ahead_bytes = request, 0
                self._send(errand)
            else:
                self.answer(errand or self._desk.answer_here(self, request))

    def _send(self, errand: Errand) -> None:
        def take(response: object) -> None:
            if self._has_left:
                return
            self._desk.begin_turn()
            is_done = response is not None and response.success  # type: ignore[attr-defined] # all of them have it
            make = errand.finish if is_done else errand.recover or self._desk.errands.failure
            try:
                result: sim.Response | Errand = make(response)
            except RefusedError as error:
                result = error.answer
            except ValueError as error:
                result = sim.Error(0, str(error))
            if isinstance(result, Errand):
                self._send(result)
                return
            self._asked = None
            self.answer(result)
            try:
                self._go_on()
            except ENDS as error:
                self._connection.close(str(error))
            self._desk.end_turn()

        self._desk.calls.call(errand.service, errand.request, take)

    def flush(self) -> None:
        """Send what waits."""
        for piece in self.take():
            self._connection.send(piece)
        if self.given_up:
            self._connection.abort(self.given_up)

    def leave(self, reason: str) -> None:
        """Take in the end of the connection."""
        self._has_left = True
        self._desk.left(self, reason)
