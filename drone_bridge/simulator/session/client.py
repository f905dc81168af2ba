# SPDX-License-Identifier: Apache-2.0
"""ClientSession: what a client says to a simulator, and when, over all of its connections, for simulator_bridge. Pure.

Theory of operation, by the document and by what real simulators do:

| state | what is sent | ends |
|---|---|---|
| WAITING | nothing | when all connections are there |
| WAITING, with these | zero for the vehicle, and SPY | CONNECTED, when that is answered, or is not sent |
| CONNECTED | what Conversation and Steering say | WAITING, when a connection ends, or what comes can't be read; \
SUSPENDED, when a request is unanswered for UNANSWERED_S |
| SUSPENDED | zero once, if the vehicle is steered; callers get an error after `request_timeout` | CONNECTED, by an \
answer; WAITING, when a connection ends |
| CLOSED, by `end` | zero for a vehicle that is being steered | |

There are two connections, for requests and for streams, which live and die together. Both are closed for writing first,
as real simulators die of SIGPIPE when they write twice to a connection that is gone; and neither is closed because the
simulator is silent, as one that was suspended writes to it when it continues. TCP reports a peer that has vanished.

Real ones also close a connection on SPY: where `item_events` leaves that open, one that does so, or answers all but
SPY, is connected to without SPY the next time. A call has an outcome when the simulator has answered, when it takes too
long, or when the connections end.

A simulator has proved useful when it has answered: one that never does is connected to ever less often. One that has
closed the connection on SPY alone is connected to again without delay, unless it was of no use without SPY either.
"""

import math
from collections.abc import Callable
from random import Random
from typing import Any

from drone_bridge.session.session import MAY_HAVE_WAITED, Action, Actions, Close, Note, Outcome, Request, Send, Session
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.session.conversation import AUTO, POLL, SPY, Call, Conversation
from drone_bridge.simulator.session.exchange import NO_ANSWER, Exchange
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.session.steering import Steering
from drone_bridge.wire.events import RemoteProtocolError

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
SUSPENDED = "connected, waiting for an answer"
NOT_CONNECTED = "There is no connection to the simulator now."
ENDED = "The connection to the simulator ended."
CONNECTIONS = 2  # for requests, and for streams
_KEPT = "It may be suspended: the connection is kept, and nothing is sent until it answers."


class ClientSession(Session):
    """A client's conversations with one simulator, one after the other."""

    def __init__(
        self,
        simulation: Simulation,
        steering: Steering,
        parameter: Callable[[str], Any],
        *,
        check_hold: Callable[[str], None],
        source: Random,
    ) -> None:
        """Begin.

        Args:
            simulation: what is known of it.
            steering: of the vehicle.
            parameter: returns the value of `request_timeout`, `poll_period`, s, `item_events`, `run_on_connect` and
                `body_to_model`.
            check_hold: raises ValueError if the vehicle is held, for a request of this name that moves it.
            source: of marks, and of pauses that keep bridges apart.
        """
        self.state = WAITING
        self._simulation, self._steering, self._parameter = simulation, steering, parameter
        self._check_hold, self._source = check_hold, source
        self._peers: list[Any] = []  # until there are all of them
        self._conversation: Conversation | None = None
        self._is_overdue = False  # an answer, for longer than `request_timeout`
        self._may_know_spy = True
        self._was_useful = True  # the last connection that went on after SPY
        self._out: list[Action] = []

    # The link.

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Stop the vehicle and begin, once all connections are there."""
        self._peers.append(peer)
        if len(self._peers) < CONNECTIONS:
            return []
        peers, self._peers = self._peers, []
        exchange = Exchange(
            peers,
            self._simulation.entities.vehicle,
            self._parameter("request_timeout"),
            check_hold=self._check_hold,
            out=self._out,
        )
        exchange.now_s = now_s
        item_events = self._parameter("item_events")
        if item_events == AUTO:
            item_events = SPY if self._may_know_spy else POLL
        self._conversation = Conversation(
            exchange, self._simulation, self._parameter, self._source, item_events=item_events
        )
        self.peer, self.is_proven, self.heard_s, self.since_s = str(peers[0]), False, None, now_s
        self._steering.begin(exchange)
        return self._turn(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a chunk of what the simulator says."""
        assert isinstance(data, bytes)
        if not (conversation := self._conversation):
            return []
        conversation.exchange.now_s = self.heard_s = now_s
        try:
            for channel in conversation.exchange.channels:
                if channel.peer is source:
                    conversation.receive(channel, data)
        except RemoteProtocolError as error:
            return self._refused(error, now_s)
        return self._turn(now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Take that the simulator has closed a connection, or that it is lost: all end with one."""
        self._peers.clear()
        if not (conversation := self._conversation):
            return []
        exchange = conversation.exchange
        exchange.now_s = now_s
        channel = exchange.requests if exchange.requests.peer is peer else exchange.streams
        try:
            sentence = channel.ended(sentence)
        except RemoteProtocolError as error:
            return self._refused(error, now_s, gone=peer)
        is_expected = isinstance(channel.oldest, sim.Spy) and self._parameter("item_events") == AUTO
        self._out.append(Note("" if is_expected else "lost_connections", sentence, is_expected=is_expected))
        if is_expected:  # so that it is connected to again at once
            self.is_proven = self._was_useful
        return self._ended(sentence, now_s, gone=peer)

    def tick(self, now_s: float) -> Actions:
        """Do what is due."""
        return self._turn(now_s) if now_s >= self.due_s else []

    def resume(self, now_s: float) -> Actions:
        """Have the vehicle stand, or go on as it is commanded now, and listen before the simulator is judged."""
        if not (conversation := self._conversation):
            return []
        if self.heard_s is not None:
            self.heard_s = now_s
        conversation.exchange.now_s = now_s
        conversation.resume()
        self._steering.resume()
        return self._turn(now_s)

    def lost(self, now_s: float) -> Actions:
        """Leave the vehicle standing after a fault; nothing is left of connections that have ended."""
        self._peers.clear()
        return self._ended(ENDED, now_s) if self._conversation else []

    def end(self, now_s: float) -> Actions:
        """Leave a vehicle standing that is being steered."""
        actions = self.lost(now_s)
        self.state, self.is_over = CLOSED, True
        return actions

    # What is asked for.

    def commanded(self, now_s: float) -> Actions:
        """Take that there is a new command, or none any more."""
        self._steering.due_s = now_s
        return self._turn(now_s)

    def ask(self, request: Request, work: Callable[..., Any], arguments: tuple[Any, ...], now_s: float) -> Actions:
        """Do something for somebody, who waits for the outcome; nothing that was asked for before a stall."""
        if not (conversation := self._conversation):
            return [Outcome(request, False, NOT_CONNECTED, NO_ANSWER)]
        if request.asked_s < self.fresh_since_s:
            return [Outcome(request, False, f"{MAY_HAVE_WAITED} Please call it again.", NO_ANSWER)]
        conversation.ask(Call(request, work, arguments))
        if self._is_overdue:
            conversation.fail_calls(conversation.exchange.overdue())
        return self._turn(now_s)

    # A turn.

    def _turn(self, now_s: float) -> Actions:
        """Do what is due, and return all that is to be done."""
        if not (conversation := self._conversation):
            return []
        exchange = conversation.exchange
        exchange.now_s = now_s
        if self._lacks_spy(conversation):
            self._out.append(Note("lost_connections", exchange.overdue()))
            return self._ended(exchange.overdue(), now_s)
        self._look_for_answers(conversation)
        if not exchange.is_suspended:
            self._steering.turn(exchange, conversation.heading.attitude)
        conversation.turn()
        if conversation.has_begun and not self.is_open:
            self.is_open = True
            self._out.append(Note("connections", f"Connected to {self.peer}.", is_expected=True))
        if self.is_open:
            self.state = SUSPENDED if exchange.is_suspended else CONNECTED
        self.is_proven = conversation.is_proven
        if not exchange.is_suspended:
            self.due_s = min(self._steering.due_s, conversation.due_s, exchange.unanswered_due_s)
        else:
            self.due_s = min(conversation.due_s, math.inf if self._is_overdue else exchange.overdue_s)
        return self._done()

    def _lacks_spy(self, conversation: Conversation) -> bool:
        """Return whether SPY is the one request that the simulator does not answer in time."""
        exchange = conversation.exchange
        is_spy_left = isinstance(exchange.streams.oldest, sim.Spy) and not exchange.requests.oldest
        return is_spy_left and exchange.now_s >= exchange.streams.due_s

    def _look_for_answers(self, conversation: Conversation) -> None:
        """Stop the vehicle when the simulator leaves a request unanswered, and let no caller wait for too long."""
        exchange, now_s = conversation.exchange, conversation.exchange.now_s
        if not exchange.is_suspended:
            if self._is_overdue:
                self._is_overdue = False
                self._out.append(Note("", "The simulator answers again.", is_expected=True))
            if now_s < exchange.unanswered_due_s:
                return
            self._steering.stop(exchange)
            exchange.is_suspended = True
        if now_s >= exchange.overdue_s and not self._is_overdue:
            self._is_overdue = True
            self._out.append(Note("unanswered_requests", f"{exchange.overdue()} {_KEPT}"))
            conversation.fail_calls(exchange.overdue())

    def _done(self) -> Actions:
        actions = list(self._out)
        self._out.clear()
        return actions

    def _refused(self, error: RemoteProtocolError, now_s: float, gone: Any = None) -> Actions:
        sentence = f"{error} The connection is closed, as its bytes can't be trusted."
        self._out.append(Note("rejected_input", sentence))
        return self._ended(str(error), now_s, gone=gone)

    def _ended(self, reason: str, now_s: float, *, gone: Any = None) -> Actions:
        """Say zero, as far as there is a connection, close all of them, and answer all who wait."""
        conversation = self._conversation
        assert conversation
        exchange, self._conversation, self._is_overdue = conversation.exchange, None, False
        self._may_know_spy = not isinstance(exchange.streams.oldest, sim.Spy)
        if conversation.has_begun:
            self._was_useful = conversation.is_proven
        exchange.now_s = now_s
        if exchange.requests.peer is not gone:
            self._out += [Send(data, exchange.requests.peer) for data in self._steering.last_requests()]
        self._out += [Close(channel.peer) for channel in exchange.channels if channel.peer is not gone]
        conversation.end(reason)
        self.state, self.is_open, self.heard_s, self.since_s = WAITING, False, None, None
        self.due_s = math.inf
        return self._done()
