# SPDX-License-Identifier: Apache-2.0
"""HelmLeases: gives pages the helms of vehicles, and commands these. No socket, no clock."""

import math
from collections.abc import Callable, Container, Mapping

from builtin_interfaces.msg import Time

from drone_bridge.session.hold_state import HELM_ENDS_AFTER_S
from drone_bridge.tools.web.helm import LEASE_S, NEUTRAL, Helm, Motion

HELM_ENDS_WITHIN_S = HELM_ENDS_AFTER_S + 0.5
"""Maximum time that the last command from here is in force, even at a slow bridge, s."""

HOLD_REPORTED_WITHIN_S = 5.0
"""Time after the last command in which a bridge reports that its helm has ended, also on a slow machine, s."""

SendCommand = Callable[[str, Motion, Time | None], None]
"""Publishes a command: topic, motion along AXES from -1 to 1, and its time, or None for now."""
Notify = Callable[[int, str], None]
"""Sends a sentence to a page, by its number."""


class HelmLeases:
    """Pages at the helms of vehicles. Times are in seconds, of one clock that is never set and counts suspension."""

    def __init__(
        self, stopped: Container[str], send_command: SendCommand, notify: Notify, announce: Callable[[], None]
    ) -> None:
        """Prepare.

        Args:
            stopped: vehicles that are wanted on hold.
            send_command: see `SendCommand`.
            notify: see `Notify`.
            announce: called when pages have to read a change.
        """
        self._stopped, self._send_command, self.notify, self.announce = stopped, send_command, notify, announce
        self.names: dict[int, str] = {}
        """Names of all pages, by number."""
        self.leases = Helm()
        self.ended: dict[str, str] = {}
        """Names of the last pilots, by vehicle, for holds because their helm ended."""
        self._commanded_s: dict[str, float] = {}  # time of the last command from here, by vehicle

    def set_vehicles(self, topics: Container[str]) -> None:
        """End the leases of vehicles that have disappeared."""
        self.leases.keep_only(topics)
        self._commanded_s = {topic: at_s for topic, at_s in self._commanded_s.items() if topic in topics}

    def command(self, topic: str, motion: Motion, now_s: float, stamp: Time | None = None) -> None:
        """Command a vehicle."""
        self._commanded_s[topic] = now_s
        self._send_command(topic, motion, stamp)

    def ends_at_s(self, topic: str) -> float:
        """Return when a vehicle without a pilot is free of commands from here at the latest."""
        is_free = self.leases.pilot_of(topic) is None
        return self._commanded_s[topic] + HELM_ENDS_WITHIN_S if is_free and topic in self._commanded_s else 0.0

    def is_ending(self, topic: str, now_s: float) -> bool:
        """Return whether a vehicle is expected to report a hold, as its helm has ended."""
        return topic in self.ended and now_s - self._commanded_s.get(topic, -math.inf) < HOLD_REPORTED_WITHIN_S

    def take(self, page: int, topic: str, now_s: float) -> None:
        """Give a page the helm. Raises HelmRefusedError."""
        before = self.leases.pilot_of(topic)
        self.leases.take(page, topic, now_s)
        if before is not None and before != page:
            self.notify(before, f"{self.names[page]} has taken the helm, because you did not answer.")
        self._begin(topic, now_s)

    def ask(self, page: int, topic: str, now_s: float) -> None:
        """Request the helm from its pilot. Raises HelmRefusedError."""
        self.leases.request(page, topic, now_s)
        self.announce()

    def keep(self, page: int, now_s: float) -> None:
        """Refuse all requests for the page's helm. Raises HelmRefusedError."""
        for number in self.leases.keep(page, self.leases.vehicle_of(page), now_s):
            self.notify(number, f"{self.names[page]} keeps the helm.")
        self.announce()

    def hand_over(self, page: int, to: int | None, now_s: float) -> None:
        """Transfer the helm to a page that requested it. Raises HelmRefusedError."""
        topic = self.leases.vehicle_of(page)
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
            if topic not in self._stopped:  # already on hold, and neutral on its helm would start a new hold
                self.command(topic, NEUTRAL, now_s)
            self.ended[topic] = self.names[page]
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
        for lease in self.leases.expired(now_s):
            self.notify(lease.pilot, f"You have lost the helm: no command was received from you for {LEASE_S:g} s.")
            self.ended[lease.vehicle] = self.names[lease.pilot]
            self.announce()
        for topic in [each for each in self.ended if each in self._commanded_s and not self.is_ending(each, now_s)]:
            del self._commanded_s[topic]
            self.announce()

    def _begin(self, topic: str, now_s: float) -> None:
        self.ended.pop(topic, None)
        self.command(topic, NEUTRAL, now_s)  # its next pilot expects it to stop
        self.announce()
