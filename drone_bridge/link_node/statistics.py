# SPDX-License-Identifier: Apache-2.0
"""The statistics of a link, for /diagnostics."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from drone_bridge.link_node.liveness import Liveness


class Condition(NamedTuple):
    """A problem that is reported while it lasts, unlike a count, which is a warning while it grows."""

    sentence: str
    level: bytes


@dataclass(slots=True)
class LinkStatistics:
    """The statistics of one link since the node was configured. Written by its thread, read once a second.

    `counts` holds what grows: frames, dropped images, rejected input, commands. `durations_s` holds, by name, the sum
    and number of the durations measured since the last report. `facts` holds what is known of the peer. `conditions`
    holds, by name, current problems.
    """

    open_state: str = "connected"  # the only state that is not a warning
    silence_limit_s: float = float("inf")  # a longer silence of a connected peer is a warning
    state: str = "closed"
    peer: str = ""
    last_error: str = ""
    liveness: Liveness = field(default_factory=Liveness)
    counts: Counter[str] = field(default_factory=Counter)
    durations_s: dict[str, tuple[float, int]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    _reported_at: float = field(default_factory=time.monotonic)
    _reported_counts: Counter[str] = field(default_factory=Counter)

    def took(self, name: str, seconds: float) -> None:
        """Add a measured duration."""
        total, number = self.durations_s.get(name, (0.0, 0))
        self.durations_s[name] = (total + seconds, number + 1)

    @property
    def is_silent(self) -> bool:
        """Whether the peer is connected and has been silent for too long."""
        return self.liveness.silence_s > self.silence_limit_s

    def begin_condition(self, name: str, sentence: str, level: bytes = DiagnosticStatus.WARN) -> None:
        """Report a problem until `end_condition`. Thread-safe."""
        self.conditions[name] = Condition(sentence, level)

    def end_condition(self, name: str) -> None:
        """Thread-safe."""
        self.conditions.pop(name, None)

    def report(
        self, name: str, hardware_id: str, rates: tuple[str, ...], problems: tuple[str, ...]
    ) -> DiagnosticStatus:
        """Return the status, and start a new period.

        Args:
            name: of the status.
            hardware_id: what the status is about, the same in every report.
            rates: the counts that are shown per second as well.
            problems: the counts that are a warning when they have grown during the period.
        """
        now = time.monotonic()
        period_s = max(now - self._reported_at, 1e-3)
        counts, ended_period = self.counts.copy(), self.durations_s
        self.durations_s = {}
        grown = [problem for problem in problems if counts[problem] > self._reported_counts[problem]]
        conditions = self.conditions.copy()
        silence_s = self.liveness.silence_s
        is_silent = silence_s > self.silence_limit_s
        values = {"state": self.state, "peer": self.peer, "last error": self.last_error}
        values["silent for (s)"] = f"{silence_s:.1f}" if self.liveness.is_open else ""
        values |= {name: condition.sentence for name, condition in conditions.items()}
        values |= self.facts.copy()
        values |= {key: str(counts[key]) for key in (*rates, *problems)}
        values |= {key: str(value) for key, value in sorted(counts.items()) if key not in values}
        for key in rates:
            values[f"{key} per second"] = f"{(counts[key] - self._reported_counts[key]) / period_s:.1f}"
        # The IO thread may be just about to add to what is now the last period's.
        for key, (total, number) in ended_period.copy().items():
            values[f"{key} (ms)"] = f"{1000 * total / number:.2f}"
        self._reported_at, self._reported_counts = now, counts
        status = DiagnosticStatus(name=name, hardware_id=hardware_id)
        is_warning = self.state != self.open_state or grown or is_silent
        levels = [condition.level for condition in conditions.values()]
        status.level = max([DiagnosticStatus.WARN if is_warning else DiagnosticStatus.OK, *levels])
        state = f"{self.state}, silent for {silence_s:.0f} s" if is_silent else self.state
        growing = [f"{', '.join(grown)} growing"] if grown else []
        status.message = "; ".join([state, *(condition.sentence for condition in conditions.values()), *growing])
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        return status
