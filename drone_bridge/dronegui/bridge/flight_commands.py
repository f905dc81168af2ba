# SPDX-License-Identifier: Apache-2.0
"""Take off, land, reset: which button each takes, when it would do the opposite, and how it is confirmed.

In the executor, but for what the link's thread says through `buttons`, `watch` and `navdata_port`.
"""

import threading
import time
from collections.abc import Callable
from typing import Final

from drone_bridge.dronegui.bridge.buttons import ButtonPanel
from drone_bridge.dronegui.bridge.flight_watch import FlightWatch, Source
from drone_bridge.dronegui.bridge.navdata import NavdataPort
from drone_bridge.dronegui.codec import FlightState
from drone_bridge.ros.link_node import LinkNode

#: How long a press waits for the link of a bridge that has just been activated.
LINK_TIMEOUT_S: Final = 1.0
#: What a drone that was told to take off shows, and one that was told to land.
TAKEN_OFF: Final = frozenset(state for state in FlightState if state.is_airborne and state is not FlightState.LANDING)
LANDING_OR_LANDED: Final = frozenset({FlightState.LANDING, FlightState.LANDED, FlightState.INIT})
ANY_STATE: Final = frozenset({None, *FlightState})

#: What a press of take_off, or the reset before it, would do to a drone that is not where it is believed to be.
HARM_IN_THE_AIR: Final = "The take_off button would land a drone that flies, and reset would stop its motors."
HARM_ON_GROUND: Final = "The take_off button would make a drone on the ground fly."


class FlightCommands:
    """Carries out flight commands by pressing buttons. Every refusal is a ValueError with a sentence."""

    def __init__(
        self,
        node: LinkNode,
        buttons: ButtonPanel,
        watch: FlightWatch,
        assume_flying: Callable[[bool], None],
        *,
        expects_link: Callable[[], bool],
        wake_executor: Callable[[], None],
    ) -> None:
        """Begin without a link.

        Args:
            node: for parameters and the log.
            buttons: to press.
            watch: what the drone is observed to do.
            assume_flying: called with the expected effect of a press that navdata can't confirm.
            expects_link: returns whether a link may open soon.
            wake_executor: makes the executor look for waits that are over. For any thread.
        """
        self._expects_link = expects_link
        self._wake_executor = wake_executor
        self._node = node
        self._buttons = buttons
        self._watch = watch
        self._assume_flying = assume_flying
        self._is_taking_off = False
        self.receives_navdata = True
        self.navdata_port: NavdataPort | None = None  # while there is a link, and navdata is received
        self.was_reset_pressed = False  # since there was navdata last

    @property
    def sees_drone(self) -> bool:
        """Whether navdata gives the drone's state at present."""
        return bool(self._watch.state_age_s <= self._node.parameters["navdata_timeout"])

    @property
    def hears_gui(self) -> bool:
        """Whether navdata arrives at present, whatever its content."""
        return bool(self._watch.silence_s <= self._node.parameters["navdata_timeout"])

    @property
    def is_flying(self) -> bool | None:
        """Whether the drone flies; None where it is unknown.

        That it is on the ground is known for as long as navdata says so: once navdata has ended, others may fly it.
        """
        is_flying = self._watch.is_flying
        is_outdated = self._watch.source is Source.NAVDATA and not self.sees_drone
        return None if is_outdated and not is_flying else is_flying

    @property
    def advice(self) -> str:
        """How a person makes the drone's state known, as a clause."""
        look = "look at the drone and call assume_flying"
        return f'choose "Start navdata" in the GUI, or {look}' if self.receives_navdata else look

    @property
    def blind_reason(self) -> str:
        """Why the drone's state is unknown, as a clause."""
        if not self.receives_navdata:
            return "receive_navdata is false"
        port = self._node.parameters["navdata_port"]
        if self.navdata_port and not self.navdata_port.is_open:
            return f"port {port} can't be listened on"
        if self.hears_gui:
            return "navdata has no known state"
        if self.was_reset_pressed:
            return f"the GUI sends none to port {port}, although reset was pressed"
        return f"the GUI sends none to port {port}"

    async def take_off(self) -> str:
        """Take off, and return the outcome. Makes the GUI request navdata first, if necessary."""
        self._buttons.check_released("take_off")  # what it does shows only afterwards
        if self._is_taking_off:
            raise ValueError("takeoff is under way.")
        self._is_taking_off = True
        try:
            await self._wait_for_link()
            await self._wait_for_first_navdata()
            self._check_on_ground()
            if self.needs_bootstrap:
                await self._bootstrap()
                self._check_on_ground()
            return await self._press_take_off()
        finally:
            self._is_taking_off = False

    async def land(self) -> str:
        """Land, and return the outcome. Only a landing that navdata confirms is a success."""
        self._buttons.check_released("take_off")  # what it does shows only afterwards
        await self._wait_for_link()
        await self._wait_for_first_navdata()
        if self.sees_drone and self._watch.state is FlightState.LANDING:
            return "The drone is landing already."
        self._check_in_the_air()
        if self.sees_drone:
            if await self._press_and_wait_for("take_off", LANDING_OR_LANDED):
                return "take_off was pressed and released, and the drone lands."
            if not self.sees_drone:
                self._watch.assume(None, Source.PRESS)
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
            f'{unseen} If the drone still flies, choose "Land" in the GUI, or "Start navdata" and call land again. '
            "If it is on the ground, call assume_flying with false."
        )

    async def reset(self) -> str:
        """Press reset in any state; in the air it is an emergency stop."""
        await self._wait_for_link()
        message = await self._press("reset")
        if self._watch.is_flying and not self.sees_drone:
            if self.receives_navdata:
                self._watch.assume(None, Source.PRESS)
            else:
                self._assume_flying(False)
        return message

    def _check_on_ground(self) -> None:
        if self.is_flying is None:
            raise ValueError(f"{self._unknown} {HARM_IN_THE_AIR} {self._advice_sentence}")
        if not self.is_flying:
            return
        if self.sees_drone:
            raise ValueError("The drone flies, as its navdata says, and the take_off button would land it.")
        raise ValueError(
            "The drone is assumed to fly, and the take_off button would land it. If it is on the ground, "
            "call assume_flying with false first."
        )

    def _check_in_the_air(self) -> None:
        if self.is_flying is None:
            land = 'If it flies, "Land" in the GUI lands it.'
            raise ValueError(f"{self._unknown} {HARM_ON_GROUND} {self._advice_sentence} {land}")
        if self.is_flying:
            return
        if self.sees_drone:
            raise ValueError(
                "The drone is on the ground, as its navdata says, and the take_off button would make it fly."
            )
        raise ValueError(
            "The drone is assumed to be on the ground, and the take_off button would make it fly. If it flies, "
            "call assume_flying with true first."
        )

    @property
    def _unknown(self) -> str:
        return f"It is not known whether the drone flies: {self.blind_reason}."

    @property
    def _advice_sentence(self) -> str:
        return f"{self.advice[0].upper()}{self.advice[1:]}."

    async def _wait_for_link(self) -> None:
        """Give a link, which opens in its own thread after activation, the time to open."""
        if self._buttons.is_open or not self._expects_link():
            return
        wait = self._buttons.until_open(time.monotonic() + LINK_TIMEOUT_S)
        overdue = threading.Timer(LINK_TIMEOUT_S, self._wake_executor)
        overdue.daemon = True
        overdue.start()
        self._wake_executor()  # the link may have opened meanwhile
        await wait
        overdue.cancel()

    async def _wait_for_first_navdata(self) -> None:
        """Wait for navdata, which may show that the drone is flying."""
        left_s = self._node.parameters["navdata_timeout"] - self._watch.listened_s
        if self.navdata_port and not self.hears_gui and left_s > 0:
            await self._watch.wait_for(ANY_STATE, left_s).over

    @property
    def needs_bootstrap(self) -> bool:
        """Whether a take-off begins by pressing reset, which in the air would stop the motors."""
        if not self._node.parameters["bootstrap"] or self.hears_gui or self.was_reset_pressed:
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
            await self._watch.wait_for(ANY_STATE, self._node.parameters["bootstrap_timeout"]).over

    async def _press_take_off(self) -> str:
        """Press take_off for a drone on the ground."""
        if not self.sees_drone:
            await self._press("take_off")
            self._assume_flying(True)
            way_down = ' Choose "Start navdata" in the GUI, so that land works.' if self.receives_navdata else ""
            return f"take_off was pressed and released. The take-off is not confirmed: {self.blind_reason}.{way_down}"
        if await self._press_and_wait_for("take_off", TAKEN_OFF):
            return "take_off was pressed and released, and the drone takes off."
        raise ValueError(f"take_off was pressed and released, but the drone does not take off: {self._reported_state}")

    async def _press_and_wait_for(self, button: str, wanted: frozenset[FlightState]) -> bool:
        """Press a button; return whether navdata then shows one of these states."""
        timeout_s = self._node.parameters["press_time"] + self._node.parameters["confirm_timeout"]
        wait = self._watch.wait_for(wanted, timeout_s)
        await self._press(button)
        await wait.over
        return wait.was_seen

    @property
    def _reported_state(self) -> str:
        if not self.sees_drone:
            return "navdata has ended."
        return f"its navdata says {self._node.statistics.facts['flight state']}."

    async def _press(self, button: str) -> str:
        """Press a button, and return a sentence after its release."""
        press = self._buttons.press(button, self._node.parameters["press_time"])
        await press.over
        self._buttons.forget(button)
        if press.was_refused:
            raise ValueError(f"{button} was not pressed: nobody listens at {self._node.statistics.peer}.")
        if not press.was_sent:
            raise ValueError(f"{button} was not pressed: nothing could be sent any more.")
        if button == "reset":
            self.was_reset_pressed = True
        if not press.was_released:
            raise ValueError(f"{button} was pressed, and then nothing could be sent any more.")
        return f"{button} was pressed and released."
