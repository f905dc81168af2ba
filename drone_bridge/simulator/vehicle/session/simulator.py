# SPDX-License-Identifier: Apache-2.0
"""SimulatorSession: a simulator's messages to its clients, and their commands, for simulator_server. Pure.

Theory of operation, from "Simulator Protocol" of the specification:

Up to MAX_CLIENTS are connected at once. They share one world, which is built from topics. A bridge's services answer
requests that topics can't (`session.forwarding`). Each client is answered in order. While a service answers one, its
further data are queued, up to MAX_AHEAD_BYTES.

| a client | action | ends |
|---|---|---|
| connects | nothing is sent before its first request | by that; closed after FIRST_MESSAGE_S without one |
| sends a request | it is answered at once, or waits for a service | by the answer, or after `request_timeout` |
| steers: it sets v or w of the vehicle | the command is published once | `command_timeout` after its last command, or \
when it disconnects: zero is published, and it no longer steers |
| disconnects: it closes, sends malformed data, does not read, or loses its place | its streams, triggers and spies \
end | |

| the world | | ends |
|---|---|---|
| runs | each state of an entity is a step of it, and is streamed | by PAUSE, or the last step of a RUN |
| is paused | nothing is streamed or commanded; a bridge's simulator decides if there is one | by RUN |

A service has a timeout of `request_timeout`, `run` of some seconds more. It is not called once its bridge is known to
be gone. A velocity that a service sets after the timeout is stopped at once.

Requests received before a stall of this process, or right after it, may be stale. They do not move the vehicle unless
they set zero. Nor do requests that have waited for a service in vain.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from drone_bridge.session.clients import LOST, Clients
from drone_bridge.session.session import CONNECTIONS, Action, Actions, Answer, Call, Close, Note, Send, Session
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import ItemType
from drone_bridge.simulator.session.heading import LONGEST_WAIT_S
from drone_bridge.simulator.vehicle.device.requests import ServedClient
from drone_bridge.simulator.vehicle.device.world import RequestRefusedError
from drone_bridge.simulator.vehicle.session.forwarding import ForwardedItem, Forwarder, Question, ServiceProcedure
from drone_bridge.simulator.vehicle.session.mirrored_scene import State
from drone_bridge.wire.counters import rates
from drone_bridge.wire.events import DisconnectPeerError, RemoteProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE

# Counters.
STATES, REQUESTS = rates("states", "requests")

WAITING, LISTENING, CLOSED = "waiting for a peer", "listening", "closed"
#: Bytes read from a client at a time: few, so that other clients get their turn soon.
CHUNK_BYTES = 256
#: A further client replaces the one that has been silent for longest.
MAX_CLIENTS = 32
#: Maximum data of a client during a service call. It also bounds the requests that are answered at once after it.
MAX_AHEAD_BYTES = 1 << 16
#: Maximum time between two checks of the vehicle's state.
WATCH_PERIOD_S = 0.5


class _SessionClient(ServedClient):
    """A client's requests and messages, on its own connection."""

    def __init__(self, peer: Any, out: list[Action]) -> None:
        """`out` receives notes about messages that can't be encoded."""
        super().__init__(lambda sentence: out.append(Note(UNENCODABLE, sentence)))
        self.peer = peer
        #: Whether a service is answering it, and whether it has disconnected.
        self.is_waiting = self.has_left = False
        #: Whether its requests may have waited during a stall of this process, or for a service in vain.
        self.is_stale = False


class _PendingQuestion(NamedTuple):
    """Procedure that waits for the answer to a question, and its timeout."""

    asking: ServiceProcedure
    served: _SessionClient | None  # None: no client
    until_s: float


class SimulatorSession(Session):
    """Session of a simulator with all of its clients."""

    def __init__(
        self,
        forwarder: Forwarder,
        simulated_s: Callable[[], float | None] = lambda: None,
    ) -> None:
        """Start without clients.

        Args:
            forwarder: answers their requests.
            simulated_s: returns the simulated time, which may be paused. None: the session's own time.
        """
        self.state = WAITING
        #: Whether clients are connected, and neither a topic nor a service reports the vehicle's position.
        self.is_vehicle_unknown = False
        self._parameters, self._simulated_s = forwarder.parameters, simulated_s
        self._now_s = -math.inf
        self._forwarder, self._out = forwarder, forwarder.out
        self._scene, self._world = forwarder.scene, forwarder.world
        self._control, self._commands = forwarder.control, forwarder.commands
        self._clients: Clients[_SessionClient] = Clients(MAX_CLIENTS)
        self._waiting: dict[Question, _PendingQuestion] = {}

    @property
    def client_count(self) -> int:
        return len(self._clients)

    def opened(self, now_s: float) -> Actions:
        self.state = LISTENING
        return self._done(now_s)

    # Clients.

    def connected(self, peer: Any, now_s: float) -> Actions:
        """Accept a client, if necessary in place of a silent one."""
        self._begin(now_s)
        refusal, loser, reason = self._clients.admit(peer, now_s)
        if refusal:
            return [*self._done(now_s), *refusal]
        if loser is not None:
            self._drop(loser, f"it {reason}")
        if not self._clients:
            self.since_s, self.received_s = now_s, None
        self._clients.add(peer, _SessionClient(peer, self._out), now_s)
        self._out.append(Note(CONNECTIONS, f"Connected to {peer}.", is_expected=True))
        return self._done(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Execute the requests in a chunk of a client's stream."""
        assert isinstance(data, bytes)
        if source not in self._clients:
            return []
        self._begin(now_s)
        self.received_s = now_s
        client = self._clients[source].handler
        client.is_stale = client.is_stale or now_s < self.settled_s
        client.protocol.receive_data(data)
        self._serve(source)
        return self._done(now_s)

    def left(self, peer: Any, sentence: str, now_s: float) -> Actions:
        """Remove a client whose stream has ended."""
        return self._gone(peer, Note("", sentence, is_expected=True), now_s)

    def disconnected(self, peer: Any, sentence: str, now_s: float) -> Actions:
        return self._gone(peer, Note(LOST, sentence), now_s)

    def tick(self, now_s: float) -> Actions:
        """Stop the vehicle if its clients are silent, continue with requests, and handle timeouts."""
        if now_s < self.due_s:
            return []
        self._begin(now_s)
        for client, lateness in self._clients.overdue(now_s):
            self._drop(client.peer, f"it {lateness}")
        for question, (asking, served, until_s) in tuple(self._waiting.items()):
            if now_s >= until_s:
                del self._waiting[question]
                if served:
                    served.is_stale = True  # data received meanwhile
                self._continue(asking, served, Answer(False, "", has_come=False))
        return self._done(now_s)

    def resume(self, now_s: float) -> Actions:
        """Accept no commands until pending data are read, and apply timeouts."""
        super().resume(now_s)
        self._commands.end_silent(now_s, after_stall=True)
        self._begin(now_s)
        self._clients.resume(now_s)
        for client in self._clients.all():
            client.handler.is_stale = client.handler.is_waiting or client.handler.protocol.unread_bytes > 0
        until_s = now_s + self._parameters.request_timeout  # answers may have arrived
        self._waiting = {question: waiting._replace(until_s=until_s) for question, waiting in self._waiting.items()}
        return self._done(now_s)

    def lost(self, now_s: float) -> Actions:
        """Stop the vehicle, and disconnect all clients, after a fault."""
        self._begin(now_s)
        self._commands.stop()
        for client in self._clients.all():
            self._leave(client.peer)
            self._out.append(Close(client.peer))
        self.state = WAITING
        return self._done(now_s)

    def end(self, now_s: float) -> Actions:
        """Stop the vehicle, and end with COMPLETED."""
        self._begin(now_s)
        self._commands.stop()
        self._waiting.clear()  # answers must not cause further calls
        self._complete()
        actions = [*self._done(now_s), *(Close(client.peer) for client in self._clients.all())]
        self._clients = Clients(MAX_CLIENTS)
        self.state, self.peer, self.is_open, self.is_over, self.due_s = CLOSED, "", False, True, math.inf
        return actions

    # Services of the bridge.

    def answered(self, question: Question, answer: Answer, now_s: float) -> Actions:
        """Answer the waiting client by the result of a call, which may be late."""
        self._begin(now_s)
        if waiting := self._waiting.pop(question, None):
            self._continue(waiting.asking, waiting.served, answer)
        elif question.steers and answer.is_success:  # its client got an error, and won't stop it
            self._commands.stop_anyway()
        return self._done(now_s)

    # Topics.

    def moved(self, entity: int, state: State, now_s: float) -> Actions:
        """Update an entity. Each state is a step of it."""
        self._begin(now_s)
        self._out.append(Note(STATES))
        self._scene.update(entity, state)
        if not self._forwarder.is_paused:
            is_last = entity == self._parameters.vehicle and self._control.count_step()
            self._world.notify_step((entity,))
            if is_last:
                self._complete()
        return self._done(now_s)

    def reported(self, event: sim.Response, now_s: float) -> Actions:
        """Forward an event of the bridge's simulator to the clients."""
        self._begin(now_s)
        if isinstance(event, sim.Completed):
            self._control.follow(is_running=False)
            self._complete()
        elif isinstance(event, sim.Spied):
            if event.type == ItemType.ENTITY:  # other items are reported by the calls that add and remove them
                change = self._forwarder.add_entity if event.is_added else self._forwarder.forget_entity
                change(event.id)
        else:
            kind = ItemType.CAMERA_STREAM if isinstance(event, sim.CameraData) else ItemType.TRIGGER
            item = self._world.items.of(kind).get(getattr(event, "id", -1))
            if isinstance(item, ForwardedItem) and item.client:
                item.client.post(event)
        return self._done(now_s)

    def hold_changed(self, now_s: float) -> Actions:
        """Discard velocities from before the start or end of a hold."""
        self._begin(now_s)
        self._commands.stop()
        return self._done(now_s)

    # Helpers.

    def _begin(self, now_s: float) -> None:
        """Set the time, so that no state becomes stale during a step or a request."""
        self._now_s = now_s
        world_s = self._simulated_s()
        self._scene.now_s = now_s if world_s is None else world_s
        self._forwarder.now_s = now_s
        self._commands.end_silent(now_s)

    def _done(self, now_s: float) -> Actions:
        """Publish changes, send all queued data to clients, and return the gathered actions."""
        while dropped := [client for client in self._clients.all() if client.handler.drop_reason]:
            for client in dropped:
                self._drop(client.peer, str(client.handler.drop_reason))
        self._commands.publish(is_paused=self._forwarder.is_paused)
        clients = self._clients.all()
        for client in clients:
            self._out += [Send(piece, client.peer) for piece in client.handler.take()]
        self.peer, self.is_open = ", ".join(str(client.peer) for client in clients), bool(clients)
        if not clients:
            self.since_s = self.received_s = None
        is_unknown = not self._scene.is_current(self._parameters.vehicle)
        self.is_vehicle_unknown = bool(clients) and is_unknown and not self._forwarder.offers("get_entity_state")
        self._set_due(now_s)
        actions = list(self._out)
        self._out.clear()
        return actions

    def _set_due(self, now_s: float) -> None:
        self.due_s = min(
            self._commands.due_s,
            self._clients.due_s,
            min((waiting.until_s for waiting in self._waiting.values()), default=math.inf),
            now_s + WATCH_PERIOD_S if self._clients else math.inf,
        )

    def _serve(self, peer: Any) -> None:
        """Answer a client's requests, until it has to wait for a service."""
        if peer not in self._clients:
            return
        client = self._clients[peer]
        served, has_sent_message = client.handler, False
        try:
            while not (served.is_waiting or served.drop_reason):
                if (request := served.next_request()) is None:
                    served.is_stale = False
                    break
                has_sent_message = True
                self._out.append(Note(REQUESTS))
                self._forwarder.may_be_stale = served.is_stale
                answering = self._forwarder.begin(served, request)
                if isinstance(answering, sim.Response):
                    served.answer(answering)
                else:
                    served.is_waiting = True
                    self._continue(answering, served)
            if served.is_waiting and served.protocol.unread_bytes > MAX_AHEAD_BYTES:
                raise DisconnectPeerError(f"more than {MAX_AHEAD_BYTES} bytes ahead of an answer")
        except (RemoteProtocolError, DisconnectPeerError) as error:
            self._drop(peer, str(error))
            return
        is_inside_message = served.protocol.inside_message and not served.is_waiting
        self._clients.data_received(
            client, self._now_s, is_inside_message=is_inside_message, has_sent_message=has_sent_message
        )

    def _continue(
        self, asking: ServiceProcedure, served: _SessionClient | None = None, answer: Answer | None = None
    ) -> None:
        """Start or continue a procedure, up to its next question or its end."""
        self._forwarder.may_be_stale = served is not None and served.is_stale
        try:
            question = asking.send(answer)  # type: ignore[arg-type] # None starts it
        except StopIteration as stop:
            response = stop.value
        except RequestRefusedError as error:
            response = error.answer
        except ValueError as error:
            response = sim.Error(0, str(error))
        else:
            if not (served and served.has_left and question.moves):  # a disconnected client can't move the vehicle
                until_s = self._now_s + self._parameters.request_timeout
                if question.service == "run":  # the bridge may have to learn the vehicle's heading first
                    until_s += LONGEST_WAIT_S
                self._waiting[question] = _PendingQuestion(asking, served, until_s)
                self._out.append(Call(question.service, question))
                return
        if served and served.has_left:
            self._end_items(served)  # one may have just been added
        elif served:
            served.is_waiting = False
            served.answer(response)
            if answer:
                self._serve(served.peer)

    def _complete(self) -> None:
        for client in self._clients.all():
            client.handler.post(sim.Completed())

    def _gone(self, peer: Any, note: Note, now_s: float) -> Actions:
        self._begin(now_s)
        if peer in self._clients:
            self._out.append(note)
            self._leave(peer)
        return self._done(now_s)

    def _drop(self, peer: Any, reason: str) -> None:
        """Disconnect a client after its pending answers. `reason`: the end of a sentence."""
        self._out.append(Note(LOST, f"{peer} disconnected: {reason.rstrip('.')}."))
        self._out += [Send(piece, peer) for piece in self._clients[peer].handler.take()]
        self._leave(peer)
        self._out.append(Close(peer))

    def _leave(self, peer: Any) -> None:
        """Stop the vehicle if a disconnected client steers it, and remove its items."""
        client = self._clients.remove(peer)
        assert client
        client.handler.has_left = True
        self._end_items(client.handler)

    def _end_items(self, served: _SessionClient) -> None:
        self._commands.leave(served)
        forwarded = self._forwarder.forwarded_of(served)
        self._world.leave(served)
        if forwarded:
            self._continue(self._forwarder.remove_all(forwarded))
