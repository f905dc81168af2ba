# SPDX-License-Identifier: Apache-2.0
"""ArdroneClientSession: the session of a client with one AR.Drone, with take-off, landing and emergency. Pure.

| state | begins | sends |
|---|---|---|
| WAITING | at the start, and when the link is lost | hover, when it is lost |
| ASKING | when the link opens, and after `navdata_timeout` without navdata | hover and WatchdogReset at `rate`, the \
wake-up each WAKE_S. No REF: its level could land a drone in the air, or make one on the ground fly | |
| CONNECTED | with navdata | the pilot's command and REF at `rate`, one setting or its acknowledgement, WatchdogReset \
while the drone asks for it |
| CLOSED | at the end | hover FINAL_REPEATS times |

Nothing that the drone receives is acknowledged but settings, so what it reports decides:

- **Level** (the bit to fly of REF): adopted from the first navdata of a connection, and after each silence or stall, so
that a new bridge does not land a flying drone. A requested take-off sets it; it is withdrawn if the drone refuses, or
does not fly within `confirm_timeout`. It is withdrawn as well if the drone lands or stops by itself, as it would take
off again. A landing clears it at any time, without navdata, too.
- **Emergency** (a bit that toggles when it is pressed): if navdata that is younger than FRESH_S shows an emergency,
nothing is pressed. Else the bit is set until the state changes, or for PRESS_S, once per request. Only after a stall of
this process it is set again, if no packet has carried it, or if navdata does not show the emergency, until
EMERGENCY_AGE_S after the request. Right after a stall, navdata also decides about one that is called again, or if there
was an emergency before. Without navdata, the outcome is "sent, unconfirmed".
- **Numbers** begin with 1, which a drone always accepts, for the first FIRST_PACKETS; and once more when navdata shows
that nothing is obeyed: WATCHDOG stays set, the level is neither echoed nor flown, or on the ground a setting is not
acknowledged. If that does not help within UNHEARD_S, the old numbers continue, for a drone that knows no restart.
- **Navdata** goes to the client that has asked last, so it is asked for again after WAKE_S of silence. Older numbers
are dropped, unless the drone has started over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from drone_bridge.ar_drone.flight_state import FlyingReport
from drone_bridge.ar_drone.navdata_parameters import NavdataParameters
from drone_bridge.ardrone import units
from drone_bridge.ardrone.codec import (
    COMMANDS,
    CONNECT,
    CONTROL,
    DISCONNECT,
    NAVDATA,
    WAKE_UP,
    ClientConnection,
    Command,
    ConfigurationReader,
    FlatTrim,
    FlightState,
    Navdata,
    Pcmd,
    Ref,
    State,
    Tag,
    WatchdogReset,
)
from drone_bridge.ardrone.codec.navdata import DEMO_BYTES
from drone_bridge.ardrone.session.settings import DroneSettings, WantedSetting
from drone_bridge.motion.measurement import Measurement
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
from drone_bridge.session.tilt_pilot import ESTIMATED, ESTIMATES, TiltPilot
from drone_bridge.wire.counters import problems, rates
from drone_bridge.wire.events import NEED_DATA, LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.outgoing import UNENCODABLE, fitted
from drone_bridge.wire.rate_limit import RateLimit

WAITING, ASKING, CONNECTED, CLOSED = "waiting for a peer", "asking for navdata", "connected", "closed"
TAKE_OFF, RESET, FLAT_TRIM = "takeoff", "reset", "flat_trim"
WAKE_S = 0.2
#: Navdata that is older does not show an emergency, s.
FRESH_S = 0.5
PRESS_S = 0.5
#: Time after a press within which its effect has to show, s.
SHOWN_S = 0.5
FIRST_PACKETS = 3
TRIMS = 10
#: Time for which the drone shows that it does not obey, until numbers start over, s.
UNHEARD_S = 1.0
#: Time for which navdata may lack the flight state, s.
SETTING_UP_S = 5.0
#: Period in which navdata is counted, s, and the part of it that may be missing.
COUNTED_S, MISSING = 5.0, 0.25
#: Most navdata per second that are followed, but for changes of state bits. Those in between are only published.
FOLLOWED_RATE = 30.0
#: Distance to the drone's own altitude_max from which it may climb no higher, m.
NEAR_CEILING_M = 0.2
LAND_TIMEOUT_S = 5.0
# Counters.
PACKETS, REPORTS = rates("packets", "navdata")
GAPS, LATE, UNHEARD = problems("navdata_gaps", "late_navdata", "undelivered_packets")
SILENCES, RESTARTS, REFUSED_SETTINGS = problems("lost_navdata", "restarted_numbers", "refused_settings")
CALL_AGAIN = "Call emergency again."
STALE = "The request is stale: the bridge was stalled meanwhile. Please call again."
#: Causes of an emergency, in the order in which they are named.
CAUSES = {
    State.CUTOUT: "a propeller was blocked",
    State.ANGLES_OUT_OF_RANGE: "it was tilted too far",
    State.MOTOR_FAULT: "a motor has a fault",
    State.ULTRASOUND_DEAF: "its ultrasound sensor receives nothing",
    State.SOFTWARE_FAULT: "its software has a fault",
    State.USER_EMERGENCY: "a client has stopped the motors",
    State.BATTERY_LOW: "its battery is low",
    State.TIMER_ELAPSED: "its timer has elapsed",
}


class MeasuredNavdata(NamedTuple):
    """Navdata, and its measurement."""

    navdata: Navdata
    measured: Measurement


@dataclass(slots=True, eq=False)
class _Pending:
    """Request whose outcome is shown by navdata."""

    request: Any
    until_s: float
    is_unseen: bool = False
    """Whether the next navdata decides if it is pressed: there was a press, or an emergency, before a stall."""


@dataclass(slots=True)
class _Press:
    """The emergency bit is set."""

    name: str
    until_s: float
    was_emergency: bool | None  # None: unknown
    packets: int = 0
    """Number of packets that have carried it."""


@dataclass(slots=True)
class ArdroneClientParameters(NavdataParameters):
    """Parameters of the session."""

    rate: float = parameter(
        30.0, "Commands per second. Below 25, a drone with a 50 ms watchdog hovers in between.", 10.0, 100.0, live=True
    )
    confirm_timeout: float = parameter(
        5.0, "Time within which navdata must confirm a take-off, s. It is withdrawn then.", 0.5, 60.0, live=True
    )


class ArdroneClientSession(Session):
    """Client's conversation with one drone."""

    def __init__(
        self,
        drone: str,
        pilot: TiltPilot,
        feedback: Feedback,
        *,
        parameters: ArdroneClientParameters,
        wishes: Callable[[], Sequence[WantedSetting]],
        is_hover_held: Callable[[], bool] = lambda: False,
        use_settings: Callable[[DroneSettings], None] = lambda settings: None,
        pose: ContinuousPose | None = None,
    ) -> None:
        """Start without a link.

        Args:
            drone: name of the drone for logs.
            pilot: decides how the drone is steered.
            feedback: receives the drone's measurements.
            parameters: those of the node, which may change at any time.
            wishes: returns the settings to write, the required one first.
            is_hover_held: returns whether the drone hovers and ignores commands.
            use_settings: gets the settings that the drone has answered.
            pose: the drone's pose in `odom`; None for a client without one.
        """
        self.state, self.peer, self.is_proven = WAITING, drone, False
        self._parameters, self._pilot, self._feedback, self._pose = parameters, pilot, feedback, pose
        self._wishes, self._is_hover_held, self._use_settings = wishes, is_hover_held, use_settings
        self._connection, self._reader = ClientConnection(), ConfigurationReader()
        self.settings = DroneSettings()
        #: The newest navdata of this connection.
        self.navdata: Navdata | None = None
        #: Level of the bit to fly, None while nothing is known.
        self.level: bool | None = None
        self._has_flown = False  # since the level was set
        self._press: _Press | None = None
        self._presses_again = False  # after the release
        self._is_moving = False  # by the newest packet
        self._pending: list[_Pending] = []
        self._early: _Pending | None = None  # take-off that waits for the drone's settings
        self._trims_left = self._first_left = self._final_left = 0
        self._packet_at = self._wake_at = math.inf
        self._unheard_since_s = math.inf
        self._published: bool | None = None
        self._effects: list[Action] = []
        self._number_before: int | None = None  # the restart since the drone obeyed last; 0 once it was continued
        self._rate_limit = RateLimit()
        self._set_up_at = -math.inf  # the newest navdata with a flight state, or the start of the connection
        self._counted_from: tuple[float, int] | None = None  # instant and number of the first navdata that is counted
        self._counted = 0  # navdata after it
        self._missing, self._ceiling = "", ""
        #: Problems with navdata, an emergency, the ceiling and the magnetometer, as clauses; empty if there is none.
        self.problems = "", "", "", ""

    # The link.

    def opened(self, now_s: float) -> Actions:
        self.state, self.is_open, self.is_proven = ASKING, True, False
        self._connection.restart()
        self._forget(now_s)
        self._first_left = FIRST_PACKETS
        self._packet_at = self._wake_at = self.since_s = now_s
        self.received_s = None
        self.settings.start(self._wishes())
        self._effects.append(Note(CONNECTIONS, f"Asking {self.peer} for navdata.", is_expected=True))
        return self.tick(now_s)

    def tick(self, now_s: float) -> Actions:
        if self._final_left:
            return self._final(now_s) if now_s >= self.due_s else []
        silence_s = self.silent_s(now_s)
        if self.state == CONNECTED and silence_s > self._parameters.navdata_timeout:
            self.state = ASKING
            self._forget(now_s)
            self._effects.append(Note(SILENCES, f"{self.peer} has sent no navdata for {silence_s:.1f} s."))
        if now_s >= self._packet_at:
            self._send_packet(now_s)
        if now_s >= self._wake_at:
            self._wake_at = now_s + WAKE_S
            if self.received_s is None or silence_s > WAKE_S:
                self._effects.append(Send(WAKE_UP, NAVDATA))
        return self._taken(now_s)

    def resume(self, now_s: float) -> Actions:
        """After a stall nothing is known: hover, and no REF until the drone has reported."""
        super().resume(now_s)
        self._forget(now_s)
        for each in tuple(self._pending):
            if each.request.name != EMERGENCY and now_s > self.expires_at(each.request):
                self._answer(each, False, STALE)
        self._resume_emergencies(now_s)
        if self.is_open:
            self._packet_at = now_s
            self._send_packet(now_s)
            self._disconnect_control()  # a part of what it has sent may have been dropped
        return self._taken(now_s)

    def unsent(self, action: Send, sentence: str, now_s: float) -> Actions:
        """Record that the drone does not get a press by this packet."""
        if self._press and action.to == COMMANDS:
            self._press.packets -= 1
        return super().unsent(action, sentence, now_s)

    def refused(self, sentence: str, now_s: float) -> Actions:
        sentence = f"{sentence} Still asking for navdata."
        return [Note(UNHEARD, sentence, is_ongoing=True, is_usual_at_start=True)]

    def lost(self, now_s: float) -> Actions:
        self.state, self.is_open, self._packet_at, self._wake_at = WAITING, False, math.inf, math.inf
        self._forget(now_s)
        self._send(now_s, Pcmd())
        for each in tuple(self._pending):
            self._answer(each, False, "The link was lost before the drone has shown it.")
        return self._taken(now_s)

    def end(self, now_s: float) -> Actions:
        self.state, self.is_open, self._final_left = CLOSED, False, FINAL_REPEATS
        self._end_early("The link was closed before the drone had its settings.")
        self._packet_at = self._wake_at = math.inf
        for each in tuple(self._pending):
            self._answer(each, False, "The link was closed before the drone has shown it.")
        actions = self._final(now_s)
        if self._has_reported and self.level:
            sentence = f"{self.peer} hovers on. A new start of the bridge adopts it, and then land lands it."
            return [*actions, Note("", sentence)]
        return actions

    def _final(self, now_s: float) -> Actions:
        """Hover. The level stays as the drone has it, but a button is released."""
        self._final_left -= 1
        self._send(now_s, *self._last_commands)
        self.is_over = not self._final_left
        self.due_s = math.inf if self.is_over else now_s + FINAL_GAP_S
        actions, self._effects = self._effects, []
        return actions

    def _forget(self, now_s: float) -> None:
        """Nothing is known of the drone from now on, until it reports."""
        is_ending = self._press or any(each.request.name in (LAND, EMERGENCY) for each in self._pending)
        if not (self.level is False and is_ending):
            self.level = None
        self._has_flown = False
        self._end_early("The drone's state is unknown.")
        self._pilot.restart(now_s)
        self._unheard_since_s, self._counted_from = math.inf, None

    # Packets.

    def _send_packet(self, now_s: float) -> None:
        self._packet_at = next_due(self._packet_at, 1 / self._parameters.rate, now_s)
        navdata = self.navdata if self.state == CONNECTED else None
        shares = self._pilot.shares(now_s, is_overruled=self._is_hover_held() or navdata is None)
        if self._pilot.is_estimating:
            self._effects.append(Note(ESTIMATED, ESTIMATES, is_ongoing=True))
        if self._ignores_commands(now_s):
            self._unheard_since_s = now_s
            if self._number_before is None:
                self._number_before, self._first_left = self._connection.next_sequence, FIRST_PACKETS
                self._effects.append(Note(RESTARTS, f"{self.peer} does not obey: numbering commands from 1 again."))
            else:
                self._connection.skip(self._number_before)
                self._number_before = 0
        if self._first_left:
            self._first_left -= 1
            self._connection.restart()
        self._land_if_it_must(now_s)
        commands: list[Command] = []
        if navdata is None or navdata.has(State.WATCHDOG):
            commands.append(WatchdogReset())
        commands.append(units.command(shares))
        self._notice_ceiling(navdata, is_climbing=shares is not None and shares.thrust > 0.0)
        if self.level is not None:
            commands.append(Ref(self.level, self._is_pressed(now_s)))
        if self._trims_left:
            self._trims_left -= 1
            commands.append(FlatTrim())
        if navdata:
            commands += self.settings.commands(navdata, now_s, self._connect_control)
        self._send(now_s, *commands)

    def _send(self, now_s: float, *commands: Command) -> None:
        try:
            data = self._connection.send(*map(fitted, commands))
        except LocalProtocolError as error:
            self._effects.append(Note(UNENCODABLE, f"Commands can't be sent: {error} The drone hovers instead."))
            commands = (Pcmd(), *(each for each in commands if isinstance(each, Ref)))
            data = self._connection.send(*commands)
        self._is_moving = any(isinstance(each, Pcmd) and each != Pcmd() for each in commands)
        self._effects.append(Send(data, COMMANDS, if_sent=(PACKETS,)))

    def _is_pressed(self, now_s: float) -> bool:
        """Return whether the emergency bit is set in this packet."""
        if self._press and now_s < self._press.until_s:
            self._press.packets += 1
            return True
        self._press = None
        if self._presses_again:  # from the next packet on
            self._presses_again, self._press = False, _Press(EMERGENCY, now_s + PRESS_S, None)
        return False

    def _ignores_commands(self, now_s: float) -> bool:
        """Return whether the drone has shown for UNHEARD_S that it does not obey."""
        navdata = self.navdata
        if self.state != CONNECTED or navdata is None:
            return False
        is_airborne = navdata.is_airborne
        is_shown = navdata.has(State.START_BUTTON) is self.level or (self.level and is_airborne)
        is_echoed = self.level is None or self._press is not None or is_shown
        is_acknowledged = is_airborne or not self.settings.is_unacknowledged
        is_obeyed = is_echoed and is_acknowledged and not navdata.has(State.WATCHDOG)
        if is_obeyed:
            self._unheard_since_s, self._number_before = math.inf, None
        self._unheard_since_s = min(self._unheard_since_s, now_s if not is_obeyed else math.inf)
        return now_s - self._unheard_since_s > UNHEARD_S

    def _land_if_it_must(self, now_s: float) -> None:
        if self.level is not False and self._pilot.arbiter.rank(now_s) is Rank.LANDING:
            self.level = False  # also without navdata: then, a landing is all that is known to be wanted
            cause = self._pilot.arbiter.cause(now_s)
            self._effects.append(Note("", f"Landing: {cause.value if cause else 'a limit requires it'}."))

    def last_words(self) -> LastWords | None:
        """Return hover. The level stays as the drone has it, but a button is released."""
        if not self._is_moving and self._press is None:
            return None
        return LastWords((self._connection.peek(*self._last_commands),), to=COMMANDS)

    def neutral_sent(self, now_s: float) -> Actions:
        """Skip the numbers of the last words, so that the next packet is not late."""
        self._connection.skip(len(self._last_commands))
        self._is_moving = False
        if not self._is_emergency_unsent:
            self._press = None
        return []

    @property
    def _last_commands(self) -> tuple[Command, ...]:
        return (Pcmd(), Ref()) if self._press else (Pcmd(),)

    # What the drone reports.

    def receive(self, data: bytes | str, source: Any, now_s: float) -> Actions:
        assert isinstance(data, bytes)
        if source == CONTROL:
            return self._read_settings(data, now_s)
        self._connection.receive_data(data)
        try:
            navdata = self._connection.next_event()
        except RemoteProtocolError as error:
            return [Note(REJECTED, f"Navdata of {self.peer} was refused: {error}")]
        assert navdata is not NEED_DATA
        before = self.navdata if self.state == CONNECTED else None
        if before and navdata.sequence <= before.sequence and not _starts_over(navdata):
            return [Note(LATE)]
        if before and navdata.sequence > before.sequence + 1 and not _starts_over(navdata):
            self._effects.append(Note(GAPS))
        self._counted += 1
        is_due = self._rate_limit.is_due(now_s, FOLLOWED_RATE)
        if before and navdata.state == before.state and not is_due:
            self.navdata, self.received_s = navdata, now_s
            return [Publish(navdata), Note(REPORTS)]
        measured = self._take_navdata(navdata, before, now_s)
        self._effects += [Publish(MeasuredNavdata(navdata, measured) if is_due else navdata), Note(REPORTS)]
        return self._taken(now_s)

    def _take_navdata(self, navdata: Navdata, before: Navdata | None, now_s: float) -> Measurement:
        self.navdata, self.received_s, self.is_proven = navdata, now_s, True
        if self.state == ASKING:
            self.state, self._set_up_at = CONNECTED, now_s
            if self._pose:
                self._pose.greeted()
            self._effects.append(Note("", f"Connected to {self.peer}: it sends navdata.", is_expected=True))
        if navdata.has(State.BOOTSTRAP) and (before is None or navdata.sequence <= before.sequence):
            self.settings.start(self._wishes())
        if _is_set_up(navdata):
            self._set_up_at = now_s
        self._count(navdata, before, now_s)
        self._follow(navdata, before, now_s)
        self._take_off_if_set_up(navdata, now_s)
        measured, restarted = continued(self._pose, units.measurement(navdata), now_s)
        self._effects += restarted
        if navdata.demo is not None:
            self._feedback.measured(measured, now_s)
        return measured

    def _count(self, navdata: Navdata, before: Navdata | None, now_s: float) -> None:
        """Compare the navdata that the drone numbers with those that arrive."""
        if self._counted_from and before and navdata.sequence > before.sequence:
            begin_s, begin = self._counted_from
            if (period_s := now_s - begin_s) < COUNTED_S:
                return
            sent, received = (navdata.sequence - begin) / period_s, self._counted / period_s
            is_missing = received < (1 - MISSING) * sent
            self._missing = (
                f"{received:.0f} of {sent:.0f} navdata per second arrive: another program?" if is_missing else ""
            )
        self._counted_from, self._counted = (now_s, navdata.sequence), 0

    def _notice_ceiling(self, navdata: Navdata | None, *, is_climbing: bool) -> None:
        """Notice whether the drone's own altitude_max has stopped a climb, until it sinks."""
        ceiling, demo = self.settings.number("control:altitude_max"), navdata.demo if navdata else None
        if ceiling is None or demo is None or demo.altitude <= ceiling - 1000 * NEAR_CEILING_M:
            self._ceiling = ""
        elif is_climbing:
            self._ceiling = f"the drone climbs no higher than its own altitude_max of {ceiling / 1000:g} m"

    def _follow(self, navdata: Navdata, before: Navdata | None, now_s: float) -> None:
        """Adopt or withdraw the level, release the button, and answer requests."""
        is_airborne, is_emergency = navdata.is_airborne, navdata.has(State.EMERGENCY)
        is_landing = navdata.demo is not None and navdata.demo.flight_state is FlightState.LANDING
        is_asked = any(each.request.name == TAKE_OFF for each in self._pending)
        if self.level is None:
            # A drone that reports a flight state without FLYING may be on the ground: its own level is asserted then.
            flies = is_airborne and not is_landing and navdata.has(State.FLYING | State.START_BUTTON)
            self.level, self._has_flown = flies, is_airborne
        self._has_flown |= is_airborne and not is_landing
        has_landed = is_landing if is_airborne else not is_asked or self._has_flown
        if self.level and (is_emergency or has_landed):
            self.level = False
            if not is_emergency:
                self._effects.append(Note("", f"{self.peer} lands by itself."))
        if self._press and self._press.was_emergency not in (None, is_emergency):
            self._press = None
        if not is_emergency and self._press is None:
            self._press_again(now_s)
        if is_airborne is not self._published:
            self._published = is_airborne
            self._effects.append(Publish(FlyingReport(is_airborne)))
        has_pressed = self._press is None and not self._presses_again
        stands = "The drone is on the ground, and its motors stand." if has_pressed and not is_airborne else ""
        shown = {
            TAKE_OFF: "The drone takes off." if is_airborne and not is_landing else "",
            LAND: "The drone lands." if is_landing or not is_airborne else "",
            EMERGENCY: "The motors are off." if is_emergency else stands,
            RESET: "" if is_emergency else "The emergency has ended.",
        }
        for each in tuple(self._pending):
            if sentence := shown[each.request.name]:
                self._answer(each, True, sentence)
            elif each.request.name == TAKE_OFF and is_emergency:
                self._answer(each, False, f"The drone has an emergency: {self.causes}.")

    def _connect_control(self) -> None:
        """Make a new connection to the control port."""
        self._reader = ConfigurationReader()
        self._effects.append(Send(CONNECT, CONTROL))

    def _disconnect_control(self) -> None:
        self._reader = ConfigurationReader()
        self._effects.append(Send(DISCONNECT, CONTROL))

    def _read_settings(self, data: bytes, now_s: float) -> Actions:
        try:
            settings = self._reader.receive(data)
        except RemoteProtocolError as error:
            self._disconnect_control()
            self._effects.append(Note(REJECTED, f"Settings of {self.peer} were refused: {error}"))
            return self._taken(now_s)
        if settings:
            self._disconnect_control()
            self.settings.read(settings, self._wishes())
            self._use_settings(self.settings)
        return self._taken(now_s)

    # Requests.

    def ask(self, request: Any, now_s: float) -> Actions:
        """Start a request of a waiting caller; its name is one of TAKE_OFF, LAND, EMERGENCY, RESET, FLAT_TRIM."""
        handle = {
            TAKE_OFF: self._ask_to_take_off,
            LAND: self._ask_to_land,
            EMERGENCY: self._ask_for_emergency,
            RESET: self._ask_to_reset,
            FLAT_TRIM: self._ask_to_trim,
        }[request.name]
        try:
            handle(request, now_s)
        except ValueError as error:
            return [*self._taken(now_s), Outcome(request, False, str(error))]
        return self._taken(now_s)

    def _ask_to_take_off(self, request: Request, now_s: float) -> None:
        navdata = self._known_navdata(request, now_s)
        if navdata.has(State.EMERGENCY):
            raise ValueError(f"The drone is in an emergency ({self.causes}): call reset on the ground first.")
        if not _is_set_up(navdata):  # it was just switched on
            if problem := self._set_up_problem(now_s):
                raise ValueError(f"{problem}.")
            if self._early:
                raise ValueError("A takeoff is in progress.")
            self._early = _Pending(request, now_s + self._parameters.confirm_timeout)
            return
        if navdata.is_airborne:
            raise ValueError("The drone is flying.")
        if navdata.has(State.BATTERY_LOW):
            raise ValueError("The drone's battery is low, and it would not take off.")
        if any(each.request.name == TAKE_OFF for each in self._pending):
            raise ValueError("A takeoff is in progress.")
        if refusal := self._pilot.arbiter.limits.takeoff_refusal:
            raise ValueError(refusal)
        self.level, self._has_flown = True, False
        self._wait_for(request, self._parameters.confirm_timeout, now_s)

    def _take_off_if_set_up(self, navdata: Navdata, now_s: float) -> None:
        """Execute a take-off that was asked for before the drone had its settings."""
        if not (early := self._early) or not _is_set_up(navdata):
            return
        self._early = None
        try:
            if self._pilot.arbiter.is_held(now_s):
                raise ValueError("The vehicle is held.")
            self._ask_to_take_off(early.request, now_s)
        except ValueError as error:
            self._effects.append(Outcome(early.request, False, str(error)))

    def _end_early(self, sentence: str) -> None:
        """Refuse a take-off that waits for the drone's settings."""
        if early := self._early:
            self._early = None
            self._effects.append(Outcome(early.request, False, sentence))

    def _ask_to_land(self, request: Request, now_s: float) -> None:
        self._end_early("land was called meanwhile.")
        if not self.is_open:
            raise ValueError("There is no link to the drone.")
        for each in tuple(self._pending):
            if each.request.name == TAKE_OFF:
                self._answer(each, False, "land was called meanwhile.")
        self.level = False
        navdata = self.navdata
        is_shown = self.state == CONNECTED and self._has_reported and self.silent_s(now_s) < FRESH_S
        if is_shown and navdata and not navdata.is_airborne:
            self._effects.append(Outcome(request, True, "The drone is on the ground."))
        else:
            self._wait_for(request, LAND_TIMEOUT_S, now_s)

    def _ask_for_emergency(self, request: Request, now_s: float) -> None:
        if now_s > self.expires_at(request):
            raise ValueError(f"{too_old(request, now_s)} {CALL_AGAIN}")
        self._end_early("emergency was called meanwhile.")
        if not self.is_open:
            raise ValueError("There is no link to the drone.")
        for each in tuple(self._pending):
            if each.request.name in (TAKE_OFF, RESET):
                self._answer(each, False, "emergency was called meanwhile.")
        is_ending = self._press is not None and self._press.name == RESET
        is_emergency = self._fresh_emergency(now_s)
        self.level = False
        is_pressed = any(each.is_unseen for each in self._pending)
        if not self._has_reported and self._press is None and (is_emergency or is_pressed):
            self._wait_for(request, PRESS_S + SHOWN_S, now_s)
            self._pending[-1].is_unseen = True  # a press would end an emergency that has not ended in the stall
            self._effects.append(Send(WAKE_UP, NAVDATA))
            return
        if is_emergency and not is_ending:
            self._effects.append(Outcome(request, True, "The motors are off already."))
            return
        if self._press is None:
            self._effects.append(Note("", "Cutting the motors: emergency was called."))
            self._press = _Press(EMERGENCY, now_s + PRESS_S, is_emergency)
        elif is_ending:  # that of a reset, which is released first, so that this one has its own edge
            self._press.until_s, self._presses_again = now_s, True
        self._wait_for(request, PRESS_S + SHOWN_S, now_s)

    def _resume_emergencies(self, now_s: float) -> None:
        """Press for those that no packet has carried. Navdata decides about the others, as a press is a toggle."""
        pending = [each for each in self._pending if each.request.name == EMERGENCY]
        has_ended = self._press is None or now_s >= self._press.until_s
        if is_unsent := self._is_emergency_unsent:
            for each in tuple(pending):
                if now_s > self.expires_at(each.request):
                    pending.remove(each)
                    self._answer(each, False, f"{too_old(each.request, now_s)} {CALL_AGAIN}")
            self._presses_again &= bool(pending)  # else there is a press of a reset, which is released first
            begins = pending and not self._presses_again
            self._press = _Press(EMERGENCY, now_s + PRESS_S, None) if begins else None
        for each in pending:
            each.until_s, each.is_unseen = now_s + PRESS_S + SHOWN_S, has_ended and not is_unsent
        if any(each.is_unseen for each in pending):
            self._effects.append(Send(WAKE_UP, NAVDATA))  # the drone may have dropped this client

    def _press_again(self, now_s: float) -> None:
        """Repeat the press of emergencies from before a stall, which navdata does not show."""
        unseen = [each for each in self._pending if each.is_unseen and now_s <= self.expires_at(each.request)]
        for each in unseen:
            each.until_s, each.is_unseen = now_s + PRESS_S + SHOWN_S, False
            self._press = _Press(EMERGENCY, now_s + PRESS_S, False)

    @property
    def _is_emergency_unsent(self) -> bool:
        """Whether no packet has carried the press of the newest emergency yet."""
        press = self._press
        return self._presses_again or (press is not None and press.name == EMERGENCY and press.packets <= 0)

    def _ask_to_reset(self, request: Request, now_s: float) -> None:
        navdata = self._known_navdata(request, now_s)
        if (age_s := self.silent_s(now_s)) > FRESH_S:  # a press in an emergency that has ended stops the motors
            raise ValueError(f"{self.peer} has sent no navdata for {age_s:.1f} s. Please call again.")
        if navdata.has(State.EMERGENCY):
            self.level = False
            if self._press is None:
                self._press = _Press(RESET, now_s + PRESS_S, True)
            self._wait_for(request, PRESS_S + SHOWN_S, now_s)
            return
        if navdata.is_airborne:
            raise ValueError("The drone is flying. To stop the motors of a drone in the air, call emergency.")
        self._connection.restart()
        self.settings.start(self._wishes())
        self._effects.append(Outcome(request, True, "There is no emergency. The drone's settings are written again."))

    def _ask_to_trim(self, request: Request, now_s: float) -> None:
        navdata = self._known_navdata(request, now_s)
        if navdata.is_airborne:
            raise ValueError("The drone is flying: a flat trim needs it on level ground.")
        self._trims_left = TRIMS
        self._effects.append(Outcome(request, True, "The drone's present attitude counts as level."))

    def _known_navdata(self, request: Request, now_s: float) -> Navdata:
        """Return the current navdata. Raises ValueError with a sentence."""
        if self.state != CONNECTED or self.navdata is None:
            raise ValueError(f"{self.peer} sends no navdata, so it is unknown whether the drone flies.")
        if now_s > self.expires_at(request):
            raise ValueError(STALE)
        if not self._has_reported:
            raise ValueError(f"{self.peer} has sent no navdata since the bridge was stalled. Please call again.")
        return self.navdata

    @property
    def _has_reported(self) -> bool:
        """Whether navdata has arrived since this process was last stalled."""
        return self.received_s is not None and self.received_s > self.fresh_since_s

    def _fresh_emergency(self, now_s: float) -> bool | None:
        """Return whether navdata shows an emergency; None without fresh navdata."""
        if self.navdata is None or self.received_s is None or now_s - self.received_s > FRESH_S:
            return None
        return self.navdata.has(State.EMERGENCY)

    def _wait_for(self, request: Request, seconds: float, now_s: float) -> None:
        self._pending.append(_Pending(request, now_s + seconds))
        self._packet_at = min(self._packet_at, now_s)
        self._send_packet(now_s)

    def _answer(self, pending: _Pending, is_success: bool, sentence: str) -> None:
        self._pending.remove(pending)
        self._effects.append(Outcome(pending.request, is_success, sentence))

    def _end_overdue(self, now_s: float) -> None:
        if self._early and now_s > self._early.until_s:
            problem = self._set_up_problem(now_s)
            self._end_early(f"{problem or 'The drone has no settings yet. Please call again'}.")
        for each in tuple(self._pending):
            if now_s <= each.until_s:
                continue
            is_seen, name = self.state == CONNECTED, each.request.name
            if name == TAKE_OFF:
                self.level = False if is_seen else None  # else it would take off at any later time
            if not is_seen:
                self._answer(each, False, f"{name} was sent, unconfirmed: {self.peer} sends no navdata.")
            else:
                self._answer(each, False, f"{name} was sent, but the drone reports {self.flight_state}.")

    # For other threads, and for people.

    def add_setting(self, wish: WantedSetting, now_s: float) -> Actions:
        """Write one more setting."""
        self.settings.add(wish)
        return self._taken(now_s)

    def undeliverable(self, now_s: float) -> str | None:
        """Return why no command reaches the drone, as a sentence, or None. Thread-safe."""
        return None if self.state == CONNECTED else f"{self.peer} sends no navdata."

    def landing(self, now_s: float) -> Landing:
        navdata = self.navdata
        if self.state == CONNECTED and navdata and not navdata.is_airborne:
            return Landing.GROUNDED
        return super().landing(now_s)

    @property
    def is_emergency(self) -> bool:
        """Whether the last navdata shows an emergency. Thread-safe."""
        navdata = self.navdata
        return navdata is not None and navdata.has(State.EMERGENCY)

    @property
    def flight_state(self) -> str:
        """The drone's flight state in words."""
        demo = self.navdata.demo if self.navdata else None
        state = demo.flight_state if demo else None
        return "nothing" if state is None else str(state)

    @property
    def causes(self) -> str:
        """Causes of an emergency, separated by commas."""
        navdata = self.navdata
        found = [text for bit, text in CAUSES.items() if navdata and navdata.has(bit)]
        return ", ".join(found) or "for an unknown reason"

    def _set_up_problem(self, now_s: float) -> str:
        """Return why the flight state has been unknown for SETTING_UP_S, as a clause; empty otherwise."""
        navdata = self.navdata
        if not navdata or _is_set_up(navdata) or now_s - self._set_up_at <= SETTING_UP_S:
            return ""
        if navdata.has(State.BOOTSTRAP):
            return f"{self.peer} stays in BOOTSTRAP: it does not follow the setting general:navdata_demo"
        size = len(navdata.data(Tag.DEMO))
        return f"{self.peer} sends navdata without a flight state: the option demo has {size} of {DEMO_BYTES} bytes"

    def _taken(self, now_s: float) -> Actions:
        self._end_overdue(now_s)
        self._effects += [Note(REFUSED_SETTINGS, sentence) for sentence in self.settings.problems]
        self.settings.problems.clear()
        unheard = f"{self.peer} sends no navdata: switch it on, join its Wi-Fi, and run `drone-bridge doctor`"
        self.problems = unheard if self.state == ASKING else "", "", "", ""
        if self.state == CONNECTED and (navdata := self.navdata):
            emergency = magnetometer = ""
            if navdata.has(State.EMERGENCY):
                emergency = f"the drone is in an emergency: {self.causes}. Call reset when it is on the ground"
            if navdata.has(State.MAGNETOMETER_UNCALIBRATED) and not self.settings.is_version_1:
                magnetometer = "the drone's magnetometer needs calibration, and its heading may drift"
            self.problems = self._set_up_problem(now_s) or self._missing, emergency, self._ceiling, magnetometer
        if not self._final_left:
            self.due_s = min(self._packet_at, self._wake_at)
        actions, self._effects = self._effects, []
        return actions


def _is_set_up(navdata: Navdata) -> bool:
    """Return whether navdata has a flight state."""
    return navdata.demo is not None and not navdata.has(State.BOOTSTRAP)


def _starts_over(navdata: Navdata) -> bool:
    """Return whether the drone may have started its numbers again."""
    return navdata.sequence <= 1 or navdata.has(State.WATCHDOG | State.BOOTSTRAP | State.COMMUNICATION_LOST)
