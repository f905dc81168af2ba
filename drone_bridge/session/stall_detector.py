# SPDX-License-Identifier: Apache-2.0
"""StallDetector: detects stalls of the process, by gaps between two polls of a session's loop. Pure."""


class StallDetector:
    """Detector of stalls, in which the process got no CPU or was suspended."""

    #: A longer gap is a stall, s. A busy machine delays a thread by a few 10 ms, rarely by 200 ms.
    STALL_S = 0.3
    #: Longest time between two polls, s.
    PERIOD_S = 0.1

    def __init__(self) -> None:
        self._looked_s: float | None = None  # time of the last poll; None before the first one

    def has_stalled(self, now_s: float) -> bool:
        """Return whether the process has stalled since the last call."""
        before_s, self._looked_s = self._looked_s, now_s
        return before_s is not None and now_s - before_s > self.STALL_S
