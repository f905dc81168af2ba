# SPDX-License-Identifier: Apache-2.0
"""JudgedLevel: a measured height or heading without its leaps. Pure."""

import math

#: Time over which movement is compared with the commanded one, and within which a command takes effect, s; and the
#: share of it from which a level answers.
MEMORY_S, EFFECT_S, ANSWERS = 3.0, 0.6, 0.25


class JudgedLevel:
    """Level that continues over leaps: changes that are farther than `leap` and the drone's fastest rate explain.

    A glitch leaps there and back. A leap that lasts is a new level, such as a table below the drone.

    A level that does not answer `least` of a commanded movement is not held meanwhile: the drone may be at a ceiling or
    on a deck, or its sensor may be dead, so this is no doubt.
    """

    def __init__(self, leap: float, least: float, most_rate: float) -> None:
        """`leap` and `least` are in the unit of the level, `most_rate` per s."""
        self._leap, self._least, self._most_rate = leap, least, most_rate
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement."""
        #: Continuous level: the measurement without its leaps.
        self.value = 0.0
        self._measured: float | None = None
        self._rate = self._expected = self._moved = 0.0

    @property
    def is_followed(self) -> bool:
        """Whether the level answers the commands, so that it may be held."""
        expected = abs(self._expected)
        answers = math.copysign(self._moved, self._moved * self._expected) > ANSWERS * expected
        return answers or expected < self._least

    def observe(self, measured: float, rate: float, step_s: float) -> None:
        """Judge a measurement, `step_s` after the last one. `rate` is the commanded one."""
        if self._measured is None:
            self.value = self._measured = measured
        kept = math.exp(-step_s / MEMORY_S)
        self._rate += (rate - self._rate) * min(1.0, step_s / EFFECT_S)
        self._expected, self._moved = kept * self._expected + self._rate * step_s, kept * self._moved
        changed, self._measured = measured - self._measured, measured
        if abs(changed) <= self._leap + self._most_rate * step_s:
            self.value += changed
            self._moved += changed
