# SPDX-License-Identifier: Apache-2.0
"""Helm: exclusive manual control of vehicles, with limits on the age of commands. No socket, no clock, no ROS.

A vehicle has one pilot at a time, who holds a lease. The server sends a token ten times per second, and a command
returns the newest one: so its age is known by the server's own clock, and a delayed command is dropped. A pilot without
fresh commands counts as having released the stick. After a lost connection during movement, however short, the pilot
has to release the stick before the vehicle moves again.
"""

import math
import sys
from collections import deque
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from drone_bridge.tools.web.vehicles import AXES
from drone_bridge.wire.json_numbers import is_number

TOKEN_PERIOD_S = 0.1
MAX_AGE_S = 0.3
"""Maximum age of a command's token, and of the last command of a moving vehicle, s."""
LEASE_S = 5.0
"""Time without commands after which a pilot loses the helm, s."""
ASK_S = 10.0
"""Time for a pilot to answer a request for the helm, s. After that, the other pilot may take it."""
_TOKENS_KEPT = 16
_LARGEST = sys.float_info.max
"""Maximum absolute number in a command before clamping. JSON allows any number, and 1e999 becomes infinity."""

Motion = tuple[float, float, float, float]
"""Motion along AXES, each from -1 to 1 of the vehicle's limit."""
NEUTRAL: Motion = (0.0, 0.0, 0.0, 0.0)

LOST = "The connection was lost for a moment"
STOPPED = "The vehicle was stopped"


class HelmRefusedError(Exception):
    """Refusal of a request. The text is the reason, for the pilot."""


@dataclass(slots=True)
class Lease:
    """Lease of a vehicle's helm."""

    pilot: int
    vehicle: str
    received_s: float
    """Time of the last fresh command."""
    motion: Motion = NEUTRAL
    """Last command."""
    must_let_go: str = ""
    """Reason why it was stopped, after which a neutral command must come first; empty without one."""
    taken_s: float = 0.0
    asked: dict[int, float] = field(default_factory=dict)
    """Requests for the helm, with their times."""
    kept_s: float = -math.inf
    """Time of the pilot's last refusal."""


@dataclass(slots=True)
class Helm:
    """Leases of all vehicles. Times are in seconds, of one clock that is never set and counts suspension."""

    _leases: dict[str, Lease] = field(default_factory=dict)
    _tokens: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_TOKENS_KEPT))
    _next_token: int = 1

    def token(self, now_s: float) -> int:
        token = self._next_token
        self._next_token += 1
        self._tokens.append((token, now_s))
        return token

    def age_s(self, token: int, now_s: float) -> float:
        """Return the age of a token, s; infinity for an unknown one, or one that is not among the newest."""
        return next((now_s - given_s for known, given_s in self._tokens if known == token), math.inf)

    def pilot_of(self, vehicle: str) -> int | None:
        """Return the holder of the lease."""
        lease = self._leases.get(vehicle)
        return lease.pilot if lease else None

    def vehicle_of(self, pilot: int) -> str:
        """Return the vehicle of a pilot; "" without one."""
        return next((lease.vehicle for lease in self._leases.values() if lease.pilot == pilot), "")

    def take(self, pilot: int, vehicle: str, now_s: float) -> None:
        """Give the pilot the lease of a vehicle. Another vehicle's lease must be released first.

        Raises:
            HelmRefusedError: another pilot has it, and was not asked for it, or may still answer.
        """
        held = self._leases.get(vehicle)
        if held and held.pilot != pilot and not now_s - held.asked.get(pilot, math.inf) >= ASK_S:
            raise HelmRefusedError("Another pilot is steering this vehicle.")
        self._check_free(pilot, vehicle)
        if not held or held.pilot != pilot:
            self._leases[vehicle] = Lease(pilot, vehicle, now_s, taken_s=now_s)

    def request(self, pilot: int, vehicle: str, now_s: float) -> None:
        """Request the helm from its pilot.

        Raises:
            HelmRefusedError: there is no pilot, or the pilot has just refused.
        """
        lease = self._leases.get(vehicle)
        if lease is None or lease.pilot == pilot:
            raise HelmRefusedError("The helm is free: take it.")
        if now_s - lease.kept_s < ASK_S:
            raise HelmRefusedError("The pilot keeps the helm. Try again later.")
        self._check_free(pilot, vehicle)
        lease.asked.setdefault(pilot, now_s)

    def keep(self, pilot: int, vehicle: str, now_s: float) -> list[int]:
        """Refuse all requests for the helm, and return their senders."""
        lease = self._lease_of(pilot, vehicle)
        asked = list(lease.asked)
        lease.asked.clear()
        lease.kept_s = now_s
        return asked

    def hand_over(self, pilot: int, vehicle: str, to: int | None, now_s: float) -> None:
        """Transfer the lease to a pilot who requested it."""
        if to not in self._lease_of(pilot, vehicle).asked:
            raise HelmRefusedError("The page that requested the helm has disconnected.")
        self._check_free(to, vehicle)
        self._leases[vehicle] = Lease(to, vehicle, now_s, taken_s=now_s)

    def forget(self, pilot: int) -> None:
        """Forget the requests of a disconnected page."""
        for lease in self._leases.values():
            lease.asked.pop(pilot, None)

    def asked(self, vehicle: str, now_s: float) -> dict[int, float]:
        """Return the requests for the helm, with the seconds until each pilot may take it."""
        lease = self._leases.get(vehicle)
        return {pilot: max(0.0, ASK_S - (now_s - since_s)) for pilot, since_s in lease.asked.items()} if lease else {}

    def unanswered(self, asker: int, now_s: float) -> list[int]:
        """Return the pilots who have not answered a request in time."""
        return [each.pilot for each in self._leases.values() if now_s - each.asked.get(asker, math.inf) >= ASK_S]

    def halt(self, vehicle: str) -> None:
        """Stop a vehicle. Its pilot keeps the helm, and has to release the stick first."""
        if lease := self._leases.get(vehicle):
            lease.motion, lease.must_let_go = NEUTRAL, STOPPED

    def steer(
        self, pilot: int, vehicle: str, token: int, motion: Mapping[str, float], now_s: float, *, is_held: bool = False
    ) -> Motion:
        """Return the command for the vehicle, which does not move while it is held.

        Raises:
            HelmRefusedError: the command is not valid now.
        """
        lease = self._lease_of(pilot, vehicle)
        age_s = self.age_s(token, now_s)
        if age_s > MAX_AGE_S:
            age = f"{age_s:.2f} s" if age_s < math.inf else f"more than {_TOKENS_KEPT * TOKEN_PERIOD_S:.1f} s"
            raise HelmRefusedError(f"Stick command dropped: {age} old (limit {MAX_AGE_S} s). The connection is slow.")
        wanted = _read(motion)
        is_late = now_s - lease.received_s > MAX_AGE_S
        lease.received_s = now_s
        if is_late and lease.motion != NEUTRAL:  # it is about to be stopped
            lease.must_let_go = LOST
        if is_held:
            lease.motion, lease.must_let_go = NEUTRAL, STOPPED
            if wanted != NEUTRAL:
                raise HelmRefusedError("The vehicle is on hold. Press Resume, release the stick, then steer again.")
            return NEUTRAL
        if lease.must_let_go and wanted != NEUTRAL:
            raise HelmRefusedError(f"{lease.must_let_go}. Release the stick, then steer again.")
        lease.must_let_go = ""
        lease.motion = wanted
        return wanted

    def release(self, pilot: int) -> list[str]:
        """End the leases of a pilot, and return the vehicles to stop."""
        ended = [vehicle for vehicle, lease in self._leases.items() if lease.pilot == pilot]
        for vehicle in ended:
            del self._leases[vehicle]
        return ended

    def keep_only(self, vehicles: Container[str]) -> None:
        """Forget vehicles that have disappeared."""
        self._leases = {vehicle: lease for vehicle, lease in self._leases.items() if vehicle in vehicles}

    def silent(self, now_s: float) -> list[str]:
        """Return the vehicles with a silent pilot. They are commanded zero until the lease ends."""
        return [lease.vehicle for lease in self._leases.values() if now_s - lease.received_s > MAX_AGE_S]

    def expired(self, now_s: float) -> list[Lease]:
        """End the leases of pilots that have been silent for too long, and return them."""
        gone = [lease for lease in self._leases.values() if now_s - lease.received_s > LEASE_S]
        for lease in gone:
            del self._leases[lease.vehicle]
        return gone

    def taken_s(self, vehicle: str) -> float:
        """Return when the helm of a vehicle was taken."""
        lease = self._leases.get(vehicle)
        return lease.taken_s if lease else math.inf

    def _lease_of(self, pilot: int, vehicle: str) -> Lease:
        lease = self._leases.get(vehicle)
        if lease is None or lease.pilot != pilot:
            raise HelmRefusedError("You are not at the helm of this vehicle.")
        return lease

    def _check_free(self, pilot: int, vehicle: str) -> None:
        """Raise HelmRefusedError if the pilot steers another vehicle."""
        if any(lease.pilot == pilot and lease.vehicle != vehicle for lease in self._leases.values()):
            raise HelmRefusedError("You are steering another vehicle. Release it first.")


def _read(motion: Mapping[str, float]) -> Motion:
    values = []
    for axis in AXES:
        value = motion.get(axis, 0.0)
        if not is_number(value) or not abs(value) <= _LARGEST:
            raise HelmRefusedError(f"{axis} is {value!r:.40}, not a number from -1 to 1.")
        values.append(min(1.0, max(-1.0, float(value))))
    return (values[0], values[1], values[2], values[3])
