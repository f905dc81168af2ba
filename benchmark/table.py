# SPDX-License-Identifier: Apache-2.0
"""Medians with their spread, and ratios taken within each round, where both sides had the same disturbances."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median
from typing import Final

FLOOR: Final = "floor"
BRIDGE: Final = "bridge"


@dataclass(frozen=True, slots=True)
class Metric:
    """A row of the table."""

    name: str
    digits: int  # after the decimal point
    at_least: float | None = None  # the aim for the ratio bridge / floor
    at_most: float | None = None

    @property
    def aim(self) -> str:
        """The aim in words."""
        if self.at_least is not None:
            return f">= {self.at_least:.2f}"
        return "" if self.at_most is None else f"<= {self.at_most:.2f}"

    def is_met(self, ratio: float) -> bool:
        """Tell whether a ratio is as good as it should be."""
        return ratio >= (self.at_least or 0.0) and (self.at_most is None or ratio <= self.at_most)


FRAMES_PER_SECOND: Final = Metric("frames/s, unpaced", 0, at_least=0.95)
CPU: Final = Metric("CPU per frame, unpaced (ms)", 2, at_most=1.1)
DELIVERED: Final = Metric("images delivered, unpaced (%)", 1)
LATENCY_P50: Final = Metric("latency at 30 Hz, p50 (ms)", 2, at_most=1.15)
LATENCY_P99: Final = Metric("latency at 30 Hz, p99 (ms)", 2)
CPU_PACED: Final = Metric("CPU per frame at 30 Hz (ms)", 2)
ROUND_TRIP: Final = Metric("round trip, no controller (ms)", 2, at_most=1.3)
ROUND_TRIP_CONTROLLED: Final = Metric("round trip, controller (ms)", 2, at_most=1.3)
METRICS: Final = (
    FRAMES_PER_SECOND,
    CPU,
    DELIVERED,
    LATENCY_P50,
    LATENCY_P99,
    CPU_PACED,
    ROUND_TRIP,
    ROUND_TRIP_CONTROLLED,
)


@dataclass(slots=True)
class Samples:
    """One value per round for each size, metric and side, in the order of the rounds."""

    values: dict[tuple[str, Metric, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, size: str, metric: Metric, side: str, value: float) -> None:
        """Note the value of a round. `side` is FLOOR or BRIDGE."""
        self.values[size, metric, side].append(value)

    def render(self) -> str:
        """Return the table."""
        header = ("stereo", "", FLOOR, BRIDGE, "bridge / floor", "aim", "")
        rows: list[tuple[str, ...]] = [header]
        for size in dict.fromkeys(size for size, _, _ in self.values):
            rows.extend(self._row(size, metric) for metric in METRICS)
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        rule = "-" * max(map(len, lines))
        per_size = len(METRICS)
        blocks = ["\n".join(lines[start : start + per_size]) for start in range(1, len(lines), per_size)]
        return f"\n{rule}\n".join((lines[0], *blocks))

    def _row(self, size: str, metric: Metric) -> tuple[str, ...]:
        floor, bridge = self.values[size, metric, FLOOR], self.values[size, metric, BRIDGE]
        ratios = [ours / theirs for ours, theirs in zip(bridge, floor, strict=True)]
        verdict = ""
        if metric.aim:
            verdict = "met" if metric.is_met(median(ratios)) else "MISSED"
        cells = (_spread(floor, metric.digits), _spread(bridge, metric.digits), _spread(ratios, 2))
        return (size, metric.name, *cells, metric.aim, verdict)


def _spread(values: list[float], digits: int) -> str:
    """Return the median, and the least and the greatest value."""
    middle, least, greatest = (f"{value:.{digits}f}" for value in (median(values), min(values), max(values)))
    return f"{middle} ({least}..{greatest})"
