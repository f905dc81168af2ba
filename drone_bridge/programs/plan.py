# SPDX-License-Identifier: Apache-2.0
"""Plan of a scripted operator: a sequence of legs in the axes of REP 103.

    4s forward 0.5, 3s turn 0.5, 2s

means half a metre per second forward for four seconds, a turn to the left, and two seconds at rest. Each operator
converts the plan to commands of its protocol, as far as these allow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LONGEST_LEG_S = 3600.0
#: Limit of a velocity, m/s or rad/s, far above that of any vehicle.
FASTEST = 100.0


@dataclass(frozen=True, slots=True)
class Leg:
    """Body velocities for a duration, all zero at rest."""

    duration_s: float
    forward: float = 0.0  # m/s
    left: float = 0.0  # m/s
    up: float = 0.0  # m/s
    turn: float = 0.0  # rad/s, positive to the left

    def __str__(self) -> str:
        words = [f"{self.duration_s:g}s", *(f"{axis} {value:g}" for axis in AXES if (value := getattr(self, axis)))]
        return " ".join(words)


AXES = ("forward", "left", "up", "turn")
REST = Leg(0.0)


@dataclass(frozen=True, slots=True)
class Plan:
    """Sequence of legs."""

    legs: tuple[Leg, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.legs))

    @property
    def duration_s(self) -> float:
        return math.fsum(leg.duration_s for leg in self.legs)

    def leg_at(self, elapsed_s: float) -> Leg:
        """Return the leg at a time after the start, or REST outside the plan."""
        if elapsed_s >= 0.0:
            for leg in self.legs:
                if elapsed_s < leg.duration_s:
                    return leg
                elapsed_s -= leg.duration_s
        return REST


def parse_plan(text: str) -> Plan:
    """Parse a plan. Raises ValueError with a sentence."""
    return Plan(tuple(_parse_leg(part.split()) for part in text.split(",")))


def _parse_leg(words: list[str]) -> Leg:
    if not words or not words[0].endswith("s") or len(words) % 2 == 0:
        raise ValueError(f"a leg is a duration and axes, such as '4s forward 0.5', not {' '.join(words)!r}.")
    duration_s = _number(words[0][:-1], LONGEST_LEG_S)
    if duration_s <= 0.0:
        raise ValueError(f"a leg must last more than 0 s, not {words[0]}.")
    velocities: dict[str, float] = {}
    for axis, value in zip(words[1::2], words[2::2], strict=True):
        if axis not in AXES:
            raise ValueError(f"{axis!r} is not an axis; the axes are {', '.join(AXES)}.")
        if axis in velocities:
            raise ValueError(f"a leg must have each axis only once, and {axis} is repeated.")
        velocities[axis] = _number(value, FASTEST)
    return Leg(duration_s, **velocities)


def _number(text: str, limit: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= limit:
        raise ValueError(f"{text!r} must be a number from -{limit:g} to {limit:g}.")
    return value


#: The default plan of an operator.
DEFAULT_PLAN = parse_plan("4s forward 0.5, 3s turn 0.5, 4s forward 0.5, 2s")
