# SPDX-License-Identifier: Apache-2.0
"""DroneSession: what the drone says to its operator, and what of the operator's commands is followed. Pure.

Theory of operation, by the document "Communication Protocol (GPS-Denied)":

The drone has a document to send whenever its state is known anew, at most `rate` per second, one of `image_every` with
an image. A drone that calls sends them to its operator's port, whether or not anybody answers. One that waits, as the
simulation of the document's own project does, sends them to the newest operator that has sent it a command or a rover's
document, until that has been silent for `takeover_timeout`.

The operator's commands come when it likes. One is followed at once and repeated; `command_timeout` after the last one,
the neutral command follows, once.

| state | ends |
|---|---|
| WAITING, also when the link is lost | TALKING, when there is a link, or for a drone that waits, an operator |
| TALKING | NOBODY_LISTENS, when the operator's machine says that its port is closed; WAITING, when a drone that waits \
has a silent operator |
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
from drone_bridge.telemetry.device import Audience
from drone_bridge.wire.addresses import AllowedPeers, peer_name, same_host
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.rate_limit import RateLimit

WAITING, TALKING, NOBODY_LISTENS, CLOSED = "waiting for a peer", "talking", "nobody listens", "closed"
_LINKED = (TALKING, NOBODY_LISTENS)
#: For how long a refusal holds; some machines say so once a second at most.
REFUSAL_HOLDS_S = 2.0
#: For how long a drone that waits is called by nobody before the other role is suggested.
HINT_S = 5.0
#: How often a command is published while it is in force, Hz.
REPEAT_RATE = 20.0
# Counters.
UNHEARD, UNSENT, TOO_LARGE = "undelivered_documents", "unsent_documents", "images_too_large"
CLAMPED = "clamped_commands"


class DroneSession(Session):
    """A drone's conversation with one operator."""

    def __init__(
        self,
        operator: str,
        parameter: Callable[[str], Any],
        max_document_bytes: float = math.inf,
        *,
        called: Callable[[], Any] | None = None,
        callers: AllowedPeers | None = None,
    ) -> None:
        """Begin.

        Args:
            operator: its name for logs; of one that is waited for, where.
            parameter: returns the present value of `rate`, `command_timeout` and `image_every`, and of
                `takeover_timeout` if operators are waited for.
            max_document_bytes: what the link can carry; an image that makes more is left out.
            called: returns the address of the operator that is called, once the link is open, over UDP.
            callers: who may be the operator, if one is waited for.
        """
        self.state = WAITING
        self.peer = operator if callers is None else ""
        self._place = operator
        self._parameter, self._max_document_bytes = parameter, max_document_bytes
        self._called, self._callers = called, callers
        self._audience = Audience()
        self._hint_due_s = math.inf
        self._connection = DroneConnection()
        self._command = OperatorCommand(HOVER, lambda: parameter("command_timeout"), REPEAT_RATE)
        self._drone_rate, self._rover_rate = RateLimit(), RateLimit()
        self._since_image: int = parameter("image_every")  # documents; the first one may have an image
        self._last_image: bytes | None = None  # a JPEG that was sent, or will not be
        self._refused_until_s = -math.inf
        self._settled_s = -math.inf

    def opened(self, now_s: float) -> Actions:
        if self._callers:
            if self.heard_s is None:
                self._hint_due_s = now_s + HINT_S
            self._set_due()
            return []
        self.state = TALKING
        self._look(now_s)
        return [Note("connections", f"Talking to {self.peer}.", is_expected=True)]

    # The operator.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a document of the operator: a command, or telemetry of a rover."""
        name = self.peer
        if self._callers or self._called:
            name = peer_name(source)
            if refusal := self._refusal(source):
                return [Note("refused_peers", f"{name} was refused: {refusal}", is_ongoing=True)]
        if not self._callers or source == self._audience.operator:
            self.heard_s = now_s
        self._connection.receive_data(data)
        try:
            event = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A document from {name} was refused: {error}")]
        if now_s < self._settled_s:
            return [Note(AFTER_STALLS, MAY_HAVE_WAITED)]
        self._refused_until_s = -math.inf
        begun = self._heard(source, name, now_s) if self._callers else []
        self._look(now_s)
        if isinstance(event, RoverTelemetry):
            return [*begun, Publish(event)]
        assert isinstance(event, DroneCommand)
        actions = [*begun, *self._command.command(event, now_s)]
        self._set_due()
        if event.problem:
            sentence = f"A command of {name} is taken as the nearest that there is: {event.problem}."
            actions.append(Note(CLAMPED, sentence, is_ongoing=True))
        return actions

    def _refusal(self, source: Any) -> str:
        """Return why documents of a source are not taken, empty if they are."""
        if self._callers and not self._callers.allows(source[0]):
            return "it is not in allowed_peers."
        if self._called and not same_host(source, self._called()):
            return f"{self.peer} is the operator, and only that host is listened to."
        return ""

    def _heard(self, source: Any, name: str, now_s: float) -> Actions:
        """Have a caller that has spoken be the operator from now on."""
        before, silent_s = self._audience.operator, self._audience.silent_s(now_s)
        self._audience.hear(source, now_s)
        self.state, self.peer, self.heard_s, self._hint_due_s = TALKING, name, now_s, math.inf
        if before is None:
            return [Note("connections", f"Talking to {name}.", is_expected=True)]
        if source == before:
            return []
        if same_host(source, before):
            sentence = f"The operator at {source[0]} sends from changing ports: telemetry goes to the newest one."
        else:
            sentence = f"{name} has taken the place of {peer_name(before)}, which spoke {silent_s:.1f} s ago."
        return [Note("takeovers", sentence, is_ongoing=True)]

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Take that the operator's port is closed; documents are still sent."""
        is_new = self.state != NOBODY_LISTENS
        self._refused_until_s = now_s + REFUSAL_HOLDS_S
        self._look(now_s)
        is_not_up_yet = self.heard_s is None
        hint = " A program that sends first itself needs role: listen here." if is_not_up_yet else ""
        said = f"{sentence} Documents are still sent.{hint}" if is_new else ""
        return [Note(UNHEARD, said, is_expected=is_not_up_yet)]

    def tick(self, now_s: float) -> Actions:
        """Repeat the operator's command, or end it; note an operator that is silent, or that never came."""
        self._look(now_s)
        actions = [*self._command.tick(self.peer, now_s), *self._end_of_audience(now_s)]
        if now_s >= self._hint_due_s:
            self._hint_due_s = math.inf
            sentence = f"Nobody has sent anything to {self._place} for {HINT_S:g} s. A program that waits for telemetry"
            actions.append(Note("", f"{sentence} instead needs role: connect here, with its host and port."))
        self._set_due()
        return actions

    def _end_of_audience(self, now_s: float) -> Actions:
        """Send nothing more to an operator that has been silent for too long."""
        timeout_s = self._parameter("takeover_timeout") if self._callers else math.inf
        if self._audience.look(now_s, timeout_s) is None:
            return []
        sentence = f"{self.peer} was silent for {timeout_s:g} s: it is sent nothing more until it speaks."
        self.state, self.is_open, self.peer, self.heard_s = WAITING, False, "", None
        return [Note("silences", sentence, is_expected=True)]

    def resume(self, now_s: float) -> Actions:
        """Follow no command until what waited is read, and end one that has got too old."""
        self._settled_s = now_s + SETTLING_S
        if self.heard_s is not None:
            self.heard_s = now_s
        if self._audience.operator is not None:
            self._audience.hear(self._audience.operator, now_s)
        actions = self._command.resume(self.peer, now_s)
        self._set_due()
        return actions

    def lost(self, now_s: float) -> Actions:
        """End the command in force, as nobody knows what the operator wants now."""
        self.is_open, self.state = False, WAITING
        self._audience = Audience()
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
                return [Send(document, self._to(DRONE_TOPIC), UNSENT, ("documents", "images"))]
            if document:
                sentence = f"An image makes a document of {len(document)} bytes, and a datagram holds"
                left_out = f"{sentence} {self._max_document_bytes:.0f}: it was left out."
                notes.append(Note(TOO_LARGE, left_out, is_ongoing=True))
        without = replace(telemetry, camera=replace(telemetry.camera, jpeg=None))
        document = encode(self._connection.send, without, None, notes)
        return [Send(document, self._to(DRONE_TOPIC), UNSENT, ("documents",)), *notes] if document else notes

    def send_rover(self, rover: RoverTelemetry, now_s: float) -> Actions:
        """Send the rover's state, if a document is due."""
        if self.state not in _LINKED or not self._rover_rate.is_due(now_s, self._parameter("rate") / ROVER_EVERY):
            return []
        notes: list[Action] = []
        document = encode(RoverConnection().send, rover, None, notes)
        return [Send(document, self._to(ROVER_TOPIC), UNSENT, ("rover_documents",)), *notes] if document else notes

    def _look(self, now_s: float) -> None:
        """Say that an operator is gone, and not that it is connected but silent."""
        if self.state in _LINKED:
            self.is_open = now_s >= self._refused_until_s
            self.state = TALKING if self.is_open else NOBODY_LISTENS
        self._set_due()

    def _to(self, topic: str) -> Any:
        """Return where documents of a topic go: the topic, which other links need not have, or the operator."""
        return self._audience.operator if self._callers else topic

    def _set_due(self) -> None:
        refused_s = self._refused_until_s if self.state == NOBODY_LISTENS else math.inf
        silent_s = self._audience.ends_s(self._parameter("takeover_timeout")) if self._callers else math.inf
        self.due_s = min(self._command.due_s, refused_s, math.nextafter(silent_s, math.inf), self._hint_due_s)
