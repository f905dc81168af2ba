# SPDX-License-Identifier: Apache-2.0
"""DroneSession: what the drone says to its operator, and what of the operator's commands is followed. Pure.

Theory of operation, by the document "Communication Protocol (GPS-Denied)":

The drone talks whether or not anybody answers: a document whenever its state is known anew, at most `rate` per second,
one of `image_every` with an image. The operator's commands come when it likes. One is followed at once and repeated;
`command_timeout` after the last one, the neutral command follows, once.

| state | ends |
|---|---|
| WAITING, also when the link is lost | TALKING, when there is a link |
| TALKING | NOBODY_LISTENS, when the operator's machine says that its port is closed |
| NOBODY_LISTENS, in which documents are still sent | TALKING, by a command, or REFUSAL_HOLDS_S after the last refusal |
| CLOSED, by `end` | |

Right after this process stood still no command is followed, as it may have waited meanwhile.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from drone_bridge.session.operator_command import OperatorCommand
from drone_bridge.session.session import (
    AFTER_STALLS,
    MAY_HAVE_WAITED,
    SETTLING_S,
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
    ROVER_EVERY,
    ROVER_TOPIC,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.rate_limit import RateLimit

WAITING, TALKING, NOBODY_LISTENS, CLOSED = "waiting for a peer", "talking", "nobody listens", "closed"
_LINKED = (TALKING, NOBODY_LISTENS)
#: For how long a refusal holds; some machines say so once a second at most.
REFUSAL_HOLDS_S = 2.0
#: How often a command is published while it is in force, Hz.
REPEAT_RATE = 20.0
# Counters.
UNHEARD, UNSENT, TOO_LARGE = "undelivered_documents", "unsent_documents", "images_too_large"
CLAMPED = "clamped_commands"


class DroneSession(Session):
    """A drone's conversation with one operator."""

    def __init__(self, operator: str, parameter: Callable[[str], Any], max_document_bytes: float = math.inf) -> None:
        """Begin.

        Args:
            operator: its name for logs.
            parameter: returns the present value of `rate`, `command_timeout` and `image_every`.
            max_document_bytes: what the link can carry; an image that makes more is left out.
        """
        self.state, self.peer = WAITING, operator
        self._parameter, self._max_document_bytes = parameter, max_document_bytes
        self._connection = DroneConnection()
        self._command = OperatorCommand(HOVER, lambda: parameter("command_timeout"), REPEAT_RATE)
        self._drone_rate, self._rover_rate = RateLimit(), RateLimit()
        self._since_image: int = parameter("image_every")  # documents; the first one may have an image
        self._last_image: bytes | None = None  # a JPEG that was sent, or will not be
        self._refused_until_s = -math.inf
        self._settled_s = -math.inf

    def opened(self, now_s: float) -> Actions:
        self.state = TALKING
        self._look(now_s)
        return [Note("connections", f"Talking to {self.peer}.", is_expected=True)]

    # The operator.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a document of the operator: a command, or telemetry of a rover."""
        self.heard_s = now_s
        self._connection.receive_data(data)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A document from {self.peer} was refused: {error}")]
        if now_s < self._settled_s:
            return [Note(AFTER_STALLS, MAY_HAVE_WAITED)]
        self._refused_until_s = -math.inf
        self._look(now_s)
        if isinstance(event, RoverTelemetry):
            return [Publish(event)]
        assert isinstance(event, DroneCommand)
        actions = [*self._command.command(event, now_s)]
        self._set_due()
        if event.problem:
            sentence = f"A command of {self.peer} is taken as the nearest that there is: {event.problem}."
            actions.append(Note(CLAMPED, sentence, is_ongoing=True))
        return actions

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Take that the operator's port is closed; documents are still sent."""
        is_new = self.state != NOBODY_LISTENS
        self._refused_until_s = now_s + REFUSAL_HOLDS_S
        self._look(now_s)
        is_not_up_yet = self.heard_s is None
        return [Note(UNHEARD, f"{sentence} Documents are still sent." if is_new else "", is_expected=is_not_up_yet)]

    def tick(self, now_s: float) -> Actions:
        """Repeat the operator's command, or end it."""
        self._look(now_s)
        actions = self._command.tick(self.peer, now_s)
        self._set_due()
        return actions

    def resume(self, now_s: float) -> Actions:
        """Follow no command until what waited is read, and end one that has got too old."""
        self._settled_s = now_s + SETTLING_S
        if self.heard_s is not None:
            self.heard_s = now_s
        actions = self._command.resume(self.peer, now_s)
        self._set_due()
        return actions

    def lost(self, now_s: float) -> Actions:
        """End the command in force, as nobody knows what the operator wants now."""
        self.is_open, self.state = False, WAITING
        return self._command.end()

    def end(self, now_s: float) -> Actions:
        self.is_open, self.is_over, self.state = False, True, CLOSED
        return self._command.end()

    # The drone.

    def send(self, telemetry: DroneTelemetry, now_s: float) -> Actions:
        """Send the drone's state, if a document is due; its image goes once, with a document that may have one."""
        image = telemetry.camera.jpeg
        if self.state not in _LINKED:
            self._last_image = image
            return []
        if not self._drone_rate.is_due(now_s, self._parameter("rate")):
            return []
        self._since_image += 1
        notes: list[Action] = []
        if image and image is not self._last_image and self._since_image >= self._parameter("image_every"):
            self._last_image = image
            document = encode(self._connection.send, telemetry, None, notes)
            if document and len(document) <= self._max_document_bytes:
                self._since_image = 0
                return [Send(document, DRONE_TOPIC, UNSENT, ("documents", "images"))]
            if document:
                sentence = f"An image makes a document of {len(document)} bytes, and a datagram holds"
                left_out = f"{sentence} {self._max_document_bytes:.0f}: it was left out."
                notes.append(Note(TOO_LARGE, left_out, is_ongoing=True))
        without = replace(telemetry, camera=replace(telemetry.camera, jpeg=None))
        document = encode(self._connection.send, without, None, notes)
        return [Send(document, DRONE_TOPIC, UNSENT, ("documents",)), *notes] if document else notes

    def send_rover(self, rover: RoverTelemetry, now_s: float) -> Actions:
        """Send the rover's state, if a document is due."""
        if self.state not in _LINKED or not self._rover_rate.is_due(now_s, self._parameter("rate") / ROVER_EVERY):
            return []
        notes: list[Action] = []
        document = encode(RoverConnection().send, rover, None, notes)
        return [Send(document, ROVER_TOPIC, UNSENT, ("rover_documents",)), *notes] if document else notes

    def _look(self, now_s: float) -> None:
        """Say that an operator is gone, and not that it is connected but silent."""
        if self.state in _LINKED:
            self.is_open = now_s >= self._refused_until_s
            self.state = TALKING if self.is_open else NOBODY_LISTENS
        self._set_due()

    def _set_due(self) -> None:
        self.due_s = min(self._command.due_s, self._refused_until_s if self.state == NOBODY_LISTENS else math.inf)
