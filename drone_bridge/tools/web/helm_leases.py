# SPDX-License-Identifier: Apache-2.0
"""HelmLeases: gives pages the helms of vehicles, and commands these. No socket, no clock."""

import contextlib
import math
import uuid
from collections.abc import Callable, Container, Mapping

from builtin_interfaces.msg import Time

from drone_bridge.session.hold_state import HELM_ENDS_AFTER_S, HelmPilot
from drone_bridge.tools.web.helm import ASK_S, LEASE_S, NEUTRAL, Helm, HelmRefusedError, Motion

HELM_ENDS_WITHIN_S = HELM_ENDS_AFTER_S + 0.5
"""Maximum time that the last command from here is in force, even at a slow bridge, s."""

CONFIRMED_WITHIN_S = 1.0
"""Time in which a bridge reports that a helm has begun, or after HELM_ENDS_AFTER_S that it has ended, s."""

SendCommand = Callable[[str, Motion, Time | None], None]
"""Publishes a command: topic, motion along AXES from -1 to 1, and its time, or None for now."""
AskElsewhere = Callable[[str, HelmPilot], None]
"""Asks the pilot of another server for the helm: topic, and who asks."""
ELSEWHERE = 0
"""Number that stands for a page of another server."""
Notify = Callable[[int, str], None]
"""Sends a sentence to a page, by its number."""


class HelmLeases:
    """Pages at the helms of vehicles. Times are in seconds, of one clock that is never set and counts suspension."""

    def __init__(
        self,
        stopped: Container[str],
        send_command: SendCommand,
        ask_elsewhere: AskElsewhere,
        notify: Notify,
        announce: Callable[[], None],
    ) -> None:
        """Prepare.

        Args:
            stopped: vehicles that are wanted on hold.
            send_command: see `SendCommand`.
            ask_elsewhere: see `AskElsewhere`.
            notify: see `Notify`.
            announce: called when pages have to read a change.
        """
        self._stopped, self._send_command, self.notify, self.announce = stopped, send_command, notify, announce
        self._ask_elsewhere = ask_elsewhere
        self.names: dict[int, str] = {}
        """Names of all pages, by number."""
        self.leases = Helm()
        self.id = uuid.uuid4().hex
        """Id of the pilots of this server."""
        self._commanded_s: dict[str, float] = {}  # time of the last command from here, by vehicle
        self.ending: dict[str, str] = {}
        """Names of the last pilots, by vehicle, until their bridges report that the helm has ended."""

    def set_vehicles(self, topics: Container[str]) -> None:
        """End the leases of vehicles that have disappeared."""
        self.leases.keep_only(topics)
        self._commanded_s = {topic: at_s for topic, at_s in self._commanded_s.items() if topic in topics}
        self.ending = {topic: name for topic, name in self.ending.items() if topic in topics}

    def pilot(self, topic: str) -> HelmPilot:
        """Return the id and the name with which a vehicle is commanded."""
        page = self.leases.pilot_of(topic)
        return HelmPilot(self.id, self.ending.get(topic, "") if page is None else self.names[page])

    def command(self, topic: str, motion: Motion, now_s: float, stamp: Time | None = None) -> None:
        """Command a vehicle."""
        self._commanded_s[topic] = now_s
        self._send_command(topic, motion, stamp)

    def ends_at_s(self, topic: str) -> float:
        """Return when a vehicle without a pilot is free of commands from here at the latest."""
        is_free = self.leases.pilot_of(topic) is None
        return self._commanded_s[topic] + HELM_ENDS_WITHIN_S if is_free and topic in self._commanded_s else 0.0

    def unconfirmed_ends(self, now_s: float) -> list[tuple[str, str]]:
        """Return the vehicles that should have reported that their helm has ended, and its pilots."""
        limit_s = HELM_ENDS_AFTER_S + CONFIRMED_WITHIN_S
        return [each for each in self.ending.items() if now_s - self._commanded_s.get(each[0], -math.inf) > limit_s]

    def confirm_end(self, topic: str) -> None:
        """Record that a vehicle does not follow a helm from here, or that another request has replaced its end."""
        self.ending.pop(topic, None)

    def lose(self, topic: str, to: str) -> None:
        """End the lease of a vehicle that follows another server's pilot."""
        self.confirm_end(topic)
        if (page := self.leases.pilot_of(topic)) is not None:
            self.leases.release(page)
            self.notify(page, f"{to} is at the helm: ask for it.")
            self.announce()

    def take(self, page: int, topic: str, now_s: float) -> None:
        """Give a page the helm. Raises HelmRefusedError."""
        before = self.leases.pilot_of(topic)
        self.leases.take(page, topic, now_s)
        if before is not None and before != page:
            self.notify(before, f"{self.names[page]} has taken the helm, because you did not answer.")
        self._begin(topic, now_s)

    def ask(self, page: int, topic: str, now_s: float, other: str = "") -> None:
        """Request the helm from its pilot, or from the other one of another server. Raises HelmRefusedError."""
        if other and self.leases.pilot_of(topic) is None:
            self._ask_elsewhere(topic, HelmPilot(self.id, self.names[page]))
            self.notify(page, f"{other} has been asked to hand over the helm, and has {ASK_S:g} s to keep it.")
        else:
            self.leases.request(page, topic, now_s)
            self.announce()

    def asked_elsewhere(self, topic: str, name: str, now_s: float) -> None:
        """Handle a request from another server for the helm of a pilot here."""
        with contextlib.suppress(HelmRefusedError):  # without a pilot here, or if the pilot keeps the helm
            self.leases.request(ELSEWHERE, topic, now_s)
            self.names[ELSEWHERE] = f"{name} on another page"
            self.announce()

    def keep(self, page: int, now_s: float) -> None:
        """Refuse all requests for the page's helm. Raises HelmRefusedError."""
        for number in self.leases.keep(page, self.leases.vehicle_of(page), now_s):
            self.notify(number, f"{self.names[page]} keeps the helm.")
        self.announce()

    def hand_over(self, page: int, to: int | None, now_s: float) -> None:
        """Transfer the helm to a page that requested it. Raises HelmRefusedError."""
        topic = self.leases.vehicle_of(page)
        if to == ELSEWHERE and to in self.leases.asked(topic, now_s):
            self.release(page, now_s)
        else:
            self.leases.hand_over(page, topic, to, now_s)
            self._begin(topic, now_s)

    def steer(
        self, page: int, token: int, motion: Mapping[str, float], now_s: float, stamp: Time | None, *, is_held: bool
    ) -> None:
        """Command the page's vehicle, which does not move while it is held. Raises HelmRefusedError."""
        topic, wanted = self.leases.vehicle_of(page), NEUTRAL
        try:
            wanted = self.leases.steer(page, topic, token, motion, now_s, is_held=is_held)
        finally:
            if topic:  # also if it is refused: no other pilot may steer it, though neutral does not move it
                self.command(topic, wanted, now_s, stamp)

    def release(self, page: int, now_s: float) -> None:
        """End the page's lease."""
        for topic in self.leases.release(page):
            self._end(topic, page)
            if topic not in self._stopped:  # already on hold, and neutral on its helm would start a new hold
                self.command(topic, NEUTRAL, now_s)
            self.announce()

    def leave(self, page: int, now_s: float) -> None:
        """Forget a disconnected page."""
        self.leases.forget(page)
        self.release(page, now_s)
        del self.names[page]

    def tick(self, now_s: float) -> None:
        """Stop vehicles with a silent pilot, and end leases. To be called every TOKEN_PERIOD_S / 2."""
        for topic in self.leases.silent(now_s):  # again and again, as no other may steer them
            self.command(topic, NEUTRAL, now_s)
        for page in self.leases.unanswered(ELSEWHERE, now_s):
            self.notify(page, f"{self.names[ELSEWHERE]} may take the helm, because you did not answer.")
            self.release(page, now_s)
        for lease in self.leases.expired(now_s):
            self.notify(lease.pilot, f"You have lost the helm: no command was received from you for {LEASE_S:g} s.")
            self._end(lease.vehicle, lease.pilot)
            self.announce()

    def _end(self, topic: str, page: int) -> None:
        self.ending[topic] = self.names[page]

    def _begin(self, topic: str, now_s: float) -> None:
        self.ending.pop(topic, None)
        self.command(topic, NEUTRAL, now_s)  # its next pilot expects it to stop
        self.announce()
