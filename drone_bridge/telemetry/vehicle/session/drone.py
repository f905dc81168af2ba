# SPDX-License-Identifier: Apache-2.0
"""TelemetryDroneSession: state machine of a drone that sends documents to its operator and follows its commands. Pure.

Theory of operation, by the document "Communication Protocol (GPS-Denied)":

The drone sends a document when its state is updated, at most `rate` per second, one of IMAGE_EVERY with an image. A
calling drone sends them to its operator's port, with or without replies. A waiting drone, as the simulation of the
document's own project, sends them to the last operator that has sent it a command or a rover's document, until that
operator has been silent for TAKEOVER_S.

The operator's commands arrive at any time. Each is followed immediately and repeated. `command_timeout` after the last
one, the neutral command follows, once.

| state | ends |
|---|---|
| WAITING, also when the link is lost | CONNECTED, by a link, or for a waiting drone, by an operator |
| CONNECTED | WAITING, when a waiting drone's operator is silent |
| CLOSED, by `end` | |

Right after a stall of this process no command but the neutral one is followed, because it may be stale.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from drone_bridge.parameter_fields import parameter
from drone_bridge.session.clients import REFUSED
from drone_bridge.session.node_parameters import NodeParameters
from drone_bridge.session.operator_command import OperatorCommand
from drone_bridge.session.session import (
    AFTER_STALLS,
    CONNECTIONS,
    MAY_HAVE_WAITED,
    REJECTED,
    Action,
    Actions,
    Note,
    Publish,
    Send,
    Session,
    encode,
)
from drone_bridge.telemetry.codec import (
    DRONE_TOPIC,
    HOVER,
    IMAGE_EVERY,
    PERIOD_S,
    ROVER_EVERY,
    ROVER_TOPIC,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)
from drone_bridge.telemetry.device import TAKEOVER_S, Audience
from drone_bridge.wire.addresses import AllowedPeers, peer_name, same_host
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.rate_limit import RateLimit

WAITING, CONNECTED, CLOSED = "waiting for a peer", "connected", "closed"
#: Rate at which a command is published while it is in force, Hz.
REPEAT_RATE = 20.0
# Counters.
UNSENT, TOO_LARGE = problems("unsent_documents", "images_too_large")
DOCUMENTS, ROVER_DOCUMENTS, IMAGES = rates("documents", "rover_documents", "images")
CLAMPED = "clamped_commands"


@dataclass(slots=True)
class TelemetryDroneParameters(NodeParameters):
    """Parameters of the session."""

    rate: float = parameter(1 / PERIOD_S, "Maximum rate of the drone's documents, Hz.", 1.0, 500.0, live=True)


class TelemetryDroneSession(Session):
    """Drone's conversation with one operator."""

    def __init__(
        self,
        operator: str,
        parameters: TelemetryDroneParameters,
        max_document_bytes: float = math.inf,
        *,
        called: Callable[[], Any] | None = None,
        callers: AllowedPeers | None = None,
    ) -> None:
        """Start in the state WAITING.

        Args:
            operator: name of the called operator for logs.
            parameters: those of the node, which may change at any time.
            max_document_bytes: limit of the link; an image that exceeds it is left out.
            called: returns the address of the called operator, once the link is open, over UDP.
            callers: permitted operators of a waiting drone.
        """
        self.state = WAITING
        self.peer = operator if callers is None else ""
        self._parameters, self._max_document_bytes = parameters, max_document_bytes
        self._called, self._callers = called, callers
        self._audience = Audience()
        self._connection = DroneConnection()
        self._command = OperatorCommand(HOVER, lambda: parameters.command_timeout, REPEAT_RATE)
        self._drone_rate, self._rover_rate = RateLimit(), RateLimit()
        # Documents since the last image; the first one may have an image.
        self._since_image: int = IMAGE_EVERY
        self._last_image: bytes | None = None  # a JPEG that was sent, or will not be sent

    def opened(self, now_s: float) -> Actions:
        if self._callers:
            return []
        self.state, self.is_open = CONNECTED, True
        return [Note(CONNECTIONS, f"Connected to {self.peer}.", is_expected=True)]

    # The operator.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a document of the operator, a command or telemetry of a rover, and publish it."""
        name = self.peer
        if self._callers or self._called:
            name = peer_name(source)
            if refusal := self._refusal(source):
                return [Note(REFUSED, f"{name} was refused: {refusal}", is_ongoing=True)]
        if not self._callers or source == self._audience.operator:
            self.received_s = now_s
        self._connection.receive_data(data)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note(REJECTED, f"A document from {name} was refused: {error}")]
        if now_s < self.settled_s and event != HOVER:
            return [Note(AFTER_STALLS, MAY_HAVE_WAITED)]
        begun = self._received(source, name, now_s) if self._callers else []
        self._set_due()
        if isinstance(event, RoverTelemetry):
            return [*begun, Publish(event)]
        assert isinstance(event, DroneCommand)
        actions = [*begun, *self._command.command(event, now_s)]
        self._set_due()
        if event.problem:
            sentence = f"Clamped a command of {name}: {event.problem}."
            actions.append(Note(CLAMPED, sentence, is_ongoing=True))
        return actions

    def _refusal(self, source: Any) -> str:
        """Return why documents of a source are refused; empty if they are accepted."""
        if self._callers and not self._callers.allows(source[0]):
            return "it is not in allowed_peers."
        if self._called and not same_host(source, self._called()):
            return f"the operator is {self.peer}, and documents from other hosts are not accepted."
        return ""

    def _received(self, source: Any, name: str, now_s: float) -> Actions:
        """Adopt a caller as the operator."""
        before, silent_s = self._audience.operator, self._audience.silent_s(now_s)
        self._audience.record(source, now_s)
        self.state, self.is_open, self.peer, self.received_s = CONNECTED, True, name, now_s
        if before is None:
            return [Note(CONNECTIONS, f"Connected to {name}.", is_expected=True)]
        if source == before:
            return []
        sentence = f"{name} has replaced {peer_name(before)}, which was last heard {silent_s:.1f} s ago."
        return [Note("takeovers", sentence, is_ongoing=True)]

    def tick(self, now_s: float) -> Actions:
        """Repeat the operator's command, or end it; detect an operator that is silent."""
        actions = [*self._command.tick(self.peer, now_s), *self._drop_silent_operator(now_s)]
        self._set_due()
        return actions

    def _drop_silent_operator(self, now_s: float) -> Actions:
        """Stop sending to an operator that has been silent for too long."""
        timeout_s = TAKEOVER_S if self._callers else math.inf
        if self._audience.drop_silent(now_s, timeout_s) is None:
            return []
        sentence = f"{self.peer} was silent for {timeout_s:g} s. Sending is suspended until an operator sends."
        self.state, self.is_open, self.peer, self.received_s = WAITING, False, "", None
        return [Note("silences", sentence, is_expected=True)]

    def resume(self, now_s: float) -> Actions:
        """Ignore commands until pending data is read, and end a stale command."""
        super().resume(now_s)
        if self._audience.operator is not None:
            self._audience.record(self._audience.operator, now_s)
        actions = self._command.resume(self.peer, now_s)
        self._set_due()
        return actions

    def lost(self, now_s: float) -> Actions:
        """End the command in force, as the operator is unreachable."""
        self.is_open, self.state = False, WAITING
        self._audience = Audience()
        return self._command.end()

    def end(self, now_s: float) -> Actions:
        self.is_open, self.is_over, self.state = False, True, CLOSED
        return self._command.end()

    # The drone.

    def send(self, telemetry: DroneTelemetry, now_s: float) -> Actions:
        """Send the drone's state if a document is due. Each image is sent once, in a document that may have one."""
        image = telemetry.camera.jpeg
        if self.state != CONNECTED:
            self._last_image = image
            return []
        if not self._drone_rate.is_due(now_s, self._parameters.rate):
            return []
        self._since_image += 1
        notes: list[Action] = []
        if image and image is not self._last_image and self._since_image >= IMAGE_EVERY:
            self._last_image = image
            document = encode(self._connection.send, telemetry, None, notes)
            if document and len(document) <= self._max_document_bytes:
                self._since_image = 0
                return [Send(document, self._to(DRONE_TOPIC), UNSENT, ("documents", "images"))]
            if document:
                sentence = f"Dropped an image: its document has {len(document)} bytes, and a datagram holds"
                left_out = f"{sentence} {self._max_document_bytes:.0f}."
                notes.append(Note(TOO_LARGE, left_out, is_ongoing=True))
        without = replace(telemetry, camera=replace(telemetry.camera, jpeg=None))
        document = encode(self._connection.send, without, None, notes)
        return [Send(document, self._to(DRONE_TOPIC), UNSENT, ("documents",)), *notes] if document else notes

    def send_rover(self, rover: RoverTelemetry, now_s: float) -> Actions:
        """Send the rover's state if a document is due."""
        if self.state != CONNECTED or not self._rover_rate.is_due(now_s, self._parameters.rate / ROVER_EVERY):
            return []
        notes: list[Action] = []
        document = encode(RoverConnection().send, rover, None, notes)
        return [Send(document, self._to(ROVER_TOPIC), UNSENT, ("rover_documents",)), *notes] if document else notes

    def _to(self, topic: str) -> Any:
        """Return the destination of a topic's documents: the topic, or the operator of a waiting drone."""
        return self._audience.operator if self._callers else topic

    def _set_due(self) -> None:
        silent_s = self._audience.ends_s(TAKEOVER_S) if self._callers else math.inf
        self.due_s = min(self._command.due_s, math.nextafter(silent_s, math.inf))
