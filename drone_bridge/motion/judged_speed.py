# SPDX-License-Identifier: Apache-2.0
"""JudgedSpeed: refuses a measured velocity that leaps, is frozen, or moves against the drone's tilt. Pure."""

from drone_bridge.motion.belief import LONGEST_STEP_S, Belief

#: A velocity leaps if it changes by more than LEAP_M_S, m/s, and MOST_PULL, m/s^2, explain.
LEAP_M_S, MOST_PULL = 1.0, 10.0
#: A leap that lasts this long, s, is a new velocity. Shorter than DOUBT_S: no doubt.
PERSISTS_S = 0.2
#: Largest plausible speed of the first measurement, m/s.
FASTEST_START_M_S = 8.0
#: Averaged over RESPONSE_S, no wind differs by more, m/s, from its average over WIND_S. A velocity that needs more
#: moves against the tilt.
MOST_WIND_M_S, RESPONSE_S, WIND_S = 6.0, 0.6, 5.0
#: A doubted speed is believed again after this time of agreement, s. The level drone is slow by then.
AGREEMENT_S = 4.0
LEAPS = "its own speed can't be right: it jumps"
FROZEN = "its own speed can't be right: the same numbers are repeated although its tilt changes"
AGAINST = "it moves against its tilt as no wind blows it: its own speed is wrong, or it is carried"


class JudgedSpeed:
    """Velocity with its Belief. Vectors are complex: x + jy.

    A runaway is prevented by what the tilt gives: if the velocity does not even grow by that less the strongest wind,
    it does not answer, as one of the wrong sign, and more tilt would fly the drone away.
    """

    def __init__(self, drag: float) -> None:
        """`drag` is in 1/s."""
        self.belief = Belief(AGREEMENT_S)
        self._drag, self._most = drag, MOST_WIND_M_S * drag  # 1/s, m/s^2
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement."""
        #: Last believed velocity, m/s; that by tilt and wind while the measured one is doubted.
        self.velocity = 0j
        #: Whether the newest measurement was refused.
        self.is_refused = False
        self._last: complex | None = None
        self._pending: complex | None = None
        self._pending_s = 0.0
        self._age_s, self._by_tilt = 0.0, 0j
        self._needed = self._wind = 0j  # acceleration by wind that the velocity needs, lately and before, m/s^2

    def observe(self, measured: complex, pull: complex, step_s: float, *, is_frozen: bool = False) -> None:
        """Judge a measurement.

        Args:
            measured: the velocity, m/s.
            pull: the mean acceleration by tilt since the last measurement, m/s^2.
            step_s: time since the last measurement, s.
            is_frozen: whether the same numbers are repeated although the tilt changes.
        """
        if self._last is None:
            self._last = measured if abs(measured) < FASTEST_START_M_S else 0j
        changed, before = measured - self._last, self._pending
        self._by_tilt += (pull + self._wind - self._drag * self._by_tilt) * min(step_s, LONGEST_STEP_S)
        self.is_refused = abs(changed) > LEAP_M_S + MOST_PULL * step_s and not self._persists(measured, step_s)
        if self.is_refused:
            self._judge(LEAPS, step_s)
            return
        self._last, self._pending = measured, None
        is_against = before is None and step_s < LONGEST_STEP_S and self._is_against(changed, pull, step_s)
        self._judge(AGAINST if is_against else FROZEN if is_frozen else "", step_s)
        if not self.belief.reason:
            self.velocity = measured

    def _judge(self, problem: str, step_s: float) -> None:
        self.belief.judge(problem, step_s)
        if self.belief.reason:
            self.velocity = self._by_tilt

    def _is_against(self, changed: complex, pull: complex, step_s: float) -> bool:
        """Return whether no wind explains the velocity, which has just changed."""
        assert self._last is not None
        self._age_s += step_s
        needed = changed / step_s - pull + self._drag * self._last
        self._needed += (needed - self._needed) * min(1.0, step_s / min(self._age_s, RESPONSE_S))
        is_against = self._age_s > RESPONSE_S and abs(self._needed - self._wind) > self._most
        if not is_against and not self.belief.reason:
            self._wind += (self._needed - self._wind) * min(1.0, step_s / WIND_S)
        return is_against

    def _persists(self, measured: complex, step_s: float) -> bool:
        is_steady = self._pending is not None and abs(measured - self._pending) <= 2 * LEAP_M_S
        self._pending_s = self._pending_s + step_s if is_steady else 0.0
        self._pending = measured
        return self._pending_s >= PERSISTS_S
