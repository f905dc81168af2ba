# SPDX-License-Identifier: Apache-2.0
"""ClientSession and DroneSession: what a kestrel's client says, and what the kestrel does, and when. Pure.

The client steers at a steady rate, beginning and ending with no deflection. A request is sent when the one before it is
answered, as an answer does not say what it answers; `hello` is said first, and again when the drone has been silent for
a second, and `land` by itself while the drone has to land. The drone (`device`) follows whoever steers, for
`command_timeout`, and sends its state at a steady rate.
"""

import math
from types import SimpleNamespace

from drone_bridge.session.arbiter import Rank
from drone_bridge.session.operator_command import OperatorCommand
from drone_bridge.session.requests_in_turn import RequestsInTurn
from drone_bridge.session.session import (
    AFTER_STALLS,
    FINAL_GAP_S,
    FINAL_REPEATS,
    SETTLING_S,
    Call,
    Note,
    Outcome,
    Publish,
    Send,
    Session,
    encode,
    next_due,
)
from drone_bridge.wire import LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.addresses import peer_name
from kestrel_bridge.codec import Answer, ClientConnection, Hello, Land, Steer, TakeOff
from kestrel_bridge.device import DroneSide

REQUESTS = {"takeoff": TakeOff(), "land": Land()}
GREETING, LANDING = SimpleNamespace(name="hello"), SimpleNamespace(name="land")  # which nobody here waits for
GREETING_PERIOD_S = LANDING_PERIOD_S = 1.0
LATE_ANSWER_S = 1.0
REPEAT_RATE = 20.0
STATE_PERIOD_S = 0.1
OLD = "This process has just stood still, and the request is old: call it again."


class ClientSession(Session):
    """A client's conversation with one drone."""

    def __init__(self, name, arbiter, parameter, peer_host):
        """`arbiter` decides how the drone is steered; `peer_host` returns where state may come from."""
        self.state, self.peer = "waiting for a peer", name
        self._arbiter, self._parameter, self._peer_host = arbiter, parameter, peer_host
        self._connection = ClientConnection()
        self._requests = RequestsInTurn(LATE_ANSWER_S)
        self._landing_s = -math.inf  # when it may be asked to land again
        self._final_left = 0
        self._is_ending = False

    def opened(self, now_s):
        self.state, self.is_open = "sending", True
        self.heard_s, self.since_s, self.due_s = None, now_s, now_s
        self._arbiter.forget()
        return [Note("connections", f"Sending to {self.peer}.", is_expected=True), *self._sent(Steer())]

    def receive(self, data, source, now_s):
        if source[0] != self._peer_host():
            return [Note("refused_peers", f"State from {peer_name(source)} was refused: it is another host.")]
        self._connection.receive_data(data)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A datagram from {peer_name(source)} was refused: {error}")]
        self.heard_s = now_s
        if not isinstance(event, Answer):
            return [Publish(event), Note("states")]
        return self._outcomes([self._requests.answered()], event.is_ok, event.reason or "ok")

    def ask(self, request, now_s):
        """Take off or land, when the requests before are answered."""
        if not self.is_open:
            return [Outcome(request, False, "There is no link.")]
        if request.asked_s < self.fresh_since_s and request.name != "land":
            return [Outcome(request, False, OLD)]
        try:
            self._requests.ask(request, self._parameter("answer_timeout"))
        except LocalProtocolError as error:
            return [Outcome(request, False, str(error))]
        return []

    def tick(self, now_s):
        if now_s < self.due_s:
            return []
        if self._is_ending:
            return self._final(now_s)
        self.due_s = next_due(self.due_s, 1 / self._parameter("rate"), now_s)
        decision = self._arbiter.decide(now_s)
        actions = list(self._sent(decision.command or Steer()))
        if decision.rank is Rank.LANDING and self._requests.is_idle and now_s >= self._landing_s:
            self._landing_s = now_s + LANDING_PERIOD_S
            self._requests.ask(LANDING, self._parameter("answer_timeout"))
        if self._requests.is_idle and (self.heard_s is None or now_s - self.heard_s > GREETING_PERIOD_S):
            self._requests.ask(GREETING, GREETING_PERIOD_S)
        if overdue := self._requests.overdue(now_s):
            actions += self._outcomes([overdue], False, "There was no answer.")
        if due := self._requests.due(now_s):
            actions += self._sent(Hello() if due is GREETING else REQUESTS[due.name])
        return actions

    def resume(self, now_s):
        """Forget what was to be asked before, but for landing."""
        if self.heard_s is not None:
            self.heard_s = now_s
        old = self._requests.forget(lambda request: request.name not in ("hello", "land"))
        return self._outcomes(old, False, OLD)

    def lost(self, now_s):
        self.state, self.is_open, self.due_s = "waiting for a peer", False, math.inf
        unanswered = self._requests.end()
        return [*self._sent(Steer()), *self._outcomes(unanswered, False, "The link was lost before the answer.")]

    def end(self, now_s):
        self.state, self.is_open, self._is_ending, self._final_left = "closed", False, True, FINAL_REPEATS
        unanswered = self._requests.end()
        return [*self._final(now_s), *self._outcomes(unanswered, False, "The link has ended before the answer.")]

    def _final(self, now_s):
        self._final_left -= 1
        self.is_over = not self._final_left
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        return self._sent(Steer())

    def _sent(self, message):
        notes = []
        data = encode(self._connection.send, message, Steer(), notes)
        return [Send(data, None, "undelivered_datagrams", ("sent_commands",)), *notes]

    def _outcomes(self, requests, is_success, sentence):
        landings = [Note("", f"The drone has to land: {sentence}") for each in requests if each is LANDING]
        asked = [each for each in requests if each not in (None, GREETING, LANDING)]
        return [*(Outcome(each, is_success, sentence) for each in asked), *landings]


class DroneSession(Session):
    """A drone's conversation with its clients."""

    def __init__(self, parameter, allowed_peers, state):
        """`state` returns the drone's state as a message, or None."""
        self.state = "waiting for a peer"
        self._parameter, self._allowed, self._state = parameter, allowed_peers, state
        self._side = DroneSide(self, self._send, parameter("state_port"))
        self._command = OperatorCommand(Steer(), lambda: parameter("command_timeout"), REPEAT_RATE)
        self._state_s = self._settled_s = 0.0
        self._now_s = 0.0
        self._actions = []  # of the device, while it handles something

    def receive(self, data, source, now_s):
        name = peer_name(source)
        if not self._allowed.allows(source[0]):
            return [Note("refused_peers", f"{name} was refused: it is not in allowed_peers.")]
        if now_s < self._settled_s:
            return [Note(AFTER_STALLS)]
        self._now_s = now_s
        try:
            self._side.receive(data, source)
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A datagram from {name} was refused: {error}")]
        begun = [] if self.is_open else [Note("connections", f"Serving {name}.", is_expected=True)]
        self.state, self.peer, self.is_open, self.heard_s = "serving", name, True, now_s
        self.due_s = min(self._command.due_s, self._state_s)
        return [*begun, *self._taken(), Note("datagrams")]

    def tick(self, now_s):
        actions = list(self._command.tick(self.peer, now_s))
        if now_s >= self._state_s:
            self._state_s = next_due(self._state_s, STATE_PERIOD_S, now_s)
            state = None if self._side.client is None else self._state()
            data = encode(self._side.state, state, None, actions) if state else None
            actions += [Send(data, self._side.client, if_sent=("states",))] if data else []
        self.due_s = min(self._command.due_s, self._state_s)
        return actions

    def answered(self, finish, is_success, sentence, now_s):
        """Take what came of a service."""
        finish(is_success, sentence)
        return self._taken()

    def lost(self, now_s):
        return self._command.end()

    def resume(self, now_s):
        self._settled_s = now_s + SETTLING_S
        if self.heard_s is not None:
            self.heard_s = now_s
        return self._command.resume(self.peer, now_s)

    def end(self, now_s):
        self.state, self.is_open, self.is_over = "closed", False, True
        return self._command.end()

    # The Drone of the device.

    def ask(self, name, finish):
        self._actions.append(Call(name, finish))

    def follow(self, steer):
        self._actions += self._command.command(steer, self._now_s)

    def _send(self, data, address):
        self._actions.append(Send(data, address))

    def _taken(self):
        actions, self._actions = self._actions, []
        return actions
