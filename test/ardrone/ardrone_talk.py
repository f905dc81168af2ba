# SPDX-License-Identifier: Apache-2.0
"""Talk: an ArdroneClientSession and an emulated AR.Drone in virtual time, with losses and other clients."""

from types import SimpleNamespace

from fake_pilot import FakePilot
from session_talk import SessionTalk, published

from drone_bridge.ar_drone.flight import FlightPhase
from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.ardrone.codec import COMMANDS, CONNECT, CONTROL, NAVDATA, WAKE_UP, ClientConnection, setting
from drone_bridge.ardrone.codec.commands import lines_of, read_line
from drone_bridge.ardrone.session.client import ArdroneClientSession
from drone_bridge.ardrone.session.requests import ArdroneClientParameters
from drone_bridge.ardrone.session.settings import WantedSetting
from drone_bridge.ardrone.vehicle.device import EmulatedArdrone, FirmwareBehaviour
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import Outcome, Send

STEP_S = 0.01
DEMO = WantedSetting(setting("general:navdata_demo", True), is_required=True)


class Talk(SessionTalk):
    """Session and drone. `loses(data)` returns whether a datagram to the drone is lost."""

    def __init__(self, *wishes, drone=None, **behaviour):
        self.drone = drone or EmulatedArdrone(behaviour=FirmwareBehaviour(**behaviour))
        self.parameters = ArdroneClientParameters()
        self.pilot, self.used, self.is_linked = FakePilot(), [], True
        self.has_control_port, self.connected_to = True, None  # the drone to which there is a connection for settings
        self.wishes = [DEMO, *wishes]
        self.loses = lambda data: False
        self.actions, self.requests = [], []
        session = ArdroneClientSession(
            "192.168.1.1",
            self.pilot,
            Feedback(ObservedMotion(lambda: self.now_s), self.pilot.arbiter.limits, self.pilot),
            parameters=self.parameters,
            wishes=lambda: self.wishes,
            use_settings=self.used.append,
        )
        super().__init__(session)

    def open(self):
        self.take(self.session.opened(self.now_s))
        return self

    def take(self, actions):
        for each in actions:
            self.actions.append(each)
            if isinstance(each, Outcome):
                each.request.outcome = each
            if isinstance(each, Send) and self.is_linked and not self.loses(each.data):
                if each.to == COMMANDS:
                    self.drone.receive(each.data, self.now_s)
                elif each.to == NAVDATA:
                    self.drone.ask(self, self.now_s)
                else:
                    self.connected_to = self.drone if each.data == CONNECT else None
        return actions

    def run(self, seconds, *, until=None):
        """Advance both; until a condition, which has to be met then. Return the session's actions."""
        begin = len(self.actions)
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            self.drone.tick(self.now_s)
            self._deliver()
            if self.now_s >= self.session.due_s:
                self.take(self.session.tick(self.now_s))
            if until and until():
                return self.actions[begin:]
        assert until is None, "not reached"
        return self.actions[begin:]

    def stall(self, seconds):
        """The bridge's process stands still; what waits meanwhile is dropped."""
        for _ in range(round(seconds / STEP_S)):
            self.now_s += STEP_S
            self.drone.tick(self.now_s)
            self.drone.navdata(self.now_s)
        self.session.fresh_since_s = self.now_s
        self.take(self.session.resume(self.now_s))

    def lose_navdata(self):
        """Let the drone forget its clients, and the requests for navdata get lost."""
        self.drone._clients.clear()
        self.loses = lambda data: data == WAKE_UP

    def put_in_the_air(self):
        """Let the drone fly, for instance by another client."""
        self.drone.flight.phase, self.drone.flight.position[2] = FlightPhase.FLYING, 1.0
        return self

    def until(self, phase):
        """Advance both until the drone is in a phase."""
        self.run(8.0, until=lambda: self.drone.flight.phase is phase)

    def ask(self, name):
        request = SimpleNamespace(name=name, asked_s=self.now_s, outcome=None)
        self.requests.append(request)
        self.take(self.session.ask(request, self.now_s))
        return request

    def connected(self):
        """Connect, with all settings written."""
        self.open()
        self.run(10.0, until=lambda: self.session.settings.is_idle)
        self.run(0.5)
        return self

    def flying(self):
        """Connect and take off."""
        self.connected()
        request = self.ask("takeoff")
        self.run(8.0, until=lambda: self.drone.flight.is_hovering)
        assert request.outcome.is_success
        return self

    def sent(self, actions=None):
        """Return the commands of all packets, in order and without copies."""
        packets = [each for each in actions or self.actions if isinstance(each, Send) and each.if_sent]
        return [command for packet in packets for command in commands_in(packet)]

    def flights(self):
        return [each.is_flying for each in published(self.actions) if isinstance(each, FlyingReport)]

    def _deliver(self):
        due = self.drone.navdata(self.now_s)
        if due and self in due[1] and self.is_linked:
            self.take(self.session.receive(due[0], NAVDATA, self.now_s))
        if self.drone.texts_due and self.has_control_port and self.is_linked and self.connected_to is self.drone:
            self.take(self.session.receive(self.drone.configuration(), CONTROL, self.now_s))
        self.drone.texts_due = 0


class OtherClient:
    """Another client of the drone, which sends to it as it likes."""

    def __init__(self, talk):
        self.talk, self.connection = talk, ClientConnection()

    def ask(self):
        self.talk.drone.ask(self, self.talk.now_s)

    def send(self, *commands):
        self.talk.drone.receive(self.connection.send(*commands), self.talk.now_s)


def commands_in(action):
    """Return the commands of a datagram to the drone, without a copy numbered 1."""
    lines = [read_line(line) for line in lines_of(action.data)] if action.to == COMMANDS else []
    is_urgent = len(lines) > 1 and lines[0][1] == lines[1][1]
    return [command for _, command in lines[is_urgent:]]
