# SPDX-License-Identifier: Apache-2.0
"""DroneGuiControllerSession: state machine of a controller of the GUI, with take-off and landing. Pure.

Theory of operation, by the document "Network control protocol" and by real GUIs:

The GUI does not acknowledge packets and has no timeout: the last packet stays in force forever. So packets are sent at
`rate`, numbered from 1, without feedback: the newest command while it is valid, otherwise hover. Packet 1 is sent
`first_packet_copies` times, because a GUI that misses it ignores later ones.

| state | sends | ends |
|---|---|---|
| WAITING, also when the link is lost | hover FINAL_REPEATS times, all buttons released, when it is lost | SENDING, \
by a link |
| SENDING, its first HOVER_PACKETS | hover, and buttons | |
| SENDING | the pilot's command, else hover, and buttons | |
| CLOSED, by `end` | hover FINAL_REPEATS times, all buttons released; before it, an emergency's press of less than \
PACKETS_PER_LEVEL packets once more | |

Navdata is accepted only from the GUI's host, and reports whether the drone flies; see `session.flight_watch` for how
long that is known. take_off is a toggle, and the button reset has two effects: so neither is pressed if it could mean
the opposite of the request. Each direction has two names for the two effects of reset:

| request | the drone flies | unknown | on the ground, by navdata or assume_flying |
|---|---|---|---|
| here: emergency, an event: cut the motors now | pressed | pressed | pressed |
| here: reset, which restarts communication | refused, names emergency | refused, names emergency | pressed |
| in `session.gui`: reset of a client that has been heard for START_S | calls emergency | calls emergency | calls \
reset |
| in `session.gui`: reset of a client that has just started | withheld once, then calls emergency | likewise | calls \
reset |

An emergency ignores hold and navdata. It is pressed unless EMERGENCY_AGE_S have passed since the request. After that,
the caller has to decide again. All current emergencies share one press. A press of reset that began for another request
is released first, so that the emergency has its own edge.

Other requests go through these steps. Each step ends with its event, its timeout, or when sending stops, and each may
refuse the request, with a sentence:

| step | takeoff | land | reset |
|---|---|---|---|
| requested | refused while take_off is down, or during another takeoff or an emergency | refused while take_off \
is down | refused during a takeoff |
| waits for navdata, for `navdata_timeout` | always | always | always |
| then | refused if it is stale, the drone may fly, its motors are off, or its battery would make it land | \
done if the drone is landing; refused if it may be on the ground, or if the request is stale and there is no navdata | \
refused if it is stale, or the drone may fly |
| presses reset | without navdata, if assume_flying says that it is on the ground | | |
| waits for navdata, for BOOTSTRAP_S; then as before | after that | | |
| presses | take_off | take_off | reset |
| waits for the requested state, for `confirm_timeout` | with navdata | with navdata | |

If a limit requires a landing, land is requested every LAND_PERIOD_S until it succeeds. Without navdata that is only if
a person has stated that the drone flies (assume_flying), as the button would start a drone on the ground.

- A request is stale if this process was stalled, or the link was lost or opened, since it was made. A press that had
not begun by then is cancelled, as is that of a takeoff on hold. One that had begun is completed and released.
Emergencies have their own limit of age.
- If a press has begun and the link is lost before its release, its effect is unknown. Navdata from before the next link
does not count then.
- If the drone does not follow, see `session.follow_watch`, or does not land when it should, another controller may have
sent higher numbers. Then packet 1 is sent again, once, with hover or with the requested landing, and only hover
follows until a person calls hover with false, or holds and resumes: that controller may be a safety pilot's. A takeoff
that is not confirmed also sends packet 1 again, for the next one.
- If the GUI's port is closed, packets are still sent, so that a GUI that is started later hovers. The current press is
cancelled, unless the refusal may concern an earlier packet.
"""

import contextlib
import math
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.ar_drone.navdata_parameters import NavdataParameters
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import (
    DEFAULT_NAVDATA_PORT,
    FIRST_SEQ,
    NEED_DATA,
    ControllerConnection,
    Controls,
    Demo,
    FlightState,
    Navdata,
    VisionDetect,
)
from drone_bridge.dronegui.session.buttons import Buttons, Press
from drone_bridge.dronegui.session.flight_watch import FlightWatch, FlyingSource
from drone_bridge.dronegui.session.follow_watch import FOLLOWING, FollowWatch
from drone_bridge.dronegui.session.procedures import Part, Procedure, Procedures, Until
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.continuous_pose import ContinuousPose, continued
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.session import (
    CONNECTIONS,
    EMERGENCY,
    FINAL_GAP_S,
    FINAL_REPEATS,
    LAND,
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
    too_old,
)
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.wire.addresses import peer_name
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

WAITING, SENDING, CLOSED = "waiting for a peer", "sending", "closed"
#: Further requests.
TAKE_OFF, RESET = "takeoff", "reset"
#: Timeout of navdata after a press of reset that requests them.
BOOTSTRAP_S = 3.0
#: Command that is always safe and unambiguous: no button but hover.
HOVER = Controls(hover=True)
#: Interval between requests of a landing that a limit requires, s.
LAND_PERIOD_S = 1.0
#: Hover packets at the start, because UDP may lose some.
HOVER_PACKETS = 3
# Counters.
UNHEARD, FOREIGN_NAVDATA, OVERRULED = problems("undelivered_packets", "refused_navdata", "overruled_flights")
PACKETS, NAVDATA, DETECTIONS = rates("packets", "navdata", "detections")
#: Minimum time for which a drone visible in navdata may deviate from its command, s.
OVERRULED_S = 3.0
#: Time after a refusal for which the GUI's port is considered closed, s.
REFUSED_S = 1.0
#: States of a drone that was commanded to take off, and of one that was commanded to land.
TAKEN_OFF = frozenset(state for state in FlightState if state.is_airborne and state is not FlightState.LANDING)
LANDING_OR_LANDED = frozenset({FlightState.LANDING, FlightState.LANDED, FlightState.INIT})

#: Effects of a press if the drone's state is not as believed.
HARM_ON_GROUND = "the button take_off would make a landed drone fly"
HARM_IN_THE_AIR = "the button take_off would land a flying drone"
HARM_OF_RESET = "the button reset would stop the motors of a flying drone"
STALLED = "The request is stale: the bridge was stalled meanwhile. Please call again."
LINK_CHANGED = "The request is stale: the link was lost or opened meanwhile. Please call again."
HELD_SINCE = "The vehicle was put on hold meanwhile. Resume it, and call again."
CUT_SINCE = "emergency was called meanwhile. Call again if the drone should fly."
STEER_AGAIN = "To steer again, call hover with false, or hold the vehicle and resume it."
CUTS = "To stop the motors of a drone in the air, call emergency."
LANDS_ALREADY = "The drone is already landing."
CALL_AGAIN = "If its motors still run, call emergency again."
NOT_SENDING = "because nothing is being sent. Activate the bridge, and check its GUI's host."


@dataclass(slots=True)
class SentPacket:
    """Packet that is sent."""

    seq: int
    controls: Controls
    is_out: bool = True
    """Whether it was sent, as far as known right after the attempt."""


@dataclass(frozen=True, slots=True)
class _SendPacket(Send):
    """Bytes of a packet, or of a copy."""

    packet: SentPacket | None = None


class NavdataBlock(NamedTuple):
    """Block of navdata."""

    block: Navdata
    datagram: bytes
    source: str


@dataclass(slots=True, eq=False)
class _OwnLanding:
    """Landing without a request: the vehicle has to land."""

    asked_s: float
    name: str = LAND


@dataclass(slots=True)
class DroneGuiControllerParameters(NavdataParameters):
    """Parameters of the session."""

    rate: float = parameter(20.0, "Control packets per second.", 2.0, 200.0, live=True)
    press_time: float = parameter(0.5, "Time for which a service holds its button down, s.", 0.05, 5.0, live=True)
    first_packet_copies: int = parameter(
        1, "Copies of packet 1. If it is lost, a receiver that has seen higher numbers ignores later packets.", 1, 10
    )
    navdata_port: int = parameter(DEFAULT_NAVDATA_PORT, "Local port to which the GUI sends navdata.", 1, 65535)
    bootstrap: bool = parameter(
        True,
        "Press reset before the first take-off if no navdata arrives and a person has confirmed by assume_flying that "
        "the drone is on the ground. A GUI requests navdata only then, and never lands the drone without it.",
        live=True,
    )
    confirm_timeout: float = parameter(
        5.0, "Time after a press within which navdata must confirm a take-off or landing, s.", 0.1, 60.0, live=True
    )


class DroneGuiControllerSession(Session):
    """Controller's conversation with one GUI."""

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
        self._pilot, self._feedback, self._parameters = pilot, feedback, parameters
        self._watch = FlightWatch(lambda: parameters.navdata_timeout)
        self._following = FollowWatch()
        self._is_overruled = self._was_held = False
        self._refused: tuple[str, float] | None = None  # last refusal, and its time
        self._is_hover_held = is_hover_held
        self._gui_host, self._port_problem, self._pose = gui_host, port_problem, pose
        self._connection = ControllerConnection()
        self._buttons = Buttons()
        self._procedures = Procedures(self._answer)
        self._hover_left = HOVER_PACKETS
        self._packet_s = math.inf  # time of the next packet
        self._land_s = -math.inf  # earliest time at which limits may request a landing
        self._final_left = 0
        self._stalled_s = -math.inf
        self._cut_s = -math.inf  # time of the last request of an emergency
        self._published: bool | None = None  # published state of flight
        self._effects: list[Action] = []  # of the current event
        self._newest = HOVER  # controls in the last packet
        # Number after the newest last words, and the emergency's press in them.
        self._worded: tuple[int, Press | None] = FIRST_SEQ, None
        #: Problems with navdata, with the drone, and with other controllers, as clauses, empty if there is none. They
        #: are those of the last turn: another thread may read them before this session has detected a stall.
        self.problems = "", "", ""

    # The link.

    def opened(self, now_s: float) -> Actions:
        """Start with hover, in case an earlier bridge left the drone moving."""
        self._watch.resume(now_s)
        if self._pose:
            self._pose.greeted()
        self.state, self.is_open = SENDING, True
        self._hover_left, self._packet_s = HOVER_PACKETS, now_s
        self._pilot.restart(now_s)
        self._effects = [Note(CONNECTIONS, f"Sending to {self.peer}.", is_expected=True)]
        self._send_packet(now_s)
        if self._watch.is_flying(now_s) is None and not self._receives_navdata:
            self._effects.append(Note("", f"It is unknown whether the drone flies: {self.advice}.", is_expected=True))
        return self._taken(now_s)

    def tick(self, now_s: float) -> Actions:
        """Send the packet that is due, and continue requests."""
        if now_s < self.due_s:
            return []
        if self._final_left:
            return self._final(now_s)
        if now_s >= self._packet_s:
            self._send_packet(now_s)
            self._land_if_it_has_to(now_s)
        return self._taken(now_s)

    def resume(self, now_s: float) -> Actions:
        """Restart the timeouts, and cancel presses that have not begun."""
        super().resume(now_s)
        self._stalled_s = now_s
        self._watch.resume(now_s)
        self._following.restart()
        for press in self._buttons:
            press.outdate(STALLED, now_s)
        self._procedures.extend(now_s + self._parameters.navdata_timeout)
        return self._taken(now_s)

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Report that the GUI's port is closed, and cancel presses."""
        if self.state != SENDING:
            return []  # it may have closed before us
        self._refused = sentence, now_s
        for press in self._buttons:
            press.refuse()
        self._effects.append(
            Note(UNHEARD, f"{sentence} Still sending packets.", is_ongoing=True, is_usual_at_start=True)
        )
        if self._watch.refused(now_s):
            self._effects.append(Note("", f"It is no longer known whether the drone flies: {self.advice}."))
        return self._taken(now_s)

    def undeliverable(self, now_s: float) -> str | None:
        """Return why no packet reaches a GUI, as a sentence, or None. Thread-safe."""
        refused = self._refused
        return refused[0] if refused and now_s - refused[1] <= REFUSED_S else None

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Cancel presses whose packet was not sent, unless they may still begin."""
        assert isinstance(action, _SendPacket)
        assert action.packet
        action.packet.is_out = False
        self._buttons.unsent()
        for press in self._buttons:
            if now_s > press.begins_until_s:
                press.give_up(at_once=False)
        if action.packet.seq == FIRST_SEQ:
            # Else a GUI that has seen higher numbers would ignore the following packets.
            self._connection.begin_again()
        return [*self._taken(now_s), Note(action.if_lost, sentence)]

    def landing(self, now_s: float) -> Landing:
        is_flying = self._watch.is_flying(now_s)
        if is_flying is None and self.is_open:
            return Landing.UNKNOWN_FLIGHT
        return Landing.GROUNDED if is_flying is False else super().landing(now_s)

    def lost(self, now_s: float) -> Actions:
        """Leave the drone hovering with all buttons released, and reply to pending requests."""
        self.state, self.is_open, self._packet_s = WAITING, False, math.inf
        self._give_up_presses()
        for _ in range(FINAL_REPEATS):
            self._send_packet(now_s)
        return self._taken(now_s)

    def end(self, now_s: float) -> Actions:
        """Leave the drone hovering with all buttons released."""
        had_link = self.is_open
        self.state, self.is_open, self._packet_s = CLOSED, False, math.inf
        cutting = self._cutting if had_link else None
        for press in self._buttons:
            if press is not cutting:
                press.give_up(at_once=not had_link)
        self.is_over = not had_link
        if not had_link:
            return self._taken(now_s)
        self._final_left = FINAL_REPEATS + bool(cutting)
        return self._final(now_s)

    def last_words(self) -> LastWords | None:
        """Return hover with all buttons released, after an emergency's press if its packets may be lost."""
        if self._newest == HOVER:
            return None
        cutting = self._cutting
        press = [_with_buttons(HOVER, frozenset({"reset"}))] if cutting else []
        words = self._connection.peek(*press, HOVER)
        self._worded = self._connection.next_seq + len(words), cutting
        return LastWords(words)

    def neutral_sent(self, now_s: float) -> Actions:
        """Skip the numbers of the last words, so that the next packet is not late. All buttons are released."""
        next_seq, cutting = self._worded
        if self._connection.next_seq != FIRST_SEQ:  # which is never late
            self._connection.skip(max(0, next_seq - self._connection.next_seq))
        self._newest = HOVER
        for press in self._buttons:
            if press is cutting:
                press.pressed_elsewhere(now_s)
            elif press.was_sent:
                press.give_up(at_once=False)
        return []

    @property
    def _cutting(self) -> Press | None:
        """Press of an emergency whose packets may be lost, if any."""
        press = self._emergency_press
        return press if press and press.may_be_lost else None

    def _final(self, now_s: float) -> Actions:
        """Send one of the last packets, and schedule the others."""
        self._final_left -= 1
        self._send_packet(now_s)
        if cutting := self._emergency_press:
            cutting.give_up(at_once=False)
        if not self._final_left:
            self._give_up_presses()
            self.is_over = True
        actions = self._taken(now_s)
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        return actions

    def _give_up_presses(self) -> None:
        for press in self._buttons:
            press.give_up(at_once=True)

    # Packets.

    def _send_packet(self, now_s: float) -> None:
        """Send the command with the pressed buttons, and publish the packet."""
        self._packet_s = next_due(self._packet_s, 1 / self._parameters.rate, now_s) if self.is_open else math.inf
        is_held = self._pilot.arbiter.is_held(now_s)
        for press in self._buttons.of(TAKE_OFF) if is_held else ():  # if it has not begun
            press.outdate(HELD_SINCE, now_s)
        self._is_overruled &= is_held or not self._was_held  # a person has resumed it
        self._was_held = is_held
        down = self._buttons.down(now_s)
        is_steered = self.is_open and not self._hover_left and not self._is_overruled
        command = self._commanded(now_s) if is_steered else HOVER
        self._hover_left = max(0, self._hover_left - 1)
        pressed, neutral = _with_buttons(command, down), _with_buttons(HOVER, down)
        seq = self._connection.next_seq
        sent = encoded(lambda each: (each, self._connection.send(each)), pressed, neutral, self._note_unencodable)
        assert sent  # hover can always be encoded
        controls, datagram = sent
        copies = self._parameters.first_packet_copies if seq == FIRST_SEQ else 1
        packet, self._newest = SentPacket(seq, controls), controls
        self._effects += [_SendPacket(datagram, None, UNHEARD, packet=packet) for _ in range(copies - 1)]
        self._effects += [_SendPacket(datagram, None, UNHEARD, ("packets",), packet=packet), Publish(packet)]
        self._buttons.sent(down, now_s)
        self._following.sent(controls, now_s)

    def _commanded(self, now_s: float) -> Controls:
        """Return the controls without pressed buttons."""
        shares = self._pilot.shares(now_s, is_overruled=self._is_hover_held())
        self._effects += self._pilot.notes
        if shares is None:
            self._effects.append(Note("hover_packets"))
            return HOVER
        return units.controls(shares)

    def _note_unencodable(self, sentence: str) -> None:
        self._effects.append(Note(UNENCODABLE, sentence))

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
            self._publish_flying(self._watch.is_flying(now_s))
            self._following.shown(block.flight_state, now_s)
            if self._following.is_overruled(max(self._parameters.confirm_timeout, OVERRULED_S)):
                self._begin_again("The drone does not follow commands, by its navdata", now_s)
        self._effects.append(Publish(NavdataBlock(block, data, name)))
        return self._taken(now_s)

    def _begin_again(self, why: str, now_s: float) -> None:
        """Make the GUI accept our packets again, and only hover until a person decides."""
        self._connection.begin_again()
        self._following.restart()
        self._is_overruled, self._packet_s = True, now_s
        self._effects.append(
            Note(OVERRULED, f"{why}: {self._other_controller}. Restarted from packet 1. {STEER_AGAIN}")
        )

    def steer_again(self, now_s: float) -> Actions:
        """Follow commands again: a person knows about the other controller."""
        self._is_overruled = False
        return self._taken(now_s)

    @property
    def _other_controller(self) -> str:
        port = self.peer.rpartition(":")[2]
        return (
            f"another controller may be sending higher numbers, perhaps a safety pilot's. Check with "
            f"'tcpdump -n udp port {port}' on the GUI's machine"
        )

    def _publish_flying(self, is_flying: bool | None) -> None:
        if is_flying is not None and is_flying != self._published:
            self._published = is_flying
            self._effects.append(Publish(FlyingReport(is_flying)))

    @property
    def _receives_navdata(self) -> bool:
        return self._port_problem is not None

    # Requests.

    def ask(self, request: Request, now_s: float) -> Actions:
        """Take off, land, reset, or cut the motors; the Outcome follows now or later."""
        try:
            self._begin(request, now_s)
        except ValueError as error:
            return [_outcome(request, False, str(error))]
        return self._taken(now_s)

    def assume_flying(self, is_flying: bool, request: Request, now_s: float) -> Actions:
        """Accept a person's statement."""
        if reason := self._age_reason(request):
            return [Outcome(request, False, reason)]
        if self._watch.has_drone_state(now_s):
            return [Outcome(request, False, f"There is no need to assume: navdata reports {self._state_name}.")]
        self._assume(is_flying, FlyingSource.PERSON)
        sentence = f"Assuming that the drone {'flies' if is_flying else 'is on the ground'}."
        if self._needs_bootstrap(now_s):
            sentence += " takeoff will press reset, which stops the motors of a flying drone."
        return [*self._taken(now_s), Outcome(request, True, sentence)]

    def _age_reason(self, request: Request) -> str:
        """Return why a request is stale, as a sentence; empty if it is not."""
        if request.asked_s <= self._stalled_s:
            return STALLED
        if request.asked_s <= self._cut_s:
            return CUT_SINCE
        return LINK_CHANGED if request.asked_s <= self.fresh_since_s else ""

    def _land_if_it_has_to(self, now_s: float) -> None:
        """Request a landing that a limit requires. A failed one is repeated later."""
        is_asked = any(isinstance(request, _OwnLanding) for request in self._procedures)
        if is_asked or now_s < self._land_s or self._pilot.arbiter.rank(now_s) is not Rank.LANDING:
            return
        if self._watch.is_flying(now_s) is False:
            return
        self._land_s = now_s + LAND_PERIOD_S
        with contextlib.suppress(ValueError):  # take_off is down
            self._begin(_OwnLanding(now_s), now_s)

    def _begin(self, request: Request, now_s: float) -> None:
        """Start a request. Raises ValueError with a sentence."""
        steps = {TAKE_OFF: self._take_off, LAND: self._land, RESET: self._reset, EMERGENCY: self._cut_motors}
        self._procedures.start(request, steps[request.name](request, now_s))

    def _first_navdata_s(self, now_s: float) -> float:
        """Return the time until which to wait for navdata, which may show that the drone is flying."""
        if self._port_problem is None or self._watch.receives_navdata(now_s):
            return now_s
        return now_s + max(0.0, self._parameters.navdata_timeout - self._watch.listening_s(now_s))

    def _answer(self, request: Request, is_success: bool, sentence: str) -> None:
        self._effects.append(_outcome(request, is_success, sentence))

    @property
    def _emergency_press(self) -> Press | None:
        """Current press that cuts the motors, if any."""
        return next(self._buttons.of(EMERGENCY), None)

    # Requests, each from its first check to its outcome. Raise ValueError with a sentence.

    def _take_off(self, request: Request, now_s: float) -> Procedure:
        self._buttons.check_released("take_off")  # its effect is visible only afterwards
        self._check_not_under_way(TAKE_OFF, EMERGENCY)
        now_s = yield self._navdata_since(now_s, self._first_navdata_s(now_s))
        self._check_take_off(request, now_s)
        if self._needs_bootstrap(now_s):
            self._check_port(now_s)
            press = self._press("reset", request)
            sentence = "There is no navdata: pressing reset, so that the GUI requests it from its drone."
            self._effects.append(Note("", sentence, is_expected=True))
            now_s = yield from self._released(press)
            now_s = yield self._navdata_since(now_s, now_s + (BOOTSTRAP_S if self._receives_navdata else 0.0))
            self._check_take_off(request, now_s)
        pressed_s, was_seen = now_s, self._watch.has_drone_state(now_s)
        now_s = yield from self._released(self._press("take_off", request))
        if not was_seen:
            self._assume(True, FlyingSource.PRESS)
            way_down = ' Choose "Stream Navdata" in the GUI, so that land works.' if self._receives_navdata else ""
            reason = self._blind_reason(now_s)
            return f"take_off was pressed and released. The take-off is not confirmed: {reason}.{way_down}"
        now_s = yield self._shown(TAKEN_OFF, pressed_s)
        if self._watch.state in TAKEN_OFF:
            return "take_off was pressed and released, and the drone takes off."
        advice = ""
        if self._watch.has_drone_state(now_s):
            self._connection.begin_again()
            advice = f" Restarted from packet 1, because {self._other_controller}. Call takeoff again."
        raise ValueError(f"{self._unconfirmed('take off', now_s)}{advice}")

    def _check_take_off(self, request: Request, now_s: float) -> None:
        if reason := self._age_reason(request):
            raise ValueError(reason)
        if self._pilot.arbiter.is_held(now_s):
            raise ValueError(HELD_SINCE)
        self._check_flight(False, HARM_IN_THE_AIR, now_s)
        if self._watch.has_drone_state(now_s) and self._watch.state is FlightState.DEFAULT:
            raise ValueError("The drone's motors are off, as after an emergency: call reset first.")
        if refusal := self._pilot.arbiter.limits.takeoff_refusal:
            raise ValueError(refusal)

    def _check_port(self, now_s: float) -> None:
        """Check that the drone is not in flight with its navdata going to another program: reset would stop it."""
        if self._port_problem and self._port_problem():
            raise ValueError(
                f"It is unknown whether the drone is on the ground: {self._blind_reason(now_s)}. Free that port, or "
                "set receive_navdata to false."
            )

    def _land(self, request: Request, now_s: float) -> Procedure:
        self._buttons.check_released("take_off")  # its effect is visible only afterwards
        now_s = yield self._navdata_since(now_s, self._first_navdata_s(now_s))
        has_drone_state = self._watch.has_drone_state(now_s)
        # Navdata from before the stall or the link does not count.
        if (reason := self._age_reason(request)) and not has_drone_state:
            raise ValueError(reason)
        if has_drone_state and self._watch.state is FlightState.LANDING:
            return LANDS_ALREADY
        self._check_flight(True, HARM_ON_GROUND, now_s)
        has_begun_again = False
        while True:
            pressed_s, was_seen = now_s, self._watch.has_drone_state(now_s)
            now_s = yield from self._released(self._press("take_off", request))
            if not was_seen:
                return self._landed_unseen(now_s)
            now_s = yield self._shown(LANDING_OR_LANDED, pressed_s)
            if self._watch.state in LANDING_OR_LANDED:
                return "take_off was pressed and released, and the drone lands."
            is_seen_flying = self._watch.has_drone_state(now_s) and self._watch.state in FOLLOWING
            if has_begun_again or not is_seen_flying or now_s - pressed_s < OVERRULED_S:
                advice = ' If it still flies, choose "Land" in the GUI.'
                raise ValueError(f"{self._unconfirmed('land', now_s)}{advice}")
            self._begin_again("The drone does not land", now_s)
            has_begun_again = True

    def _landed_unseen(self, now_s: float) -> str:
        unseen = f"take_off was pressed and released. The landing is not confirmed: {self._blind_reason(now_s)}."
        if not self._receives_navdata:
            self._assume(False, FlyingSource.PRESS)
            return unseen
        self._assume(None, FlyingSource.PRESS)
        raise ValueError(
            f'{unseen} If the drone still flies, choose "Land" in the GUI, or "Stream Navdata" and call land again. '
            "If it is on the ground, call assume_flying with false."
        )

    def _reset(self, request: Request, now_s: float) -> Procedure:
        self._check_not_under_way(TAKE_OFF)
        now_s = yield self._navdata_since(now_s, self._first_navdata_s(now_s))
        if reason := self._age_reason(request):
            raise ValueError(reason)
        self._check_flight(False, HARM_OF_RESET, now_s, instead=f" {CUTS}")
        return (yield from self._reset_pressed(self._press("reset", request)))

    def _cut_motors(self, request: Request, now_s: float) -> Procedure:
        """Press reset in any state, or share the press of another emergency."""
        until_s, self._cut_s = self.expires_at(request), now_s
        for each in self._buttons:
            each.outdate(CUT_SINCE, now_s)
        if (press := self._buttons.newest("reset")) and not self._is_under_way(EMERGENCY):
            press.give_up(at_once=False)  # so that the emergency has its own edge
        now_s = yield self._open_until(lambda: self._buttons.newest("reset") in (None, self._emergency_press), until_s)
        if now_s > until_s:
            raise ValueError(too_old(request, now_s))
        if not (press := self._emergency_press):
            press = self._press("reset", request, until_s)
            self._effects.append(Note("", "Cutting the motors: emergency was called."))
        return (yield from self._reset_pressed(press))

    def _reset_pressed(self, press: Press) -> Procedure:
        now_s = yield from self._released(press)
        if self._watch.is_flying(now_s) and not self._watch.has_drone_state(now_s):
            self._assume(None if self._receives_navdata else False, FlyingSource.PRESS)
        return "reset was pressed and released."

    # Parts of requests.

    def _is_under_way(self, name: str) -> bool:
        return any(request.name == name for request in self._procedures)

    def _check_not_under_way(self, *names: str) -> None:
        for name in filter(self._is_under_way, names):
            raise ValueError(f"{name} is in progress.")

    def _open_until(self, holds: Callable[[], bool], until_s: float) -> Until:
        """Wait while packets are sent."""
        return Until(lambda: not self.is_open or holds(), until_s)

    def _navdata_since(self, since_s: float, until_s: float) -> Until:
        return self._open_until(lambda: self._watch.received_s > since_s, until_s)

    def _shown(self, states: Set[FlightState], pressed_s: float) -> Until:
        """Wait for navdata with one of the states, also from before the release."""
        wanted_s = self._parameters.press_time + self._parameters.confirm_timeout
        until_s = max(pressed_s + wanted_s, self._stalled_s + self._parameters.navdata_timeout)
        return self._open_until(lambda: self._watch.state in states, until_s)

    def _press(self, button: str, request: Request, begins_until_s: float = -math.inf) -> Press:
        """Press a button. Raises ValueError with a sentence if that is impossible."""
        if not self.is_open:
            raise ValueError(f"{button} can't be pressed {NOT_SENDING}")
        return self._buttons.press(button, self._parameters.press_time, begins_until_s, request.name)

    def _released(self, press: Press) -> Part:
        """Wait for the end of a press. Raises ValueError with a sentence if it had no effect, or an unknown one."""
        now_s, button = (yield Until(lambda: press.is_over)), press.button
        self._buttons.forget(button)
        if press.was_refused:
            raise ValueError(f"{button} may not have been pressed: the port of {self.peer} is closed.")
        if press.outdated_by:
            raise ValueError(f"{button} was not pressed: {press.outdated_by}")
        if not press.was_sent:
            raise ValueError(f"{button} was not pressed: the link was lost.")
        if button == "reset":
            self._watch.was_reset_pressed = True
        if not press.was_released:
            is_flying = self._watch.is_flying(now_s)
            changes_nothing = is_flying is None or (button == "reset" and not is_flying)
            if not changes_nothing and not self._watch.has_drone_state(now_s):
                self._assume(None, FlyingSource.PRESS)
            raise ValueError(f"{button} was pressed, and then the link was lost.")
        return now_s

    def _unconfirmed(self, effect: str, now_s: float) -> str:
        has_state = self._watch.has_drone_state(now_s)
        reported = f"its navdata reports {self._state_name}." if has_state else "navdata has ended."
        return f"take_off was pressed and released, but the drone does not {effect}: {reported}"

    def _needs_bootstrap(self, now_s: float) -> bool:
        """Return whether a take-off starts by pressing reset, which in the air would stop the motors."""
        watch = self._watch
        if not self._parameters.bootstrap or watch.receives_navdata(now_s) or watch.was_reset_pressed:
            return False
        return watch.source is FlyingSource.PERSON and not watch.is_flying(now_s)

    def _check_flight(self, is_needed: bool, harm: str, now_s: float, instead: str = "") -> None:
        """Raise ValueError with a sentence unless the drone is in the air, or on the ground, as needed."""
        is_flying = self._watch.is_flying(now_s)
        if is_flying is None:
            raise ValueError(f"{self._unknown(now_s)} {harm[0].upper()}{harm[1:]}. {self._advice_sentence}{instead}")
        if is_flying is is_needed:
            return
        place = "flying" if is_flying else "on the ground"
        if self._watch.has_drone_state(now_s):
            raise ValueError(f"The drone is {place}, by its navdata, and {harm}.{instead}")
        otherwise = (
            "it is on the ground, call assume_flying with false"
            if is_flying
            else ("it flies, call assume_flying with true")
        )
        raise ValueError(f"The drone is assumed to be {place}, and {harm}. If {otherwise} first.{instead}")

    def _assume(self, is_flying: bool | None, source: FlyingSource) -> None:
        self._watch.assume(is_flying, source)
        if is_flying is not None:
            self._published = is_flying
            self._effects.append(Publish(FlyingReport(is_flying)))

    # Texts for people.

    def _found_problems(self, now_s: float) -> tuple[str, str, str]:
        watch, navdata, emergency = self._watch, "", ""
        if self.is_open and self._receives_navdata:
            if not watch.receives_navdata(now_s) and watch.listening_s(now_s) > self._parameters.navdata_timeout:
                navdata = self._blind_reason(now_s)
                if watch.is_flying(now_s) is None:
                    navdata += f", so it is unknown whether the drone flies: {self.advice}"
            if watch.has_drone_state(now_s) and watch.state is FlightState.DEFAULT:
                emergency = "the drone's motors are off, as after an emergency. Call reset when it is on the ground"
        other = f"{self._other_controller}. The drone hovers until hover is called with false"
        return navdata, emergency, other if self._is_overruled else ""

    @property
    def advice(self) -> str:
        """Action by which a person can provide the drone's state."""
        look = "look at the drone and call assume_flying"
        return f'choose "Stream Navdata" in the GUI, or {look}' if self._receives_navdata else look

    @property
    def _advice_sentence(self) -> str:
        return f'{self.advice[0].upper()}{self.advice[1:]}. If it flies, "Land" in the GUI lands it.'

    def _unknown(self, now_s: float) -> str:
        gone = "the GUI's port was closed, so it may be another GUI by now, and "
        reason = f"{gone if self._watch.was_gui_gone else ''}{self._blind_reason(now_s)}"
        return f"It is unknown whether the drone flies: {reason}."

    def _blind_reason(self, now_s: float) -> str:
        """Return the reason why the drone's state is unknown."""
        if self._port_problem is None:
            return "receive_navdata is false"
        port = self._parameters.navdata_port
        if self._port_problem():
            return f"port {port} for navdata can't be bound"
        if self._watch.receives_navdata(now_s):
            return "navdata has no known state"
        if self._watch.was_reset_pressed:
            return f"the GUI sends no navdata to port {port}, although reset was pressed"
        return f"the GUI sends no navdata to port {port}"

    @property
    def _state_name(self) -> str:
        state = self._watch.state
        return "nothing" if state is None else str(state)

    def _taken(self, now_s: float) -> Actions:
        """Continue, and return the actions."""
        self._procedures.turn(now_s)
        self.problems = self._found_problems(now_s)
        self.due_s = self._packet_s
        actions, self._effects = self._effects, []
        return actions


def _outcome(request: Request, is_success: bool, sentence: str) -> Action:
    """Return the outcome for its caller; for a landing without a request, a warning unless it is expected."""
    if request.name == EMERGENCY and not is_success:
        sentence = f"{sentence} {CALL_AGAIN}"
    if not isinstance(request, _OwnLanding):
        return Outcome(request, is_success, sentence)
    note = sentence if is_success else f"The vehicle must land, but does not: {sentence}"
    return Note("", note, is_expected=sentence == LANDS_ALREADY)


def _with_buttons(controls: Controls, pressed: frozenset[str]) -> Controls:
    """Return the controls with these buttons pressed, too."""
    buttons: dict[str, Any] = dict.fromkeys(pressed, True)
    return replace(controls, **buttons)
