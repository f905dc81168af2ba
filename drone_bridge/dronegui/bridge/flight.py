# SPDX-License-Identifier: Apache-2.0
"""Take off, land, reset: which button each takes, when it would do the opposite, and how it is confirmed.

The executor begins presses and waits for what they bring; the link's thread sends the packets, and takes navdata.
"""

import math
import threading
import time
from collections.abc import Callable, Container
from enum import Enum
from typing import Protocol

from rclpy.callback_groups import CallbackGroup
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.task import Future

from drone_bridge.dronegui.codec import FlightState
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.stall_watch import PROCESS

# Waiting in a coroutine.

#: How often the executor looks at what its coroutines wait for; shorter than the time between two blocks of navdata.
WAIT_PERIOD_S = 0.02


class Waits:
    """What coroutines of the executor wait for: conditions that the link's thread brings about."""

    def __init__(self, node: LinkNode, group: CallbackGroup) -> None:
        self._node = node
        self._waits: dict[Future[bool], tuple[Callable[[], bool], float]] = {}
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(WAIT_PERIOD_S, self._look, callback_group=group, clock=clock)
        self._timer.cancel()

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait for a condition; return whether it was met in time."""
        if condition():
            return True
        over: Future[bool] = Future(executor=self._node.executor)
        self._waits[over] = condition, time.monotonic() + timeout_s
        self._timer.reset()
        return bool(await over)

    def _look(self) -> None:
        for over, (condition, deadline_s) in tuple(self._waits.items()):
            if (is_met := condition()) or time.monotonic() >= deadline_s:
                del self._waits[over]
                over.set_result(is_met)
        if not self._waits:
            self._timer.cancel()


# Buttons: presses that survive the loss of some packets.

#: As many packets have to say that a button is pressed, and that it is not, for the edge to be sure to get across.
PACKETS_PER_LEVEL = 3


class Press:
    """One press of a button: held for a time, then released, each for at least PACKETS_PER_LEVEL packets."""

    def __init__(self, hold_s: float) -> None:
        self._hold_s = hold_s
        self._begun_s = elapsed_s()
        self._first_sent_s = 0.0
        self._packets_down = 0
        self._packets_up = 0
        #: Whether it is released, or was given up.
        self.is_over = False
        #: Whether nobody listened to one of the packets.
        self.was_refused = False
        #: Whether this process stood still before the first packet.
        self.is_outdated = False

    @property
    def was_sent(self) -> bool:
        """Whether a packet with the button pressed was sent."""
        return self._packets_down > 0

    @property
    def was_released(self) -> bool:
        return self._packets_up >= PACKETS_PER_LEVEL

    def give_up_outdated(self) -> None:
        """End a press that was to begin before this process stood still."""
        if not self.was_sent and not self.is_over and PROCESS.stood_still_since(self._begun_s):
            self.is_outdated = self.is_over = True

    def is_down(self, now_s: float) -> bool:
        """Return whether the next packet has the button pressed."""
        if self._packets_up or self.is_over:
            return False
        return self._packets_down < PACKETS_PER_LEVEL or now_s < self._first_sent_s + self._hold_s

    def sent(self, was_down: bool, now_s: float, was_refused: bool) -> None:
        """Note a sent packet; `was_refused`: nobody listened to the one before."""
        if was_refused and self._packets_down > 0:
            self.was_refused = self.is_over = True  # a GUI that starts now does not get the rest of it
        if not was_down:
            # One that was on its way already when the press began says nothing about it.
            self._packets_up += self._packets_down > 0
            self.is_over |= self.was_released
            return
        if not self._packets_down:
            self._first_sent_s = now_s
        self._packets_down += 1


class ButtonPanel:
    """The buttons being pressed. The executor begins and ends presses, the link's thread sends them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._presses: dict[str, Press] = {}
        #: Whether there is a link, so that buttons can be pressed.
        self.is_open = False

    def close(self) -> None:
        """Allow no more presses, and give up those in progress."""
        with self._lock:
            self.is_open = False
            for press in self._presses.values():
                press.is_over = True

    def press(self, button: str, hold_s: float) -> Press:
        """Begin a press. Raises ValueError with a sentence if that is impossible."""
        self.check_released(button)
        with self._lock:
            if not self.is_open:
                raise ValueError(
                    f"{button} can't be pressed while nothing is sent: "
                    "the bridge has to be active, and to have found its GUI's host."
                )
            self._presses[button] = Press(hold_s)
            return self._presses[button]

    def check_released(self, button: str) -> None:
        """Raise ValueError with a sentence while the button is pressed. Only the executor begins presses."""
        if button in self._presses:
            raise ValueError(f"{button} is still being pressed.")

    def forget(self, button: str) -> None:
        """Allow a button to be pressed again after its press is over."""
        with self._lock:
            del self._presses[button]

    def down(self, now_s: float) -> frozenset[str]:
        """Return the buttons that are pressed in the next packet.

        None is whose press was to begin before this process stood still: it may mean the opposite by now.
        """
        with self._lock:
            for press in self._presses.values():
                press.give_up_outdated()
            return frozenset(button for button, press in self._presses.items() if press.is_down(now_s))

    def sent(self, down: frozenset[str], now_s: float, was_refused: bool) -> None:
        """Note a packet with these buttons pressed; `was_refused`: nobody listened to the one before."""
        with self._lock:
            for button, press in self._presses.items():
                press.sent(button in down, now_s, was_refused)


# Whether the drone flies: from navdata, from a person, or assumed from presses; unknown until one of them says so.

#: For so long without a refused packet there is a GUI: some machines tell of a refusal once a second at most.
LISTENING_S = 2.0


class Source(Enum):
    """What says whether the drone flies."""

    NAVDATA = "navdata"
    PERSON = "person"
    PRESS = "press"  # its expected effect


class FlightWatch:
    """What is known of the drone, and for how long. Written by both threads, each value at once.

    A press of take_off lands a drone that flies and has any other take off, so what is known has to be true of now:

    - What navdata says holds for as long as navdata says it. Then others may land the drone, or fly it.
    - What a person says, and what a press is expected to bring about, holds until the GUI is gone: while it is, nobody
      knows what others do, and the next GUI does not know that the drone flies.
    """

    def __init__(self, navdata_timeout_s: Callable[[], float], clock: Callable[[], float] = time.monotonic) -> None:
        """`navdata_timeout_s` returns for how long navdata says how it is now."""
        self._navdata_timeout_s = navdata_timeout_s
        self._clock = clock
        self._known: tuple[bool | None, Source | None] = None, None
        self._listening_since_s = -math.inf
        self._unheard_s = -math.inf  # when a packet was refused last, or the first one sent
        #: Whether the GUI is gone, or was, since anything was known.
        self.was_gui_gone = False
        #: Whether reset was pressed since there was navdata last.
        self.was_reset_pressed = False
        #: When there was navdata last, and navdata with a known state, by the clock.
        self.heard_s = self.state_s = -math.inf
        #: The last known state in navdata, however old.
        self.state: FlightState | None = None

    @property
    def sees_drone(self) -> bool:
        """Whether navdata gives the drone's state at present."""
        return self._clock() - self.state_s <= self._navdata_timeout_s()

    @property
    def hears_gui(self) -> bool:
        """Whether navdata arrives at present, whatever its content."""
        return self._clock() - self.heard_s <= self._navdata_timeout_s()

    @property
    def is_flying(self) -> bool | None:
        """Whether the drone flies; None where that is not known, or not any more."""
        is_outdated = self.source is Source.NAVDATA and not self.sees_drone
        return None if is_outdated else self._known[0]

    @property
    def is_lost(self) -> bool:
        """Whether it was known, and is not any more."""
        return self.was_gui_gone or (self.source is Source.NAVDATA and not self.sees_drone)

    @property
    def source(self) -> Source | None:
        """What it is known from; None without a source."""
        return self._known[1]

    @property
    def listened_s(self) -> float:
        """How long navdata has been listened for, since this process last stood still."""
        return min(self._clock() - self._listening_since_s, PROCESS.running_s())

    def listen(self) -> None:
        """Start over, as the GUI may be another one; what a person has said, or a press has done, is kept."""
        self.state, self.heard_s, self.state_s = None, -math.inf, -math.inf
        self.was_reset_pressed = False
        self._listening_since_s = self._unheard_s = self._clock()

    def note(self, state: FlightState | None) -> None:
        """Handle a state in navdata, None if missing or unknown."""
        now_s = self._clock()
        self.was_reset_pressed = False  # if the GUI falls silent after this, it may be a new one
        if state is not None:
            self.state, self.state_s = state, now_s
            self.assume(state.is_airborne, Source.NAVDATA)
        self.heard_s = now_s

    def assume(self, is_flying: bool | None, source: Source) -> None:
        """Set whether the drone flies; None: it is not known any more."""
        self._known, self.was_gui_gone = (is_flying, source), False

    def begin(self, is_flying: bool) -> None:
        """Set what a person says of the start of the process; no effect once anything else was known or assumed."""
        if self.source is None and not self.was_gui_gone:
            self.assume(is_flying, Source.PERSON)

    def refused(self) -> bool:
        """Note that nobody listened to a packet; return whether that ends what was known.

        What a person said while there was no GUI yet holds for the one that is started then.
        """
        was_listening, self._unheard_s = self._clock() - self._unheard_s > LISTENING_S, self._clock()
        if self.source is None or (self.source is Source.PERSON and not was_listening):
            return False
        was_known = self.is_flying is not None
        self._known, self.was_gui_gone, self.was_reset_pressed = (None, None), True, False
        self.state, self.heard_s, self.state_s = None, -math.inf, -math.inf
        return was_known


# The commands.


#: How long a press waits for the link of a bridge that has just been activated.
LINK_TIMEOUT_S = 1.0
#: What a drone that was told to take off shows, and one that was told to land.
TAKEN_OFF = frozenset(state for state in FlightState if state.is_airborne and state is not FlightState.LANDING)
LANDING_OR_LANDED = frozenset({FlightState.LANDING, FlightState.LANDED, FlightState.INIT})

#: What a press of take_off, or the reset before it, would do to a drone that is not where it is believed to be.
HARM_IN_THE_AIR = "The take_off button would land a drone that flies, and reset would stop its motors."
HARM_ON_GROUND = "The take_off button would make a drone on the ground fly."
HARM_OF_RESET = "reset would stop the motors of a drone that flies."
STOOD_STILL = "This process has stood still since it was called: call it again."
ALL_THE_SAME = "If its motors are to stop all the same, call assume_flying with true, and reset again."


class Opened(Protocol):
    """A port that may be taken by somebody else."""

    @property
    def is_open(self) -> bool: ...


class FlightCommands:
    """Carries out flight commands by pressing buttons. Every refusal is a ValueError with a sentence."""

    def __init__(
        self,
        node: LinkNode,
        buttons: ButtonPanel,
        watch: FlightWatch,
        waits: Waits,
        assume_flying: Callable[[bool], None],
        *,
        expects_link: Callable[[], bool],
    ) -> None:
        """Begin without a link.

        Args:
            node: for parameters and the log.
            buttons: to press.
            watch: what the drone is observed to do.
            waits: how coroutines wait.
            assume_flying: called with the expected effect of a press that navdata can't confirm.
            expects_link: returns whether a link may open soon.
        """
        self._expects_link = expects_link
        self._node = node
        self._buttons = buttons
        self._watch = watch
        self._waits = waits
        self._assume_flying = assume_flying
        self._is_taking_off = False
        self.receives_navdata = True
        self.navdata_port: Opened | None = None  # while there is a link, and navdata is received

    @property
    def advice(self) -> str:
        """How a person makes the drone's state known, as a clause."""
        look = "look at the drone and call assume_flying"
        return f'choose "Stream Navdata" in the GUI, or {look}' if self.receives_navdata else look

    @property
    def blind_reason(self) -> str:
        """Why the drone's state is unknown, as a clause."""
        if not self.receives_navdata:
            return "receive_navdata is false"
        port = self._node.parameters["navdata_port"]
        if self.navdata_port and not self.navdata_port.is_open:
            return f"port {port} can't be listened on"
        if self._watch.hears_gui:
            return "navdata has no known state"
        if self._watch.was_reset_pressed:
            return f"the GUI sends none to port {port}, although reset was pressed"
        return f"the GUI sends none to port {port}"

    async def take_off(self) -> str:
        """Take off, and return the outcome. Makes the GUI request navdata first, if necessary."""
        self._buttons.check_released("take_off")  # what it does shows only afterwards
        if self._is_taking_off:
            raise ValueError("takeoff is under way.")
        self._is_taking_off, asked_s = True, elapsed_s()
        try:
            await self._wait_for_link()
            await self._wait_for_first_navdata()
            self._check_age(asked_s)
            self._check_on_ground()
            if self.needs_bootstrap:
                await self._bootstrap()
                self._check_age(asked_s)
                self._check_on_ground()
            return await self._press_take_off()
        finally:
            self._is_taking_off = False

    async def land(self) -> str:
        """Land, and return the outcome. Only a landing that navdata confirms is a success."""
        self._buttons.check_released("take_off")  # what it does shows only afterwards
        asked_s = elapsed_s()
        await self._wait_for_link()
        await self._wait_for_first_navdata()
        if not self._watch.sees_drone:  # else it is known whether the button lands it
            self._check_age(asked_s)
        if self._watch.sees_drone and self._watch.state is FlightState.LANDING:
            return "The drone is landing already."
        self._check_in_the_air()
        if self._watch.sees_drone:
            if await self._press_and_wait_for("take_off", LANDING_OR_LANDED):
                return "take_off was pressed and released, and the drone lands."
            raise ValueError(
                f"take_off was pressed and released, but the drone does not land: {self._reported_state} "
                'If it still flies, choose "Land" in the GUI.'
            )
        await self._press("take_off")
        unseen = f"take_off was pressed and released. The landing is not confirmed: {self.blind_reason}."
        if not self.receives_navdata:
            self._assume_flying(False)
            return unseen
        self._watch.assume(None, Source.PRESS)
        raise ValueError(
            f'{unseen} If the drone still flies, choose "Land" in the GUI, or "Stream Navdata" and call land again. '
            "If it is on the ground, call assume_flying with false."
        )

    async def reset(self) -> str:
        """Press reset; in the air it is an emergency stop, so not where the state was known and is not any more."""
        asked_s = elapsed_s()
        await self._wait_for_link()
        if self._watch.is_lost:
            await self._wait_for_first_navdata()
        self._check_age(asked_s)
        if self._watch.is_lost:
            raise ValueError(f"{self._unknown} {HARM_OF_RESET} {self._advice_sentence} {ALL_THE_SAME}")
        message = await self._press("reset")
        if self._watch.is_flying and not self._watch.sees_drone:
            if self.receives_navdata:
                self._watch.assume(None, Source.PRESS)
            else:
                self._assume_flying(False)
        return message

    def _check_age(self, asked_s: float) -> None:
        """Raise ValueError if this process has stood still since then: a press may mean the opposite by now."""
        if PROCESS.stood_still_since(asked_s):
            raise ValueError(STOOD_STILL)

    def _check_on_ground(self) -> None:
        if self._watch.is_flying is None:
            raise ValueError(f"{self._unknown} {HARM_IN_THE_AIR} {self._advice_sentence}")
        if not self._watch.is_flying:
            return
        if self._watch.sees_drone:
            raise ValueError("The drone flies, as its navdata says, and the take_off button would land it.")
        raise ValueError(
            "The drone is assumed to fly, and the take_off button would land it. If it is on the ground, "
            "call assume_flying with false first."
        )

    def _check_in_the_air(self) -> None:
        if self._watch.is_flying is None:
            raise ValueError(f"{self._unknown} {HARM_ON_GROUND} {self._advice_sentence}")
        if self._watch.is_flying:
            return
        if self._watch.sees_drone:
            raise ValueError(
                "The drone is on the ground, as its navdata says, and the take_off button would make it fly."
            )
        raise ValueError(
            "The drone is assumed to be on the ground, and the take_off button would make it fly. If it flies, "
            "call assume_flying with true first."
        )

    @property
    def _unknown(self) -> str:
        gone = "nobody listened at the GUI's port, so that it may be another GUI by now, and "
        return (
            f"It is not known whether the drone flies: {gone if self._watch.was_gui_gone else ''}{self.blind_reason}."
        )

    @property
    def _advice_sentence(self) -> str:
        return f'{self.advice[0].upper()}{self.advice[1:]}. If it flies, "Land" in the GUI lands it.'

    async def _wait_for_link(self) -> None:
        """Give a link, which opens in its own thread after activation, the time to open."""
        if self._expects_link():
            await self._waits.until(lambda: self._buttons.is_open or not self._expects_link(), LINK_TIMEOUT_S)

    async def _wait_for_navdata(
        self, wanted: Container[FlightState] | None, timeout_s: float, since_s: float | None = None
    ) -> bool:
        """Wait for navdata after a time, now by default, with one of these states or any; return whether it came."""
        after_s, watch = time.monotonic() if since_s is None else since_s, self._watch

        def has_come() -> bool:
            if wanted is None:
                return watch.heard_s > after_s
            return watch.state_s > after_s and watch.state in wanted

        await self._waits.until(lambda: has_come() or not self._buttons.is_open, timeout_s)
        return has_come()

    async def _wait_for_first_navdata(self) -> None:
        """Wait for navdata, which may show that the drone is flying."""
        left_s = self._node.parameters["navdata_timeout"] - self._watch.listened_s
        if self.navdata_port and not self._watch.hears_gui and left_s > 0:
            await self._wait_for_navdata(None, left_s)

    @property
    def needs_bootstrap(self) -> bool:
        """Whether a take-off begins by pressing reset, which in the air would stop the motors."""
        if not self._node.parameters["bootstrap"] or self._watch.hears_gui or self._watch.was_reset_pressed:
            return False
        return self._watch.source is Source.PERSON and not self._watch.is_flying

    async def _bootstrap(self) -> None:
        """Make the GUI request navdata from a drone that a person says is on the ground."""
        if self.navdata_port and not self.navdata_port.is_open:
            # The drone may fly, and its navdata go to somebody else: reset would then be an emergency stop.
            raise ValueError(
                f"It is unknown whether the drone is on the ground: {self.blind_reason}. Free that port, or set "
                "receive_navdata to false."
            )
        self._node.inform("There is no navdata: reset is pressed, so that the GUI requests it from its drone.")
        await self._press("reset")
        if self.receives_navdata:
            await self._wait_for_navdata(None, self._node.parameters["bootstrap_timeout"])

    async def _press_take_off(self) -> str:
        """Press take_off for a drone on the ground."""
        if not self._watch.sees_drone:
            await self._press("take_off")
            self._assume_flying(True)
            way_down = ' Choose "Stream Navdata" in the GUI, so that land works.' if self.receives_navdata else ""
            return f"take_off was pressed and released. The take-off is not confirmed: {self.blind_reason}.{way_down}"
        if await self._press_and_wait_for("take_off", TAKEN_OFF):
            return "take_off was pressed and released, and the drone takes off."
        raise ValueError(f"take_off was pressed and released, but the drone does not take off: {self._reported_state}")

    async def _press_and_wait_for(self, button: str, wanted: frozenset[FlightState]) -> bool:
        """Press a button; return whether navdata then shows one of these states."""
        timeout_s = self._node.parameters["press_time"] + self._node.parameters["confirm_timeout"]
        began_s = time.monotonic()
        await self._press(button)
        return await self._wait_for_navdata(wanted, began_s + timeout_s - time.monotonic(), began_s)

    @property
    def _reported_state(self) -> str:
        if not self._watch.sees_drone:
            return "navdata has ended."
        return f"its navdata says {self._node.statistics.facts['flight state']}."

    async def _press(self, button: str) -> str:
        """Press a button, and return a sentence after its release."""
        press = self._buttons.press(button, self._node.parameters["press_time"])
        await self._waits.until(lambda: press.is_over, math.inf)
        self._buttons.forget(button)
        if press.was_refused:
            raise ValueError(f"{button} was not pressed: nobody listens at {self._node.statistics.peer}.")
        if press.is_outdated:
            raise ValueError(f"{button} was not pressed: {STOOD_STILL}")
        if not press.was_sent:
            raise ValueError(f"{button} was not pressed: nothing could be sent any more.")
        if button == "reset":
            self._watch.was_reset_pressed = True
        if not press.was_released:
            raise ValueError(f"{button} was pressed, and then nothing could be sent any more.")
        return f"{button} was pressed and released."
