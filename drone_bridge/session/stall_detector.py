# SPDX-License-Identifier: Apache-2.0
"""StallDetector: whether the process stood still between two looks of a session's loop. Pure."""


class StallDetector:
    """Recognizes that the process that looks stood still, by a gap between two looks."""

    #: A longer gap is a stall: a busy machine delays a thread by a few hundredths of a second, seldom by two tenths.
    STALL_S = 0.3
    #: It has to look at least that often.
    PERIOD_S = 0.1

    def __init__(self) -> None:
        self._looked_s: float | None = None  # None: the first look says nothing, whenever it comes

    def has_stalled(self, now_s: float) -> bool:
        """Return whether the process stood still since the last look."""
        before_s, self._looked_s = self._looked_s, now_s
        return before_s is not None and now_s - before_s > self.STALL_S
