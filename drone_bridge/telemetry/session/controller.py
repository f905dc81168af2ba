# SPDX-License-Identifier: Apache-2.0
"""TelemetryControllerSession: state machine that commands a drone, for telemetry_bridge. Pure.

Theory of operation, by the document "Communication Protocol (GPS-Denied)" and by real drones:

Either end may send first. If a drone sends first, the source of its telemetry is the destination of commands. If it
waits on a port, as the ROS side of the document's own project does, it is called there: by the position of the rover
that it follows, else by the neutral command. It replies with telemetry.

From then on it gets a command `rate` times per second, the neutral one first. Without commands from ROS, it is braked
by its feedback (see TiltPilot). The document has no timeout, so a drone keeps its last command forever: the neutral one
is sent last, FINAL_REPEATS times.

| state | sends when listening | sends when calling | ends |
|---|---|---|---|
| WAITING | nothing | a call, immediately, after 0.5 s, 1 s and then every 2 s | CONNECTED, by telemetry |
| CONNECTED | a command, at `rate` | the same | SILENT, after `telemetry_timeout` without telemetry |
| SILENT | the neutral command FINAL_REPEATS times, then nothing, but see below | the same, then calls | CONNECTED, by \
the drone's telemetry; when listening, by another drone's only after TAKEOVER_S |
| CLOSED, by `end` | the neutral command FINAL_REPEATS times | the same | |

The source of a datagram may be forged: so nothing else is sent without recent telemetry, and another sender can't
replace a drone that sends telemetry. A called drone is the only one: documents of other hosts are refused. It may send
from any port of its host, and is commanded at the port that was called. For a drone that was not called, `sender_ports`
decides whether documents from another port are its own. It is commanded at the port of its last document.

If the limits require a SILENT drone to land, it is commanded to sink, level, at `rate`, if it was flying, and was
called or has sent telemetry for PROVEN_S. This ends once the drone must be on the ground by its last height, or when it
is held or steered manually. The neutral command follows, FINAL_REPEATS times.

Documents on topics have no source: CONNECTED begins with the link, and commands continue while the drone is SILENT.

A rover's telemetry may come from any sender, because it does not change the destination of commands. Telemetry on the
topic is forwarded to the drone, whose simulation may follow that rover.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drone_bridge.motion.dead_reckoning import DeadReckoning
from drone_bridge.motion.limits import LONGEST_LANDING_S
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.arbiter import LANDING_SPEED, Rank
from drone_bridge.session.clients import REFUSED
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import (
    CONNECTIONS,
    FINAL_GAP_S,
    FINAL_REPEATS,
    REFUSED_DATAGRAMS,
    REJECTED,
    Action,
    Actions,
    Landing,
    LastWords,
    Note,
    Publish,
    Send,
    Session,
    encode,
    next_due,
    sends_first,
)
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import (
    COMMAND_TOPIC,
    DRONE_TOPIC,
    HOVER,
    ROVER_TOPIC,
    ControllerConnection,
    DroneCommand,
    DroneTelemetry,
    LateTelemetry,
    RoverTelemetry,
    Sender,
)
from drone_bridge.telemetry.device import TAKEOVER_S, call_gaps
from drone_bridge.telemetry.session.sender_ports import SenderPorts
from drone_bridge.telemetry.units import Units
from drone_bridge.wire.addresses import AllowedPeers, peer_name, same_host
from drone_bridge.wire.counters import faults, problems, rates
from drone_bridge.wire.events import NEED_DATA, RemoteProtocolError

WAITING, CONNECTED, SILENT, CLOSED = "waiting for a peer", "connected", "no telemetry", "closed"
# Counters.
LOST_COMMANDS, LOST_ROVERS = problems("undelivered_commands", "undelivered_rover_documents")
(BAD_IMAGES,), (UNANSWERED,) = faults("undecodable_images"), problems("unanswered_calls")
DOCUMENTS, ROVER_DOCUMENTS, LATE, IMAGES = rates("documents", "rover_documents", "late_documents", "images")
#: Age after which a rover's document is not used to call a drone, s.
ROVER_FRESH_S = 2.0
#: Time without any document after which the other role is suggested, s.
HINT_S = 5.0
#: Time for which a drone must have sent telemetry to be landed without it, s: a forged datagram has not.
PROVEN_S = 2.0
#: Duration of a landing without telemetry beyond that by the last height, s.
_LANDING_MARGIN_S = 10.0
#: Senders of the documents on topics.
_SENDERS: dict[Any, Sender] = {DRONE_TOPIC: "drone", ROVER_TOPIC: "rover"}


@dataclass(slots=True)
class TelemetryControllerParameters:
    """Parameters of the session."""

    rate: float = parameter(25.0, "Commands per second.", 1.0, 500.0, live=True)
    telemetry_timeout: float = parameter(
        1.0,
        "Timeout of telemetry, s. Over UDP, the bridge then commands a silent drone to hover, and sends nothing more "
        "until telemetry arrives again, except for a landing by `limits.land_without_odometry`.",
        0.05, 3600.0, live=True,
    )  # fmt: skip


class TelemetryControllerSession(Session):
    """Controller's conversation with one drone."""

    def __init__(
        self,
        pilot: TiltPilot,
        feedback: Feedback,
        units: Units,
        parameters: TelemetryControllerParameters,
        allowed_peers: AllowedPeers,
        *,
        sinking: Shares,
        by_topics: bool = False,
        called: Callable[[], Any] | None = None,
        pose: ContinuousPose | None = None,
    ) -> None:
        """Start in the state WAITING.

        Args:
            pilot: decides how the drone is steered.
            feedback: receives the drone's measurements.
            units: signs of values on the wire.
            parameters: those of the node, which may change at any time.
            allowed_peers: permitted drones.
            sinking: lands the drone without telemetry, at LANDING_SPEED.
            by_topics: whether documents are transported on topics.
            called: returns the address of the called drone, once the link is open; None to listen.
            pose: the drone's heading in `odom`, where its place is reckoned; None for a client without these.
        """
        self.state = WAITING
        self._pilot, self._feedback, self._units = pilot, feedback, units
        self._parameters, self._allowed = parameters, allowed_peers
        self._by_topics, self._called, self._pose, self._reckoning = by_topics, called, pose, DeadReckoning()
        self._sinking = sinking
        self._height: float | None = None  # last reported height of the drone in flight, m; None on the ground
        self._is_trusted = False  # whether it may be landed without telemetry
        self._is_landing = False  # without telemetry
        self._call_at = math.inf  # time of the next call, or of the hint
        self._drone: Any = None  # destination of commands
        self._ports = SenderPorts()
        self._gaps = call_gaps()
        self._rover: tuple[bytes, float] | None = None  # newest document from the topic, and its time of arrival
        self._opened_s = math.inf
        self._was_refused = self._were_ports_noted = self._was_hinted = False
        self._final_left = 0  # neutral commands left to send before nothing is sent
        self._newest = HOVER  # last command
        # Timestamps are the sender's own: of the drone, of other senders to the same port, and of the rover's topic.
        self._from_drone, self._from_others, self._from_rover = (ControllerConnection() for _ in range(3))

    def opened(self, now_s: float) -> Actions:
        """Start listening, or call the drone."""
        if self._by_topics:
            return self._begin(COMMAND_TOPIC, COMMAND_TOPIC, now_s) if self.state == WAITING else []
        self._opened_s = now_s
        if self._called:
            self._drone = self._called()
            self.peer = peer_name(self._drone)
            if self.state != CONNECTED:
                self._gaps = call_gaps()
                return self._call(now_s)
        elif self.state == WAITING:
            self.due_s = self._call_at = now_s + HINT_S
        return []

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a document from a datagram's source or a topic, and publish it."""
        name = source if source in _SENDERS else peer_name(source)
        if refusal := self._source_refusal(source):
            return [_refusal(name, refusal)]
        is_drones = self._is_drones(source)
        connection = self._from_rover if source == ROVER_TOPIC else self._from_drone if is_drones else self._from_others
        connection.receive_data(data, _SENDERS.get(source))
        try:
            event = connection.next_event()
        except RemoteProtocolError as error:
            return [Note(REJECTED, f"A document from {name} was refused: {error}")]
        assert event is not NEED_DATA
        if isinstance(event, LateTelemetry):
            return [Note(LATE)]
        if isinstance(event, RoverTelemetry):
            return [Publish(event), *(self._relayed(data, now_s) if source == ROVER_TOPIC else [])]
        problem = event.camera.problem
        noted: list[Action] = []
        if problem:
            noted.append(Note(BAD_IMAGES, f"{problem} The rest of its document was published."))
        if self._called and self.state == WAITING:
            noted = [*self._begin(self._drone, self.peer, now_s), *noted]
        elif not is_drones:
            if not self._has_moved(event, source, now_s):
                return [*self._adopted(event, source, name, now_s), *noted]
            if not self._ports.is_changing:
                noted.append(Note("", f"{self.peer} now sends from {name}. Commands are sent there.", is_expected=True))
        if source != DRONE_TOPIC:
            noted += self._noted_port(source, name, event.timestamp)
        return sends_first([Publish(event), *self._received(event, now_s), *noted])

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Log that the port of the called drone is closed: once, until telemetry arrives."""
        is_new, self._was_refused = not self._was_refused, True
        is_not_up_yet = self.received_s is None
        hint = " If the simulation sends first, set role: listen." if is_not_up_yet else ""
        said = f"{sentence} Retrying.{hint}" if is_new else ""
        return [Note(REFUSED_DATAGRAMS, said, is_expected=is_not_up_yet)]

    def tick(self, now_s: float) -> Actions:
        """Send the command that is due, call the drone, or detect its silence."""
        if now_s < self.due_s:
            return []
        if self._final_left:
            return self._final(now_s)
        if self.state != CONNECTED and not self._by_topics:
            return self._silent(now_s)
        silences: Actions = []
        if self.state == CONNECTED and self.silent_s(now_s) > self._parameters.telemetry_timeout:
            silences = self._lose_telemetry()
        if self._final_left:
            return [*self._final(now_s), *silences]
        self.due_s = next_due(self.due_s, 1 / self._parameters.rate, now_s)
        shares = self._pilot.shares(now_s)
        if shares is None:
            return [*self._sent(HOVER), Note("hover_commands"), *silences]
        return [*self._sent(self._units.command(shares)), *self._pilot.notes, *silences]

    def landing(self, now_s: float) -> Landing:
        if self._by_topics or self.state != SILENT:
            return super().landing(now_s)
        if self._height is None:
            return Landing.GROUNDED
        return Landing.LANDS if self._is_trusted and now_s < self._landed_at else Landing.SILENT

    def lost(self, now_s: float) -> Actions:
        """Make the drone hover until it gets a new command."""
        self._pilot.restart(now_s)
        return [] if self._drone is None else self._sent(HOVER)

    def end(self, now_s: float) -> Actions:
        """Leave the drone hovering."""
        self.state, self.is_open = CLOSED, False
        if self._drone is None:
            self.is_over = True
            return []
        self._final_left = FINAL_REPEATS
        return self._final(now_s)

    def last_words(self) -> LastWords | None:
        """Return hover."""
        if self._drone is None or self._by_topics or self._newest == HOVER:
            return None
        return LastWords((self._from_drone.send(HOVER),), to=self._drone)

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that hover was sent."""
        self._newest = HOVER
        return []

    # The drone.

    def _source_refusal(self, source: Any) -> str:
        """Return why documents of a source are refused; empty if they are accepted."""
        if source in _SENDERS:
            return ""
        if not self._allowed.allows(source[0]):
            return "it is not in allowed_peers."
        if self._called and not same_host(source, self._drone):
            return f"the drone is {self.peer}, and documents from other hosts are not accepted."
        return ""

    def _is_drones(self, source: Any) -> bool:
        """Return whether telemetry of a source is the drone's."""
        if source == ROVER_TOPIC:
            return False
        if source in (self._drone, DRONE_TOPIC) or self._called:
            return True
        return self._ports.is_changing and same_host(source, self._drone)

    def _lose_telemetry(self) -> Actions:
        """Change to the silent state. Over UDP, the last commands follow."""
        self.state = SILENT
        self._from_drone = ControllerConnection()  # it may have restarted, so that its timestamps are not late
        after = "Still sending commands."
        if not self._by_topics:
            after = "Commanded the drone to hover. Sending is suspended until telemetry arrives."
            self._final_left, self._gaps = FINAL_REPEATS, call_gaps()
        sentence = f"No telemetry was received for {self._parameters.telemetry_timeout:g} s. {after}"
        return [Note("silences", sentence if self.received_s is not None else "")]

    @property
    def _landed_at(self) -> float:
        """Time at which a landing without telemetry ends, s."""
        limits, height = self._pilot.arbiter.limits, self._height or 0.0
        return limits.land_at + min(height / LANDING_SPEED + _LANDING_MARGIN_S, LONGEST_LANDING_S)

    def _silent(self, now_s: float) -> Actions:
        """Land a silent drone if that is required, or call the drone."""
        is_required = self.state == SILENT and self._pilot.arbiter.rank(now_s) is Rank.LANDING
        if is_required and self.landing(now_s) is Landing.LANDS:
            sentence = "" if self._is_landing else f"{self.peer} is silent: it is commanded to land."
            self._is_landing = True
            self.due_s = now_s + 1 / self._parameters.rate
            return [*self._sent(self._units.command(self._sinking)), Note("landing_commands", sentence)]
        if self._is_landing:
            self._is_landing, self._final_left = False, FINAL_REPEATS
            return self._final(now_s)
        actions: Actions = []
        if now_s >= self._call_at:
            actions = self._call(now_s) if self._called else self._hinted()
        self._set_due(now_s)
        return actions

    def _set_due(self, now_s: float) -> None:
        """Set the time of the next call, or of a landing, which hold and helm may delay."""
        self.due_s = self._call_at
        if self.state == SILENT and now_s < self._landed_at:
            landing_at = max(self._pilot.arbiter.limits.land_at, now_s + 1 / self._parameters.rate)
            self.due_s = min(self.due_s, landing_at)

    def _has_moved(self, telemetry: DroneTelemetry, source: Any, now_s: float) -> bool:
        """Return whether telemetry from another port of the drone's host is the drone's."""
        if self._drone is None or not same_host(source, self._drone):
            return False
        return self._ports.is_drones(source[1], telemetry.timestamp, self.silent_s(now_s))

    def _noted_port(self, source: Any, name: str, timestamp: float | None) -> list[Action]:
        """Record the port of the drone's document; return what to log about it, once."""
        self._ports.record(source[1], timestamp)
        sentence = ""
        if self._called:
            if source[1] != self._drone[1]:
                sentence = f"Telemetry comes from {name}, not from the called port. Commands are sent to {self.peer}."
        else:
            self._drone, self.peer = source, name
            if self._ports.is_changing:
                sentence = (
                    f"Each document of {source[0]} has a different source port. They are treated as one drone, and "
                    "commands are sent to the newest port: the drone must receive on its sending socket."
                )
        if not sentence or self._were_ports_noted:
            return []
        self._were_ports_noted = True
        return [Note("", sentence, is_expected=bool(self._called))]

    def _adopted(self, telemetry: DroneTelemetry, source: Any, name: str, now_s: float) -> Actions:
        """Adopt the sender as our drone unless one is connected."""
        silent_s, present, takeovers = self.silent_s(now_s), self.peer, []
        if self._drone is not None:
            if silent_s <= self._parameters.telemetry_timeout:
                return [_refusal(name, f"{present} is connected, and only one peer is served.")]
            if silent_s <= TAKEOVER_S:
                keeps = f"{present} is the drone until it is silent for {TAKEOVER_S:g} s"
                return [_refusal(name, f"{keeps}, currently {silent_s:.1f} s.")]
            sentence = f"{name} replaces {present}, which has been silent for {silent_s:.1f} s."
            takeovers = [Note("takeovers", sentence, is_expected=True)]
        self._from_drone, self._from_others = self._from_others, ControllerConnection()
        begun = self._begin(source, name, now_s)
        self._ports.record(source[1], telemetry.timestamp)
        return [*begun, Publish(telemetry), *self._received(telemetry, now_s), *takeovers]

    def _begin(self, drone: Any, name: str, now_s: float) -> Actions:
        """Start commanding a drone, with the neutral command first."""
        if self._pose:
            self._pose.greeted()
        self._pilot.restart(now_s)
        if self._by_topics or self._drone is None or not same_host(self._drone, drone):
            self._ports, self._were_ports_noted = SenderPorts(), False
        self._drone, self.peer, self._final_left = drone, name, 0
        self.state, self.is_open = CONNECTED, True
        self.since_s = now_s
        self.due_s = now_s + 1 / self._parameters.rate
        return [Note(CONNECTIONS, f"Connected to {name}.", is_expected=True), *self._sent(HOVER)]

    def _received(self, telemetry: DroneTelemetry, now_s: float) -> Actions:
        """Pass telemetry to pilot and limits, publish the pose that follows from it, and end a silence."""
        measured, located = continued(self._pose, self._units.measurement(telemetry), now_s)
        self._feedback.measured(measured, now_s)
        if self._pose:
            pose = self._reckoning.update(measured, now_s, is_doubted=self._pilot.is_position_doubted)
            located = [*located, Publish(pose)]
        self.received_s, self._was_refused = now_s, False
        self._height = None if telemetry.landed else telemetry.altimeter.altitude
        self._is_trusted = self._called is not None or now_s - (self.since_s or now_s) >= PROVEN_S
        self._is_landing = False
        if self.state != SILENT:
            return located
        self.state, self._final_left = CONNECTED, 0
        self.due_s = min(self.due_s, now_s)
        return [*located, Note("", f"Receiving telemetry from {self.peer}.", is_expected=True)]

    # Sending.

    def _call(self, now_s: float) -> Actions:
        """Call the drone with the rover's newest document, else with the neutral command."""
        self.due_s = self._call_at = now_s + next(self._gaps)
        rover, came_s = self._rover or (b"", -math.inf)
        is_fresh = now_s - came_s <= ROVER_FRESH_S
        called: Actions = [Send(rover, self._drone, LOST_ROVERS)] if is_fresh else self._sent(HOVER)
        if now_s == self._opened_s or self.state == SILENT:
            return called
        hint = ""
        if now_s - self._opened_s >= HINT_S:
            hint = " If the simulation sends first, set role: listen."
        sentence = f"No telemetry from {self.peer} yet.{hint}"
        return [*called, Note(UNANSWERED, sentence, is_ongoing=True, is_usual_at_start=True)]

    def _hinted(self) -> Actions:
        """Log, once, that no telemetry arrives."""
        self._call_at = math.inf
        if self._was_hinted:
            return []
        self._was_hinted = True
        sentence = f"No telemetry was received for {HINT_S:g} s. If the simulation waits for the controller, set"
        return [Note("", f"{sentence} role: connect, with its host and port.")]

    def _final(self, now_s: float) -> Actions:
        """Send one of the last commands, and schedule the others."""
        self._final_left -= 1
        if self._final_left:
            self.due_s = now_s + FINAL_GAP_S
        elif self.state == SILENT:
            self._call_at = now_s + next(self._gaps) if self._called else math.inf
            self._set_due(now_s)
        else:
            self.due_s = math.inf
        self.is_over = self.state == CLOSED and not self._final_left
        return self._sent(HOVER)

    def _sent(self, command: DroneCommand) -> Actions:
        notes: list[Action] = []
        document = encode(self._from_drone.send, command, HOVER, notes)
        assert document  # hover can always be encoded
        self._newest = command
        return [*notes, Send(document, self._drone, LOST_COMMANDS, ("sent_commands",))]

    def _relayed(self, document: bytes | str, now_s: float) -> Actions:
        """Forward a rover's document to the drone, and keep it for the next call."""
        if self._by_topics:
            return []
        data = document.encode() if isinstance(document, str) else document
        self._rover = data, now_s
        if self.state != CONNECTED:
            return [Note(LOST_ROVERS)] if self.state == SILENT else []
        return [Send(data, self._drone, LOST_ROVERS)]


def _refusal(name: str, reason: str) -> Note:
    return Note(REFUSED, f"{name} was refused: {reason}", is_ongoing=True)
