# SPDX-License-Identifier: Apache-2.0
"""JudgedSpeed: plausibility check of a measured velocity, by the tilt, drag and wind of the body. Pure."""

import math

from drone_bridge.motion.belief import LONGEST_STEP_S, Belief
from drone_bridge.motion.judged_level import PERSISTS_S

#: A velocity that changes by more between measurements, beyond the modelled acceleration, is refused, m/s.
JUMP_M_S = 0.45
#: Bandwidth of the wind estimate, rad/s. A slower model separates wind from a wrong speed better, but later.
BANDWIDTH = 0.8
#: Initial time of fast learning, s.
LEARNED_S = 0.5
#: Strongest plausible wind, m/s, by the drag of the model: 5 m/s, with a real drag that is 30 % larger.
MOST_WIND_M_S = 6.5
#: Allowed difference between model and measurement, m/s: a multiple of the recent effect of gusts.
LEAST_MISSED_M_S, FIRST_MISSED_M_S, MOST_MISSED_M_S, SPREADS, FEWER_SPREADS = 0.3, 0.7, 1.0, 3.5, 2.5
TURBULENCE_TIME_S, NOISE_TIME_S = 10.0, 0.15
#: Largest plausible speed of the first measurement, m/s.
FASTEST_START_M_S = 8.0
_SHORTEST_STEP_S = 1e-3
FROZEN = "its own speed can't be right: the same numbers are repeated although its tilt changes"


class JudgedSpeed:
    """Velocity with its Belief, and a model of the body: dv/dt = pull + wind - drag v. Vectors are complex: x + jy.

    Measurements correct the model only as fast as wind changes, so a measurement that does not respond to the pull soon
    contradicts it. While the velocity is doubted, the model restarts with each contradicting measurement, until the
    measurements have agreed for long enough.
    """

    def __init__(self, drag: float) -> None:
        """`drag` is in 1/s."""
        self.belief = Belief()
        self._drag = drag
        self.begin()

    def begin(self) -> None:
        """Restart with the next measurement."""
        self._age_s: float | None = None
        #: Last believed velocity, m/s, and acceleration by wind, m/s^2.
        self.velocity = self.wind = 0j
        #: Whether the newest measurement was refused.
        self.is_refused = False
        self._pending: complex | None = None
        self._pending_s = 0.0
        self._turbulence = (FIRST_MISSED_M_S / SPREADS) ** 2
        self._model_wind = 0j
        self._restart_model(0j)

    def observe(
        self, measured: complex, pull: complex, step_s: float, *, is_free: bool = False, is_frozen: bool = False
    ) -> None:
        """Judge a measurement.

        Args:
            measured: the velocity, m/s.
            pull: the mean acceleration by tilt since the last measurement, m/s^2.
            step_s: time since the last measurement, s.
            is_free: whether something else moves the drone, such as a hand; any movement is plausible then.
            is_frozen: whether the same numbers are repeated although the tilt changes.
        """
        if self._age_s is None:
            is_plausible = abs(measured) < FASTEST_START_M_S
            self._age_s, self.velocity = 0.0, measured if is_plausible else 0j
            self._restart_model(self.velocity)
            self.is_refused = not is_plausible
            return
        self.is_refused = False
        step_s = self._flown_s(measured, pull, step_s)
        self._age_s = min(self._age_s, 0.5) if is_free else self._age_s + step_s
        self._advance(pull, step_s)
        moved = self._moved(pull, step_s)
        if is_free or abs(measured - moved) <= JUMP_M_S:
            self._pending = None
            self.velocity = moved + 0.5 * (measured - moved)
        elif self._persists(measured, step_s):
            self._pending, self.velocity = None, measured
        else:
            self.velocity, self.is_refused = moved, True
            self._judge("its own speed can't be right: it jumps", step_s, measured)
            return
        problem = FROZEN if is_frozen else self._contradiction(measured, step_s)
        self._judge("" if is_free else problem, step_s, measured)
        self._correct(measured, step_s)

    # The model.

    def _moved(self, pull: complex, step_s: float) -> complex:
        """Return the last believed velocity, moved by the model."""
        return self.velocity + (pull + self.wind - self._drag * self.velocity) * step_s

    def _flown_s(self, measured: complex, pull: complex, step_s: float) -> float:
        """Return how long a drone has flown in a step, s: hardly, if its simulator has apparently paused in it."""
        if step_s <= LONGEST_STEP_S:
            return step_s
        has_paused = abs(measured - self.velocity) < abs(measured - self._moved(pull, step_s))
        return _SHORTEST_STEP_S if has_paused else step_s

    def _restart_model(self, velocity: complex) -> None:
        self._age_s = None if self._age_s is None else 0.0
        self._model = velocity
        self._missed = 0j

    def _advance(self, pull: complex, step_s: float) -> None:
        self._model += (pull + self._model_wind - self._drag * self._model) * step_s

    def _correct(self, measured: complex, step_s: float) -> None:
        """Correct the velocity and wind of the model by a critically damped filter, fast at first."""
        assert self._age_s is not None
        missed = measured - self._model
        bandwidth = 1.0 / (self._age_s + 0.1) if self._age_s < LEARNED_S else BANDWIDTH
        kept = math.exp(-bandwidth * step_s)
        self._model += (1.0 - kept**2) * missed
        wind, most = self._model_wind + (1.0 - kept) ** 2 / step_s * missed, MOST_WIND_M_S * self._drag
        self._model_wind = wind * min(1.0, most / max(abs(wind), 1e-9))
        if not self.belief.reason and abs(self._missed) < self._allowed() / 2:
            self.wind = self._model_wind

    # The verdict.

    def _judge(self, problem: str, step_s: float, measured: complex) -> None:
        was_doubted = bool(self.belief.reason)
        self.belief.judge(problem, step_s)
        if self.belief.reason and not was_doubted:
            self.velocity = self._model  # less affected by the wrong measurements
            self._model_wind = self.wind
        if problem and self.belief.reason:
            self._restart_model(measured)

    def _persists(self, measured: complex, step_s: float) -> bool:
        is_steady = self._pending is not None and abs(measured - self._pending) <= 2 * JUMP_M_S
        self._pending_s = self._pending_s + step_s if is_steady else 0.0
        self._pending = measured
        return self._pending_s >= PERSISTS_S

    def _contradiction(self, measured: complex, step_s: float) -> str:
        """Return how the measurement contradicts the model; empty if it does not."""
        missed = measured - self._model
        self._missed += (missed - self._missed) * -math.expm1(-step_s / NOISE_TIME_S)
        if abs(self._missed) <= self._allowed():
            self._turbulence += (abs(self._missed) ** 2 - self._turbulence) * step_s / TURBULENCE_TIME_S
            return ""
        return "its own speed can't be right: it does not follow from its tilt"

    def _allowed(self) -> float:
        """Return the allowed difference between model and measurement, m/s."""
        is_suspect = bool(self.belief.reason) or self.belief.is_relapse_likely
        spreads = FEWER_SPREADS if is_suspect else SPREADS
        return max(LEAST_MISSED_M_S, min(MOST_MISSED_M_S, spreads * math.sqrt(self._turbulence)))
