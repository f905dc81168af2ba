# SPDX-License-Identifier: Apache-2.0
"""JudgedPosition: plausibility check of a measured position, by the thrust and drag of the body. Pure."""

import math
from collections.abc import Sequence

from drone_bridge.motion.belief import Belief
from drone_bridge.motion.judged_level import PERSISTS_S
from drone_bridge.motion.judged_speed import JudgedSpeed

#: A position farther than this from the predicted one is refused, m.
JUMP_M = 1.0
#: No wind changes by more, m/s: a drone by thrust, with less drag, tilts farther than any wind asks for.
MOST_WIND_M_S = 10.0
#: Time over which positions give a velocity, s; longer reduces the effect of their errors.
WINDOW_S = 0.1
#: A position may not repeat to the last digit for longer, s, once tilt has pulled the drone meanwhile, m/s^2.
FROZEN_S, FROZEN_PULL = 0.5, 0.5
#: If its changes are as fine as this, m, it may not repeat once the change of the pull has given this speed, m/s.
FINE_M, FROZEN_M_S = 5e-4, 0.03


class JudgedPosition:
    """Position with its Belief, and the JudgedSpeed of its horizontal changes. z is up.

    A jump is refused until the position returns, or until it has lasted for PERSISTS_S. Positions then continue from
    the predicted one. A position that stays the same while the pull changes is doubted: no wind changes with the pull.
    The same position at a constant pull is that of a drone in calm air, or in a steady wind.
    """

    def __init__(self, decay: float) -> None:
        """`decay` is the decay rate of the speed by drag, 1/s."""
        self._jumps, self._speed, self._decay = Belief(), JudgedSpeed(decay, MOST_WIND_M_S), decay
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement."""
        self._speed.begin()
        self._offset = [0.0, 0.0, 0.0]  # sum of the persistent jumps, m
        self._pending: Sequence[float] | None = None
        self._pending_s = self._window_s = 0.0
        self._pushed = 0j  # m/s, within the window
        self._window_began: complex | None = None  # m
        self._velocity: complex | None = None  # m/s, of the last window
        self._finest = math.inf  # least change of a component in a window, m
        self._repeated_s, self._is_pulled = 0.0, False  # and whether its pull excludes that
        self._pull, self._gained = 0j, 0j  # as it began to repeat, m/s^2; speed by the change since then, m/s

    @property
    def reasons(self) -> list[str]:
        """Reasons for a doubt, as sentences without a full stop; empty while positions are believed."""
        reason = self._jumps.reason or self._speed.belief.reason.replace("speed", "position")
        return [reason] if reason else []

    @property
    def velocity(self) -> complex:
        """Last believed horizontal velocity, x + jy, m/s."""
        return self._speed.velocity

    def believed(
        self, measured: Sequence[float], predicted: Sequence[float], pull: complex, step_s: float
    ) -> list[float] | None:
        """Judge a position (m), measured `step_s` after the last one. Return it without jumps, or None if doubted.

        `predicted` is the model's position, and `pull` the acceleration by thrust since then, x + jy, m/s^2.
        """
        was_doubted = bool(self.reasons)
        here = [value - offset for value, offset in zip(measured, self._offset, strict=True)]
        is_jump = math.dist(here, predicted) > JUMP_M and not was_doubted
        self._judge_speed(complex(here[0], here[1]), pull, step_s, is_jump=is_jump)
        if is_jump:
            is_steady = self._pending is not None and math.dist(measured, self._pending) < JUMP_M
            self._pending, self._pending_s = measured, self._pending_s + step_s if is_steady else 0.0
        else:
            self._pending = None
        lasts = is_jump and self._pending_s >= PERSISTS_S
        if lasts or (was_doubted and not self.reasons):
            self._offset = [value - place for value, place in zip(measured, predicted, strict=True)]
            self._window_began, is_jump, here = None, False, list(predicted)
        self._jumps.judge("its own position can't be right: it jumps" if is_jump else "", step_s)
        return None if is_jump or self.reasons else here

    def _judge_speed(self, here: complex, pull: complex, step_s: float, *, is_jump: bool) -> None:
        """Judge the velocity at the end of each window."""
        if self._window_began is None or is_jump:
            self._window_began, self._window_s, self._pushed = None if is_jump else here, 0.0, 0j
            return
        self._window_s += step_s
        self._pushed += pull * step_s
        if self._window_s < WINDOW_S:
            return
        moved, push = here - self._window_began, self._pushed / self._window_s
        velocity = moved / self._window_s
        self._finest = min(self._finest, abs(moved.real) or math.inf, abs(moved.imag) or math.inf)
        if velocity != self._velocity:
            self._repeated_s, self._is_pulled, self._pull, self._gained = 0.0, False, push, 0j
        else:
            self._repeated_s += self._window_s
            kept = math.exp(-self._decay * self._window_s)
            self._gained = kept * self._gained + (push - self._pull) * self._window_s
            has_gained = self._finest < FINE_M and abs(self._gained) > FROZEN_M_S
            self._is_pulled |= abs(push) > FROZEN_PULL or has_gained
        is_frozen = self._repeated_s > FROZEN_S and self._is_pulled
        self._speed.observe(velocity, push, self._window_s, is_frozen=is_frozen)
        self._velocity = velocity
        self._window_began, self._window_s, self._pushed = here, 0.0, 0j
