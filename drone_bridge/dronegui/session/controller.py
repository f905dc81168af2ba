# SPDX-License-Identifier: Apache-2.0
"""DroneGuiControllerSession: state machine of a controller of the GUI. Pure.

Theory of operation, by the document "Network control protocol" and by real GUIs:

The GUI does not acknowledge packets and has no timeout: the last packet stays in force forever. So packets are sent at
`rate` without feedback: the command while it is valid, otherwise hover.

| state | sends | ends |
|---|---|---|
| WAITING, also when the link is lost | hover FINAL_REPEATS times, all buttons released, when it is lost | SENDING, \
by a link |
| SENDING | the pilot's command, else hover, and buttons: see `session.requests` | |
| CLOSED, by `end` | as when the link is lost; before it an emergency's press, if it may be lost, once more | |

The GUI ignores numbers below the highest one of any controller, but always takes 1. So what must get through is sent as
number 1, and again as the next number, see `send_urgent`: the first packet on a link, each press, each begin of
hovering, each begin and end of a hold or of `hover`, what follows an unsent packet or last words, and the end.
Otherwise no other controller is fought: it may be a safety pilot's.

Navdata is accepted only from the GUI's host, and reports whether the drone flies: see `session.flight_watch`. If the
GUI's port is closed, packets are still sent, so that a GUI that is started later hovers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import NEED_DATA, ControllerConnection, Controls, Demo, Navdata, VisionDetect
from drone_bridge.dronegui.session.flight_watch import FlightWatch
from drone_bridge.dronegui.session.requests import STALLED, GuiRequests, RequestParameters
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import (
    CONNECTIONS,
    EMERGENCY,
    FINAL_GAP_S,
    FINAL_REPEATS,
    REJECTED,
    Action,
    Actions,
    Landing,
    LastWords,
    Note,
    Outcome,
    Publish,
    Request,
    Send,
    Session,
    next_due,
)
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import peer_name
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

WAITING, SENDING, CLOSED = "waiting for a peer", "sending", "closed"
#: Command that is always safe and unambiguous: no button but hover.
HOVER = Controls(hover=True)
# Counters.
UNHEARD, FOREIGN_NAVDATA = problems("undelivered_packets", "refused_navdata")
PACKETS, NAVDATA, DETECTIONS = rates("packets", "navdata", "detections")
#: Time after a refusal for which the GUI's port is considered closed, s.
REFUSED_S = 1.0
LINK_LOST = "The link was lost, or closed."
NOT_SENDING = "can't be carried out because nothing is being sent. Activate the bridge, and check its GUI's host."


class SentPacket(NamedTuple):
    """Packet that is sent."""

    seq: int
    controls: Controls


class NavdataBlock(NamedTuple):
    """Block of navdata."""

    block: Navdata
    datagram: bytes
    source: str


@dataclass(slots=True)
class DroneGuiControllerParameters(RequestParameters):
    """Parameters of the session."""

    rate: float = parameter(20.0, "Control packets per second.", 2.0, 200.0, live=True)


class DroneGuiControllerSession(Session):
    """Controller's conversation with one GUI."""

    never_stale = ()  # a landing from before a stall may be a take-off after it

    def __init__(
        self,
        gui: str,
        pilot: TiltPilot,
        feedback: Feedback,
        *,
        parameters: DroneGuiControllerParameters,
        is_hover_held: Callable[[], bool],
        gui_host: Callable[[], str],
        port_problem: Callable[[], str] | None,
        pose: ContinuousPose | None = None,
    ) -> None:
        """Start without a link.

        Args:
            gui: name of the GUI for logs.
            pilot: decides how the drone is steered.
            feedback: receives the drone's measurements.
            parameters: those of the node, which may change at any time.
            is_hover_held: returns whether the drone hovers and ignores commands.
            gui_host: returns the only permitted source address of navdata.
            port_problem: returns why there is no port for navdata, or an empty text; None if navdata is disabled.
            pose: the drone's pose in `odom`; None for a client without one.
        """
        self.state, self.peer = WAITING, gui
        self._pilot, self._feedback, self._parameters, self._pose = pilot, feedback, parameters, pose
        self._is_hover_held, self._gui_host = is_hover_held, gui_host
        self._effects: list[Action] = []  # of the current event
        self._connection = ControllerConnection()
        self._watch = FlightWatch(lambda: parameters.navdata_timeout)
        self._requests = GuiRequests(
            pilot.arbiter,
            self._watch,
            parameters,
            port_problem,
            expires_at=self.expires_at,
            do=self._effects.append,
        )
        self._newest = HOVER  # controls in the last packet
        self._is_stopped = False  # whether hover, or a hold, was in force then
        self._is_urgent = False  # whether the next packet must get through
        self._final_left = 0
        self._refused: tuple[str, float] | None = None  # last refusal, and its time
        #: Problems with navdata, and with the drone, as clauses, empty if there is none. They are those of the last
        #: turn: another thread may read them before this session has detected a stall.
        self.problems = "", ""

    # The link.

    def opened(self, now_s: float) -> Actions:
        """Start with hover, in case an earlier bridge left the drone moving."""
        self.state, self.is_open, self.due_s = SENDING, True, now_s
        self._watch.resume(now_s)
        self._pilot.restart(now_s)
        self._is_urgent = True
        self._effects.append(Note(CONNECTIONS, f"Sending to {self.peer}.", is_expected=True))
        self._send_packet(now_s)
        if not self._requests.receives_navdata and self._watch.is_flying(now_s) is None:
            sentence = f"It is unknown whether the drone flies: {self._requests.advice}."
            self._effects.append(Note("", sentence, is_expected=True))
        return self._taken(now_s)

    def tick(self, now_s: float) -> Actions:
        """Send the packet that is due, and continue requests."""
        if now_s < self.due_s:
            return []
        if self._final_left:
            return self._final(now_s)
        self._send_packet(now_s)
        self._requests.land_if_required(now_s)
        return self._taken(now_s)

    def resume(self, now_s: float) -> Actions:
        """Break off presses, and forget what navdata showed."""
        super().resume(now_s)
        self._watch.resume(now_s)
        self._requests.buttons.break_off(STALLED, now_s)
        return self._taken(now_s)

    def neutral_sent(self, now_s: float) -> Actions:
        """Record that all buttons are released, an emergency's after one more press."""
        if self._newest.reset:
            self._requests.buttons.break_off(STALLED, math.inf, "reset")
        self._newest, self._is_urgent = HOVER, True
        return []

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Report that the GUI's port is closed, and break off presses."""
        if self.state != SENDING:
            return []  # it may have closed before us
        self._refused = sentence, now_s
        self._requests.buttons.break_off(sentence, now_s)
        note = Note(UNHEARD, f"{sentence} Still sending packets.", is_ongoing=True, is_usual_at_start=True)
        self._effects.append(note)
        if self._watch.is_flying(now_s) is not None:
            lost = f"It is no longer known whether the drone flies: {self._requests.advice}."
            self._effects.append(Note("", lost))
        self._watch.forget()
        return self._taken(now_s)

    def undeliverable(self, now_s: float) -> str | None:
        """Return why no packet reaches a GUI, as a sentence, or None. Thread-safe."""
        refused = self._refused
        return refused[0] if refused and now_s - refused[1] <= REFUSED_S else None

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Break off presses, and let the next packet get through."""
        self._requests.buttons.break_off(sentence, now_s)
        self._is_urgent = True
        return [*super().unsent(action, sentence, now_s), *self._taken(now_s)]

    def landing(self, now_s: float) -> Landing:
        is_flying = self._watch.is_flying(now_s)
        if is_flying is None and self.is_open:
            return Landing.UNKNOWN_FLIGHT
        return Landing.GROUNDED if is_flying is False else super().landing(now_s)

    def lost(self, now_s: float) -> Actions:
        """Leave the drone hovering with all buttons released, and reply to pending requests."""
        self._close(WAITING)
        for _ in range(FINAL_REPEATS):
            self._send(HOVER, now_s)
        self._requests.end(LINK_LOST, now_s)
        return self._taken(now_s)

    def end(self, now_s: float) -> Actions:
        """Leave the drone hovering with all buttons released."""
        had_link, last = self.is_open, self._last_packets
        self._close(CLOSED)
        self.is_over = not had_link
        if not had_link:
            return []
        for press in last[:-1]:
            self._send(press, now_s)
        self._final_left = FINAL_REPEATS
        return self._final(now_s)

    def last_words(self) -> LastWords | None:
        return None if self._newest == HOVER else LastWords(self._connection.peek_urgent(*self._last_packets))

    @property
    def _last_packets(self) -> tuple[Controls, ...]:
        """Hover with all buttons released, after one more press of an emergency whose packets may be lost."""
        return (replace(HOVER, reset=True), HOVER) if self._requests.may_be_lost else (HOVER,)

    def _close(self, state: str) -> None:
        self.state, self.is_open, self.due_s = state, False, math.inf
        self._requests.buttons.break_off(LINK_LOST, math.inf)

    def _final(self, now_s: float) -> Actions:
        """Send one of the last packets, and schedule the others."""
        self._send(HOVER, now_s)
        self._final_left -= 1
        self.is_over = not self._final_left
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        if self.is_over:
            self._requests.end(LINK_LOST, now_s)
        return self._taken(now_s)

    # Packets.

    def _send_packet(self, now_s: float) -> None:
        """Send the command with the pressed buttons, and publish the packet."""
        self.due_s = next_due(min(self.due_s, now_s), 1 / self._parameters.rate, now_s)
        if is_held := self._pilot.arbiter.is_held(now_s):
            self._requests.hold()
        was_stopped, self._is_stopped = self._is_stopped, self._is_hover_held() or is_held
        self._send(self._commanded(now_s), now_s, is_urgent=self._is_stopped != was_stopped)

    def _send(self, command: Controls, now_s: float, *, is_urgent: bool = False) -> None:
        buttons: dict[str, Any] = dict.fromkeys(self._requests.buttons.down(now_s), True)
        is_press = not all(getattr(self._newest, button) for button in buttons)
        begins_hover = command.hover and not self._newest.hover
        self._is_urgent |= is_urgent or is_press or begins_hover or not self.is_open
        send = self._connection.send_urgent if self._is_urgent else lambda each: (self._connection.send(each),)
        sent = encoded(
            lambda each: (each, send(each)),
            replace(command, **buttons),
            replace(HOVER, **buttons),
            lambda sentence: self._effects.append(Note(UNENCODABLE, sentence)),
        )
        assert sent  # hover can always be encoded
        self._newest, datagrams = sent
        self._is_urgent = False
        self._effects += [Send(each, None, UNHEARD) for each in datagrams[:-1]]
        self._effects.append(Send(datagrams[-1], None, UNHEARD, ("packets",)))
        self._effects.append(Publish(SentPacket(self._connection.next_seq - 1, self._newest)))
        self._requests.buttons.sent(now_s)

    def _commanded(self, now_s: float) -> Controls:
        """Return the controls without pressed buttons."""
        shares = self._pilot.shares(now_s, is_overruled=self._is_hover_held())
        self._effects += self._pilot.notes
        if shares is None:
            self._effects.append(Note("hover_packets"))
            return HOVER
        return units.controls(shares)

    # Navdata.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Decode a datagram of navdata, and publish it."""
        assert isinstance(data, bytes)
        name = peer_name(source)
        if source[0] != self._gui_host():
            sentence = f"Navdata of {name} was refused: the GUI is at {self._gui_host()}."
            return [Note(FOREIGN_NAVDATA, sentence, is_ongoing=True)]
        self._connection.receive_data(data)
        try:
            block = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note(REJECTED, f"A datagram of navdata from {name} was refused: {error}")]
        assert block is not NEED_DATA
        self.received_s = now_s
        kinds = {Demo: NAVDATA, VisionDetect: DETECTIONS}
        self._effects.append(Note(kinds.get(type(block), "other_navdata")))
        if isinstance(block, Demo):
            if self._pose and not self._watch.receives_navdata(now_s):
                self._pose.greeted()  # perhaps another drone, or one with a new battery
            measured, restarted = continued(self._pose, units.measurement(block), now_s)
            self._effects += restarted
            self._feedback.measured(measured, now_s)
            self._watch.note(block.flight_state, now_s)
        self._effects.append(Publish(NavdataBlock(block, data, name)))
        return self._taken(now_s)

    # Requests.

    def ask(self, request: Request, now_s: float) -> Actions:
        """Take off, land, reset, or cut the motors; the Outcome follows now or later."""
        if not self.is_open:
            return [Outcome(request, False, f"{request.name} {NOT_SENDING}")]
        self._requests.ask(request, now_s)
        if request.name == EMERGENCY:
            self._send_packet(now_s)
        return self._taken(now_s)

    def assume_flying(self, is_flying: bool, request: Request, now_s: float) -> Actions:
        """Accept a person's statement."""
        if self._watch.has_drone_state(now_s):
            sentence = f"There is no need to assume: navdata reports {self._watch.state}."
            return [Outcome(request, False, sentence)]
        try:
            self._requests.check_fresh(request, now_s)
        except ValueError as error:
            return [Outcome(request, False, str(error))]
        self._watch.assume(is_flying, is_stated=True)
        sentence = f"Assuming that the drone {'flies' if is_flying else 'is on the ground'}."
        if self._watch.needs_bootstrap(now_s):
            sentence += " takeoff will press reset, which stops the motors of a flying drone."
        return [*self._taken(now_s), Outcome(request, True, sentence)]

    def _found_problems(self, now_s: float) -> tuple[str, str]:
        navdata = emergency = ""
        if self.is_open and self._requests.receives_navdata and self._watch.is_silent(now_s):
            navdata = self._requests.blind_reason(now_s)
            if self._watch.is_flying(now_s) is None:
                navdata += f", so it is unknown whether the drone flies: {self._requests.advice}"
        if self.is_open and self._requests.has_motors_off(now_s):
            emergency = "the drone's motors are off, as after an emergency. Call reset when it is on the ground"
        return navdata, emergency

    def _taken(self, now_s: float) -> Actions:
        """Continue requests, and return the actions."""
        self._requests.turn(now_s)
        if (is_flying := self._watch.changed(now_s)) is not None:
            self._effects.append(Publish(FlyingReport(is_flying)))
        self.problems = self._found_problems(now_s)
        actions = tuple(self._effects)
        self._effects.clear()
        return actions
