# SPDX-License-Identifier: Apache-2.0
"""LinkStatistics: what a link has done since the node was configured, and the status on /diagnostics made of it.

The link's thread and the executor add to it without a lock; the thread of the reports closes a period once a second, by
replacing the durations and copying what other threads may be changing.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue

from drone_bridge.ros.liveness import Liveness

#: The value of a status that says for how long the connected peer has been silent.
PEER_SILENT = "peer_silent_s"


class Condition(NamedTuple):
    """A problem that is reported while it lasts, unlike a count, which is a warning while it grows."""

    sentence: str
    level: bytes


class Period(NamedTuple):
    """What a link did from one report to the next."""

    length_s: float
    counts_before: dict[str, int]
    counts: dict[str, int]
    durations_s: dict[str, tuple[float, int]]

    def growth(self, count: str) -> int:
        """Return by how much a count has grown."""
        return self.counts.get(count, 0) - self.counts_before.get(count, 0)


@dataclass(slots=True)
class LinkStatistics:
    """The statistics of one link since the node was configured.

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
    _period_began_s: float = field(default_factory=time.monotonic)
    _counts_before: dict[str, int] = field(default_factory=dict)

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

    def start_period(self) -> Period:
        """Start a new period, and return the one that has ended."""
        now_s = time.monotonic()
        length_s = max(now_s - self._period_began_s, 1e-3)
        ended = Period(length_s, self._counts_before, dict(self.counts), self.durations_s)
        self._period_began_s, self._counts_before, self.durations_s = now_s, ended.counts, {}
        return ended

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
        period = self.start_period()
        counts, conditions, silence_s = period.counts, self.conditions.copy(), self.liveness.silence_s
        is_silent = silence_s > self.silence_limit_s
        grown = [problem for problem in problems if period.growth(problem)]
        is_warning = self.state != self.open_state or grown or is_silent
        levels = [condition.level for condition in conditions.values()]
        status = DiagnosticStatus(name=name, hardware_id=hardware_id)
        status.level = max([DiagnosticStatus.WARN if is_warning else DiagnosticStatus.OK, *levels])
        state = f"{self.state}, silent for {silence_s:.0f} s" if is_silent else self.state
        growing = [f"{', '.join(grown).replace('_', ' ')} growing"] if grown else []
        status.message = "; ".join([state, *(condition.sentence for condition in conditions.values()), *growing])
        values = {"state": self.state, "peer": self.peer, "last_error": self.last_error}
        values[PEER_SILENT] = f"{silence_s:.1f}" if self.liveness.is_open else ""
        values |= {name: condition.sentence for name, condition in conditions.items()}
        values |= self.facts.copy()
        values |= {key: str(counts.get(key, 0)) for key in (*rates, *problems)}
        values |= {key: str(value) for key, value in sorted(counts.items()) if key not in values}
        values |= {f"{key}_per_second": f"{period.growth(key) / period.length_s:.1f}" for key in rates}
        # The IO thread may be just about to add to what is now the last period's.
        for key, (total, number) in period.durations_s.copy().items():
            values[f"{key}_ms"] = f"{1000 * total / number:.2f}"
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        return status
