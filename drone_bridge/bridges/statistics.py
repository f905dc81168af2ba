# SPDX-License-Identifier: Apache-2.0
"""What a link has done, for /diagnostics."""

import time
from collections import Counter
from dataclasses import dataclass, field

from diagnostic_msgs.msg import DiagnosticStatus, KeyValue


@dataclass(slots=True)
class LinkStatistics:
    """Counters of one link since the node was configured. Written by its IO thread, read once a second.

    `counts` holds what grows: frames, dropped images, rejected input, commands. `durations_s` holds, by name, the sum
    and the number of what took time since the last report. `facts` holds what the peer has told of itself.
    """

    open_state: str = "connected"  # the only state that is no warning
    state: str = "closed"
    peer: str = ""
    last_error: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    durations_s: dict[str, tuple[float, int]] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    _reported_at: float = field(default_factory=time.monotonic)
    _reported_counts: Counter[str] = field(default_factory=Counter)

    def took(self, name: str, seconds: float) -> None:
        """Note how long something took."""
        total, number = self.durations_s.get(name, (0.0, 0))
        self.durations_s[name] = (total + seconds, number + 1)

    def report(self, name: str, rates: tuple[str, ...], problems: tuple[str, ...]) -> DiagnosticStatus:
        """Return the status, and start a new period.

        Args:
            name: of the status.
            rates: the counts that are shown per second as well.
            problems: the counts that are a warning when they have grown during the period.
        """
        now = time.monotonic()
        period_s = max(now - self._reported_at, 1e-3)
        counts, ended_period = self.counts.copy(), self.durations_s
        self.durations_s = {}
        grown = [problem for problem in problems if counts[problem] > self._reported_counts[problem]]
        values = {"state": self.state, "peer": self.peer, "last error": self.last_error}
        values |= self.facts.copy()
        values |= {key: str(counts[key]) for key in (*rates, *problems)}
        values |= {key: str(value) for key, value in sorted(counts.items()) if key not in values}
        for key in rates:
            values[f"{key} per second"] = f"{(counts[key] - self._reported_counts[key]) / period_s:.1f}"
        # The IO thread may be just about to add to what is now the last period's.
        for key, (total, number) in ended_period.copy().items():
            values[f"{key} (ms)"] = f"{1000 * total / number:.2f}"
        self._reported_at, self._reported_counts = now, counts
        status = DiagnosticStatus(name=name, hardware_id=self.peer)
        status.level = DiagnosticStatus.OK if self.state == self.open_state and not grown else DiagnosticStatus.WARN
        status.message = f"{self.state}; {', '.join(grown)} growing" if grown else self.state
        status.values = [KeyValue(key=key, value=value) for key, value in values.items()]
        return status
