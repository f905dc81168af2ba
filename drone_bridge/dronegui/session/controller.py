# SPDX-License-Identifier: Apache-2.0
"""ControllerSession: what a controller says to the GUI, and when, and how it takes off and lands. Pure.

Theory of operation, by the document "Network control protocol" and by what real GUIs do:

The GUI answers nothing and has no time-out: the last packet stays in force for ever. So packets go out at `rate`, with
numbers from 1, whatever comes back: the newest command while it holds, otherwise hover. Packet 1 is sent
`first_packet_copies` times, as a GUI that misses it ignores what follows.

| state | what is sent | ends |
|---|---|---|
| WAITING, also when the link is lost | hover FINAL_REPEATS times, all buttons released, when it is lost | SENDING, \
by a link |
| SENDING, its first HOVER_PACKETS | hover, and buttons | |
| SENDING | what the pilot flies, hover without that, and buttons | |
| CLOSED, by `end` | hover FINAL_REPEATS times, all buttons released | |

Navdata comes from the GUI's host alone, and says whether the drone flies; see `session.flight_watch` for how long that
is known. take_off is a toggle, and the button reset has two effects: so neither is pressed where it could mean the
opposite of what was requested. Each direction has two names for the two effects of reset:

| requested | the drone flies | unknown | seen, or stated, on the ground |
|---|---|---|---|
| here: emergency, an event: cut the motors now | pressed | pressed | pressed |
| here: reset, which restarts communication | refused, names emergency | refused, names emergency | pressed |
| in `session.gui`: reset of a client that has been heard for START_S | calls emergency | calls emergency | calls \
reset |
| in `session.gui`: reset of a client that has just started | withheld once, then calls emergency | likewise | calls \
reset |

An emergency ignores hold and navdata. It is pressed unless EMERGENCY_AGE_S have passed since it was requested, then its
caller has to decide again. All emergencies that are under way share one press; a press of reset that began for another
request is released first, for the emergency to have an edge of its own.

Other requests go through these steps; each ends by what it waits for, after its time, or when nothing is sent any more,
and each may refuse, with a sentence:

| step | takeoff | land | reset |
|---|---|---|---|
| requested | refused while take_off is down, or another takeoff or an emergency is under way | refused while take_off \
is down | refused while a takeoff is under way |
| LISTENING for navdata, until it was listened for `navdata_timeout` | always | always | always |
| then | refused where it is old, the drone may fly, its motors are off, or its battery would land it | \
done where it is landing; refused where it may be on the ground, or is old and the drone is not seen | \
refused where it is old, or the drone may fly |
| RESETTING: reset is down, then up | where nothing comes, and a person has stated that it is on the ground | | |
| STARTING: for navdata, for `bootstrap_timeout`; then as after LISTENING | after that | | |
| PRESSING | take_off | take_off | reset |
| CONFIRMING: for the state that was requested, for `confirm_timeout` | where the drone is seen | likewise | |

Where the vehicle has to land, by its limits, land is requested every LAND_PERIOD_S, until it is done.

- Old is what was requested before this process stood still, or before the link was lost or opened. A press that had not
  begun by then is given up, as is that of a takeoff when the vehicle is held; one that had begun is completed and
  released. Emergencies have their own age.
- Of a press that has begun and whose release may not get out, as the link is lost, nobody knows what it did. What
  navdata showed before the next link is not seen then.
- Where the drone does not follow, see `session.follow_watch`, or does not land when it is to, another controller may
  have sent higher numbers. Then packet 1 is sent again, once, with hover or with the landing that was requested, and
  nothing but hover follows until a person calls hover with false, or holds and resumes: that controller may be a
  safety pilot's. A takeoff that is not confirmed has packet 1 sent again as well, for the next one.
- Where nobody listens at the GUI's port, packets are still sent, so that a GUI that is started later hovers. The press
  of then is given up, unless the refusal may be that of a packet before it.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from drone_bridge.dronegui.codec import (
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
from drone_bridge.dronegui.session.flight_watch import FlightWatch, Source
from drone_bridge.dronegui.session.follow_watch import FOLLOWING, FollowWatch
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.session.arbiter import Rank
from drone_bridge.session.session import (
    FINAL_GAP_S,
    FINAL_REPEATS,
    Action,
    Actions,
    Note,
    Outcome,
    Publish,
    Send,
    Session,
    next_due,
)
from drone_bridge.session.tilt_pilot import ESTIMATED, ESTIMATES, TiltPilot
from drone_bridge.wire.addresses import peer_name
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE, encoded

WAITING, SENDING, CLOSED = "waiting for a peer", "sending", "closed"
#: What can be requested.
TAKE_OFF, LAND, RESET, EMERGENCY = "takeoff", "land", "reset", "emergency"
#: The command that is always safe, and never wrong: no button but hover.
HOVER = Controls(hover=True)
#: How often a landing is requested that a limit requires.
LAND_PERIOD_S = 1.0
#: Hover packets at the start, as UDP may lose some.
HOVER_PACKETS = 3
# Counters.
UNHEARD, FOREIGN_NAVDATA, OVERRULED = "undelivered_packets", "refused_navdata", "overruled_flights"
#: For how long a drone that navdata shows may do something else than commanded, at least.
OVERRULED_S = 3.0
#: For how long after a refusal nobody listens at the GUI's port.
REFUSED_S = 1.0
#: What a drone that was commanded to take off shows, and one that was commanded to land.
TAKEN_OFF = frozenset(state for state in FlightState if state.is_airborne and state is not FlightState.LANDING)
LANDING_OR_LANDED = frozenset({FlightState.LANDING, FlightState.LANDED, FlightState.INIT})

#: An emergency that was requested longer ago is refused: the person who called it has seen meanwhile what happens.
EMERGENCY_AGE_S = 3.0
#: What a press would do to a drone that is not where it is believed to be.
HARM_ON_GROUND = "The button take_off would make a drone on the ground fly."
STOOD_STILL = "This process has stood still since it was called: call it again."
LINK_CHANGED = "The link was lost or opened since it was called: call it again."
HELD_SINCE = "The vehicle is held since it was called: let it follow commands, and call it again."
CUT_SINCE = "emergency was called since: call it again if the drone is to fly."
STEER_AGAIN = "To steer again, call hover with false, or hold the vehicle and resume it."
CUTS = "To stop the motors of a drone in the air, call emergency."
CALL_AGAIN = "If its motors still run, call emergency again."
NOT_SENDING = "while nothing is sent: the bridge has to be active, and to have found its GUI's host."


@dataclass(slots=True)
class SentPacket:
    """A packet that is sent."""

    seq: int
    controls: Controls
    is_out: bool = True
    """Whether it went out, as far as is known when it is published: right after that was tried."""


@dataclass(frozen=True, slots=True)
class _SendPacket(Send):
    """Bytes of a packet, or of a copy."""

    packet: SentPacket | None = None


class Flying(NamedTuple):
    """That the drone flies, or not."""

    is_flying: bool


class Received(NamedTuple):
    """A block of navdata."""

    block: Navdata
    datagram: bytes
    source: str


class Asked(Protocol):
    """A request that somebody waits for."""

    name: str
    asked_s: float


@dataclass(slots=True, eq=False)
class _OwnLanding:
    """A landing without a request: the vehicle has to land."""

    asked_s: float
    name: str = LAND


class Step(Enum):
    """How far a request has got."""

    LISTENING = auto()
    RESETTING = auto()
    STARTING = auto()
    PRESSING = auto()
    CONFIRMING = auto()


@dataclass(slots=True, eq=False)
class _Flight:
    """A request under way."""

    request: Asked
    step: Step
    since_s: float
    """When the step began."""
    until_s: float
    """When it ends at the latest."""
    press: Press | None = None
    was_seen: bool = False
    """Whether navdata showed the drone when the press began."""
    has_begun_again: bool = False
    """Whether this is the press after packets began again."""


class ControllerSession(Session):
    """A controller's conversation with one GUI."""

    def __init__(
        self,
        gui: str,
        parameter: Callable[[str], Any],
        pilot: TiltPilot,
        *,
        to_controls: Callable[[Shares], Controls],
        is_hover_held: Callable[[], bool],
        gui_host: Callable[[], str],
        port_problem: Callable[[], str] | None,
    ) -> None:
        """Begin without a link.

        Args:
            gui: its name for logs.
            parameter: returns present values: `rate`, `press_time`, `first_packet_copies`, `bootstrap`, `navdata_port`,
                `navdata_timeout`, `bootstrap_timeout` and `confirm_timeout`.
            pilot: which decides how the drone is steered.
            to_controls: makes controls of shares, with the signs of the wire.
            is_hover_held: returns whether the drone hovers whatever is commanded.
            gui_host: returns the address that navdata has to come from.
            port_problem: returns why there is no port for navdata, or an empty text; None where none is received.
        """
        self.state, self.peer = WAITING, gui
        self._pilot, self._parameter = pilot, parameter
        self._watch = FlightWatch(lambda: float(parameter("navdata_timeout")))
        self._following = FollowWatch()
        self._is_overruled = self._was_held = False
        self._refused: tuple[str, float] | None = None  # the last refusal, and when
        self._to_controls, self._is_hover_held = to_controls, is_hover_held
        self._gui_host, self._port_problem = gui_host, port_problem
        self._connection = ControllerConnection()
        self._buttons = Buttons()
        self._flights: list[_Flight] = []
        self._hover_left = HOVER_PACKETS
        self._packet_s = math.inf  # when the next one is due
        self._land_s = -math.inf  # when limits may request a landing
        self._final_left = 0
        self._stood_still_s = -math.inf
        self._cut_s = -math.inf  # when an emergency was requested last
        self._published: bool | None = None  # whether it flies
        self._effects: list[Action] = []  # of what is being handled
        #: Problems with navdata, with the drone, and with other controllers, as clauses, empty without one. They are of
        #: the last turn: another thread may read them before this session has found that the process stalled.
        self.problems = "", "", ""

    # The link.

    def opened(self, now_s: float) -> Actions:
        """Begin with hover, as the one before may have left the drone moving."""
        self._watch.resume(now_s)
        self.state, self.is_open = SENDING, True
        self._hover_left, self._packet_s = HOVER_PACKETS, now_s
        self._pilot.restart(now_s)
        self._effects = [Note("connections", f"Sending to {self.peer}.", is_expected=True)]
        self._send_packet(now_s)
        if self._watch.is_flying(now_s) is None and not self._receives_navdata:
            self._effects.append(Note("", f"Whether the drone flies is unknown: {self.advice}.", is_expected=True))
        return self._taken(now_s)

    def tick(self, now_s: float) -> Actions:
        """Send the packet that is due, and go on with what was requested."""
        if now_s < self.due_s:
            return []
        if self._final_left:
            return self._final(now_s)
        if now_s >= self._packet_s:
            self._send_packet(now_s)
            self._land_if_it_has_to(now_s)
        return self._taken(now_s)

    def resume(self, now_s: float) -> Actions:
        """Speak and listen before anybody is judged, and begin no press from before."""
        super().resume(now_s)
        self._stood_still_s = now_s
        self._watch.resume(now_s)
        self._following.restart()
        for press in self._buttons:
            press.outdate(STOOD_STILL, now_s)
        for flight in self._flights:
            flight.until_s = max(flight.until_s, now_s + self._parameter("navdata_timeout"))
        return self._taken(now_s)

    def refused(self, sentence: str, now_s: float) -> Actions:
        """Take that nobody listens at the GUI's port."""
        if self.state != SENDING:
            return []  # it may have closed before us
        self._refused = sentence, now_s
        for press in self._buttons:
            press.refuse()
        self._effects.append(
            Note(UNHEARD, f"{sentence} Packets are still sent.", is_ongoing=True, is_usual_at_start=True)
        )
        if self._watch.refused(now_s):
            self._effects.append(Note("", f"Whether the drone flies is not known any more: {self.advice}."))
        return self._taken(now_s)

    def undeliverable(self, now_s: float) -> str | None:
        """Return why no packet reaches a GUI, in a sentence, or None. For any thread."""
        refused = self._refused
        return refused[0] if refused and now_s - refused[1] <= REFUSED_S else None

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Handle a packet that was not sent: presses are given up, unless they may still begin."""
        assert isinstance(action, _SendPacket)
        assert action.packet
        action.packet.is_out = False
        self._buttons.unsent()
        for press in self._buttons:
            if now_s > press.begins_until_s:
                press.give_up(at_once=False)
        if action.packet.seq == FIRST_SEQ:
            self._connection = ControllerConnection()  # or a GUI that has seen higher numbers ignores what follows
        return [*self._taken(now_s), Note(action.if_lost, sentence)]

    def lost(self, now_s: float) -> Actions:
        """Leave the drone hovering, all buttons released, and answer who waits."""
        self.state, self.is_open, self._packet_s = WAITING, False, math.inf
        self._give_up_presses()
        for _ in range(FINAL_REPEATS):
            self._send_packet(now_s)
        return self._taken(now_s)

    def end(self, now_s: float) -> Actions:
        """Leave the drone hovering, all buttons released."""
        had_link = self.is_open
        self.state, self.is_open, self._packet_s = CLOSED, False, math.inf
        for press in self._buttons:
            press.give_up(at_once=not had_link)
        self.is_over = not had_link
        if not had_link:
            return self._taken(now_s)
        self._final_left = FINAL_REPEATS
        return self._final(now_s)

    def _final(self, now_s: float) -> Actions:
        """Send one of the last packets, and have the others follow."""
        self._final_left -= 1
        self._send_packet(now_s)
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
        """Send what is commanded, with the buttons that are pressed, and say so."""
        self._packet_s = next_due(self._packet_s, 1 / self._parameter("rate"), now_s) if self.is_open else math.inf
        is_held = self._pilot.arbiter.rank(now_s) is Rank.HOLD
        if is_held:
            self._outdate_held(now_s)
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
        copies = self._parameter("first_packet_copies") if seq == FIRST_SEQ else 1
        packet = SentPacket(seq, controls)
        self._effects += [_SendPacket(datagram, None, UNHEARD, packet=packet) for _ in range(copies - 1)]
        self._effects += [_SendPacket(datagram, None, UNHEARD, ("packets",), packet), Publish(packet)]
        self._buttons.sent(down, now_s)
        self._following.sent(controls, now_s)

    def _outdate_held(self, now_s: float) -> None:
        """Cancel a take-off whose press has not begun."""
        for flight in self._flights:
            if flight.press and flight.request.name == TAKE_OFF:
                flight.press.outdate(HELD_SINCE, now_s)

    def _commanded(self, now_s: float) -> Controls:
        """Return the controls, without presses."""
        shares = self._pilot.shares(now_s, is_overruled=self._is_hover_held())
        if self._pilot.is_estimating:
            self._effects.append(Note(ESTIMATED, ESTIMATES, is_ongoing=True))
        if shares is None:
            self._effects.append(Note("hover_packets"))
            return HOVER
        return self._to_controls(shares)

    def _note_unencodable(self, sentence: str) -> None:
        self._effects.append(Note(UNENCODABLE, sentence))

    # Navdata.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        """Take a datagram of navdata."""
        assert isinstance(data, bytes)
        name = peer_name(source)
        if source[0] != self._gui_host():
            sentence = f"Navdata of {name} was refused: the GUI is at {self._gui_host()}."
            return [Note(FOREIGN_NAVDATA, sentence, is_ongoing=True)]
        self._connection.receive_data(data)
        try:
            block = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note("rejected_input", f"A datagram of navdata from {name} was refused: {error}")]
        assert block is not NEED_DATA
        self.heard_s = now_s
        kinds = {Demo: "navdata", VisionDetect: "detections"}
        self._effects.append(Note(kinds.get(type(block), "other_navdata")))
        if isinstance(block, Demo):
            self._watch.note(block.flight_state, now_s)
            self._publish_flying(self._watch.is_flying(now_s))
            self._following.shown(block.flight_state, now_s)
            if self._following.is_overruled(max(self._parameter("confirm_timeout"), OVERRULED_S)):
                self._begin_again("The drone does not follow, by its navdata", now_s)
        self._effects.append(Publish(Received(block, data, name)))
        return self._taken(now_s)

    def _begin_again(self, why: str, now_s: float) -> None:
        """Have the GUI take our packets again, and steer no more until a person decides that."""
        self._connection = ControllerConnection()
        self._following.restart()
        self._is_overruled, self._packet_s = True, now_s
        self._effects.append(
            Note(OVERRULED, f"{why}: {self._other_controller}. Packet 1 was sent again. {STEER_AGAIN}")
        )

    def steer_again(self, now_s: float) -> Actions:
        """Follow commands again: a person knows of the other controller."""
        self._is_overruled = False
        return self._taken(now_s)

    @property
    def _other_controller(self) -> str:
        port = self.peer.rpartition(":")[2]
        return (
            f"another controller may be sending higher numbers, perhaps a safety pilot's; on the GUI's machine, "
            f"'tcpdump -n udp port {port}' shows it"
        )

    def _publish_flying(self, is_flying: bool | None) -> None:
        if is_flying is not None and is_flying != self._published:
            self._published = is_flying
            self._effects.append(Publish(Flying(is_flying)))

    @property
    def _receives_navdata(self) -> bool:
        return self._port_problem is not None

    # Requests.

    def ask(self, request: Asked, now_s: float) -> Actions:
        """Take off, land, reset, or cut the motors; the Outcome comes now or later."""
        try:
            self._begin(request, now_s)
        except ValueError as error:
            return [_outcome(request, False, str(error))]
        return self._taken(now_s)

    def assume_flying(self, is_flying: bool, request: Asked, now_s: float) -> Actions:
        """Take a person's word."""
        if reason := self._age_reason(request):
            return [Outcome(request, False, reason)]
        if self._watch.sees_drone(now_s):
            return [Outcome(request, False, f"Nothing needs to be assumed: navdata says {self._state_name}.")]
        self._assume(is_flying, Source.PERSON)
        sentence = f"The drone is assumed to {'fly' if is_flying else 'be on the ground'}."
        if self._needs_bootstrap(now_s):
            sentence += " takeoff will press reset, which stops the motors of a drone that flies."
        return [*self._taken(now_s), Outcome(request, True, sentence)]

    def _age_reason(self, request: Asked) -> str:
        """Return why a request is old, in a sentence; empty if it is not."""
        if request.asked_s <= self._stood_still_s:
            return STOOD_STILL
        if request.asked_s <= self._cut_s:
            return CUT_SINCE
        return LINK_CHANGED if request.asked_s <= self.fresh_since_s else ""

    def _land_if_it_has_to(self, now_s: float) -> None:
        """Request a landing where a limit requires it; a failed one is requested again a little later."""
        is_asked = any(isinstance(flight.request, _OwnLanding) for flight in self._flights)
        if is_asked or now_s < self._land_s or self._pilot.arbiter.rank(now_s) is not Rank.LANDING:
            return
        if self._watch.is_flying(now_s) is False:
            return
        self._land_s = now_s + LAND_PERIOD_S
        with contextlib.suppress(ValueError):  # take_off is down
            self._begin(_OwnLanding(now_s), now_s)

    def _begin(self, request: Asked, now_s: float) -> None:
        """Begin what is requested. Raises ValueError with a sentence."""
        under_way = {flight.request.name for flight in self._flights}
        until_s = self._first_navdata_s(now_s)
        if request.name == EMERGENCY:
            until_s = request.asked_s + EMERGENCY_AGE_S
            self._cut_s = now_s
            for each in self._buttons:
                each.outdate(CUT_SINCE, now_s)
            if (press := self._buttons.newest("reset")) and EMERGENCY not in under_way:
                press.give_up(at_once=False)
        elif request.name != RESET:
            self._buttons.check_released("take_off")  # what it does shows only afterwards
        for name in {TAKE_OFF: (TAKE_OFF, EMERGENCY), RESET: (TAKE_OFF,)}.get(request.name, ()):
            if name in under_way:
                raise ValueError(f"{name} is under way.")
        self._flights.append(_Flight(request, Step.LISTENING, now_s, until_s))

    def _first_navdata_s(self, now_s: float) -> float:
        """Return until when navdata is waited for, which may show that the drone is flying."""
        if self._port_problem is None or self._watch.hears_gui(now_s):
            return now_s
        timeout_s: float = self._parameter("navdata_timeout")
        return now_s + max(0.0, timeout_s - self._watch.listened_s(now_s))

    def _go_on(self, now_s: float) -> None:
        """Go on with each request whose step has ended."""
        for flight in tuple(self._flights):
            while flight in self._flights and self._has_ended(flight, now_s):
                try:
                    done = _STEPS[flight.step](self, flight, now_s)
                except ValueError as error:
                    self._answer(flight, False, str(error))
                else:
                    if done:
                        self._answer(flight, True, done)

    def _has_ended(self, flight: _Flight, now_s: float) -> bool:
        """Return whether what the step waits for has come, or its time is over."""
        if flight.press and flight.step in (Step.RESETTING, Step.PRESSING):
            return flight.press.is_over
        if now_s >= flight.until_s or not self.is_open:
            return True
        if flight.step is Step.CONFIRMING:
            return self._is_confirmed(flight)
        if flight.request.name == EMERGENCY:
            return self._buttons.newest("reset") in (None, self._emergency_press)
        return self._watch.heard_s > flight.since_s

    def _answer(self, flight: _Flight, is_success: bool, sentence: str) -> None:
        self._flights.remove(flight)
        is_expected = is_success and not flight.press  # it is landing already
        self._effects.append(_outcome(flight.request, is_success, sentence, is_expected=is_expected))

    @property
    def _emergency_press(self) -> Press | None:
        """The press that cuts the motors, where one is under way."""
        presses = (flight.press for flight in self._flights if flight.request.name == EMERGENCY)
        return next(filter(None, presses), None)

    # Each step's end: returns the outcome, or None where another step follows. Raises ValueError with a sentence.

    def _has_listened(self, flight: _Flight, now_s: float) -> str | None:
        if flight.request.name == EMERGENCY:
            self._cut(flight, now_s)
            return None
        reason = self._age_reason(flight.request)
        if flight.request.name == LAND:
            return self._may_land(flight, reason, now_s)
        if reason:
            raise ValueError(reason)
        if flight.request.name == RESET:
            self._check_on_ground(
                "the button reset would stop the motors of a drone that flies", now_s, instead=f" {CUTS}"
            )
            self._press(flight, Step.PRESSING, "reset", now_s)
            return None
        if self._pilot.arbiter.rank(now_s) is Rank.HOLD:
            raise ValueError(HELD_SINCE)
        self._check_on_ground("the button take_off would land a drone that flies", now_s)
        if self._watch.sees_drone(now_s) and self._watch.state is FlightState.DEFAULT:
            raise ValueError("The drone's motors are off, as after an emergency: call reset first.")
        if refusal := self._pilot.arbiter.limits.takeoff_refusal:
            raise ValueError(refusal)
        if flight.step is Step.LISTENING and self._needs_bootstrap(now_s):
            self._bootstrap(flight, now_s)
        else:
            self._press(flight, Step.PRESSING, "take_off", now_s)
        return None

    def _cut(self, flight: _Flight, now_s: float) -> None:
        """Press reset, whatever is known, or share the press of another emergency."""
        until_s = flight.request.asked_s + EMERGENCY_AGE_S
        if now_s > until_s:
            raise ValueError(f"Not cut: the request is {now_s - flight.request.asked_s:.1f} s old.")
        if press := self._emergency_press:
            flight.press, flight.step, flight.since_s = press, Step.PRESSING, now_s
        else:
            self._press(flight, Step.PRESSING, "reset", now_s, begins_until_s=until_s)
            self._effects.append(Note("", "The motors are being cut: emergency was called."))

    def _may_land(self, flight: _Flight, reason: str, now_s: float) -> str | None:
        """Press the button; where the request is old, which has a reason, only if the drone was seen since."""
        sees_drone = self._watch.sees_drone(now_s)
        if reason and not sees_drone:  # which navdata of before the stall or the link does not count for
            raise ValueError(reason)
        if sees_drone and self._watch.state is FlightState.LANDING:
            return "The drone is landing already."
        self._check_in_the_air(now_s)
        self._press(flight, Step.PRESSING, "take_off", now_s)
        return None

    def _bootstrap(self, flight: _Flight, now_s: float) -> None:
        """Make the GUI request navdata from a drone that a person says is on the ground."""
        if self._port_problem and self._port_problem():
            # The drone may fly, and its navdata go to somebody else: reset would then be an emergency stop.
            raise ValueError(
                f"It is unknown whether the drone is on the ground: {self._blind_reason(now_s)}. Free that port, or "
                "set receive_navdata to false."
            )
        sentence = "There is no navdata: reset is pressed, so that the GUI requests it from its drone."
        self._press(flight, Step.RESETTING, "reset", now_s)
        self._effects.append(Note("", sentence, is_expected=True))

    def _press(self, flight: _Flight, step: Step, button: str, now_s: float, begins_until_s: float = -math.inf) -> None:
        """Press a button. Raises ValueError with a sentence if that is impossible."""
        if not self.is_open:
            raise ValueError(f"{button} can't be pressed {NOT_SENDING}")
        flight.press = self._buttons.press(button, self._parameter("press_time"), begins_until_s)
        flight.step, flight.since_s, flight.until_s = step, now_s, math.inf
        flight.was_seen = self._watch.sees_drone(now_s)

    def _check_pressed(self, flight: _Flight, button: str, now_s: float) -> None:
        """Raise ValueError with a sentence if a press that is over came to nothing, or nobody knows to what."""
        press = flight.press
        assert press
        self._buttons.forget(button)
        if press.was_refused:
            raise ValueError(f"{button} may not have been pressed: nobody listens at {self.peer}.")
        if press.outdated_by:
            raise ValueError(f"{button} was not pressed: {press.outdated_by}")
        if not press.was_sent:
            raise ValueError(f"{button} was not pressed: nothing could be sent any more.")
        if button == "reset":
            self._watch.was_reset_pressed = True
        if not press.was_released:
            is_flying = self._watch.is_flying(now_s)
            changes_nothing = is_flying is None or (button == "reset" and not is_flying)
            if not changes_nothing and not self._watch.sees_drone(now_s):
                self._assume(None, Source.PRESS)
            raise ValueError(f"{button} was pressed, and then nothing could be sent any more.")

    def _has_reset(self, flight: _Flight, now_s: float) -> None:
        self._check_pressed(flight, "reset", now_s)
        patience_s = self._parameter("bootstrap_timeout") if self._receives_navdata else 0.0
        flight.step, flight.since_s, flight.until_s = Step.STARTING, now_s, now_s + patience_s

    def _has_pressed(self, flight: _Flight, now_s: float) -> str | None:
        if flight.request.name in (RESET, EMERGENCY):
            self._check_pressed(flight, "reset", now_s)
            if self._watch.is_flying(now_s) and not self._watch.sees_drone(now_s):
                self._assume(None if self._receives_navdata else False, Source.PRESS)
            return "reset was pressed and released."
        self._check_pressed(flight, "take_off", now_s)
        if flight.was_seen:
            flight.step = Step.CONFIRMING  # what has shown since the press began counts
            wanted_s = self._parameter("press_time") + self._parameter("confirm_timeout")
            flight.until_s = max(flight.since_s + wanted_s, self._stood_still_s + self._parameter("navdata_timeout"))
            return None
        reason = self._blind_reason(now_s)
        if flight.request.name == TAKE_OFF:
            self._assume(True, Source.PRESS)
            way_down = ' Choose "Stream Navdata" in the GUI, so that land works.' if self._receives_navdata else ""
            return f"take_off was pressed and released. The take-off is not confirmed: {reason}.{way_down}"
        unseen = f"take_off was pressed and released. The landing is not confirmed: {reason}."
        if not self._receives_navdata:
            self._assume(False, Source.PRESS)
            return unseen
        self._assume(None, Source.PRESS)
        raise ValueError(
            f'{unseen} If the drone still flies, choose "Land" in the GUI, or "Stream Navdata" and call land again. '
            "If it is on the ground, call assume_flying with false."
        )

    def _has_confirmed(self, flight: _Flight, now_s: float) -> str | None:
        is_landing = flight.request.name == LAND
        if self._is_confirmed(flight):
            return f"take_off was pressed and released, and the drone {'lands' if is_landing else 'takes off'}."
        is_seen_flying = self._watch.sees_drone(now_s) and self._watch.state in FOLLOWING
        if is_landing and is_seen_flying and not flight.has_begun_again and now_s - flight.since_s >= OVERRULED_S:
            self._begin_again("The drone does not land", now_s)
            self._press(flight, Step.PRESSING, "take_off", now_s)
            flight.has_begun_again = True
            return None
        reported = f"its navdata says {self._state_name}." if self._watch.sees_drone(now_s) else "navdata has ended."
        outcome = f"the drone does not {'land' if is_landing else 'take off'}: {reported}"
        advice = ' If it still flies, choose "Land" in the GUI.'
        if not is_landing and self._watch.sees_drone(now_s):
            self._connection = ControllerConnection()
            advice = f" Packets begin with 1 again, as {self._other_controller}. Call takeoff again."
        elif not is_landing:
            advice = ""
        raise ValueError(f"take_off was pressed and released, but {outcome}{advice}")

    def _is_confirmed(self, flight: _Flight) -> bool:
        wanted = LANDING_OR_LANDED if flight.request.name == LAND else TAKEN_OFF
        return self._watch.state in wanted  # when the press began it was not

    def _needs_bootstrap(self, now_s: float) -> bool:
        """Return whether a take-off begins by pressing reset, which in the air would stop the motors."""
        watch = self._watch
        if not self._parameter("bootstrap") or watch.hears_gui(now_s) or watch.was_reset_pressed:
            return False
        return watch.source is Source.PERSON and not watch.is_flying(now_s)

    def _check_on_ground(self, harm: str, now_s: float, instead: str = "") -> None:
        """Raise ValueError with a sentence unless the drone is seen, or stated, to be on the ground."""
        is_flying = self._watch.is_flying(now_s)
        if is_flying is None:
            raise ValueError(f"{self._unknown(now_s)} {harm[0].upper()}{harm[1:]}. {self._advice_sentence}{instead}")
        if is_flying and self._watch.sees_drone(now_s):
            raise ValueError(f"The drone flies, as its navdata says, and {harm}.{instead}")
        if is_flying:
            raise ValueError(
                f"The drone is assumed to fly, and {harm}. If it is on the ground, call assume_flying with false "
                f"first.{instead}"
            )

    def _check_in_the_air(self, now_s: float) -> None:
        is_flying = self._watch.is_flying(now_s)
        if is_flying is None:
            raise ValueError(f"{self._unknown(now_s)} {HARM_ON_GROUND} {self._advice_sentence}")
        if not is_flying and self._watch.sees_drone(now_s):
            raise ValueError(
                "The drone is on the ground, as its navdata says, and the take_off button would make it fly."
            )
        if not is_flying:
            raise ValueError(
                "The drone is assumed to be on the ground, and the take_off button would make it fly. If it flies, "
                "call assume_flying with true first."
            )

    def _assume(self, is_flying: bool | None, source: Source) -> None:
        self._watch.assume(is_flying, source)
        if is_flying is not None:
            self._published = is_flying
            self._effects.append(Publish(Flying(is_flying)))

    # What a person reads.

    def _found_problems(self, now_s: float) -> tuple[str, str, str]:
        watch, navdata, emergency = self._watch, "", ""
        if self.is_open and self._receives_navdata:
            if not watch.hears_gui(now_s) and watch.listened_s(now_s) > self._parameter("navdata_timeout"):
                navdata = self._blind_reason(now_s)
                if watch.is_flying(now_s) is None:
                    navdata += f", and whether the drone flies is unknown: {self.advice}"
            if watch.sees_drone(now_s) and watch.state is FlightState.DEFAULT:
                emergency = "the drone's motors are off, as after an emergency: call reset when it is on the ground"
        other = f"{self._other_controller}; the drone hovers until hover is called with false" * self._is_overruled
        return navdata, emergency, other

    @property
    def advice(self) -> str:
        """How a person makes the drone's state known, as a clause."""
        look = "look at the drone and call assume_flying"
        return f'choose "Stream Navdata" in the GUI, or {look}' if self._receives_navdata else look

    @property
    def _advice_sentence(self) -> str:
        return f'{self.advice[0].upper()}{self.advice[1:]}. If it flies, "Land" in the GUI lands it.'

    def _unknown(self, now_s: float) -> str:
        gone = "nobody listened at the GUI's port, so that it may be another GUI by now, and "
        reason = f"{gone if self._watch.was_gui_gone else ''}{self._blind_reason(now_s)}"
        return f"It is not known whether the drone flies: {reason}."

    def _blind_reason(self, now_s: float) -> str:
        """Return why the drone's state is unknown, as a clause."""
        if self._port_problem is None:
            return "receive_navdata is false"
        port = self._parameter("navdata_port")
        if self._port_problem():
            return f"port {port} for navdata can't be listened on"
        if self._watch.hears_gui(now_s):
            return "navdata has no known state"
        if self._watch.was_reset_pressed:
            return f"the GUI sends no navdata to port {port}, although reset was pressed"
        return f"the GUI sends no navdata to port {port}"

    @property
    def _state_name(self) -> str:
        state = self._watch.state
        return "nothing" if state is None else state.name.lower().replace("_", " ")

    def _taken(self, now_s: float) -> Actions:
        """Go on, and return what is to be done."""
        self._go_on(now_s)
        self.problems = self._found_problems(now_s)
        self.due_s = self._packet_s
        actions, self._effects = self._effects, []
        return actions


#: What comes after each step.
_STEPS: dict[Step, Callable[[ControllerSession, _Flight, float], str | None]] = {
    Step.LISTENING: ControllerSession._has_listened,
    Step.RESETTING: ControllerSession._has_reset,
    Step.STARTING: ControllerSession._has_listened,
    Step.PRESSING: ControllerSession._has_pressed,
    Step.CONFIRMING: ControllerSession._has_confirmed,
}


def _outcome(request: Asked, is_success: bool, sentence: str, *, is_expected: bool = False) -> Action:
    """Return the outcome for its caller; of a landing without a request, a warning unless it is expected."""
    if request.name == EMERGENCY and not is_success:
        sentence = f"{sentence} {CALL_AGAIN}"
    if not isinstance(request, _OwnLanding):
        return Outcome(request, is_success, sentence)
    return Note("", sentence if is_success else f"The vehicle has to land, and does not: {sentence}", is_expected)


def _with_buttons(controls: Controls, pressed: frozenset[str]) -> Controls:
    """Return the controls with these buttons also pressed."""
    buttons: dict[str, Any] = dict.fromkeys(pressed, True)
    return replace(controls, **buttons)
