# SPDX-License-Identifier: Apache-2.0
"""ProvenWind: bounds the feedback of a velocity controller by the wind that has visibly moved the drone. Pure.

A drone that reports no motion, with or without noise, may be held by a wall or by a head wind, or its sensor is dead.
No report tells these apart, and with a dead sensor, more tilt flies the drone away. Feedback may therefore use the
*proven* wind, which has moved the drone against the command by its own reports, and LENT in addition. Three times of
that may be used for a moment, as in a gust. What is lent is taken back after LENT_S in which the drone reports no
motion although more is needed, and as much again, so that a wind that just held it blows it, and is proven. After
SAID_S that is a doubt. Only a drone that is asked to move, and is slower than UNMOVED_M_S, reports no motion: one that
is asked to stay, and stays in the wind by what was lent, answers.

Vectors are complex: x + jy.
"""

import math

#: Acceleration, m/s^2, that feedback may use without proof; for how long, s, while the drone reports no motion.
LENT, LENT_S = 0.3, 2.0
#: Time until a missing response is reported, s. If the drone is stopped, it is reported after UNMOVED_S, unless the
#: averaged velocity was ever faster than UNMOVED_M_S: a drone that has flown to a wall has moved, or was blown.
SAID_S, UNMOVED_S, UNMOVED_M_S = 8.0, 2.0, 0.08
#: Time over which the used feedback is averaged, and in which a proof fades, s.
MEAN_S, FADING_S = 2.0, 10.0
#: Growth of the proof, m/s^3; and its limit until a doubt is forgotten, m/s^2: a speed of the wrong sign
#: looks like a wind that grows with one's own tilt.
GROWTH, UNSETTLED = 1.0, 0.5
#: A blown drone moves against the command, or changes its speed: the average by more than this, m/s, in CHANGED_S. A
#: velocity that stays the same while the tilt grows proves nothing.
CHANGED_M_S, CHANGED_S = 0.02, 0.5
#: The drone moves if its velocity, averaged over AVERAGED_S, is faster, m/s; and wind moves it if it differs by more
#: from the commanded one in the direction of the wind, m/s.
MOVES_M_S, BLOWN_M_S, AVERAGED_S = 0.15, 0.1, 0.5


class ProvenWind:
    """Bound of the feedback of one drone. Call `measured` for each believed velocity, and `usable` for each command."""

    def __init__(self) -> None:
        #: Acceleration by wind that has moved the drone, m/s^2.
        self.strength = 0.0
        self._velocity = self._before = 0j  # averages over AVERAGED_S and CHANGED_S, m/s
        self._asked = self._unanswered_s = self._mean_used = 0.0  # commanded speed, m/s
        self._fastest, self._is_dead = 0.0, False  # averaged speed, m/s; whether it was stopped without ever moving

    @property
    def is_unanswered(self) -> bool:
        """Whether the drone has reported no motion for SAID_S, or until it was stopped, although it was tilted."""
        return self._unanswered_s > SAID_S or (self._is_dead and self._fastest < MOVES_M_S)

    def measured(
        self, velocity: complex, commanded: complex, wind: complex, step_s: float, *, is_settled: bool
    ) -> None:
        """Update by a velocity, m/s, `step_s` after the last one. `wind` is the estimated acceleration, m/s^2."""
        strength, self._asked = abs(wind), abs(commanded)
        self._velocity += (velocity - self._velocity) * -math.expm1(-step_s / AVERAGED_S)
        self._before += (self._velocity - self._before) * -math.expm1(-step_s / CHANGED_S)
        self._fastest = max(self._fastest, abs(self._velocity))
        if abs(self._velocity) > UNMOVED_M_S:  # it answers, though wind may keep it slow
            self._unanswered_s = 0.0
        has_changed = abs(self._velocity - self._before) > CHANGED_M_S
        blown = ((self._velocity - commanded) * wind.conjugate()).real
        opposes = (self._velocity * commanded.conjugate()).real < -UNMOVED_M_S * abs(commanded)
        if (opposes or (has_changed and abs(self._velocity) > MOVES_M_S)) and blown > BLOWN_M_S * strength:
            most = strength if is_settled else min(strength, UNSETTLED)
            self.strength = max(self.strength, min(most, self.strength + GROWTH * step_s))
        self.strength += min(0.0, strength - self.strength) * -math.expm1(-step_s / FADING_S)

    def usable(self, needed: float, step_s: float, *, is_settled: bool) -> float:
        """Return the share of the feedback, `needed` m/s^2, that may be used for the next `step_s`."""
        is_asked = self._asked > MOVES_M_S and abs(self._velocity) < UNMOVED_M_S
        is_missing = is_asked and needed > self.strength + LENT
        self._unanswered_s = max(0.0, min(SAID_S + 1.0, self._unanswered_s + (1 if is_missing else -2) * step_s))
        lent = LENT * is_settled if self._unanswered_s < LENT_S else -LENT  # so that a wind that holds it shows
        lasting = max(0.0, self.strength + lent)
        used = min(needed, max(0.0, 3.0 * lasting - 2.0 * self._mean_used))
        self._mean_used += (used - self._mean_used) * -math.expm1(-step_s / MEAN_S)
        return used / max(needed, 1e-9)

    def stopped(self) -> None:
        """Judge the response so far, since the drone is commanded to stop, and will soon need no tilt."""
        self._is_dead |= self._unanswered_s > UNMOVED_S and self._fastest < UNMOVED_M_S

    def doubted(self, step_s: float) -> None:
        """Discard the proof after a doubted velocity."""
        self.strength = 0.0
        self._unanswered_s = max(0.0, self._unanswered_s - 2.0 * step_s)
