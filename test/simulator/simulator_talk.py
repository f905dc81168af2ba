# SPDX-License-Identifier: Apache-2.0
"""SimulatorTalk: the session of simulator_bridge and a simulator, with a fake clock."""

from collections import deque
from random import Random
from types import SimpleNamespace

from session_talk import SessionTalk
from simulator_world import STILL, World

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.ros.topics.topic_names import topic_token
from drone_bridge.session.arbiter import Decision, Rank
from drone_bridge.session.session import Close, Note, Outcome, Publish, Send
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.codec import STREAMED, Attribute
from drone_bridge.simulator.session.client import SimulatorClientSession
from drone_bridge.simulator.session.client_parameters import SimulatorClientParameters
from drone_bridge.simulator.session.desired_items import (
    DesiredCamera,
    DesiredCameraStream,
    DesiredEntityStream,
    DesiredTrigger,
)
from drone_bridge.simulator.session.entities import Entities
from drone_bridge.simulator.session.simulated_time import SimulatedTime
from drone_bridge.simulator.session.simulation import Simulation
from drone_bridge.simulator.session.steering import Steering

VEHICLE, BUOY = 0, 1
COMMAND_TIMEOUT_S = 0.5
FRONT = sim.AddCamera(VEHICLE, (1.0, 0.0, 0.0, 0.0), (0.3, 0.0, 0.0), 1.0)
STOPPED, NORTH, EAST = BodyVelocity(), BodyVelocity(forward=1.0), BodyVelocity(left=-1.0)
SET = {STOPPED: (0.0, 0.0, 0.0), NORTH: (1.0, 0.0, 0.0), EAST: (0.0, 1.0, 0.0)}
NAMES = ("requests", "streams")


class Arbiter:
    """Arbiter with one command, which times out after COMMAND_TIMEOUT_S, or on hold."""

    def __init__(self):
        self.command, self.arrived_s, self.is_held = None, None, False

    def decide(self, now_s):
        if self.is_held:
            return Decision(Rank.HOLD)
        if self.command is None or now_s - self.arrived_s > COMMAND_TIMEOUT_S:
            return Decision(Rank.NEUTRAL)
        return Decision(Rank.COMMAND, self.command, self.arrived_s)

    def forget(self):
        self.command = None


def desired():
    """Return the configured items: streams, a camera with the buoy as its target, and a trigger."""
    camera = DesiredCamera("front", FRONT)
    streams = [DesiredEntityStream(entity, 1) for entity in (VEHICLE, BUOY)]
    return [
        *streams,
        camera,
        DesiredCameraStream(camera, BUOY, 2),
        DesiredTrigger("near", sim.CollisionTrigger(0, 1, 0.5)),
    ]


class SimulatorTalk(SessionTalk):
    """Session of a client, and a simulator that answers at once unless it `is_silent`."""

    def __init__(self, **parameters):
        self.parameters = SimulatorClientParameters(**{"body_to_model": [1.0, 0.0, 0.0, 0.0], **parameters})
        self.arbiter = Arbiter()
        entities = Entities(VEHICLE, {BUOY: "buoy"}, topic_token, {"map", "odom", "base_link"})
        self.simulation = Simulation(entities, desired, SimulatedTime(is_published=True), Random(1))
        self.reported = []  # measurements, each with its time
        steering = Steering(self.arbiter, self.parameters)
        super().__init__(
            SimulatorClientSession(
                self.simulation,
                steering,
                self.parameters,
                SimpleNamespace(measured=lambda measured, now_s: self.reported.append((measured, now_s))),
                check_hold=self.check_hold,
            )
        )
        self.world, self.is_silent = World(), False
        self.world.reset(entities={VEHICLE: dict(STILL), BUOY: dict(STILL)})
        self.wires, self.asked, self.closed, self.actions = {}, {}, [], []

    def check_hold(self, name):
        if self.arbiter.is_held:
            raise ValueError(f"{name} is refused while the vehicle is held.")

    # The link.

    def connect(self):
        """Open both connections. Return all actions."""
        self.wires = {name: sim.ServerConnection() for name in NAMES}
        self.asked = {name: [] for name in NAMES}
        self.unanswered = {name: deque() for name in NAMES}  # by a silent simulator
        self.closed.clear()
        return [action for name in NAMES for action in self.take(self.session.connected(name, self.now_s))]

    def take(self, actions):
        """Execute actions, and let the simulator answer. Return all actions."""
        done = list(actions)
        self.actions += done
        for action in actions:
            if isinstance(action, Close):
                self.closed.append(action.peer)
            elif isinstance(action, Send) and action.to in self.wires:
                assert action.to not in self.closed
                self.wires[action.to].receive_data(action.data)
        for name, wire in tuple(self.wires.items()):
            while (request := wire.next_event()) is not sim.NEED_DATA:
                self.asked[name].append(request)
                if self.is_silent:
                    self.unanswered[name].append(request)
                if self.is_silent or name in self.closed:
                    continue
                answer = self.world.answers.get(type(request), self.world.usual_answer)
                answer = answer(request) if callable(answer) else answer
                if answer is not None:
                    done += self.say(name, answer)
        return done

    def say(self, name, *messages):
        """Deliver a message of the simulator on a connection."""
        data = b"".join(map(self.wires[name].send, messages))
        return self.take(self.session.receive(data, name, self.now_s))

    def go_on(self):
        """Resume a silent simulator, which answers in order."""
        for name, requests in self.unanswered.items():
            while requests:
                self.say(name, self.world.usual_answer(requests.popleft()))
        self.is_silent = False

    def disconnect(self, *names):
        """Close connections by the simulator, by default all. Each ends the others in the session."""
        done = []
        for name in names or tuple(self.wires):
            if self.wires.pop(name, None) and name not in self.closed:
                done += self.take(self.session.left(name, f"{name} has closed the connection.", self.now_s))
        return done

    def reconnect(self):
        """Close all connections by the simulator, and connect again."""
        done = self.disconnect()
        return done + self.take(self.session.lost(self.now_s)) + self.connect()

    # Time and steps.

    def step(self, values=None, stream=VEHICLE):
        """Deliver the state of an entity after a step."""
        state = STILL | (values or {})
        data = sim.EntityData(stream, STREAMED, tuple(state[attribute] for attribute in STREAMED))
        return self.say("streams", data)

    # What is asked for.

    def command(self, command):
        self.arbiter.command, self.arbiter.arrived_s = command, self.now_s
        return self.take(self.session.commanded(self.now_s))

    def ask(self, work, *arguments, asked_s=None):
        """Post a request. `outcome` returns its outcome."""
        request = SimpleNamespace(name=work.__name__, asked_s=self.now_s if asked_s is None else asked_s)
        self.take(self.session.ask(request, work, arguments, self.now_s))
        return request

    def outcome(self, request):
        """Return the outcome of a request. None: pending."""
        outcomes = [each for each in self.outcomes() if each.request is request]
        assert len(outcomes) <= 1
        return outcomes[0] if outcomes else None

    def outcomes(self):
        """Return the outcomes of all requests."""
        return [each for each in self.actions if isinstance(each, Outcome)]

    # What was said.

    def of(self, kind, name="requests"):
        """Return the requests of a kind on a connection."""
        return [request for request in self.asked[name] if isinstance(request, kind)]

    def velocities(self):
        """Return the velocities sent to the vehicle, in order."""
        sent = [each.value for each in self.of(sim.SetEntity) if each.attribute == Attribute.VELOCITY]
        return [tuple(round(number, 9) for number in value) for value in sent]

    def published(self, kind):
        return [each.message for each in self.actions if isinstance(each, Publish) and isinstance(each.message, kind)]

    def noted(self, counter):
        """Return the sentences of notes with this counter."""
        return [each.sentence for each in self.actions if isinstance(each, Note) and each.counter == counter]
