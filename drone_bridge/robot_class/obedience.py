# SPDX-License-Identifier: Apache-2.0
"""Obedience: whether a robot obeys, by its reports, and what is done about one that does not. Pure.

A robot that reports that it does not obey has left its mode in order not to move, as when it is lifted. It gets neutral
until `disobeys` has held it, also if it obeys or is connected again. The end of that hold greets it again, neutral
first, and once: if it still does not obey OBEYS_S later, it is held again.

| it | event | then it |
|---|---|---|
| has obeyed, is greeted after its hold | it is judged | does not obey |
| does not obey | it is on hold | is held |
| is held | it is not on hold | is greeted after its hold |
| has obeyed, is greeted after its hold, is held | it is connected | has obeyed |
"""

import math

# The robot.
OBEYS, DISOBEYS, HELD, AGAIN = "has obeyed", "does not obey", "is held", "is greeted after its hold"
# Events. A landing is none.
JUDGED, ON_HOLD, NO_HOLD, LINKED = "it is judged", "it is on hold", "it is not on hold", "it is connected"
#: What it is then, for what it is and each event. Another event changes nothing.
ROWS = {
    JUDGED: {OBEYS: DISOBEYS, AGAIN: DISOBEYS},
    ON_HOLD: {DISOBEYS: HELD},
    NO_HOLD: {HELD: AGAIN},
    LINKED: {OBEYS: OBEYS, AGAIN: OBEYS, HELD: OBEYS},
}
#: Time after a greeting, or the end of a request, within which a robot begins to obey, s.
OBEYS_S = 1.0


class Obedience:
    """Obedience of one robot."""

    def __init__(self) -> None:
        """Start with a robot that is not judged yet."""
        self.state, self._judged_from_s = OBEYS, math.inf
        #: Why it does not obey, by its newest report; empty if it does.
        self.reported = ""
        #: How often it was found not to obey, and why the last time. Thread-safe.
        self.found = 0, ""

    @property
    def reason(self) -> str:
        """Why the robot gets neutral; empty if it does not."""
        return self.found[1] if self.state in (DISOBEYS, HELD) else ""

    def on(self, event: str) -> bool:
        """Change by the row that applies. Return whether it is greeted again from now on."""
        before, self.state = self.state, ROWS[event].get(self.state, self.state)
        return self.state == AGAIN != before

    def started(self, now_s: float) -> None:
        """Record that it was sent something after which it begins to obey: a greeting, or the end of a request."""
        self._judged_from_s = now_s + OBEYS_S

    def waits(self, now_s: float) -> bool:
        """Return whether it is greeted after its hold, and is given time to obey."""
        return self.state == AGAIN and now_s < self._judged_from_s

    def judge(self, now_s: float, *, is_connected: bool) -> str:
        """Judge the newest report. Return why the robot does not obey, if that is new; else ""."""
        # Not before its first greeting has ended.
        is_due = (is_connected or self.state == AGAIN) and now_s >= self._judged_from_s
        if not (is_due and self.reported) or self.reason:
            return ""
        self.found = self.found[0] + 1, self.reported
        self.on(JUDGED)
        return self.reported
