# SPDX-License-Identifier: Apache-2.0
"""DroneRequests: take-off, landing, emergency, reset and flat trim of a drone that answers by its navdata only. Pure.

The level is the bit to fly of REF. A take-off sets it, and a landing, an emergency, a reset or a limit clears it at any
time, without navdata, too. Navdata changes it, so that a new bridge does not land a flying drone, and no drone takes
off again:

| the level is | navdata reports | then it is |
|---|---|---|
| unknown | an emergency, the ground, a landing, a flight that no state bit shows | cleared |
| unknown | a flight | set, and flown |
| set | an emergency, a landing | cleared |
| set | a flight that no state bit shows, a flight | set, and flown |
| set, and flown | an emergency, the ground, a landing | cleared |

After each silence and stall it is unknown, and in no packet.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from drone_bridge.ar_drone.navdata_parameters import NavdataParameters
from drone_bridge.ardrone import codec
from drone_bridge.ardrone.session import emergency
from drone_bridge.ardrone.session.navdata_watch import FRESH_S, Known, causes, flight_state, is_set_up
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.arbiter import CommandSource, Rank
from drone_bridge.session.session import EMERGENCY, EMERGENCY_AGE_S, LAND, Action, Note, Outcome, Request, too_old

TAKE_OFF, RESET, FLAT_TRIM = "takeoff", "reset", "flat_trim"
#: Kind of a take-off that was asked for before the drone has its settings, for which it waits.
EARLY = "early takeoff"
#: Time after a press within which its effect has to show, s.
SHOWN_S = 0.5
TRIMS = 10
LAND_TIMEOUT_S = 5.0
UNCONFIRMED = "unconfirmed: the drone sends no navdata"
STALE = "The request is stale: the bridge was stalled meanwhile. Please call again."
# What navdata reports of the flight.
EMERGENT, GROUNDED, LANDS, FLIES = "an emergency", "the ground", "a landing", "a flight"
MAYBE = "a flight that no state bit shows"
_FLYING = codec.State.FLYING | codec.State.START_BUTTON  # once: a union of flags takes microseconds
# The level, and what has set it.
UNKNOWN, CLEARED, SET, FLOWN = "unknown", "cleared", "set", "set, and flown"
LEVELS = {
    UNKNOWN: {EMERGENT: CLEARED, GROUNDED: CLEARED, LANDS: CLEARED, MAYBE: CLEARED, FLIES: FLOWN},
    SET: {EMERGENT: CLEARED, LANDS: CLEARED, MAYBE: FLOWN, FLIES: FLOWN},
    FLOWN: {EMERGENT: CLEARED, GROUNDED: CLEARED, LANDS: CLEARED},
    CLEARED: {},
}
#: Outcomes by what navdata reports; of an emergency on the ground once the press is over.
ANSWERS = {
    TAKE_OFF: {MAYBE: "The drone takes off.", FLIES: "The drone takes off."},
    LAND: dict.fromkeys((EMERGENT, GROUNDED, LANDS), "The drone lands."),
    EMERGENCY: {EMERGENT: "The motors are off.", GROUNDED: "The drone is on the ground, and its motors stand."},
    RESET: dict.fromkeys((GROUNDED, LANDS, MAYBE, FLIES), "The emergency has ended."),
    EARLY: {},
}


@dataclass(slots=True)
class ArdroneClientParameters(NavdataParameters):
    """Parameters of the session."""

    rate: float = parameter(
        30.0, "Commands per second. Below 25, a drone with a 50 ms watchdog hovers in between.", 10.0, 100.0, live=True
    )
    confirm_timeout: float = parameter(
        5.0, "Time within which navdata must confirm a take-off, s. It is withdrawn then.", 0.5, 60.0, live=True
    )


@dataclass(slots=True, eq=False)
class _Waiting:
    """Request whose outcome is shown by navdata."""

    request: Request
    kind: str
    until_s: float


class DroneRequests:
    """Requests in progress, with the level and the emergency bit."""

    def __init__(
        self,
        arbiter: CommandSource[Shares],
        parameters: ArdroneClientParameters,
        do: Callable[[Action], None],
        restart: Callable[[], None],
    ) -> None:
        """Start without any. `restart` begins numbers and settings again."""
        self._arbiter, self._parameters, self._do, self._restart = arbiter, parameters, do, restart
        self._level, self.emergency = UNKNOWN, emergency.EmergencyBit()
        self._waiting: list[_Waiting] = []
        self._trims_left = 0

    @property
    def level(self) -> bool | None:
        """Level of the bit to fly, None while nothing is known."""
        return None if self._level == UNKNOWN else self._level in (SET, FLOWN)

    def commands(self, now_s: float) -> Sequence[codec.Command]:
        """Return the commands for the packet that is sent now."""
        if self._level != CLEARED and self._arbiter.rank(now_s) is Rank.LANDING:
            self._level = CLEARED  # also without navdata: then, a landing is all that is known to be wanted
            cause = self._arbiter.cause(now_s)
            self._do(Note("", f"Landing: {cause.value if cause else 'a limit requires it'}."))
        level, trims = self.level, [codec.FlatTrim()] * min(self._trims_left, 1)
        self._trims_left -= len(trims)
        return trims if level is None else [codec.Ref(level, self.emergency.in_packet(now_s)), *trims]

    # Calls.

    def ask(self, request: Request, known: Known, now_s: float, refusal: str = "") -> bool:
        """Start a request, unless there is a refusal. Return whether it waits, so that a packet is due."""
        by_state = {TAKE_OFF: self._take_off, RESET: self._reset, FLAT_TRIM: self._trim}
        at_any_time = {LAND: self._land, EMERGENCY: self._cut}
        try:
            _check(refusal)
            answer, is_success = (by_state | at_any_time)[request.name](request, known, now_s), True
        except ValueError as error:
            answer, is_success = str(error), False
        if answer:
            self._do(Outcome(request, is_success, answer))
        return not answer

    def _take_off(self, request: Request, known: Known, now_s: float) -> str:
        navdata = known.checked()
        kind = TAKE_OFF if is_set_up(navdata) else EARLY
        emergent = f"The drone is in an emergency ({causes(navdata)}): call reset on the ground first."
        _check(
            navdata.has(codec.State.EMERGENCY) and emergent,
            known.set_up_problem and f"{known.set_up_problem}.",
            navdata.is_airborne and "The drone is flying.",
            navdata.has(codec.State.BATTERY_LOW) and "The drone's battery is low, and it would not take off.",
            self._of(TAKE_OFF, EARLY) and "A takeoff is in progress.",
            self.emergency.state != emergency.UP and "An emergency is in progress.",
            self._arbiter.is_held(now_s) and "The vehicle is held.",
            self._arbiter.limits.takeoff_refusal,
        )
        if kind == TAKE_OFF:
            self._level = SET
        return self._wait(request, self._parameters.confirm_timeout, now_s, kind)

    def _land(self, request: Request, known: Known, now_s: float) -> str:
        self.refuse("land was called meanwhile.", TAKE_OFF, EARLY)
        self._level = CLEARED
        is_shown = known.is_connected and known.has_reported and known.age_s < FRESH_S
        if is_shown and known.navdata and not known.navdata.is_airborne:
            return "The drone is on the ground."
        return self._wait(request, LAND_TIMEOUT_S, now_s)

    def _cut(self, request: Request, known: Known, now_s: float) -> str:
        self.refuse("emergency was called meanwhile.", TAKE_OFF, EARLY, RESET)
        self._level = CLEARED
        if answer := self.emergency.on(emergency.CALLED, now_s, known.shown, self._waits(now_s)):
            return answer
        self._do(Note("", "Cutting the motors: emergency was called."))
        return self._wait(request, emergency.PRESS_S + SHOWN_S, now_s)

    def _reset(self, request: Request, known: Known, now_s: float) -> str:
        navdata, age_s = known.checked(), known.age_s
        # A press in an emergency that has ended stops the motors.
        _check(age_s > FRESH_S and f"The drone has sent no navdata for {age_s:.1f} s. Please call again.")
        if navdata.has(codec.State.EMERGENCY):
            _check(self.emergency.on(emergency.RESET_CALLED, now_s))
            self._level = CLEARED
            return self._wait(request, emergency.PRESS_S + SHOWN_S, now_s)
        _check(navdata.is_airborne and "The drone is flying. To stop the motors of a drone in the air, call emergency.")
        self._restart()
        return "There is no emergency. The drone's settings are written again."

    def _trim(self, request: Request, known: Known, now_s: float) -> str:
        _check(known.checked().is_airborne and "The drone is flying: a flat trim needs it on level ground.")
        self._trims_left = TRIMS
        return "The drone's present attitude counts as level."

    # Events.

    def reported(self, navdata: codec.Navdata, known: Known, now_s: float) -> None:
        """Follow navdata."""
        phase, before = phase_of(navdata), self.level
        self._level = LEVELS[self._level].get(phase, self._level)
        if before and not self.level and phase != EMERGENT:
            self._do(Note("", "The drone lands by itself."))
        shown = emergency.SHOWN if phase == EMERGENT else emergency.NOT_SHOWN
        self.emergency.on(emergency.REPORTED, now_s, shown, self._waits(now_s))
        for each in tuple(self._waiting):
            is_over = each.kind != EMERGENCY or phase == EMERGENT or self.emergency.state == emergency.UP
            if (answer := ANSWERS[each.kind].get(phase)) and is_over:
                self._answer(each, True, answer)
            elif each.kind == TAKE_OFF and phase == EMERGENT:
                self._answer(each, False, f"The drone has an emergency: {causes(navdata)}.")
            elif each.kind == EARLY and is_set_up(navdata):
                self._waiting.remove(each)
                self.ask(each.request, known, now_s)

    def forget(self, now_s: float) -> None:
        """Know nothing of the drone from now on, until it reports."""
        self.refuse("The drone's state is unknown.", EARLY)
        # A landing, or a press of the emergency bit, in progress goes on.
        if self._level != CLEARED or not (self.emergency.is_down or self._of(LAND, EMERGENCY)):
            self._level = UNKNOWN

    def stalled(self, now_s: float) -> None:
        """Continue after a stall of this process."""
        self.refuse(STALE, TAKE_OFF, RESET)
        for each in self._of(EMERGENCY):
            each.until_s = now_s + emergency.PRESS_S + SHOWN_S
        self.emergency.on(emergency.STALLED, now_s)

    def refuse(self, sentence: str, *kinds: str) -> None:
        """Refuse the requests of these kinds, or all, that are in progress."""
        for each in self._of(*kinds or ANSWERS):
            self._answer(each, False, sentence)

    def end_overdue(self, known: Known, now_s: float) -> None:
        """Refuse the requests whose time is over."""
        for each in [each for each in self._waiting if now_s > each.until_s]:
            reports = f"but the drone reports {flight_state(known.navdata)}"
            result = f"{each.kind} was sent, {reports if known.is_connected else UNCONFIRMED}."
            if each.kind == TAKE_OFF:
                self._level = CLEARED if known.is_connected else UNKNOWN  # else it would take off at any later time
            elif each.kind == EARLY:
                result = f"{known.set_up_problem or 'The drone has no settings yet. Please call again'}."
            self._answer(each, False, result)

    def _of(self, *kinds: str) -> list[_Waiting]:
        return [each for each in self._waiting if each.kind in kinds]

    def _waits(self, now_s: float) -> str:
        """Return whether an emergency waits, as EmergencyBit needs it."""
        emergencies = self._of(EMERGENCY)
        is_new = any(now_s <= each.request.asked_s + EMERGENCY_AGE_S for each in emergencies)
        return emergency.WAITS if is_new else emergency.TOO_OLD if emergencies else emergency.NOBODY

    def _wait(self, request: Request, seconds: float, now_s: float, kind: str = "") -> str:
        self._waiting.append(_Waiting(request, kind or request.name, now_s + seconds))
        return ""

    def _answer(self, waiting: _Waiting, is_success: bool, sentence: str) -> None:
        self._waiting.remove(waiting)
        self._do(Outcome(waiting.request, is_success, sentence))


def stale_reason(request: Request, now_s: float) -> str:
    """Return why a request is not executed after a stall, or when it is too old, as a sentence."""
    return f"{too_old(request, now_s)} Call emergency again." if request.name == EMERGENCY else STALE


def _check(*refusals: object) -> None:
    """Raise ValueError with the first of the sentences, without which there is something false or empty."""
    for refusal in filter(None, refusals):
        raise ValueError(refusal)


def phase_of(navdata: codec.Navdata) -> str:
    """Return what navdata reports of the flight."""
    if navdata.has(codec.State.EMERGENCY):
        return EMERGENT
    if not navdata.is_airborne:
        return GROUNDED
    if navdata.demo and navdata.demo.flight_state is codec.FlightState.LANDING:
        return LANDS
    return FLIES if navdata.has(_FLYING) else MAYBE
