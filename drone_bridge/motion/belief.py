# SPDX-License-Identifier: Apache-2.0
"""Belief: trust in a measured quantity, by how long it has contradicted the model or agreed with it."""

import math

#: A quantity that contradicts the model for longer is doubted, s.
DOUBT_S = 0.3
#: A single measurement counts for this time at most, s: after a gap, it says nothing about the time before.
LONGEST_STEP_S = 0.25
#: A doubted quantity is believed again after this time of agreement, s.
AGREEMENT_S = 1.0
#: Time of belief after which a doubt is forgotten, as a multiple of the time of agreement that has ended it.
SETTLED_TIMES = 3.0


class Belief:
    """Trust in one quantity, which is believed at first. Pure; call `judge` for each measurement."""

    def __init__(self, agreement_s: float = AGREEMENT_S) -> None:
        #: Reason for the doubt, a sentence without a full stop; empty while the quantity is believed.
        self.reason = ""
        self._contradicted_s = self._agreed_s = 0.0
        self._believed_s = math.inf
        self._agreement_s = agreement_s

    @property
    def is_settled(self) -> bool:
        """Whether the last doubt is forgotten."""
        return self._believed_s >= SETTLED_TIMES * self._agreement_s

    def judge(self, problem: str, step_s: float) -> None:
        """Update the belief by a measurement, `step_s` after the last one. `problem` is empty if it agrees."""
        step_s = min(step_s, LONGEST_STEP_S)
        if problem:
            self._agreed_s = 0.0
            self._contradicted_s += step_s
            if not self.reason and self._contradicted_s > DOUBT_S:
                self.reason = problem
            return
        self._contradicted_s = max(0.0, self._contradicted_s - step_s / 2)  # every second one wrong: doubted too
        if not self.reason:
            self._believed_s += step_s
            return
        self._agreed_s += step_s
        if self._agreed_s >= self._agreement_s:
            self.reason, self._believed_s, self._contradicted_s = "", 0.0, 0.0
