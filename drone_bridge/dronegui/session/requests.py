# SPDX-License-Identifier: Apache-2.0
"""GuiRequests: take-off, landing, reset and emergency by the GUI's two buttons. Pure.

take_off is a toggle, and reset stops the motors of a drone in the air. So neither is pressed if it could mean the
opposite of the request:

| request | on the ground | flies | unknown | pressed, and then |
|---|---|---|---|---|
| takeoff | pressed | refused | refused | waits for navdata of a take-off, for `confirm_timeout` |
| land | refused | pressed | refused | waits for navdata of a landing, for `confirm_timeout` |
| reset | pressed | refused | refused | |
| emergency | reset is pressed | reset is pressed | reset is pressed | ends all other requests; waits for navdata of \
motors that are off, for SHOWN_S |

- All but an emergency wait for the first navdata of a new link, and are refused if they are stale.
- If a person has stated that the drone is on the ground, and there is no navdata, takeoff presses reset first: a GUI
requests navdata only then, and never lands the drone without it.
- Without navdata the effect of a press is assumed, but a landing's only if there never is any (`receive_navdata`).
- After any doubt (a stall, a lost link, a closed port, an unsent packet) presses are broken off, and have an unknown
effect. An emergency's that may be lost begins again until it is EMERGENCY_AGE_S old, but not without a link.
- A hold cancels a takeoff whose press was not sent yet.
- If a limit requires a landing of a drone that flies, land is requested again until it succeeds.
"""

import math
from collections.abc import Callable, Set
from dataclasses import dataclass

from drone_bridge.ar_drone.navdata_parameters import NavdataParameters
from drone_bridge.dronegui.codec import DEFAULT_NAVDATA_PORT, FlightState
from drone_bridge.dronegui.session.buttons import Buttons, Press
from drone_bridge.dronegui.session.flight_watch import FlightWatch
from drone_bridge.dronegui.session.procedures import Part, Procedure, Procedures, Until
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.parameter_fields import parameter
from drone_bridge.session.arbiter import CommandSource, Rank
from drone_bridge.session.session import EMERGENCY, LAND, Action, Note, Outcome, Request, too_old

#: Further requests.
TAKE_OFF, RESET = "takeoff", "reset"
#: Timeout of navdata after a press of reset that requests them.
BOOTSTRAP_S = 3.0
#: Time after an emergency's press within which navdata must report that the motors are off, s.
SHOWN_S = 1.0
#: Interval between requests of a landing that a limit requires, s.
LAND_PERIOD_S = 1.0
#: States of a drone that was commanded to take off, and of one that was commanded to land.
TAKEN_OFF = frozenset(state for state in FlightState if state.is_airborne and state is not FlightState.LANDING)
LANDING_OR_LANDED = frozenset({FlightState.LANDING, FlightState.LANDED, FlightState.INIT})

#: Effects of a press if the drone's state is not as believed.
HARM_ON_GROUND = "the button take_off would make a landed drone fly"
HARM_IN_THE_AIR = "the button take_off would land a flying drone"
HARM_OF_RESET = "the button reset would stop the motors of a flying drone"
STALE = "The request is stale: the bridge was stalled, or the link was lost or opened meanwhile. Please call again."
STALLED = "The bridge was stalled."
HELD_SINCE = "The vehicle was put on hold meanwhile. Resume it, and call again."
CUT_SINCE = "emergency was called meanwhile. Call again if the drone should fly."
CUTS = "To stop the motors of a drone in the air, call emergency."
CALL_AGAIN = "If its motors still run, call emergency again."
LANDS_IT = '"Land" in the GUI lands it.'
OTHER = "Perhaps another controller sends higher numbers."


@dataclass(slots=True)
class RequestParameters(NavdataParameters):
    """Parameters of requests."""

    press_time: float = parameter(0.5, "Time for which a service holds its button down, s.", 0.05, 5.0, live=True)
    confirm_timeout: float = parameter(
        5.0, "Time after a press within which navdata must confirm a take-off or landing, s.", 0.1, 60.0, live=True
    )
    navdata_port: int = parameter(DEFAULT_NAVDATA_PORT, "Local port to which the GUI sends navdata.", 1, 65535)


@dataclass(slots=True, eq=False)
class _OwnLanding:
    """Landing without a request: the vehicle has to land."""

    asked_s: float
    name: str = LAND


class GuiRequests:
    """Requests in progress, and the buttons that they press."""

    def __init__(
        self,
        arbiter: CommandSource[Shares],
        watch: FlightWatch,
        parameters: RequestParameters,
        port_problem: Callable[[], str] | None,
        *,
        expires_at: Callable[[Request], float],
        do: Callable[[Action], None],
    ) -> None:
        """Start without any.

        Args:
            arbiter: decides who commands.
            watch: whether the drone flies.
            parameters: those of the node, which may change at any time.
            port_problem: returns why there is no port for navdata, or an empty text; None if navdata is disabled.
            expires_at: see `Session.expires_at`.
            do: receives notes and outcomes.
        """
        self.buttons = Buttons()
        self._arbiter, self._watch, self._parameters, self._port_problem = arbiter, watch, parameters, port_problem
        self._expires_at, self._do = expires_at, do
        self._running = Procedures(self._answer)
        self._land_s = -math.inf  # earliest time at which limits may request a landing

    def ask(self, request: Request, now_s: float) -> None:
        """Start a request. The Outcome follows now or later."""
        steps = {TAKE_OFF: self._take_off, LAND: self._land, RESET: self._reset, EMERGENCY: self._cut_motors}
        try:
            self._running.start(request, steps[request.name](request, now_s))
        except ValueError as error:
            self._answer(request, False, str(error))

    def land_if_required(self, now_s: float) -> None:
        """Request a landing that a limit requires. A failed one is repeated later."""
        is_due = now_s >= self._land_s and self._arbiter.rank(now_s) is Rank.LANDING
        lands = self._running.is_running(LAND) or self.buttons.current("take_off") or self._lands_already(now_s)
        if is_due and self._watch.is_flying(now_s) and not lands:
            self._land_s = now_s + LAND_PERIOD_S
            self.ask(_OwnLanding(now_s), now_s)

    def hold(self) -> None:
        """Cancel the press of a take-off that no packet has carried yet: the vehicle is held."""
        press = self.buttons.current("take_off")
        if press and not press.was_sent and not self._running.is_running(LAND):
            self.buttons.break_off(HELD_SINCE, math.inf, "take_off")

    def turn(self, now_s: float) -> None:
        """Continue requests."""
        self._running.turn(now_s)

    def end(self, why: str, now_s: float) -> None:
        """Answer all requests, because nothing is sent any more."""
        self._running.turn(now_s)
        self._running.end(why)

    def check_fresh(self, request: Request, now_s: float) -> None:
        """Raise ValueError with a sentence for a stale request."""
        if now_s > self._expires_at(request):
            raise ValueError(STALE)

    # Requests, each from its first check to its outcome. Raise ValueError with a sentence.

    def _take_off(self, request: Request, now_s: float) -> Procedure:
        self.buttons.check_released("take_off")  # its effect is visible only afterwards
        self._running.check_not_running(TAKE_OFF, RESET, EMERGENCY)  # an emergency in the air needs its own press
        now_s = yield self._first_navdata(now_s)
        self._check_take_off(request, now_s)
        if self._watch.needs_bootstrap(now_s):
            sentence = "There is no navdata: pressing reset, so that the GUI requests it from its drone."
            self._do(Note("", sentence, is_expected=True))
            now_s = yield from self._reset_released(self._press("reset"))
            if self.receives_navdata:
                now_s = yield self._navdata_until(now_s + BOOTSTRAP_S)
            self._check_take_off(request, now_s)
        if self.receives_navdata and not self._watch.receives_navdata(now_s):
            without = 'Choose "Stream Navdata" in the GUI, or set receive_navdata to false to fly without it.'
            raise ValueError(f"A landing could not be confirmed: {self.blind_reason(now_s)}. {without}")
        return (yield from self._toggled("takes off", TAKEN_OFF, now_s, OTHER))

    def _check_take_off(self, request: Request, now_s: float) -> None:
        self.check_fresh(request, now_s)
        if self._arbiter.is_held(now_s):
            raise ValueError(HELD_SINCE)
        self._check_flight(False, HARM_IN_THE_AIR, now_s)
        if self.has_motors_off(now_s):
            raise ValueError("The drone's motors are off, as after an emergency: call reset first.")
        if refusal := self._arbiter.limits.takeoff_refusal:
            raise ValueError(refusal)

    def _land(self, request: Request, now_s: float) -> Procedure:
        self.buttons.check_released("take_off")  # its effect is visible only afterwards
        now_s = yield self._first_navdata(now_s)
        if not self._watch.has_drone_state(now_s):
            self.check_fresh(request, now_s)
        if self._lands_already(now_s):
            return "The drone is already landing."
        self._check_flight(True, HARM_ON_GROUND, now_s)
        return (yield from self._toggled("lands", LANDING_OR_LANDED, now_s, f"If it still flies, {LANDS_IT}"))

    def _reset(self, request: Request, now_s: float) -> Procedure:
        self._running.check_not_running(TAKE_OFF)
        now_s = yield self._first_navdata(now_s)
        self.check_fresh(request, now_s)
        self._check_flight(False, HARM_OF_RESET, now_s, f" {CUTS}")
        yield from self._reset_released(self._press("reset"))
        return "reset was pressed and released."

    def _cut_motors(self, request: Request, now_s: float) -> Procedure:
        """Press reset in any state, or share its press. Navdata decides the outcome."""
        until_s = self._expires_at(request)
        if now_s > until_s:
            raise ValueError(too_old(request, now_s))
        self._running.end(CUT_SINCE, but=EMERGENCY)
        self.buttons.break_off(CUT_SINCE, now_s, "take_off")
        if not (press := self.buttons.current("reset")):
            press = self._press("reset")
            self._do(Note("", "Cutting the motors: emergency was called."))
        press.lasts_until_s, asked_at = until_s, now_s
        now_s = yield Until(lambda: press.is_over)
        self._assume_reset(now_s)
        if self._watch.receives_navdata(now_s):
            now_s = yield Until(lambda: self._are_motors_off(asked_at), now_s + SHOWN_S)
        if self._are_motors_off(asked_at):
            return f"The motors are off: navdata reports {self._watch.state}."
        pressed = f"The press of reset was broken off: {press.broken_off}"
        if not press.broken_off:
            pressed = "reset was pressed and released."
        if self._watch.has_drone_state(now_s):
            raise ValueError(f"{pressed} Navdata reports {self._watch.state}.")
        raise ValueError(f"{pressed} It is unknown whether the motors are off: {self.blind_reason(now_s)}.")

    def _are_motors_off(self, since_s: float) -> bool:
        state = self._watch.state
        return state is not None and not state.is_airborne and self._watch.state_s > since_s

    # Parts of requests.

    def _toggled(self, effect: str, states: Set[FlightState], now_s: float, advice: str) -> Procedure:
        """Press take_off, and wait for its effect, as far as navdata shows it."""
        confirmed_s = now_s + self._parameters.press_time + self._parameters.confirm_timeout
        was_seen = self._watch.has_drone_state(now_s)
        now_s = yield from self._released(self._press("take_off"))
        if was_seen:
            now_s = yield Until(lambda: self._watch.state in states, confirmed_s)
            if self._watch.state in states:
                return f"take_off was pressed and released, and the drone {effect}."
        unconfirmed = f"take_off was pressed and released, but it is not confirmed that the drone {effect}"
        if self._watch.has_drone_state(now_s):
            raise ValueError(f"{unconfirmed}: its navdata reports {self._watch.state}. {advice}")
        is_landing = states is LANDING_OR_LANDED
        unconfirmed = f"{unconfirmed}: {self.blind_reason(now_s)}."
        if was_seen or (is_landing and self.receives_navdata):
            self._watch.assume(None)
            raise ValueError(f"{unconfirmed} {advice} {self._advice_sentence}")
        self._watch.assume(not is_landing)
        return unconfirmed

    def _first_navdata(self, now_s: float) -> Until:
        """Wait for navdata, which may show that the drone flies."""
        is_awaited = self.receives_navdata and not self._watch.receives_navdata(now_s)
        return self._navdata_until(self._watch.first_navdata_s()) if is_awaited else Until(lambda: True)

    def _navdata_until(self, until_s: float) -> Until:
        return Until(lambda: self._watch.received_s > -math.inf, until_s)

    def _press(self, button: str) -> Press:
        """Press a button. Raises ValueError with a sentence if that is impossible."""
        return self.buttons.press(Press(button, self._parameters.press_time))

    def _released(self, press: Press) -> Part:
        """Wait for the end of a press. Raises ValueError with a sentence if it was broken off."""
        now_s = yield Until(lambda: press.is_over)
        if not press.broken_off:
            return now_s
        if not press.was_sent:
            raise ValueError(f"{press.button} was not pressed: {press.broken_off}")
        self._watch.assume(None)
        raise ValueError(f"The effect of {press.button} is unknown, as its press was broken off: {press.broken_off}")

    def _reset_released(self, press: Press) -> Part:
        now_s = yield from self._released(press)
        self._assume_reset(now_s)
        return now_s

    def _assume_reset(self, now_s: float) -> None:
        """Assume that a press of reset starts no drone."""
        self._watch.assume(False if self._watch.is_flying(now_s) is False else None)

    def _check_flight(self, is_needed: bool, harm: str, now_s: float, instead: str = "") -> None:
        """Raise ValueError with a sentence unless the drone is in the air, or on the ground, as needed."""
        is_flying = self._watch.is_flying(now_s)
        if is_flying is is_needed:
            return
        if is_flying is None:
            unknown = f"It is unknown whether the drone flies: {self.blind_reason(now_s)}, and {harm}."
            raise ValueError(f"{unknown} {self._advice_sentence} If it flies, {LANDS_IT}{instead}")
        place = "flying" if is_flying else "on the ground"
        if self._watch.has_drone_state(now_s):
            raise ValueError(f"The drone is {place}, by its navdata, and {harm}.{instead}")
        correction = f"If that is wrong, call assume_flying with {'false' if is_flying else 'true'} first."
        raise ValueError(f"The drone is assumed to be {place}, and {harm}. {correction}{instead}")

    # What is known.

    @property
    def may_be_lost(self) -> bool:
        """Whether an emergency waits whose press may not have been received."""
        return bool((press := self.buttons.current("reset")) and press.may_be_lost)

    @property
    def receives_navdata(self) -> bool:
        return self._port_problem is not None

    def has_motors_off(self, now_s: float) -> bool:
        """Return whether navdata reports that the motors are off, as after an emergency."""
        return self._watch.has_drone_state(now_s) and self._watch.state is FlightState.DEFAULT

    def _lands_already(self, now_s: float) -> bool:
        return self._watch.has_drone_state(now_s) and self._watch.state is FlightState.LANDING

    def blind_reason(self, now_s: float) -> str:
        """Return the reason why the drone's state is unknown."""
        if self._port_problem is None:
            return "receive_navdata is false"
        port = self._parameters.navdata_port
        if self._port_problem():
            return f"port {port} for navdata can't be bound"
        if self._watch.receives_navdata(now_s):
            return "navdata has no known state"
        return f"the GUI sends no navdata to port {port}"

    @property
    def advice(self) -> str:
        """Action by which a person can provide the drone's state."""
        look = "look at the drone and call assume_flying"
        return f'choose "Stream Navdata" in the GUI, or {look}' if self.receives_navdata else look

    @property
    def _advice_sentence(self) -> str:
        return f"{self.advice[0].upper()}{self.advice[1:]}."

    def _answer(self, request: Request, is_success: bool, sentence: str) -> None:
        """Pass the outcome to its caller; that of a landing without a request to the log."""
        if request.name == EMERGENCY and not is_success:
            sentence = f"{sentence} {CALL_AGAIN}"
        if isinstance(request, _OwnLanding):
            self._do(Note("", sentence if is_success else f"The vehicle must land, but does not: {sentence}"))
        else:
            self._do(Outcome(request, is_success, sentence))
