# SPDX-License-Identifier: Apache-2.0
"""TelemetryControllerSession: state machine that commands a drone, for telemetry_bridge. Pure.

| state | sends over UDP | ends |
|---|---|---|
| WAITING | nothing; to a called drone the neutral command at once, after 0.5 s, 1 s and then every 2 s | \
CONNECTED, by telemetry |
| CONNECTED | a command at `rate`, the neutral one first; documents of a rover on the topic | SILENT, after \
`telemetry_timeout` without telemetry |
| SILENT | the neutral command FINAL_REPEATS times, then as in WAITING, if the drone is trusted; or a landing | \
CONNECTED, by telemetry of the drone, or of another one if it was not called |
| CLOSED, by `end` | the neutral command FINAL_REPEATS times | |

The document has no timeout, so a drone keeps its last command forever. It is commanded at the source of its telemetry,
or at the port that was called, whichever port of that host it sends from. A source may be forged: a drone is trusted if
it was called, or has sent telemetry for PROVEN_S.

If the limits require a SILENT, trusted drone to land that was flying, it is commanded to sink, level, at `rate`, until
it must be on the ground by its last height. Until then, no other drone replaces it.

On topics, documents have no source: CONNECTED begins with the link, and commands continue while the drone is SILENT.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from drone_bridge.motion.limits import LONGEST_LANDING_S
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.arbiter import LANDING_SPEED, Rank
from drone_bridge.session.clients import REFUSED
from drone_bridge.session.continuous_pose import ContinuousPose
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
)
from drone_bridge.telemetry.device import call_gaps
from drone_bridge.telemetry.session.telemetry_reports import TelemetryReports
from drone_bridge.telemetry.units import Units
from drone_bridge.wire.addresses import AllowedPeers, peer_name, same_host
from drone_bridge.wire.counters import faults, problems, rates
from drone_bridge.wire.events import RemoteProtocolError

WAITING, CONNECTED, SILENT, CLOSED = "waiting for a peer", "connected", "no telemetry", "closed"
# Counters.
LOST_COMMANDS, LOST_ROVERS = problems("undelivered_commands", "undelivered_rover_documents")
(BAD_IMAGES,), (UNANSWERED,) = faults("undecodable_images"), problems("unanswered_calls")
DOCUMENTS, ROVER_DOCUMENTS, LATE, IMAGES = rates("documents", "rover_documents", "late_documents", "images")
#: Time for which a drone that was not called must have sent telemetry to be trusted, s: a forged datagram has not.
PROVEN_S = 2.0
#: Duration of a landing without telemetry beyond that by the last height, s.
_LANDING_MARGIN_S = 10.0
_BOTH_CALL = "If the simulation sends first, set role: listen."
_BOTH_LISTEN = "Waiting for telemetry. If the simulation waits, too, set role: connect, with its host and port."


@dataclass(slots=True)
class TelemetryControllerParameters:
    """Parameters of the session."""

    rate: float = parameter(25.0, "Commands per second.", 1.0, 500.0, live=True)
    telemetry_timeout: float = parameter(
        1.0,
        "Timeout of telemetry, s. Over UDP, the bridge then commands a silent drone to hover, repeats that every 2 s, "
        "and accepts another one. It may have to land: `limits.land_without_odometry`.",
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
        self._pilot, self._units, self._sinking = pilot, units, units.command(sinking)
        self._parameters, self._allowed = parameters, allowed_peers
        self._by_topics, self._called = by_topics, called
        self._reports = TelemetryReports(pilot, feedback, units, pose)
        self._drone: Any = None  # destination of commands
        self._height: float | None = None  # last reported height of the drone in flight, m; None on the ground
        self._is_trusted = False  # whether it gets commands while it is silent
        self._newest = HOVER  # last command
        self._final_left = 0  # neutral commands left to send at once
        self._gaps, self._call_at = call_gaps(), math.inf  # until the next calls, and time of the next one

    # The link.

    def opened(self, now_s: float) -> Actions:
        """Call the drone, or listen."""
        if self._by_topics:
            return self._begin(COMMAND_TOPIC, COMMAND_TOPIC, now_s) if self.state == WAITING else []
        if not self._called:
            return [Note("", _BOTH_LISTEN, is_expected=True)] if self.state == WAITING else []
        self._drone = self._called()
        self.peer = peer_name(self._drone)
        if self.state == CONNECTED:
            return []
        self._gaps = call_gaps()
        return self._call(now_s)

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a document from a datagram's source or a topic, and publish it."""
        is_topics = source in (DRONE_TOPIC, ROVER_TOPIC)
        name = source if is_topics else peer_name(source)
        if refusal := "" if is_topics else self._refusal(source):
            return [_refused(name, refusal)]
        is_drones = source in (self._drone, DRONE_TOPIC) or (self._called is not None and source != ROVER_TOPIC)
        try:
            event = self._reports.decode(data, source, is_drones=is_drones)
        except RemoteProtocolError as error:
            return [Note(REJECTED, f"A document from {name} was refused: {error}")]
        if isinstance(event, LateTelemetry):
            return [Note(LATE)]
        if isinstance(event, RoverTelemetry):
            return [*(self._forwarded(data) if source == ROVER_TOPIC else []), Publish(event)]
        actions: list[Action] = []
        if self._called and self.state == WAITING:
            actions += self._begin(self._drone, self.peer, now_s)
        elif not is_drones:
            if self.state == CONNECTED or self._awaits_landing(now_s):
                condition = "connected" if self.state == CONNECTED else "silent, and has to land"
                return [_refused(name, f"{self.peer} is {condition}, and only one peer is served.")]
            self._reports.replace_drone()
            actions += self._begin(source, name, now_s)
        actions += self._received(event, now_s)
        if problem := event.camera.problem:
            actions.append(Note(BAD_IMAGES, f"{problem} The rest of its document was published."))
        return sends_first([Publish(event), *actions])

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Log that the port of the called drone is closed."""
        is_not_up_yet = self.received_s is None
        said = f"{sentence} Retrying." + (f" {_BOTH_CALL}" if is_not_up_yet else "")
        return [Note(REFUSED_DATAGRAMS, said, is_expected=is_not_up_yet, is_ongoing=True)]

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
        return LastWords((ControllerConnection().send(HOVER),), to=self._drone)

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that hover was sent."""
        self._newest = HOVER
        return []

    # Time.

    def tick(self, now_s: float) -> Actions:
        """Send the command that is due, call the drone, or detect its silence."""
        if now_s < self.due_s:
            return []
        silences: Actions = []
        if self.state == CONNECTED and self.silent_s(now_s) > self._parameters.telemetry_timeout:
            silences = self._lose_telemetry()
        if self.state == CONNECTED or (self._by_topics and self.state == SILENT):
            self.due_s = next_due(self.due_s, 1 / self._parameters.rate, now_s)
            return [*self._steered(now_s), *silences]
        if self._must_land(now_s):
            self._final_left, self.due_s = FINAL_REPEATS, now_s + 1 / self._parameters.rate
            sentence = f"{self.peer} is silent: it is commanded to land."
            return [*self._sent(self._sinking), Note("landing_commands", sentence, is_ongoing=True), *silences]
        if self._final_left:
            return [*self._final(now_s), *silences]
        actions: Actions = []
        if now_s >= self._call_at:
            actions = self._call(now_s)
            if self.state == WAITING:
                sentence = f"No telemetry from {self.peer} yet. {_BOTH_CALL}"
                actions = [*actions, Note(UNANSWERED, sentence, is_ongoing=True, is_usual_at_start=True)]
        self._set_due(now_s)
        return actions

    def landing(self, now_s: float) -> Landing:
        if self._by_topics or self.state != SILENT:
            return super().landing(now_s)
        if self._height is None:
            return Landing.GROUNDED
        return Landing.LANDS if self._is_trusted and now_s < self._landed_at else Landing.SILENT

    def _steered(self, now_s: float) -> Actions:
        """Send what the pilot decides."""
        shares = self._pilot.shares(now_s)
        if shares is None:
            return [*self._sent(HOVER), Note("hover_commands")]
        return [*self._sent(self._units.command(shares)), *self._pilot.notes]

    def _lose_telemetry(self) -> Actions:
        """Change to the silent state. Over UDP, the last commands follow."""
        self.state = SILENT
        self._reports.restart_drone()
        after = "Still sending commands."
        if not self._by_topics:
            after = "Commanded the drone to hover."
            self._final_left, self._gaps = FINAL_REPEATS, call_gaps()
        sentence = f"No telemetry was received for {self._parameters.telemetry_timeout:g} s. {after}"
        return [Note("silences", sentence if self.received_s is not None else "")]

    def _must_land(self, now_s: float) -> bool:
        is_required = self.state == SILENT and self._pilot.arbiter.rank(now_s) is Rank.LANDING
        return is_required and self.landing(now_s) is Landing.LANDS

    def _awaits_landing(self, now_s: float) -> bool:
        """Return whether a silent drone is being landed, or will be."""
        is_pending = self.state == SILENT and self._pilot.arbiter.limits.land_at < math.inf
        return self._must_land(now_s) or (is_pending and self.landing(now_s) is Landing.LANDS)

    @property
    def _landed_at(self) -> float:
        """Time at which a landing without telemetry ends, s."""
        limits, height = self._pilot.arbiter.limits, self._height or 0.0
        return limits.land_at + min(height / LANDING_SPEED + _LANDING_MARGIN_S, LONGEST_LANDING_S)

    def _set_due(self, now_s: float) -> None:
        """Set the time of the next call, or of a landing, which hold and helm may delay."""
        self.due_s = self._call_at
        if self.state == SILENT and now_s < self._landed_at:
            landing_at = max(self._pilot.arbiter.limits.land_at, now_s + 1 / self._parameters.rate)
            self.due_s = min(self.due_s, landing_at)

    # The drone.

    def _refusal(self, source: Any) -> str:
        """Return why documents of a source are refused; empty if they are accepted."""
        if not self._allowed.allows(source[0]):
            return "it is not in allowed_peers."
        if self._called and not same_host(source, self._drone):
            return f"the drone is {self.peer}, and documents from other hosts are not accepted."
        return ""

    def _begin(self, drone: Any, name: str, now_s: float) -> Actions:
        """Start commanding a drone, with the neutral command first."""
        self._reports.greeted()
        self._pilot.restart(now_s)
        self._drone, self.peer, self._final_left = drone, name, 0
        self.state, self.is_open = CONNECTED, True
        self.since_s, self.due_s = now_s, now_s + 1 / self._parameters.rate
        return [Note(CONNECTIONS, f"Connected to {name}.", is_expected=True), *self._sent(HOVER)]

    def _received(self, telemetry: DroneTelemetry, now_s: float) -> Actions:
        """Pass the drone's telemetry on, and end a silence."""
        actions = self._reports.measured(telemetry, now_s)
        self.received_s = now_s
        self._height = None if telemetry.landed else telemetry.altimeter.altitude
        self._is_trusted = self._called is not None or now_s - (self.since_s or now_s) >= PROVEN_S
        if self.state == SILENT:
            self.state, self._final_left = CONNECTED, 0
            self.due_s = min(self.due_s, now_s)
            actions = [*actions, Note("", f"Receiving telemetry from {self.peer}.", is_expected=True)]
        return actions

    # Sending.

    def _call(self, now_s: float) -> Actions:
        """Send the neutral command to a drone that does not send."""
        self.due_s = self._call_at = now_s + next(self._gaps)
        return self._sent(HOVER)

    def _final(self, now_s: float) -> Actions:
        """Send one of the last commands, and schedule the others."""
        self._final_left -= 1
        self.due_s = now_s + FINAL_GAP_S if self._final_left else math.inf
        if self.state == SILENT and not self._final_left:
            self._call_at = now_s + next(self._gaps) if self._is_trusted else math.inf
            self._set_due(now_s)
        self.is_over = self.state == CLOSED and not self._final_left
        return self._sent(HOVER)

    def _sent(self, command: DroneCommand) -> Actions:
        notes: list[Action] = []
        document = encode(ControllerConnection().send, command, HOVER, notes)
        assert document  # hover can always be encoded
        self._newest = command
        return [*notes, Send(document, self._drone, LOST_COMMANDS, ("sent_commands",))]

    def _forwarded(self, document: bytes | str) -> Actions:
        """Forward a rover's document to the drone, whose simulation may follow that rover, and may wait for it."""
        if self._by_topics or self._drone is None or not (self._called or self.state == CONNECTED):
            return []
        return [Send(document.encode() if isinstance(document, str) else document, self._drone, LOST_ROVERS)]


def _refused(name: str, reason: str) -> Note:
    return Note(REFUSED, f"{name} was refused: {reason}", is_ongoing=True)
