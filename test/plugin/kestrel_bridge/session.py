# SPDX-License-Identifier: Apache-2.0
"""ClientSession and DroneSession: state machines of a kestrel's client and of the kestrel. Pure.

The client sends axes at a steady rate, neutral at the start and at the end. It sends `hello` first, and again while the
drone has been silent for a second, and `land` each second while a limit requires a landing. The drone (`device`)
follows the newest axes of any client for `command_timeout`, and sends its state at a steady rate.
"""

import math
from dataclasses import dataclass

from drone_bridge.parameter_fields import parameter
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.operator_command import OperatorCommand
from drone_bridge.session.session import (
    AFTER_STALLS,
    FINAL_GAP_S,
    FINAL_REPEATS,
    Call,
    LastWords,
    Note,
    Outcome,
    Publish,
    Send,
    Session,
    encode,
    next_due,
)
from drone_bridge.wire import RemoteProtocolError
from drone_bridge.wire.addresses import peer_name
from drone_bridge.wire.counters import ProblemCounter, rates
from kestrel_bridge.codec import Answer, ClientConnection, Hello, Land, Steer, TakeOff
from kestrel_bridge.device import DroneSide

REQUESTS = {"takeoff": TakeOff(), "land": Land()}
# Counters.
SENT, STATES, DATAGRAMS = rates("sent_commands", "states", "datagrams")
UNDELIVERED = ProblemCounter("undelivered_datagrams")
GREETING_PERIOD_S = LANDING_PERIOD_S = 1.0
REPEAT_RATE = 20.0
STATE_PERIOD_S = 0.1
STALE = "The request is stale: the bridge was stalled meanwhile. Please call again."


@dataclass
class ClientParameters:
    """Parameters of the session, which the bridge declares."""

    rate: float = parameter(20.0, "Rate of commands, Hz.", 2.0, 200.0, live=True)
    answer_timeout: float = parameter(20.0, "Timeout of a request, s.", 0.1, 120.0)


class ClientSession(Session):
    """Session of a client with one drone."""

    def __init__(self, name, arbiter, to_steer, parameters):
        """Take the arbiter of velocities, and the function that converts one to the wire."""
        self.state, self.peer = "waiting for a peer", name
        self._arbiter, self._to_steer, self._parameters = arbiter, to_steer, parameters
        self._connection = ClientConnection()
        self._asked = {}  # pending requests with their deadlines, by word
        self._greeting_s = self._landing_s = -math.inf  # earliest time of the next one
        self._final_left = 0
        self._newest = Steer()  # the last command
        self._is_ending = False

    def opened(self, now_s):
        self.state, self.is_open = "sending", True
        self.received_s, self.since_s, self.due_s = None, now_s, now_s
        self._arbiter.forget()
        return [Note("connections", f"Sending to {self.peer}.", is_expected=True), *self._sent(Steer())]

    def receive(self, data, source, now_s):
        self._connection.receive_data(data)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A datagram from {peer_name(source)} was refused: {error}")]
        self.received_s = now_s
        if not isinstance(event, Answer):
            return [Publish(event), Note(STATES)]
        request, _ = self._asked.pop(event.request, (None, None))
        if request:
            return [Outcome(request, event.is_ok, event.reason or "ok")]
        return [] if event.is_ok else [Note("", f"The drone refused {event.request}: {event.reason}")]

    def ask(self, request, now_s):
        """Take off or land."""
        if not self.is_open:
            return [Outcome(request, False, "The link is closed.")]
        if now_s > self.expires_at(request):
            return [Outcome(request, False, STALE)]
        if request.name in self._asked:
            return [Outcome(request, False, f"Another {request.name} is pending.")]
        self._asked[request.name] = request, now_s + self._parameters.answer_timeout
        return self._sent(REQUESTS[request.name])

    def tick(self, now_s):
        if now_s < self.due_s:
            return []
        if self._is_ending:
            return self._final(now_s)
        self.due_s = next_due(self.due_s, 1 / self._parameters.rate, now_s)
        decision = self._arbiter.decide(now_s)
        actions = list(self._sent(self._to_steer(decision.command) if decision.command else Steer()))
        if decision.rank is Rank.LANDING and now_s >= self._landing_s:
            self._landing_s = now_s + LANDING_PERIOD_S
            actions += self._sent(Land())
        is_silent = self.received_s is None or now_s - self.received_s > GREETING_PERIOD_S
        if is_silent and now_s >= self._greeting_s:
            self._greeting_s = now_s + GREETING_PERIOD_S
            actions += self._sent(Hello())
        for name, (request, until_s) in tuple(self._asked.items()):
            if now_s > until_s:
                del self._asked[name]
                actions.append(Outcome(request, False, "The drone did not answer."))
        return actions

    def lost(self, now_s):
        self.state, self.is_open, self.due_s = "waiting for a peer", False, math.inf
        return [*self._sent(Steer()), *self._unanswered("The link was lost before the answer.")]

    def end(self, now_s):
        self.state, self.is_open, self._is_ending, self._final_left = "closed", False, True, FINAL_REPEATS
        return [*self._final(now_s), *self._unanswered("The link has ended before the answer.")]

    def last_words(self):
        return LastWords((self._connection.send(Steer()),)) if self._newest != Steer() else None

    def neutral_sent(self, now_s):
        self._newest = Steer()
        return []

    def _final(self, now_s):
        self._final_left -= 1
        self.is_over = not self._final_left
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        return self._sent(Steer())

    def _sent(self, message):
        notes = []
        data = encode(self._connection.send, message, Steer(), notes)
        if isinstance(message, Steer):
            self._newest = message
        return [Send(data, None, UNDELIVERED, (SENT,)), *notes]

    def _unanswered(self, sentence):
        outcomes = [Outcome(request, False, sentence) for request, _ in self._asked.values()]
        self._asked.clear()
        return outcomes


class DroneSession(Session):
    """Session of a drone with its clients."""

    def __init__(self, parameters, allowed_peers, state):
        """Take a function that returns the drone's state as a message, or None."""
        self.state = "waiting for a peer"
        self._allowed, self._state = allowed_peers, state
        self._side = DroneSide(self, self._send)
        self._command = OperatorCommand(Steer(), lambda: parameters.command_timeout, REPEAT_RATE)
        self._state_s = self._now_s = 0.0
        self._actions = []  # of the device, while it handles a datagram or an answer

    def receive(self, data, source, now_s):
        name = peer_name(source)
        if not self._allowed.allows(source[0]):
            return [Note("refused_peers", f"{name} was refused: it is not in allowed_peers.")]
        if now_s < self.settled_s:
            return [Note(AFTER_STALLS)]
        self._now_s = now_s
        try:
            self._side.receive(data, source)
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A datagram from {name} was refused: {error}")]
        begun = [] if self.is_open else [Note("connections", f"Serving {name}.", is_expected=True)]
        self.state, self.peer, self.is_open, self.received_s = "serving", name, True, now_s
        self.due_s = min(self._command.due_s, self._state_s)
        return [*begun, *self._taken(), Note(DATAGRAMS)]

    def tick(self, now_s):
        actions = list(self._command.tick(self.peer, now_s))
        if now_s >= self._state_s:
            self._state_s = next_due(self._state_s, STATE_PERIOD_S, now_s)
            state = None if self._side.client is None else self._state()
            data = encode(self._side.state, state, None, actions) if state else None
            actions += [Send(data, self._side.client, if_sent=(STATES,))] if data else []
        self.due_s = min(self._command.due_s, self._state_s)
        return actions

    def answered(self, finish, is_success, sentence, now_s):
        """Handle the outcome of a service."""
        finish(is_success, sentence)
        return self._taken()

    def lost(self, now_s):
        return self._command.end()

    def resume(self, now_s):
        super().resume(now_s)
        return self._command.resume(self.peer, now_s)

    def end(self, now_s):
        self.state, self.is_open, self.is_over = "closed", False, True
        return self._command.end()

    # Interface of the device's Drone.

    def ask(self, name, finish):
        self._actions.append(Call(name, finish))

    def follow(self, steer):
        self._actions += self._command.command(steer, self._now_s)

    def _send(self, data, address):
        self._actions.append(Send(data, address))

    def _taken(self):
        actions, self._actions = self._actions, []
        return actions
