# SPDX-License-Identifier: Apache-2.0
"""FaultyReports: faults of sensors in the reports of an emulated vehicle, for the option --lie."""

from __future__ import annotations

import argparse
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

ReportT = TypeVar("ReportT")

#: Faults of velocities: zero, halved, zero in every second report, of the wrong sign, in another unit.
VELOCITY = ("velocity-zero", "velocity-half", "velocity-second", "velocity-sign", "velocity-unit")
#: Faults of height and heading: zero; an error of 0.6 m or 15 degrees in one of ten reports.
ALTITUDE = ("altitude-zero", "altitude-jumps")
HEADING = ("heading-jumps",)
#: Faults of the battery charge: at most 15 % in 4 of 60 reports, as under load (0.25 s on the AR.Drone).
BATTERY = ("battery-sags",)
SAG, SAG_EVERY, SAG_REPORTS = 0.15, 60, 4
#: Delay of all reports, s.
LATE = "late"
#: Noise that is added to velocities, heights or positions, as a standard deviation, m/s or m.
NOISE = "noise"
#: Factor for metres in place of millimetres.
UNIT = 1e-3
JUMP_EVERY, JUMP_M, JUMP_DEGREES = 10, 0.6, 15.0


@dataclass(slots=True)
class FaultyReports(Generic[ReportT]):
    """Faults of a vehicle's reports. Call `count` once per report."""

    kinds: dict[str, float] = field(default_factory=dict)
    """Faults by name, with their parameter."""
    _number: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(1))
    _waiting: deque[tuple[float, ReportT]] = field(default_factory=deque)

    def count(self) -> None:
        """Begin with the next report."""
        self._number += 1

    @property
    def is_jump(self) -> bool:
        """Whether this report has a jump, as one in JUMP_EVERY has."""
        return not self._number % JUMP_EVERY

    @property
    def of_velocity(self) -> float:
        """Factor of velocities in this report."""
        factors = {"velocity-zero": 0.0, "velocity-half": 0.5, "velocity-sign": -1.0, "velocity-unit": UNIT}
        factor = 1.0
        for kind in self.kinds:
            factor *= factors.get(kind, 1.0)
        return 0.0 if "velocity-second" in self.kinds and self._number % 2 else factor

    def height(self, metres: float) -> float:
        """Return the reported height, m."""
        jump = JUMP_M * ("altitude-jumps" in self.kinds and self.is_jump)
        return self.noisy(0.0 if "altitude-zero" in self.kinds else metres + jump)

    def velocity(self, metres_per_second: float) -> float:
        """Return a component of the reported velocity, m/s."""
        return self.noisy(self.of_velocity * metres_per_second)

    def noisy(self, value: float) -> float:
        """Return a value with the selected noise."""
        deviation = self.kinds.get(NOISE, 0.0)
        return self._random.gauss(value, deviation) if deviation else value

    @property
    def heading_degrees(self) -> float:
        """Error of the heading in this report, degrees."""
        return JUMP_DEGREES * ("heading-jumps" in self.kinds and self.is_jump)

    def charge(self, share: float) -> float:
        """Return the reported battery charge, 0 to 1."""
        sags = "battery-sags" in self.kinds and self._number % SAG_EVERY < SAG_REPORTS
        return min(share, SAG) if sags else share

    def delayed(self, report: ReportT, now_s: float) -> ReportT:
        """Return the report of `late` seconds ago, or the first one if there is none."""
        self._waiting.append((now_s, report))
        while len(self._waiting) > 1 and self._waiting[1][0] <= now_s - self.kinds.get(LATE, 0.0):
            self._waiting.popleft()
        return self._waiting[0][1]


def add_lies(group: Any, kinds: Sequence[str], numbers: Sequence[str] = ()) -> None:
    """Add the repeatable option --lie: one of `kinds`, or one of `numbers` with =NUMBER."""

    def lie(text: str) -> tuple[str, float]:
        name, sign, number = text.partition("=")
        if (name in numbers) != bool(sign) or name not in (*kinds, *numbers):
            known = ", ".join((*kinds, *(f"{each}=NUMBER" for each in numbers)))
            raise argparse.ArgumentTypeError(f"must be one of {known}, not {text!r}")
        value = float(number) if sign else 1.0
        if not 0.0 <= value < 1e9:
            raise argparse.ArgumentTypeError(f"must have a number from 0 to 1e9, not {text!r}")
        return name, value

    group.add_argument(
        "--lie",
        type=lie,
        action="append",
        default=[],
        metavar="KIND",
        help=f"report wrong measurements: {', '.join((*kinds, *(f'{each}=NUMBER' for each in numbers)))} (none)",
    )
