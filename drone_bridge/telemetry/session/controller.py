# SPDX-License-Identifier: Apache-2.0
"""ControllerSession: what the controller says to the drone, and when, for telemetry_bridge. Pure.

Theory of operation, by the document "Communication Protocol (GPS-Denied)" and by what real drones do:

The drone talks first: its telemetry says where it is to be commanded. From then on it gets a command `rate` times per
second, the neutral one first; without commands from ROS it is flown to a stop by its feedback (see TiltPilot). The
document has no timeout, so a drone keeps its last command for ever: the neutral one is sent last, FINAL_REPEATS times.

| state | what is sent | ends |
|---|---|---|
| WAITING | nothing | TALKING, by telemetry |
| TALKING | a command, at `rate` | SILENT, after `telemetry_timeout` without telemetry |
| SILENT | the neutral command FINAL_REPEATS times, then nothing | TALKING, by telemetry of the drone; of another one \
only after `takeover_timeout` |
| CLOSED, by `end` | the neutral command FINAL_REPEATS times | |

The source of a datagram may be forged: so nothing is sent that nobody asks for any more, and a drone that talks is not
replaced by another sender. Documents on topics have no such source: TALKING begins with the link, and commands go on
while the drone is SILENT.

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
from drone_bridge.wire.addresses import AllowedPeers, peer_name
from drone_bridge.wire.events import NEED_DATA, RemoteProtocolError

WAITING, TALKING, SILENT, CLOSED = "waiting for a peer", "talking", "no telemetry", "closed"
# Counters.
LOST_COMMANDS, LOST_ROVERS = "undelivered_commands", "undelivered_rover_documents"
BAD_IMAGES = "undecodable_images"
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
    ) -> None:
        """Prepare to talk.

        Args:
            pilot: which decides how the drone is steered.
            to_command: makes a command of shares, with the signs of the wire.
            parameter: returns the present value of `rate`, `telemetry_timeout` and `takeover_timeout`.
            allowed_peers: who may be the drone.
            by_topics: whether documents come and go on topics.
        """
        self.state = WAITING
        self._pilot, self._to_command = pilot, to_command
        self._parameter, self._allowed = parameter, allowed_peers
        self._by_topics = by_topics
        self._drone: Any = None  # where it is commanded
        self._final_left = 0  # neutral commands that are to be sent before nothing is
        # Timestamps are the sender's own: of the drone, of other senders to the same port, of the rover's topic.
        self._from_drone, self._from_others, self._from_rover = (ControllerConnection() for _ in range(3))

    def opened(self, now_s: float) -> Actions:
        return self._begin(COMMAND_TOPIC, COMMAND_TOPIC, now_s) if self._by_topics and self.state == WAITING else []

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a document, of a datagram's source or of a topic."""
        name = source if source in _SENDERS else peer_name(source)
        if source not in _SENDERS and not self._allowed.allows(source[0]):
            return [_refusal(name, "it is not in allowed_peers.")]
        is_drones = source in (self._drone, DRONE_TOPIC)
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
            return [Publish(event), *(self._relayed(data) if source == ROVER_TOPIC else [])]
        problem = event.camera.problem
        noted = [Note(BAD_IMAGES, f"{problem} The rest of its document was published.")] if problem else []
        if not is_drones:
            return [*self._adopted(event, source, name, now_s), *noted]
        return [Publish(event), *self._heard(now_s), *noted]

    def tick(self, now_s: float) -> Actions:
        """Send the command that is due, or find that the drone is silent."""
        if now_s < self.due_s:
            return []
        if self._final_left:
            return self._final(now_s)
        silences: list[Action] = []
        timeout_s = self._parameter("telemetry_timeout")
        if self.state == TALKING and self.silent_s(now_s) > timeout_s:
            self.state = SILENT
            self._from_drone = ControllerConnection()  # it may have been restarted, so none of its timestamps are late
            after = "Commands are still sent."
            if not self._by_topics:
                after = "The drone was commanded to hover, and gets no commands until it is heard."
                self._final_left = FINAL_REPEATS
            sentence = f"No telemetry was received for {timeout_s:g} s. {after}"
            silences.append(Note("silences", sentence if self.heard_s is not None else ""))
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
        return [*begun, Publish(telemetry), *self._heard(now_s), *takeovers]

    def _begin(self, drone: Any, name: str, now_s: float) -> Actions:
        """Command a drone from now on, the neutral command first."""
        self._pilot.restart(now_s)
        self._drone, self.peer, self._final_left = drone, name, 0
        self.state, self.is_open = TALKING, True
        self.since_s = now_s
        self.due_s = now_s + 1 / self._parameter("rate")
        return [Note("connections", f"Talking to {name}.", is_expected=True), *self._sent(HOVER)]

    def _heard(self, now_s: float) -> Actions:
        """Note that the drone talks."""
        self.heard_s = now_s
        if self.state != SILENT:
            return []
        self.state, self._final_left = TALKING, 0
        self.due_s = min(self.due_s, now_s)
        return [Note("", f"{self.peer} is heard again.", is_expected=True)]

    # What is sent.

    def _final(self, now_s: float) -> Actions:
        """Send one of the last commands, and have the others follow."""
        self._final_left -= 1
        self.due_s = now_s + FINAL_GAP_S if self._final_left else math.inf
        self.is_over = self.state == CLOSED and not self._final_left
        return self._sent(HOVER)

    def _sent(self, command: DroneCommand) -> Actions:
        notes: list[Action] = []
        document = encode(self._from_drone.send, command, HOVER, notes)
        assert document  # hover can always be encoded
        return [*notes, Send(document, self._drone, LOST_COMMANDS, ("sent_commands",))]

    def _relayed(self, document: bytes | str) -> Actions:
        """Send a rover's document on to the drone."""
        if self._by_topics or self._drone is None:
            return []
        if self.state != TALKING:
            return [Note(LOST_ROVERS)]
        return [Send(document.encode() if isinstance(document, str) else document, self._drone, LOST_ROVERS)]


def _refusal(name: str, reason: str) -> Note:
    return Note("refused_peers", f"{name} was refused: {reason}", is_ongoing=True)
