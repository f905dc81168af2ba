# SPDX-License-Identifier: Apache-2.0
"""JudgedDelay: refuses reports that are late, by when the reported tilt follows the commanded one. Pure."""

from __future__ import annotations

import math
from collections import deque

from drone_bridge.motion.belief import LONGEST_STEP_S, Belief

#: Largest usable delay of measurements, s; and the delays between commands and tilt that are compared, s.
LATE_S = 0.45
DELAYS_S = tuple(0.1 * number for number in range(31))
KEPT_EVERY_S = 0.03
#: Time after a long step in which nothing is compared, s: a simulator may have paused.
EFFECT_S = 0.6
#: Time over which tilts are compared, and time constant of a lasting difference, such as a tilted trim, s.
COMPARED_S, OFFSET_S = 0.6, 3.0
#: Share of the time that counts as agreement while no delay could show.
QUIET_SHARE = 0.25
#: Differences of tilts, as shares of the full tilt: the least that reveals a delay; the largest of equal tilts. And the
#: largest ratio of mean squares, with and without a delay, that proves the delay.
TELLING_SHARE, SAME_SHARE, BETTER_SHARE = 0.1, 0.2, 0.3


class JudgedDelay:
    """Delay of the reports, with its Belief. Pulls are accelerations by tilt, forward + j left, m/s^2."""

    def __init__(self, full_pull: float) -> None:
        """`full_pull` is that of the full tilt."""
        self.belief = Belief()
        self._full = full_pull**2
        self._history: deque[tuple[float, complex | None]] = deque(maxlen=128)  # with times, s
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement. Commands from before it, as on the ground, may not have been followed."""
        self._from_s = -math.inf  # from then on, tilts are compared
        self._errors = [0.0] * len(DELAYS_S)  # mean squares without the mean, (m/s^2)^2
        self._offsets = [0j] * len(DELAYS_S)  # means of the differences, m/s^2

    def commanded(self, pull: complex | None, now_s: float) -> None:
        """Record the pull by the lagged command; None in autonomous hover."""
        if not self._history or now_s - self._history[-1][0] > KEPT_EVERY_S:
            self._history.append((now_s, pull))

    def observe(self, pull: complex | None, now_s: float, step_s: float) -> None:
        """Judge a report by its tilt; None if it has none."""
        if self._from_s == -math.inf:
            self._from_s = now_s
            self._history.clear()
        if pull is None or not self._history or self._history[-1][1] is None:
            self.belief.judge("", step_s)  # nothing can be compared: a doubt has to end
            return
        if step_s > LONGEST_STEP_S:
            self._from_s = now_s + EFFECT_S
        if now_s < self._from_s:
            return
        commands = self._commanded_at(*(now_s - delay_s for delay_s in DELAYS_S))
        differences = [None if each is None else pull - each for each in commands]
        worst = max((each for each in differences if each is not None), key=abs, default=0j)  # if a command is unknown
        share, slowly = -math.expm1(-step_s / COMPARED_S), -math.expm1(-step_s / OFFSET_S)
        for number, each in enumerate(differences):
            missed = worst if each is None else each
            self._offsets[number] += slowly * (missed - self._offsets[number])
            self._errors[number] += share * (abs(missed - self._offsets[number]) ** 2 - self._errors[number])
        in_time = min(error for error, delay_s in zip(self._errors, DELAYS_S, strict=True) if delay_s < LATE_S)
        least, telling = min(self._errors), TELLING_SHARE**2 * self._full
        is_late = in_time > telling and least < min(SAME_SHARE**2 * self._full, BETTER_SHARE * in_time)
        shows = max(self._errors) > telling  # so that a delay would show
        late_s = DELAYS_S[self._errors.index(least)]
        step_s *= 1.0 if is_late or shows or not self.belief.reason else QUIET_SHARE
        self.belief.judge(f"its reports are late, by some {late_s:.1f} s" if is_late else "", step_s)

    def _commanded_at(self, *times_s: float) -> list[complex | None]:
        """Return the commands at times, the latest first; None for one that is unknown."""
        earlier, found = reversed(((-math.inf, None), *self._history)), list[complex | None]()
        command = next(earlier)
        for at_s in times_s:
            while command[0] > at_s:
                command = next(earlier)
            found.append(command[1])
        return found
