# SPDX-License-Identifier: Apache-2.0
"""Arbiter: who decides what a vehicle is commanded, and what of that it gets. Pure, with the time handed in.

Theory of operation:

- Commands that are admitted are `put` with the time of their arrival, by the executor or by the link's thread. Only the
  newest is kept, for as long as `command_timeout`. After one of a source that overrules others, those are not admitted
  for that long.
- The link's thread calls `decide`, which takes the newest command that waits and returns what to send now by one of
  these rows, the first that applies:

| rank | applies when | what is sent |
|---|---|---|
| HOLD | the vehicle is held, or its helm has ended | the neutral command |
| HELM | somebody is at the helm | its newest command, within the limits; without one the neutral command |
| LANDING | a battery is low and that lands it, or odometry has been missing for long | the command that sinks; where \
there is none the neutral command, and the session presses the button |
| BLIND | a velocity is commanded, and a limit needs odometry that is missing | the neutral command |
| COMMAND | there is a newest command | a velocity within the limits, a raw command as it is |
| NEUTRAL | | the neutral command |

- LANDING is below the helm: a person sees the vehicle, and brings it back where it does not know itself. It goes on
  when nobody commands, and begins again when a person lets go without holding the vehicle.
- A command is a BodyVelocity, or raw: in terms of the wire. A raw one has no limits, and needs no odometry.
- A decision is bounded twice: a velocity by the user's limits (`Limits`), then any command by the vehicle's maxima
  (`within_maxima`). Each counts a command once, when it is first followed. The wire's range is the protocol's.
- All times are seconds of one clock that is never set and goes on while the machine is suspended: what was commanded
  before a suspension is old after it.

Fields are replaced as a whole, so nothing is locked: `newest` by whoever puts or forgets, what is in `HoldState` by the
executor, and what is in `ObservedMotion` by the thread that observes the vehicle. A command that was put by one thread
while another gave the helm to a person is not followed, as only the helm's are then.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Generic, Protocol, TypeVar

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import Limits
from drone_bridge.session.hold_state import HoldState

RawT = TypeVar("RawT")

# Counts of commands that were followed only within the user's limits, or the vehicle's maxima.
LIMITED, CLAMPED = "limited_commands", "clamped_commands"
#: The time from the arrival of a command until it is first followed.
WAITED = "command_received_to_sent"
#: How fast a vehicle sinks that has to land and has no button for it, m/s.
LANDING_SPEED = 0.5
SINKING = BodyVelocity(up=-LANDING_SPEED)


class Rank(Enum):
    """Who decides what the vehicle does: the first of these that is there. The value is the line in the docs."""

    HOLD = "hold: the neutral command, until a person says otherwise"
    HELM = "a person at the helm, within the limits"
    LANDING = "the landing that a low battery, or odometry gone for long, has begun"
    BLIND = "odometry that a limit needs and that is missing: the neutral command"
    COMMAND = "commands: cmd_vel_stamped before cmd_vel, within the limits; raw ones as they are"
    NEUTRAL = "nobody: the neutral command"


@dataclass(frozen=True, slots=True, eq=False)
class Arrival(Generic[RawT]):
    """A command as it was given, and when."""

    command: BodyVelocity | RawT
    arrived_s: float
    stamp: tuple[int, int] | None = None
    """The (sec, nanosec) of what it answers, if it says that."""
    is_helm: bool = False
    """Whether it comes from the helm."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[RawT]):
    """What is to be sent now, and by which rank."""

    rank: Rank
    command: BodyVelocity | RawT | None = None
    """Within limits and maxima; None is the neutral command."""
    arrived_s: float | None = None
    """When what is followed arrived."""


class Statistics(Protocol):
    """Where an arbiter counts, as LinkStatistics."""

    @property
    def counts(self) -> Counter[str]:
        """What grows."""

    def took(self, name: str, seconds: float) -> None:
        """Add a duration."""


class Arbiter(Generic[RawT]):
    """What a vehicle is commanded, of all that it is given."""

    def __init__(
        self, hold: HoldState, limits: Limits, command_timeout: Callable[[], float], statistics: Statistics
    ) -> None:
        """`command_timeout` returns for how long a command holds, s, which may change."""
        self.limits = limits
        #: Whether the vehicle lands by a velocity, and not by a button.
        self.sinks = False
        #: Returns the part of a command that the vehicle can follow.
        self.within_maxima: Callable[[BodyVelocity | RawT], BodyVelocity | RawT] = lambda command: command
        #: Takes what waits, in the link's thread.
        self.take: Callable[[float], object] = lambda now_s: None
        #: The newest command, fresh or not.
        self.newest: Arrival[RawT] | None = None
        self._hold, self._command_timeout, self._statistics = hold, command_timeout, statistics
        self._overruled_until_s = -math.inf
        self._followed: Arrival[RawT] | None = None

    # For any thread.

    def admits(self, now_s: float, *, overrules: bool = False) -> bool:
        """Return whether a command that has just arrived counts; one that `overrules` does, and others do not then."""
        if overrules:
            self._overruled_until_s = now_s + self._command_timeout()
            return True
        return now_s >= self._overruled_until_s

    def put(self, arrival: Arrival[RawT]) -> None:
        """Replace the newest command."""
        self.newest = arrival

    def forget(self) -> None:
        """Forget the newest command."""
        self.newest = None

    # For the link's thread.

    def decide(self, now_s: float, answer: Arrival[RawT] | None = None) -> Decision[RawT]:
        """Return what to send now; of `answer`, instead of the newest command, if that is given."""
        self.take(now_s)
        arrival = answer or self._fresh(now_s)
        rank = self.rank(now_s, arrival)
        if rank is Rank.LANDING and self.sinks:
            return Decision(rank, self.within_maxima(SINKING))
        if arrival is None or not (rank is Rank.COMMAND or (rank is Rank.HELM and arrival.is_helm)):
            return Decision(rank)
        asked = arrival.command
        limited = self.limits.limited(asked, now_s) if isinstance(asked, BodyVelocity) else asked
        followed = self.within_maxima(limited)
        if arrival is not self._followed:
            self._followed = arrival
            self._statistics.took(WAITED, now_s - arrival.arrived_s)
            if limited != asked:
                self._statistics.counts[LIMITED] += 1
            if followed != limited:
                self._statistics.counts[CLAMPED] += 1
        return Decision(rank, followed, arrival.arrived_s)

    def rank(self, now_s: float, arrival: Arrival[RawT] | None = None) -> Rank:
        """Return who decides, if that is the newest command that is fresh. For any thread."""
        is_held, is_at_helm = self._hold.look(now_s)
        if is_held:
            return Rank.HOLD
        if is_at_helm:
            return Rank.HELM
        if self.limits.must_land(now_s):
            return Rank.LANDING
        if arrival is None:
            return Rank.NEUTRAL
        if isinstance(arrival.command, BodyVelocity) and self.limits.is_blind(now_s):
            return Rank.BLIND
        return Rank.COMMAND

    def _fresh(self, now_s: float) -> Arrival[RawT] | None:
        newest = self.newest
        if newest is None or now_s - newest.arrived_s > self._command_timeout():
            return None
        return newest
