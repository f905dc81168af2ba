# SPDX-License-Identifier: Apache-2.0
"""ReportGaps: over which gaps between a vehicle's reports its motion is known. Pure."""

from collections import deque

#: Longest gap over which it is: 3 usual periods, but within these bounds, s.
PERIODS, SHORT_GAP_S, LONGEST_GAP_S = 3, 0.5, 3.0


class ReportGaps:
    """Gaps between the reports of one vehicle."""

    def __init__(self) -> None:
        self._newest = deque[float](maxlen=5)  # s

    @property
    def longest_s(self) -> float:
        """Longest gap over which the motion is known, s. In a longer one, a robot may have stopped or turned."""
        usual_s, *_ = *sorted(self._newest)[-2:], LONGEST_GAP_S  # the longest one may be of lost reports
        return min(max(PERIODS * usual_s, SHORT_GAP_S), LONGEST_GAP_S)

    def is_short(self, gap_s: float) -> bool:
        """Record a gap, s. Return whether the motion in it is known."""
        longest_s = self.longest_s
        if gap_s > 0.0:
            self._newest.append(gap_s)
        return 0.0 <= gap_s <= longest_s
