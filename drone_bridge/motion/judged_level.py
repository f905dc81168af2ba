# SPDX-License-Identifier: Apache-2.0
"""JudgedLevel: a measured height or heading, judged by the rate that is commanded. Pure."""

import math

from drone_bridge.motion.belief import Belief

#: A jump that lasts for so long is a new level: a table below the drone. Shorter than DOUBT_S, so it raises no doubt.
PERSISTS_S = 0.2
#: Over how long movement is compared with what was commanded, s.
MEMORY_S = 3.0
#: Below this share of the commanded movement it does not respond; above the other it has shown that it does.
UNRESPONSIVE, RESPONSIVE = 0.25, 0.5
#: For how long a level that has responded before may be held up by an obstacle, s.
HELD_UP_S = 3.0


class JudgedLevel:
    """A level and its Belief.

    A measurement that is farther than `jump` from the last level moved on by the commanded rate is refused: the level
    moves on by that rate, until the measurement is back, or the jump persists; then the level goes on from there, so
    `value` never jumps. A level that does not move is not followed once half of `least` was commanded, and doubted
    after all of it.
    """

    def __init__(self, name: str, jump: float, least: float) -> None:
        """`jump` and `least` are in the level's unit."""
        self.belief = Belief()
        self._name, self._jump, self._least = name, jump, least
        self.begin()

    def begin(self) -> None:
        """Begin anew with the next measurement."""
        #: The continuous level: measured, without its jumps.
        self.value = 0.0
        self._measured: float | None = None
        self._pending: float | None = None  # a level that was jumped to
        self._pending_s = self._held_up_s = 0.0
        self._expected = self._moved = 0.0
        self._has_responded = False

    @property
    def is_known(self) -> bool:
        """Whether it was measured since it began."""
        return self._measured is not None

    @property
    def is_followed(self) -> bool:
        """Whether the level may be flown by: it is neither doubted nor held up."""
        return not self.belief.reason and not self._held_up_s

    def observe(
        self, measured: float, rate: float, expected_rate: float, step_s: float, *, is_free: bool = False
    ) -> None:
        """Judge a measurement, `step_s` after the last one.

        Args:
            measured: the level now.
            rate: of the level at present, by command.
            expected_rate: the rate that a late command has by now at the latest.
            step_s: since the last measurement.
            is_free: whether something else than commands moves it, as a hand does; any movement is right then.
        """
        if self._measured is None:
            self.value = self._measured = measured
            return
        kept = self._measured + rate * step_s
        problem = ""
        if is_free or abs(measured - kept) <= self._jump:
            self._move(measured - self._measured, expected_rate, step_s)
            self._measured, self._pending = measured, None
        elif self._persists(measured, step_s):
            self.value += rate * step_s
            self._measured, self._pending = measured, None
        else:
            self.value += rate * step_s
            self._measured = kept
            problem = f"its own {self._name} can't be right: it jumps"
        if is_free:
            self._expected = self._moved = self._held_up_s = 0.0
        self.belief.judge(problem or self._response(step_s), step_s)

    def _move(self, moved: float, expected_rate: float, step_s: float) -> None:
        kept = math.exp(-step_s / MEMORY_S)
        self.value += moved
        self._expected = kept * self._expected + expected_rate * step_s
        self._moved = kept * self._moved + moved

    def _persists(self, measured: float, step_s: float) -> bool:
        """Return whether a jump has lasted for so long that it is a new level."""
        is_steady = self._pending is not None and abs(measured - self._pending) <= 2 * self._jump
        self._pending_s = self._pending_s + step_s if is_steady else 0.0
        self._pending = measured
        return self._pending_s >= PERSISTS_S

    def _response(self, step_s: float) -> str:
        """Return why it does not respond to what is commanded, if so."""
        expected = abs(self._expected)
        moved = math.copysign(self._moved, self._moved * self._expected)
        if expected < self._least / 2 or moved > UNRESPONSIVE * expected:
            self._has_responded |= moved > max(RESPONSIVE * expected, self._least / 2)
            self._held_up_s = 0.0
            return ""
        self._held_up_s += step_s
        if expected < self._least or (self._has_responded and self._held_up_s < HELD_UP_S):
            return ""
        self._has_responded = False
        return f"its own {self._name} can't be right: it does not follow what is commanded"
