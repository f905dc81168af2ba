# SPDX-License-Identifier: Apache-2.0
"""ReportWatch: notices reports of a vehicle that jump, or that do not change while it is commanded to move. Pure.

For a vehicle that follows velocities by itself: nothing shows how it should move, so it is only reported, and no
command is affected. A drone that is commanded by tilt has a MotionObserver.
"""

import math
from collections.abc import Sequence

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement

#: A quantity has jumped if it changes by more than JUMP, m or m/s, and RATE, m/s or m/s^2, or twice the speed explain.
JUMP, RATE = 1.0, 10.0
#: Reports that are farther apart, s, are not compared.
LONGEST_GAP_S = 1.0
#: A vehicle commanded to move faster, m/s, must change its reports within UNCHANGED_S.
MOVES_M_S, UNCHANGED_S = 0.1, 3.0
#: How long a jump is reported, s.
REPORTED_S = 10.0


class ReportWatch:
    """Watch of one vehicle's reports. For the thread of its session, except for `reasons`."""

    def __init__(self) -> None:
        self._jumped_at: dict[str, float] = {}
        self._unchanged_at: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        """Begin a connection: the vehicle may have been carried meanwhile."""
        self._last: dict[str, tuple[Sequence[float], float]] = {}  # with its time, s
        self._since: dict[str, float] = {}  # time from which it is unchanged during a commanded motion, s
        self._velocity = (0.0, 0.0, 0.0)

    def commanded(self, velocity: BodyVelocity | None) -> None:
        """Record a command that is sent; None is neutral."""
        self._velocity = velocity.linear if velocity else (0.0, 0.0, 0.0)

    def measured(self, report: Measurement, now_s: float) -> None:
        """Compare a report with the command and with the last report."""
        forward, left, up = (0.0, 0.0, 0.0) if report.is_flying is False else self._velocity
        speed = math.hypot(forward, left, up)
        if report.position is not None:
            self._judge("position", report.position, speed, now_s)
        elif (velocity := report.level_velocity) is not None:
            self._judge("velocity", velocity, speed, now_s)
        if report.height is not None:
            self._judge("height", (report.height,), abs(up), now_s)

    def reasons(self, now_s: float) -> list[str]:
        """Return what is wrong, as sentences without a full stop. For any thread."""
        jumped = [name for name, at_s in list(self._jumped_at.items()) if now_s - at_s < REPORTED_S]
        unchanged = [name for name, at_s in list(self._unchanged_at.items()) if now_s - at_s < LONGEST_GAP_S]
        return [
            *(f"its own {name} can't be right: it jumps" for name in jumped),
            *(f"its own {name} does not change: it is blocked, or that can't be right" for name in unchanged),
        ]

    def _judge(self, name: str, value: Sequence[float], speed: float, now_s: float) -> None:
        if not all(map(math.isfinite, value)):
            return  # counts as not reported
        before, before_at = self._last.get(name, (value, now_s))
        self._last[name] = value, now_s
        gap_s = now_s - before_at
        if not 0.0 <= gap_s <= LONGEST_GAP_S:
            self._since.pop(name, None)
            return
        if math.dist(value, before) > JUMP + max(RATE, 2.0 * speed) * gap_s:
            self._jumped_at[name] = now_s
        if tuple(value) != tuple(before) or speed < MOVES_M_S:
            self._since[name] = now_s
        elif now_s - self._since.setdefault(name, now_s) > UNCHANGED_S:
            self._unchanged_at[name] = now_s
