# SPDX-License-Identifier: Apache-2.0
"""ControllerSession: what the controller says to the drone, and when, for telemetry_bridge. Pure.

Theory of operation, by the document "Communication Protocol (GPS-Denied)" and by what real drones do:

Either end may send first. The telemetry of a drone that sends first says where it is to be commanded. One
that waits on a port is called there, as the ROS side of the document's own project does: by the position of the rover
that it follows, else by the neutral command. It answers with telemetry.

From then on it gets a command `rate` times per second, the neutral one first; without commands from ROS it is flown to
a stop by its feedback (see TiltPilot). The document has no timeout, so a drone keeps its last command for ever: the
neutral one is sent last, FINAL_REPEATS times.

| state | listening: what is sent | calling: what is sent | ends |
|---|---|---|---|
| WAITING | nothing | a call, at once, after 0.5 s, 1 s and then every 2 s | TALKING, by telemetry |
| TALKING | a command, at `rate` | the same | SILENT, after `telemetry_timeout` without telemetry |
| SILENT | the neutral command FINAL_REPEATS times, then nothing | the same, then calls | TALKING, by telemetry of the \
drone; when listening, of another one only after `takeover_timeout` |
| CLOSED, by `end` | the neutral command FINAL_REPEATS times | the same | |

The source of a datagram may be forged: so nothing is sent that nobody asks for any more, and a drone that talks is not
replaced by another sender. A drone that is called is the only one: documents of other hosts are refused. It may send
from any port of its host, and is commanded at the one that was called; of a drone that was not called, `sender_ports`
knows whether documents from another port are its own, and it is commanded where it has sent from last.

Documents on topics have no source: TALKING begins with the link, and commands go on while the drone is SILENT.

A rover's telemetry comes from any sender, as nobody is commanded by it. One that comes on the topic is sent on to the
drone, whose simulation may follow that rover.
"""

import math
from collections.abc import Callable
from typing import Any

from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.session import (
    FINAL_GAP_S,
    FINAL_REPEATS,
    REFUSED_DATAGRAMS,
    Action,
    Actions,
    Note,
    Publish,
    Send,
    Session,
    encode,
    next_due,
)
from drone_bridge.session.tilt_pilot import ESTIMATED, ESTIMATES, TiltPilot
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
from drone_bridge.telemetry.device import call_gaps
from drone_bridge.telemetry.session.sender_ports import SenderPorts
from drone_bridge.wire.addresses import AllowedPeers, peer_name, same_host
from drone_bridge.wire.events import NEED_DATA, RemoteProtocolError

WAITING, TALKING, SILENT, CLOSED = "waiting for a peer", "talking", "no telemetry", "closed"
# Counters.
LOST_COMMANDS, LOST_ROVERS = "undelivered_commands", "undelivered_rover_documents"
BAD_IMAGES, UNANSWERED = "undecodable_images", "unanswered_calls"
#: A rover's document that is older than this calls no drone.
ROVER_FRESH_S = 2.0
#: For how long nothing is heard before the other role is suggested.
HINT_S = 5.0
#: Who sends the documents of a topic.
_SENDERS: dict[Any, Sender] = {DRONE_TOPIC: "drone", ROVER_TOPIC: "rover"}


class ControllerSession(Session):
    """A controller's conversation with one drone."""

    def __init__(
        self,
        pilot: TiltPilot,
        to_command: Callable[[Shares], DroneCommand],
        parameter: Callable[[str], Any],
        allowed_peers: AllowedPeers,
        *,
        by_topics: bool = False,
        called: Callable[[], Any] | None = None,
    ) -> None:
        """Prepare to talk.

        Args:
            pilot: which decides how the drone is steered.
            to_command: makes a command of shares, with the signs of the wire.
            parameter: returns the present value of `rate`, `telemetry_timeout` and `takeover_timeout`.
            allowed_peers: who may be the drone.
            by_topics: whether documents come and go on topics.
            called: returns the address of the drone that is called, once the link is open; None to listen.
        """
        self.state = WAITING
        self._pilot, self._to_command = pilot, to_command
        self._parameter, self._allowed = parameter, allowed_peers
        self._by_topics, self._called = by_topics, called
        self._drone: Any = None  # where it is commanded
        self._ports = SenderPorts()
        self._gaps = call_gaps()
        self._rover: tuple[bytes, float] | None = None  # the newest document from the topic, and when it came
        self._opened_s = math.inf
        self._was_refused = self._were_ports_noted = self._was_hinted = False
        self._final_left = 0  # neutral commands that are to be sent before nothing is
        # Timestamps are the sender's own: of the drone, of other senders to the same port, of the rover's topic.
        self._from_drone, self._from_others, self._from_rover = (ControllerConnection() for _ in range(3))

    def opened(self, now_s: float) -> Actions:
        """Begin to listen, or call the drone."""
        if self._by_topics:
            return self._begin(COMMAND_TOPIC, COMMAND_TOPIC, now_s) if self.state == WAITING else []
        self._opened_s = now_s
        if self._called:
            self._drone = self._called()
            self.peer = peer_name(self._drone)
            if self.state != TALKING:
                self._gaps = call_gaps()
                return self._call(now_s)
        elif self.state == WAITING:
            self.due_s = now_s + HINT_S
        return []

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a document, of a datagram's source or of a topic."""
        name = source if source in _SENDERS else peer_name(source)
        if refusal := self._source_refusal(source):
            return [_refusal(name, refusal)]
        is_drones = self._is_drones(source)
        connection = self._from_rover if source == ROVER_TOPIC else self._from_drone if is_drones else self._from_others
        connection.receive_data(data, _SENDERS.get(source))
        try:
            event = connection.next_event()
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A document from {name} was refused: {error}")]
        assert event is not NEED_DATA
        if isinstance(event, LateTelemetry):
            return [Note("late_documents")]
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
                noted.append(Note("", f"{self.peer} sends from {name} now: commands go there.", is_expected=True))
        if source != DRONE_TOPIC:
            noted += self._noted_port(source, name, event.timestamp)
        return [Publish(event), *self._heard(now_s), *noted]

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Take that the called port is closed: said once, until telemetry comes."""
        is_new, self._was_refused = not self._was_refused, True
        is_not_up_yet = self.heard_s is None
        hint = " A simulation that sends first itself needs role: listen here." if is_not_up_yet else ""
        said = f"{sentence} It is called again and again.{hint}" if is_new else ""
        return [Note(REFUSED_DATAGRAMS, said, is_expected=is_not_up_yet)]

    def tick(self, now_s: float) -> Actions:
        """Send the command that is due, call the drone, or find that it is silent."""
        if now_s < self.due_s:
            return []
        if self._final_left:
            return self._final(now_s)
        if self.state != TALKING and not self._by_topics:
            return self._call(now_s) if self._called else self._hinted()
        silences: Actions = []
        if self.state == TALKING and self.silent_s(now_s) > self._parameter("telemetry_timeout"):
            silences = self._lose_telemetry()
        if self._final_left:
            return [*self._final(now_s), *silences]
        self.due_s = next_due(self.due_s, 1 / self._parameter("rate"), now_s)
        shares = self._pilot.shares(now_s)
        if shares is None:
            return [*self._sent(HOVER), Note("hover_commands"), *silences]
        estimates = [Note(ESTIMATED, ESTIMATES, is_ongoing=True)] if self._pilot.is_estimating else []
        return [*self._sent(self._to_command(shares)), *estimates, *silences]

    def resume(self, now_s: float) -> Actions:
        """Listen and speak before the drone is judged: the silence was our own."""
        if self.heard_s is not None:
            self.heard_s = now_s
        if self.since_s is not None:
            self.since_s = now_s
        return []

    def lost(self, now_s: float) -> Actions:
        """Have the drone hover until somebody commands it anew."""
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

    # The drone.

    def _source_refusal(self, source: Any) -> str:
        """Return why documents of a source are not read, empty if they are."""
        if source in _SENDERS:
            return ""
        if not self._allowed.allows(source[0]):
            return "it is not in allowed_peers."
        if self._called and not same_host(source, self._drone):
            return f"{self.peer} is called, and only that host is listened to."
        return ""

    def _is_drones(self, source: Any) -> bool:
        """Return whether telemetry of a source is that of the drone."""
        if source == ROVER_TOPIC:
            return False
        if source in (self._drone, DRONE_TOPIC) or self._called:
            return True
        return self._ports.is_changing and same_host(source, self._drone)

    def _lose_telemetry(self) -> Actions:
        """Begin the drone's silence; over UDP the last commands are due then."""
        self.state = SILENT
        self._from_drone = ControllerConnection()  # it may have been restarted, so none of its timestamps are late
        after = "Commands are still sent."
        if not self._by_topics:
            after = "The drone was commanded to hover, and gets no commands until it is heard."
            self._final_left, self._gaps = FINAL_REPEATS, call_gaps()
        sentence = f"No telemetry was received for {self._parameter('telemetry_timeout'):g} s. {after}"
        return [Note("silences", sentence if self.heard_s is not None else "")]

    def _has_moved(self, telemetry: DroneTelemetry, source: Any, now_s: float) -> bool:
        """Return whether telemetry that came from another port of the drone's host is the drone's."""
        if self._drone is None or not same_host(source, self._drone):
            return False
        return self._ports.is_drones(source[1], telemetry.timestamp, self.silent_s(now_s))

    def _noted_port(self, source: Any, name: str, timestamp: float | None) -> list[Action]:
        """Note where the drone has sent from; return what a person should know of that, once."""
        self._ports.hear(source[1], timestamp)
        sentence = ""
        if self._called:
            if source[1] != self._drone[1]:
                sentence = f"Telemetry comes from {name}, another port than was called: commands go to {self.peer}."
        else:
            self._drone, self.peer = source, name
            if self._ports.is_changing:
                sentence = (
                    f"Each document of {source[0]} comes from another port. All are taken as one drone's, and commands "
                    "go to the newest port: the drone has to receive on the socket that it sends from."
                )
        if not sentence or self._were_ports_noted:
            return []
        self._were_ports_noted = True
        return [Note("", sentence, is_expected=bool(self._called))]

    def _adopted(self, telemetry: DroneTelemetry, source: Any, name: str, now_s: float) -> Actions:
        """Command who has sent telemetry and is not the drone yet, unless there is another drone."""
        silent_s, present, takeovers = self.silent_s(now_s), self.peer, []
        if self._drone is not None:
            allowed_s = self._parameter("takeover_timeout")
            if silent_s <= self._parameter("telemetry_timeout"):
                return [_refusal(name, f"{present} is connected, and only one peer is served.")]
            if silent_s <= allowed_s:
                keeps = f"{present} keeps its place for {allowed_s:g} s of silence (takeover_timeout)"
                return [_refusal(name, f"{keeps}, and has been silent for {silent_s:.1f} s.")]
            sentence = f"{name} takes the place of {present}, which has been silent for {silent_s:.1f} s."
            takeovers = [Note("takeovers", sentence, is_expected=True)]
        self._from_drone, self._from_others = self._from_others, ControllerConnection()
        begun = self._begin(source, name, now_s)
        self._ports.hear(source[1], telemetry.timestamp)
        return [*begun, Publish(telemetry), *self._heard(now_s), *takeovers]

    def _begin(self, drone: Any, name: str, now_s: float) -> Actions:
        """Command a drone from now on, the neutral command first."""
        self._pilot.restart(now_s)
        if self._by_topics or self._drone is None or not same_host(self._drone, drone):
            self._ports, self._were_ports_noted = SenderPorts(), False
        self._drone, self.peer, self._final_left = drone, name, 0
        self.state, self.is_open = TALKING, True
        self.since_s = now_s
        self.due_s = now_s + 1 / self._parameter("rate")
        return [Note("connections", f"Talking to {name}.", is_expected=True), *self._sent(HOVER)]

    def _heard(self, now_s: float) -> Actions:
        """Note that the drone talks."""
        self.heard_s, self._was_refused = now_s, False
        if self.state != SILENT:
            return []
        self.state, self._final_left = TALKING, 0
        self.due_s = min(self.due_s, now_s)
        return [Note("", f"{self.peer} is heard again.", is_expected=True)]

    # What is sent.

    def _call(self, now_s: float) -> Actions:
        """Call the drone, by the rover's newest document, else by the neutral command."""
        self.due_s = now_s + next(self._gaps)
        rover, came_s = self._rover or (b"", -math.inf)
        is_fresh = now_s - came_s <= ROVER_FRESH_S
        called: Actions = [Send(rover, self._drone, LOST_ROVERS)] if is_fresh else self._sent(HOVER)
        if now_s == self._opened_s or self.state == SILENT:
            return called
        hint = ""
        if now_s - self._opened_s >= HINT_S:
            hint = " A simulation that sends first itself needs role: listen here."
        sentence = f"No telemetry from {self.peer} yet.{hint}"
        return [*called, Note(UNANSWERED, sentence, is_ongoing=True, is_usual_at_start=True)]

    def _hinted(self) -> Actions:
        """Say, once, that nobody sends telemetry here."""
        self.due_s = math.inf
        if self._was_hinted:
            return []
        self._was_hinted = True
        sentence = f"No telemetry has come for {HINT_S:g} s. A simulation that waits for the controller needs"
        return [Note("", f"{sentence} role: connect here, with its host and port.")]

    def _final(self, now_s: float) -> Actions:
        """Send one of the last commands, and have the others follow."""
        self._final_left -= 1
        if self._final_left:
            self.due_s = now_s + FINAL_GAP_S
        else:
            self.due_s = now_s + next(self._gaps) if self._called and self.state == SILENT else math.inf
        self.is_over = self.state == CLOSED and not self._final_left
        return self._sent(HOVER)

    def _sent(self, command: DroneCommand) -> Actions:
        notes: list[Action] = []
        document = encode(self._from_drone.send, command, HOVER, notes)
        assert document  # hover can always be encoded
        return [*notes, Send(document, self._drone, LOST_COMMANDS, ("sent_commands",))]

    def _relayed(self, document: bytes | str, now_s: float) -> Actions:
        """Send a rover's document on to the drone; keep it for the next call."""
        if self._by_topics:
            return []
        data = document.encode() if isinstance(document, str) else document
        self._rover = data, now_s
        if self.state != TALKING:
            return [Note(LOST_ROVERS)] if self.state == SILENT else []
        return [Send(data, self._drone, LOST_ROVERS)]


def _refusal(name: str, reason: str) -> Note:
    return Note("refused_peers", f"{name} was refused: {reason}", is_ongoing=True)
