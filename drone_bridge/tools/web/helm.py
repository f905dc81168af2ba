# SPDX-License-Identifier: Apache-2.0
"""Who steers which vehicle, and whether a command may still move it. No socket, no clock, no ROS.

A vehicle has one pilot at a time, who holds a lease. The server hands out a token ten times per second, and a command
echoes the newest one: so its age is known by the server's own clock, and one that was stuck in a queue moves nothing. A
pilot without fresh commands counts as having let go. After a connection was lost in mid-movement, however briefly, the
pilot has to let go of the stick before the vehicle moves again.
"""

import math
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from drone_bridge.tools.web.vehicles import AXES
from drone_bridge.wire.json_numbers import is_number

TOKEN_PERIOD_S = 0.1
MAX_AGE_S = 0.3
"""Of a token in a command, and of the last command of a vehicle that moves."""
LEASE_S = 5.0
"""A pilot who is silent for longer than this has left."""
ASK_S = 10.0
"""How long a pilot may take to answer a request for the helm; then its sender may take the helm."""
_TOKENS_KEPT = 16
_LARGEST = sys.float_info.max
"""Of a command's numbers, which are clamped. JSON's have any number of digits, and 1e999 becomes infinity."""

Motion = tuple[float, float, float, float]
"""Along AXES, each from -1 to 1 of what the vehicle is allowed."""
NEUTRAL: Motion = (0.0, 0.0, 0.0, 0.0)

LOST = "The connection was lost for a moment"
STOPPED = "The vehicle was stopped"


class RefusedError(Exception):
    """A request is refused; the text tells the pilot why."""


@dataclass(slots=True)
class Lease:
    """A pilot at the helm of a vehicle."""

    pilot: int
    vehicle: str
    heard_s: float
    """When the last fresh command came."""
    motion: Motion = NEUTRAL
    """The last command."""
    must_let_go: str = ""
    """Why it was stopped, so that only a neutral command may follow; empty if any may."""
    taken_s: float = 0.0
    asked: dict[int, float] = field(default_factory=dict)
    """Who asks for the helm, and since when."""
    kept_s: float = -math.inf
    """When the pilot last refused that."""


@dataclass(slots=True)
class Helm:
    """The leases of all vehicles. Times are of one clock that is never set and counts suspension, in seconds."""

    _leases: dict[str, Lease] = field(default_factory=dict)
    _tokens: deque[tuple[int, float]] = field(default_factory=lambda: deque(maxlen=_TOKENS_KEPT))
    _next_token: int = 1

    def token(self, now_s: float) -> int:
        token = self._next_token
        self._next_token += 1
        self._tokens.append((token, now_s))
        return token

    def pilot_of(self, vehicle: str) -> int | None:
        """Return who holds the lease."""
        lease = self._leases.get(vehicle)
        return lease.pilot if lease else None

    def take(self, pilot: int, vehicle: str, now_s: float) -> None:
        """Give the pilot the lease of a vehicle; that of another one has to be released before.

        Raises:
            RefusedError: somebody else has it, and got no request for it, or may still answer.
        """
        held = self._leases.get(vehicle)
        if held and held.pilot != pilot and not now_s - held.asked.get(pilot, math.inf) >= ASK_S:
            raise RefusedError("Somebody else is steering this vehicle.")
        self._check_free(pilot, vehicle)
        if not held or held.pilot != pilot:
            self._leases[vehicle] = Lease(pilot, vehicle, now_s, taken_s=now_s)

    def ask(self, pilot: int, vehicle: str, now_s: float) -> None:
        """Request the helm of its pilot.

        Raises:
            RefusedError: nobody steers, or the pilot has just refused.
        """
        lease = self._leases.get(vehicle)
        if lease is None or lease.pilot == pilot:
            raise RefusedError("Nobody else is steering this vehicle: take the helm.")
        if now_s - lease.kept_s < ASK_S:
            raise RefusedError("The pilot keeps the helm: try again in a while.")
        self._check_free(pilot, vehicle)
        lease.asked.setdefault(pilot, now_s)

    def keep(self, pilot: int, vehicle: str, now_s: float) -> list[int]:
        """Say no to all who ask, and return them."""
        lease = self._lease_of(pilot, vehicle)
        asked = list(lease.asked)
        lease.asked.clear()
        lease.kept_s = now_s
        return asked

    def hand_over(self, pilot: int, vehicle: str, to: int, now_s: float) -> None:
        """Give the lease to somebody who requested it."""
        if to not in self._lease_of(pilot, vehicle).asked:
            raise RefusedError("The page that requested the helm is gone.")
        self._check_free(to, vehicle)
        self._leases[vehicle] = Lease(to, vehicle, now_s, taken_s=now_s)

    def forget(self, pilot: int) -> None:
        """Forget the requests of somebody who has gone."""
        for lease in self._leases.values():
            lease.asked.pop(pilot, None)

    def asked(self, vehicle: str, now_s: float) -> dict[int, float]:
        """Return who asks for the helm, and in how many seconds each may take it."""
        lease = self._leases.get(vehicle)
        return {pilot: max(0.0, ASK_S - (now_s - since_s)) for pilot, since_s in lease.asked.items()} if lease else {}

    def halt(self, vehicle: str) -> None:
        """Stop a vehicle; who steers it keeps the helm, and has to let go of the stick."""
        if lease := self._leases.get(vehicle):
            lease.motion, lease.must_let_go = NEUTRAL, STOPPED

    def steer(
        self, pilot: int, vehicle: str, token: int, motion: Mapping[str, float], now_s: float, *, is_held: bool = False
    ) -> Motion:
        """Return the command for the vehicle, which does not move while it is held.

        Raises:
            RefusedError: it is not to be commanded.
        """
        lease = self._lease_of(pilot, vehicle)
        age_s = self._age(token, now_s)
        if age_s > MAX_AGE_S:
            age = f"{age_s:.2f} s" if age_s < math.inf else f"more than {_TOKENS_KEPT * TOKEN_PERIOD_S:.1f} s"
            raise RefusedError(f"The command came too late: it was {age} old, and {MAX_AGE_S} s is allowed.")
        wanted = _read(motion)
        is_late = now_s - lease.heard_s > MAX_AGE_S
        lease.heard_s = now_s
        if is_late and lease.motion != NEUTRAL:  # on the way to being stopped
            lease.must_let_go = LOST
            lease.motion = NEUTRAL
        if is_held:
            lease.motion, lease.must_let_go = NEUTRAL, STOPPED
            if wanted != NEUTRAL:
                raise RefusedError("The vehicle holds: press Resume, let go of the stick, then steer again.")
            return NEUTRAL
        if lease.must_let_go and wanted != NEUTRAL:
            raise RefusedError(f"{lease.must_let_go}: let go of the stick, then steer again.")
        lease.must_let_go = ""
        lease.motion = wanted
        return wanted

    def release(self, pilot: int) -> list[str]:
        """End the leases of a pilot, and return the vehicles that are to be stopped."""
        ended = [vehicle for vehicle, lease in self._leases.items() if lease.pilot == pilot]
        for vehicle in ended:
            del self._leases[vehicle]
        return ended

    def remove(self, vehicle: str) -> None:
        """Forget a vehicle that has gone."""
        self._leases.pop(vehicle, None)

    def overdue(self, now_s: float) -> list[str]:
        """Return the vehicles that are to be stopped now: they move, and their pilot is silent."""
        stopped = []
        for lease in self._leases.values():
            if lease.motion != NEUTRAL and now_s - lease.heard_s > MAX_AGE_S:
                lease.motion = NEUTRAL
                lease.must_let_go = LOST
                stopped.append(lease.vehicle)
        return stopped

    def silent(self, now_s: float) -> list[str]:
        """Return the vehicles whose pilot is silent: they are commanded zero for as long as the lease lasts."""
        return [lease.vehicle for lease in self._leases.values() if now_s - lease.heard_s > MAX_AGE_S]

    def expired(self, now_s: float) -> list[Lease]:
        """End the leases of those who have been silent for too long, and return them."""
        gone = [lease for lease in self._leases.values() if now_s - lease.heard_s > LEASE_S]
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
            raise RefusedError("You are not at the helm of this vehicle.")
        return lease

    def _check_free(self, pilot: int, vehicle: str) -> None:
        """Raise RefusedError if somebody steers another vehicle."""
        if any(lease.pilot == pilot and lease.vehicle != vehicle for lease in self._leases.values()):
            raise RefusedError("You are steering another vehicle: release that one first.")

    def _age(self, token: int, now_s: float) -> float:
        """Return how long ago a token was given out; a number that never was one is as old as can be."""
        return next((now_s - given_s for known, given_s in self._tokens if known == token), math.inf)


def _read(motion: Mapping[str, float]) -> Motion:
    values = []
    for axis in AXES:
        value = motion.get(axis, 0.0)
        if not is_number(value) or not abs(value) <= _LARGEST:
            raise RefusedError(f"{axis} is {value!r:.40}, and has to be a number from -1 to 1.")
        values.append(min(1.0, max(-1.0, float(value))))
    return (values[0], values[1], values[2], values[3])
