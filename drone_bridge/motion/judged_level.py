# SPDX-License-Identifier: Apache-2.0
"""JudgedLevel: refuses leaps of a measured height or heading. Pure."""

import math

from drone_bridge.motion.belief import Belief

#: A leap that lasts this long, s, is a new level, such as a table below the drone. Shorter than DOUBT_S: no doubt.
PERSISTS_S = 0.2
#: Time over which movement is compared with the commanded one, and within which a command takes effect, s; and the
#: share of it from which a level answers.
MEMORY_S, EFFECT_S, ANSWERS = 3.0, 0.6, 0.25


class JudgedLevel:
    """Level with its Belief.

    A measurement farther from the last one than `leap` and the drone's fastest rate explain is refused, until it
    returns, or until the leap persists. Then the level continues from the last one, so `value` never leaps.

    A level that does not answer `least` of a commanded movement is not held meanwhile: the drone may be at a ceiling or
    on a deck, or its sensor may be dead, so this is no doubt.
    """

    def __init__(self, name: str, leap: float, least: float, most_rate: float) -> None:
        """`leap` and `least` are in the unit of the level, `most_rate` per s."""
        self.belief = Belief()
        self._name, self._leap, self._least, self._most_rate = name, leap, least, most_rate
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement."""
        #: Continuous level: the measurement without its leaps.
        self.value = 0.0
        #: Whether the newest measurement was refused.
        self.is_refused = False
        self._measured: float | None = None
        self._pending: float | None = None  # level after a leap
        self._pending_s = self._since_s = 0.0
        self._rate = self._expected = self._moved = 0.0

    @property
    def is_followed(self) -> bool:
        """Whether the level may be held: it is not doubted, and answers the commands."""
        expected = abs(self._expected)
        answers = math.copysign(self._moved, self._moved * self._expected) > ANSWERS * expected
        return not self.belief.reason and (answers or expected < self._least)

    def observe(self, measured: float, rate: float, step_s: float) -> None:
        """Judge a measurement, `step_s` after the last one. `rate` is the commanded one."""
        if self._measured is None:
            self.value = self._measured = measured
        kept = math.exp(-step_s / MEMORY_S)
        self._rate += (rate - self._rate) * min(1.0, step_s / EFFECT_S)
        self._expected, self._moved = kept * self._expected + self._rate * step_s, kept * self._moved
        self._since_s += step_s
        self.is_refused = abs(measured - self._measured) > self._leap + self._most_rate * self._since_s
        if not self.is_refused:
            self.value += measured - self._measured
            self._moved += measured - self._measured
        elif not self._persists(measured, step_s):
            self.belief.judge(f"its own {self._name} can't be right: it jumps", step_s)
            return
        self._measured, self._pending, self._since_s = measured, None, 0.0
        self.belief.judge("", step_s)

    def _persists(self, measured: float, step_s: float) -> bool:
        is_steady = self._pending is not None and abs(measured - self._pending) <= 2 * self._leap
        self._pending_s = self._pending_s + step_s if is_steady else 0.0
        self._pending = measured
        return self._pending_s >= PERSISTS_S
