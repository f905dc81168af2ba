# SPDX-License-Identifier: Apache-2.0
"""Arbiter: selects the command that a vehicle gets, and bounds it. Pure, with the time as an input.

Theory of operation:

- Each kind of commander has an Entrance of its own. Admitted commands are `put` with their arrival time, by the
  executor or by the link's thread. Only the newest is kept, for `command_timeout`. It excludes those of all lower
  entrances for the same time.
- The link's thread calls `decide`, which takes the newest waiting command and returns the command to send now. The
  first row of WHO_COMMANDS that applies decides:

| rank | command sent |
|---|---|
| HOLD | the neutral command |
| HELM | the newest command from the helm, within the limits; without one the neutral command |
| LANDING | a descending velocity; with a landing button the neutral command, and the session presses the button |
| BLIND | the neutral command; a doubted place lets a vehicle return slowly |
| COMMAND | a velocity within the limits, a raw command unchanged |
| NEUTRAL | the neutral command |

- LANDING ranks below the helm: a person who sees the vehicle can bring it back when it has lost its position. A landing
  continues without commands, and begins again when a person releases the helm without holding the vehicle. A helm
  whose commands are refused, as by a wrong clock, can bring nothing back, and interrupts none.
- A person's hold means that the vehicle must not move now, so only the battery, which ends every flight, outranks it.
  A machine's hold outlasts its program. A held vehicle that has not reported that it flies may be on a bench, or in a
  hand: it gets neutral and nothing else.
- A command is a BodyVelocity, or raw, in units of the wire. Raw commands are not limited, and need no odometry.
- A decision is bounded twice: a velocity by the user's limits (`Limits`), then any command by the vehicle's maxima
  (`within_maxima`). Each step counts a command once, when it is first followed. The protocol checks the wire's range.
- All times are seconds of one clock that is never set and that counts the time of a suspended machine. A command from
  before a suspension is therefore stale after it.

There are no locks, since fields are replaced as a whole: `newest` by any thread that puts or forgets a command, the
state of `HoldState` by the executor, and that of `ObservedMotion` by the thread that observes the vehicle. If one
thread puts a command while another gives the helm to a person, the command is not followed: only the helm's are then.
"""

import math
from collections import Counter
from collections.abc import Callable, Set
from dataclasses import dataclass
from enum import Enum, IntEnum, unique
from functools import cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import Cause, Limits
from drone_bridge.session.hold_state import HoldState, InControl

RawT = TypeVar("RawT")

# Counters of commands that were reduced to the user's limits, or to the vehicle's maxima.
LIMITED, CLAMPED = "limited_commands", "clamped_commands"
#: Duration from the arrival of a command until it is first followed.
WAITED = "command_received_to_sent"
#: Sink rate of a landing vehicle without a landing button, m/s.
LANDING_SPEED = 0.5
SINKING = BodyVelocity(up=-LANDING_SPEED)


@unique
class Entrance(IntEnum):
    """Kind of commander: each overrules all lower ones."""

    GOAL = 0
    """Our controllers: goals, patterns."""
    PROGRAM = 1
    """cmd_vel, and raw commands."""
    STAMPED = 2
    """cmd_vel_stamped."""
    LANDING = 3
    """A landing goal: no program that was left open keeps a drone in the air."""
    HELM = 4
    """A person at a stick. `HoldState` decides how long it excludes the others."""


class Rank(Enum):
    """Source of the vehicle's command. The value is its text in docs/bridges.md."""

    HOLD = "hold: the neutral command, until a person resumes the vehicle"
    HELM = "manual control (helm), within the limits"
    LANDING = "a landing"
    BLIND = "a limit: the neutral command"
    COMMAND = "that command: cmd_vel_stamped before cmd_vel before a goal, within the limits; raw ones unchanged"
    NEUTRAL = "the neutral command"


class Given(Enum):
    """Newest fresh command. The value is its text in docs/bridges.md."""

    NOTHING = "none"
    BLIND = "a velocity without the odometry that a limit needs"
    COMMAND = "any other"


class Row(NamedTuple):
    """Row of WHO_COMMANDS: a rank, and the situations in which it applies. An empty set is any."""

    rank: Rank
    control: Set[InControl] = frozenset()
    causes: Set[Cause] = frozenset()
    given: Set[Given] = frozenset()
    flies: bool = False
    """Whether it applies only to a vehicle that has last reported that it flies."""


#: Who commands the vehicle: the first row that applies decides.
WHO_COMMANDS = (
    Row(Rank.HELM, control={InControl.HELM}),
    Row(Rank.LANDING, control={InControl.HELD_BY_PERSON}, causes={Cause.BATTERY}, flies=True),
    Row(Rank.LANDING, control={InControl.HELD_BY_MACHINE}, causes=set(Cause), flies=True),
    Row(Rank.HOLD, control={InControl.HELD_BY_PERSON, InControl.HELD_BY_MACHINE}),
    Row(Rank.LANDING, causes=set(Cause)),
    Row(Rank.NEUTRAL, control={InControl.REFUSED_HELM}),
    Row(Rank.BLIND, given={Given.BLIND}),
    Row(Rank.COMMAND, given={Given.COMMAND}),
    Row(Rank.NEUTRAL),
)


@cache
def rank_of(control: InControl, cause: Cause | None, given: Given, *, flies: bool) -> Rank:
    """Return the rank that decides, by WHO_COMMANDS."""
    return next(
        row.rank
        for row in WHO_COMMANDS
        if (not row.control or control in row.control)
        and (not row.causes or cause in row.causes)
        and (not row.given or given in row.given)
        and (flies or not row.flies)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Arrival(Generic[RawT]):
    """Received command, with its arrival time."""

    command: BodyVelocity | RawT
    arrived_s: float
    stamp: tuple[int, int] | None = None
    """Stamp (sec, nanosec) of the message that the command responds to, or None."""
    entrance: Entrance = Entrance.PROGRAM
    """Kind of its commander."""


@dataclass(frozen=True, slots=True)
class Decision(Generic[RawT]):
    """Command to send now, and its rank."""

    rank: Rank
    command: BodyVelocity | RawT | None = None
    """Command within limits and maxima; None for the neutral command."""
    arrived_s: float | None = None
    """Arrival time of the followed command, s."""


class Statistics(Protocol):
    """Counters and durations of an arbiter. LinkReport implements it."""

    @property
    def counts(self) -> Counter[str]:
        """Counters."""

    def record_duration(self, name: str, seconds: float) -> None:
        """Record a duration, s."""


class CommandSource(Protocol[RawT]):
    """Arbiter as sessions and pilots use it. The plan of an operator is another one. See Arbiter."""

    limits: Limits
    within_maxima: Callable[[Any], Any]

    def decide(self, now_s: float) -> Decision[RawT]:
        """Return the decision for now."""

    def rank(self, now_s: float) -> Rank:
        """Return the rank that decides."""

    def cause(self, now_s: float) -> Cause | None:
        """Return why the vehicle has to land, or None."""

    def is_held(self, now_s: float) -> bool:
        """Return whether the vehicle is held."""

    def start(self, now_s: float) -> None:
        """Begin a connection."""

    def forget(self) -> None:
        """Forget the newest command."""


class Arbiter(Generic[RawT]):
    """Selection of a vehicle's command among the given ones."""

    def __init__(
        self,
        hold: HoldState,
        limits: Limits,
        command_timeout: Callable[[], float],
        statistics: Statistics,
        *,
        take: Callable[[float], object] = lambda now_s: None,
        within_maxima: Callable[[Any], Any] | None = None,
    ) -> None:
        """Start without a command.

        Args:
            hold: whether the vehicle is held.
            limits: the user's limits.
            command_timeout: returns the lifetime of a command, s, which may change.
            statistics: counts commands beyond the limits and maxima.
            take: puts the waiting commands. Called in the link's thread.
            within_maxima: returns the part of a command that the vehicle can follow; None: all of it.
        """
        self.limits = limits
        #: Whether the vehicle lands by a sinking velocity, not by a button.
        self.sinks = False
        #: May be replaced, when the vehicle reports other maxima.
        self.within_maxima: Callable[[Any], Any] = within_maxima or (lambda command: command)
        self._take = take
        #: The newest command, perhaps stale.
        self.newest: Arrival[RawT] | None = None
        #: The newest velocity of a program or person beyond limits or maxima, and what the vehicle got of it.
        self.reduced = BodyVelocity(), BodyVelocity()
        self._hold, self._command_timeout, self._statistics = hold, command_timeout, statistics
        self._entrance, self._commanded_s = Entrance.GOAL, -math.inf  # of the newest command
        self._followed: Arrival[RawT] | None = None

    # For any thread.

    def admits(self, entrance: Entrance, now_s: float) -> bool:
        """Return whether to accept a new command: unless a higher entrance had one within `command_timeout`."""
        return entrance >= self._entrance or now_s - self._commanded_s >= self._command_timeout()

    def put(self, arrival: Arrival[RawT]) -> None:
        """Replace the newest command."""
        self._entrance, self._commanded_s = arrival.entrance, arrival.arrived_s
        self.newest = arrival

    def forget(self) -> None:
        """Forget the newest command."""
        self.newest = None

    def start(self, now_s: float) -> None:
        """Begin a connection: forget the newest command, and the reports before a landing that must be over."""
        self.forget()
        self.limits.start(now_s)

    # For the link's thread.

    def decide(self, now_s: float, answer: Arrival[RawT] | None = None) -> Decision[RawT]:
        """Return the decision for now. `answer` replaces the newest command, unless it is None."""
        self._take(now_s)
        arrival = answer or self._fresh(now_s)
        rank = self.rank(now_s, arrival)
        if rank is Rank.LANDING and self.sinks:
            return Decision(rank, self.within_maxima(SINKING))
        if arrival is None or not (rank is Rank.COMMAND or (rank is Rank.HELM and arrival.entrance is Entrance.HELM)):
            return Decision(rank)
        asked = arrival.command
        limited = asked
        if isinstance(asked, BodyVelocity):
            # A person at the helm may leave the limits while they are blind.
            is_returning = rank is Rank.COMMAND and self.limits.is_blind(now_s)
            returning = self.limits.returning(asked, now_s) if is_returning else None
            limited = returning or self.limits.limited(asked, now_s)
        followed = self.within_maxima(limited)
        if arrival is not self._followed:
            self._followed = arrival
            self._statistics.record_duration(WAITED, now_s - arrival.arrived_s)
            if limited != asked:
                self._statistics.counts[LIMITED] += 1
            if followed != limited:
                self._statistics.counts[CLAMPED] += 1
            is_ours = arrival.entrance in (Entrance.GOAL, Entrance.LANDING)  # who ask for what any vehicle may follow
            if isinstance(asked, BodyVelocity) and followed != asked and not is_ours:
                self.reduced = asked, followed
        return Decision(rank, followed, arrival.arrived_s)

    def rank(self, now_s: float, arrival: Arrival[RawT] | None = None) -> Rank:
        """Return the rank that decides, where `arrival` is the newest fresh command. For any thread."""
        given, asked, limits = Given.NOTHING, arrival and arrival.command, self.limits
        if isinstance(asked, BodyVelocity) and limits.is_blind(now_s) and not limits.returning(asked, now_s):
            given = Given.BLIND
        elif arrival:
            given = Given.COMMAND
        return rank_of(self._hold.control(now_s), self.cause(now_s), given, flies=limits.flies)

    def cause(self, now_s: float) -> Cause | None:
        """Return why the vehicle has to land, or None. For any thread."""
        return self.limits.landing_cause(now_s, max(self._commanded_s, self._hold.attended_s))

    def is_held(self, now_s: float) -> bool:
        """Return whether the vehicle is held, whichever rank decides. For any thread."""
        return bool(self._hold.reason(now_s))

    def _fresh(self, now_s: float) -> Arrival[RawT] | None:
        newest = self.newest
        if newest is None or now_s - newest.arrived_s > self._command_timeout():
            return None
        return newest
