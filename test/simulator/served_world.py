# SPDX-License-Identifier: Apache-2.0
"""ServedWorld: a session of simulator_server with its clients and a bridge, with a fake clock."""

from types import SimpleNamespace

from session_talk import SessionTalk

from drone_bridge.motion.wxyz import IDENTITY
from drone_bridge.session.session import Answer, Call, Close, Note, Publish, Send
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.topics.services import SERVICES
from drone_bridge.simulator.vehicle.session.forwarding import Follow, Forwarder, SimulatorParameters
from drone_bridge.simulator.vehicle.session.mirrored_scene import ConfiguredEntity
from drone_bridge.simulator.vehicle.session.simulator import SimulatorSession
from drone_bridge.simulator.vehicle.session.velocity_commands import VelocityCommand
from drone_bridge.simulator.vehicle.topics import service_calls

VEHICLE = 0
NOWHERE = (0.0, 0.0, 0.0)
STATE = (NOWHERE, NOWHERE, NOWHERE, IDENTITY, NOWHERE)  # at rest, looking north


class PlainBridge:
    """Services of a bridge, with configured responses. None: no response."""

    def __init__(self):
        self.responses = {}
        self.asked = []
        self.carries_out_all = self.is_silent = False

    def offers(self, service):
        return (self.carries_out_all or service in self.responses) and not self.is_silent

    def answer(self, call):
        self.asked.append((call.name, call.tag.request))
        if self.carries_out_all:
            return Answer(True, "", response=SERVICES[call.name].Response(success=True))
        fields = self.responses[call.name]
        if fields is None:
            return Answer(False, "", has_come=False)
        response = SimpleNamespace(**{"code": -1, "message": "", **fields})
        return Answer(response.success, response.message, response=response)


class Client:
    """Client's side of the wire."""

    def __init__(self, world, peer):
        self._world, self.peer = world, peer
        self.wire = sim.ClientConnection(max_request_bytes=1 << 20)
        self.events, self.is_closed = [], False

    def take(self, action):
        if isinstance(action, Send) and action.to == self.peer:
            assert not self.is_closed
            self.wire.receive_data(action.data)
            self.events += self.wire.events()
        elif action == Close(self.peer):
            self.is_closed = True

    def say(self, data):
        """Send bytes."""
        return self._world.do(self._world.session.receive, data, self.peer)

    def send(self, *requests):
        return self.say(b"".join(map(self.wire.send, requests)))

    def ask(self, request):
        """Return the answer."""
        self.send(request)
        answer = next(event for event in self.events if isinstance(event, sim.Answer))
        self.events.remove(answer)
        return answer.response

    def leave(self):
        return self._world.do(self._world.session.left, self.peer, f"{self.peer} has closed the connection.")

    def news(self):
        """Return and clear the received messages."""
        events, self.events = self.events, []
        return events


class ServedWorld(SessionTalk):
    """Session, its clients, and a bridge whose services respond at once unless `answers_later`."""

    def __init__(self, others=(), bridge=None, **options):
        self.parameters = SimulatorParameters(**options.pop("parameters", {}))
        self.bridge, self.is_held, self.refused = bridge or PlainBridge(), False, 0
        self.answers_later, self.calls = False, []
        self.clients, self.commands, self.followed, self.notes, self.actions = [], [], [], [], []
        forwarder = Forwarder(
            [ConfiguredEntity(VEHICLE, 0.5, "vehicle"), *others],
            self.parameters,
            service_calls,
            offers=self.bridge.offers,
            admits=self._admits,
        )
        super().__init__(SimulatorSession(forwarder, **options))
        self.do(self.session.opened)
        self.client = self.connect("alice")

    def _admits(self):
        self.refused += self.is_held
        return not self.is_held

    def do(self, step, *arguments):
        """Call the session and execute its actions. Return all actions."""
        return self.take(step(*arguments, self.now_s))

    def stall(self, seconds):
        """Stall the server, and resume it."""
        self.now_s += seconds
        self.do(self.session.resume)

    def take(self, actions):
        for action in actions:
            self.actions.append(action)
            for client in self.clients:
                client.take(action)
            if isinstance(action, Publish) and isinstance(action.message, VelocityCommand):
                self.commands.append(action.message)
            elif isinstance(action, Publish) and isinstance(action.message, Follow):
                self.followed.append(action.message)
            elif isinstance(action, Note):
                self.notes.append(action)
            elif isinstance(action, Call):
                self.calls.append(action)
        while self.calls and not self.answers_later:
            self.answer()
        return actions

    def answer(self):
        """Answer the oldest call."""
        call = self.calls.pop(0)
        self.do(self.session.answered, call.tag, self.bridge.answer(call))

    def connect(self, name):
        self.clients.append(Client(self, name))
        self.do(self.session.connected, name)
        return self.clients[-1]

    def ask(self, request):
        return self.client.ask(request)

    def move(self, state=STATE, entity=VEHICLE):
        """Deliver a pose of an entity."""
        return self.do(self.session.moved, entity, state)

    def hold(self, is_held):
        self.is_held = is_held
        self.do(self.session.hold_changed)

    def counted(self, counter):
        return sum(note.counter == counter for note in self.notes)

    @property
    def entities(self):
        return list(self.session._scene.entities)

    @property
    def is_known(self):
        """Whether the vehicle's state is known."""
        return self.session._scene.is_current(VEHICLE)

    @property
    def is_running(self):
        return self.session._control.is_running
