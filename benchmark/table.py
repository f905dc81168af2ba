# SPDX-License-Identifier: Apache-2.0
"""Medians with their spread, and ratios within each round, in which both sides had the same disturbances."""

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import median, quantiles

BASELINE = "baseline"
BRIDGE = "bridge"


@dataclass(frozen=True, slots=True)
class Metric:
    """Row of the table."""

    name: str
    digits: int  # after the decimal point
    at_least: float | None = None  # aim for the ratio bridge / baseline
    at_most: float | None = None
    percentile: int | None = None  # of the values of all rounds together, as one round has too few

    @property
    def aim(self) -> str:
        """The aim as text."""
        if self.at_least is not None:
            return f">= {self.at_least:.2f}"
        return "" if self.at_most is None else f"<= {self.at_most:.2f}"

    def is_met(self, ratio: float) -> bool:
        """Return whether a ratio meets the aim."""
        return ratio >= (self.at_least or 0.0) and (self.at_most is None or ratio <= self.at_most)


@dataclass(slots=True)
class Samples:
    """Values of the rounds by load, metric and side: one per round, or many if the metric is a percentile."""

    load: str  # kind of the loads, such as cameras of several sizes
    values: dict[tuple[str, Metric, str], list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, load: str, metric: Metric, side: str, *values: float) -> None:
        """Record the value of a round, or all of its values. `side` is BASELINE or BRIDGE."""
        self.values[load, metric, side] += values

    def render(self) -> str:
        """Return the table: a block for each load, with its metrics in the order in which they were added."""
        header = (self.load, "", BASELINE, BRIDGE, "bridge / baseline", "aim", "")
        rows: dict[str, dict[str, tuple[str, ...]]] = {"": {"": header}}
        for load, metric, _ in self.values:
            rows.setdefault(load, {}).setdefault(metric.name, self._row(load, metric))
        columns = list(zip(*[row for block in rows.values() for row in block.values()], strict=True))
        widths = [max(map(len, column)) for column in columns]
        blocks = ["\n".join(_line(row, widths) for row in block.values()) for block in rows.values()]
        rule = "-" * max(len(line) for block in blocks for line in block.splitlines())
        return f"\n{rule}\n".join(blocks)

    def _row(self, load: str, metric: Metric) -> tuple[str, ...]:
        baseline, bridge = self.values[load, metric, BASELINE], self.values[load, metric, BRIDGE]
        if metric.percentile is not None:
            baseline, bridge = ([quantiles(side, n=100)[metric.percentile - 1]] for side in (baseline, bridge))
        ratios = [ours / theirs for ours, theirs in zip(bridge, baseline, strict=True)]
        verdict = ""
        if metric.aim:
            verdict = "met" if metric.is_met(median(ratios)) else "MISSED"
        cells = (spread(baseline, metric.digits), spread(bridge, metric.digits), spread(ratios, 2))
        return (load, metric.name, *cells, metric.aim, verdict)


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def spread(values: list[float], digits: int) -> str:
    """Return the median with minimum and maximum, or a single value."""
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    middle, low, high = (f"{value:.{digits}f}" for value in (median(values), min(values), max(values)))
    return f"{middle} ({low}..{high})"
