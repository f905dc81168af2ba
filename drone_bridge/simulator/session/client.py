# SPDX-License-Identifier: Apache-2.0
"""SimulatorClientSession: a client's messages to a simulator across its connections, for simulator_bridge. Pure.

Theory of operation, from the specification and the behaviour of real simulators:

| state | sent | ends |
|---|---|---|
| WAITING | nothing | CONNECTED, when both connections are open |
| CONNECTED | zero for the vehicle, then see ConnectedClient and Steering | WAITING, when a connection ends, or after \
undecodable data; SUSPENDED, when an answer is overdue by `request_timeout` |
| SUSPENDED | zero once, if the vehicle is steered; callers get an error | CONNECTED, by an answer; WAITING, when a \
connection ends |
| CLOSED, by `end` | zero, if the vehicle is steered | |

There are two connections, for requests and for streams, which are opened and closed together. Both are closed for
writing first, since real simulators die of SIGPIPE on the second write to a closed connection. Neither is closed
because the simulator is silent, since a suspended one writes to it when it continues. TCP detects a lost peer.

A connection has proved useful once the simulator has answered. Otherwise, reconnecting backs off.
"""

import math
from collections.abc import Callable
from typing import Any

from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import (
    MAY_HAVE_WAITED,
    REJECTED,
    Action,
    Actions,
    Close,
    LastWords,
    Note,
    Outcome,
    Request,
    Send,
    Session,
    sends_first,
)
from drone_bridge.simulator.session import procedures
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.connected_client import CallerRequest, ConnectedClient
from drone_bridge.simulator.session.exchange import NO_ANSWER, UNANSWERED, Exchange
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.session.steering import Steering
from drone_bridge.wire.events import RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
SUSPENDED = "connected, waiting for an answer"
NOT_CONNECTED = "No simulator is connected."
ENDED = "The connection to the simulator has ended."
CONNECTIONS = 2  # for requests and for streams
_CONNECTION_KEPT = "It may be suspended. The connection is kept, and nothing is sent until it answers."


class SimulatorClientSession(Session):
    """Session of a client with one simulator, across its connections."""

    def __init__(
        self,
        simulation: Simulation,
        steering: Steering,
        parameters: SimulatorClientParameters,
        feedback: Feedback,
        *,
        check_hold: Callable[[str], None],
    ) -> None:
        """Start without a connection.

        Args:
            simulation: its known state.
            steering: of the vehicle.
            parameters: those of the node, which may change at any time.
            feedback: receives the vehicle's measurements.
            check_hold: raises ValueError if the vehicle is on hold, for a request of this name that moves it.
        """
        self.state = WAITING
        self._simulation, self._steering, self._parameters = simulation, steering, parameters
        self._feedback, self._check_hold = feedback, check_hold
        self._peers: list[Any] = []  # until all of them are open
        self._client: ConnectedClient | None = None
        self._out: list[Action] = []

    # The link.

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Stop the vehicle and start, once all connections are open."""
        self._peers.append(peer)
        if len(self._peers) < CONNECTIONS:
            return []
        peers, self._peers = self._peers, []
        exchange = Exchange(
            peers,
            self._simulation.entities.vehicle,
            self._parameters.request_timeout,
            check_hold=self._check_hold,
            out=self._out,
        )
        exchange.now_s = now_s
        self._client = ConnectedClient(exchange, self._simulation, self._parameters, self._feedback)
        self.peer, self.is_open, self.is_proven = str(peers[0]), True, False
        self.received_s, self.since_s = None, now_s
        self._out.append(Note("connections", f"Connected to {self.peer}.", is_expected=True))
        self._steering.begin(exchange)
        return self._turn(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a chunk of the simulator's data, and continue what waits for it."""
        assert isinstance(data, bytes)
        if not (client := self._client):
            return []
        client.exchange.now_s = self.received_s = now_s
        try:
            for channel in client.exchange.channels:
                if channel.peer is source:
                    client.receive(channel, data)
        except RemoteProtocolError as error:
            return self._refused(error, now_s)
        return self._turn(now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """End the session after a lost or closed connection. All connections end together."""
        self._peers.clear()
        if not (client := self._client):
            return []
        exchange = client.exchange
        exchange.now_s = now_s
        channel = exchange.requests if exchange.requests.peer is peer else exchange.streams
        try:
            sentence = channel.ended(sentence)
        except RemoteProtocolError as error:
            return self._refused(error, now_s, gone=peer)
        self._out.append(Note("lost_connections", sentence))
        return self._ended(sentence, now_s, gone=peer)

    def tick(self, now_s: float) -> Actions:
        """Check timeouts, and send due messages."""
        return self._turn(now_s) if now_s >= self.due_s else []

    def resume(self, now_s: float) -> Actions:
        """Stop the vehicle, or send the current command, and restart the timeouts of answers."""
        if not (client := self._client):
            return []
        super().resume(now_s)
        client.exchange.now_s = now_s
        client.exchange.resume()
        self._steering.resume()
        return self._turn(now_s)

    def lost(self, now_s: float) -> Actions:
        """Stop the vehicle after a fault. Connections that have ended are skipped."""
        self._peers.clear()
        return self._ended(ENDED, now_s) if self._client else []

    def end(self, now_s: float) -> Actions:
        """Stop the vehicle if it is steered."""
        actions = self.lost(now_s)
        self.state, self.is_over = CLOSED, True
        return actions

    def last_words(self) -> LastWords | None:
        """Return zero. None is sent during a stall: its answers would not be expected."""
        if not (client := self._client) or not self._steering.is_moving:
            return None
        return LastWords((), tuple(self._steering.last_requests()), client.exchange.requests.peer)

    # Requests.

    def commanded(self, now_s: float) -> Actions:
        """Send due messages after a new command or its timeout."""
        self._steering.due_s = now_s
        return self._turn(now_s)

    def ask(self, request: Request, work: Callable[..., Any], arguments: tuple[Any, ...], now_s: float) -> Actions:
        """Execute a request of a caller, who waits for the outcome. Requests from before a stall are refused."""
        if not (client := self._client):
            return [Outcome(request, False, NOT_CONNECTED, NO_ANSWER)]
        if now_s > self.expires_at(request):
            return [Outcome(request, False, f"{MAY_HAVE_WAITED} Please call again.", NO_ANSWER)]
        client.ask(CallerRequest(request, work, arguments, runs=work is procedures.run))
        if client.exchange.is_overdue:
            client.fail_calls(client.exchange.overdue())
        return self._turn(now_s)

    # A turn of the session.

    def _turn(self, now_s: float) -> Actions:
        """Check timeouts, and return the gathered actions."""
        if not (client := self._client):
            return []
        exchange = client.exchange
        exchange.now_s = now_s
        if now_s >= exchange.overdue_s and not exchange.is_overdue:
            exchange.is_overdue = True
            self._out.append(Note(UNANSWERED, f"{exchange.overdue()} {_CONNECTION_KEPT}"))
            client.fail_calls(exchange.overdue())
        self._steering.turn(exchange, client.heading)
        client.turn()
        self.state = SUSPENDED if exchange.is_overdue else CONNECTED
        self.is_proven = client.is_proven
        overdue_s = math.inf if exchange.is_overdue else exchange.overdue_s
        self.due_s = min(self._steering.due_s, client.due_s, overdue_s)
        return self._done()

    def _done(self) -> Actions:
        actions = sends_first(self._out)
        self._out.clear()
        return actions

    def _refused(self, error: RemoteProtocolError, now_s: float, gone: Any = None) -> Actions:
        sentence = f"{error} The connection is closed: its data can't be trusted."
        self._out.append(Note(REJECTED, sentence))
        return self._ended(str(error), now_s, gone=gone)

    def _ended(self, reason: str, now_s: float, *, gone: Any = None) -> Actions:
        """Send zero if there is a connection, close all connections, and answer all callers."""
        client = self._client
        assert client
        exchange, self._client = client.exchange, None
        exchange.now_s = now_s
        if exchange.requests.peer is not gone:
            self._out += [Send(data, exchange.requests.peer) for data in self._steering.last_requests()]
        self._out += [Close(channel.peer) for channel in exchange.channels if channel.peer is not gone]
        client.end(reason)
        self.state, self.is_open, self.received_s, self.since_s = WAITING, False, None, None
        self.due_s = math.inf
        return self._done()
