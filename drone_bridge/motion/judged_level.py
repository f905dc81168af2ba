# SPDX-License-Identifier: Apache-2.0
"""JudgedLevel: plausibility check of a measured height or heading, by the commanded rate. Pure."""

import math

from drone_bridge.motion.belief import LONGEST_STEP_S, Belief

#: A jump that lasts this long, s, is a new level, such as a table below the drone. Shorter than DOUBT_S: no doubt.
PERSISTS_S = 0.2
#: Time over which movement is compared with commands, s.
MEMORY_S = 3.0
#: Shares of the commanded movement: below the first a level does not respond, above the second it has responded.
UNRESPONSIVE, RESPONSIVE = 0.25, 0.5
#: How long an obstacle may block a level that has responded before, s.
HELD_UP_S = 3.0


class JudgedLevel:
    """Level with its Belief.

    The last level, moved by the commanded rate, is the prediction. A measurement farther than `jump` from all levels
    between the last and the predicted one is refused, and the level follows the prediction until the measurement
    returns or the jump persists. A simulator that pauses therefore causes no jump. After a persistent jump the level
    continues from the prediction, so `value` never jumps. A level that does not move is not followed once half of
    `least` was commanded, and doubted after all of it.
    """

    def __init__(self, name: str, jump: float, least: float) -> None:
        """`jump` and `least` are in the unit of the level."""
        self.belief = Belief()
        self._name, self._jump, self._least = name, jump, least
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement."""
        #: Continuous level: the measurement without its jumps.
        self.value = 0.0
        #: Whether the newest measurement was refused, so that `value` follows the prediction.
        self.is_refused = False
        self._measured: float | None = None
        self._pending: float | None = None  # level after a jump
        self._pending_s = self._held_up_s = 0.0
        self._expected = self._moved = 0.0
        self._has_responded = False

    @property
    def is_known(self) -> bool:
        """Whether there was a measurement since the restart."""
        return self._measured is not None

    @property
    def is_followed(self) -> bool:
        """Whether the level may be used for control: it is neither doubted nor blocked."""
        return not self.belief.reason and not self._held_up_s

    def observe(
        self, measured: float, rate: float, expected_rate: float, step_s: float, *, is_free: bool = False
    ) -> None:
        """Judge a measurement, `step_s` after the last one.

        Args:
            measured: the measured level.
            rate: the commanded rate now.
            expected_rate: the commanded rate that must have taken effect by now, even if commands are late.
            step_s: time since the last measurement, s.
            is_free: whether something other than commands moves it, such as a hand; any movement is plausible then.
        """
        if self._measured is None:
            self.value = self._measured = measured
            return
        moved, predicted = measured - self._measured, rate * step_s
        is_near = min(predicted, 0.0) - self._jump <= moved <= max(predicted, 0.0) + self._jump
        self.is_refused = not (is_free or is_near)
        problem = ""
        if not self.is_refused:
            self._move(moved, expected_rate, step_s)
            self._measured, self._pending = measured, None
        elif self._persists(measured, step_s):
            self.value += predicted
            self._measured, self._pending = measured, None
        else:
            self.value += predicted
            self._measured += predicted
            problem = f"its own {self._name} can't be right: it jumps"
        if is_free or step_s > LONGEST_STEP_S:
            self._expected = self._moved = self._held_up_s = 0.0
        self.belief.judge(problem or self._response(step_s), step_s)

    def _move(self, moved: float, expected_rate: float, step_s: float) -> None:
        kept = math.exp(-step_s / MEMORY_S)
        self.value += moved
        self._expected = kept * self._expected + expected_rate * step_s
        self._moved = kept * self._moved + moved

    def _persists(self, measured: float, step_s: float) -> bool:
        """Return whether a jump has lasted for PERSISTS_S, and so is a new level."""
        is_steady = self._pending is not None and abs(measured - self._pending) <= 2 * self._jump
        self._pending_s = self._pending_s + step_s if is_steady else 0.0
        self._pending = measured
        return self._pending_s >= PERSISTS_S

    def _response(self, step_s: float) -> str:
        """Return the problem of a level that does not respond to commands; empty if it does."""
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
        return f"its own {self._name} can't be right: it does not follow the commands"
