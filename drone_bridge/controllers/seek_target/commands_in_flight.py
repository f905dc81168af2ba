# SPDX-License-Identifier: Apache-2.0
"""Which command is in force when answers arrive late."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.attitude_estimator import AttitudeEstimator, MeasuredAttitude
from drone_bridge.motion.flight_control import Command

LONGEST_DELAY = 4  # frames
DELAY_DEVIATION = 2e-3  # rad, of an angle after a step with the right command


class CommandsInFlight:
    """Estimates by how many frames commands are late, from their effect on the measured angles.

    In lockstep an answer acts on the step after its frame. When the bridge answers with what it has, each step is
    flown with a command some frames older; which one varies a little.
    """

    def __init__(self, neutral: Command) -> None:
        self._commands = deque([neutral] * (LONGEST_DELAY + 1), maxlen=LONGEST_DELAY + 1)
        # Of each delay; without evidence the shortest wins.
        self._costs: npt.NDArray[np.float64] = np.array([1e-3 * delay for delay in range(LONGEST_DELAY + 1)])

    @property
    def usual_delay(self) -> int:
        """How many frames late commands usually take effect."""
        return int(np.argmin(self._costs))

    @property
    def waiting(self) -> list[Command]:
        """Commands that take effect before the next one, in order."""
        delay = self.usual_delay
        return list(self._commands)[len(self._commands) - delay :] if delay else []

    def add(self, command: Command) -> None:
        """Add the answer to the newest frame."""
        self._commands.append(command)

    def acted(self, attitude: AttitudeEstimator, measured: MeasuredAttitude, step: float) -> Command:
        """Return the command of the last step, given the attitude before and the angles after it."""
        costs: npt.NDArray[np.float64] = np.zeros(LONGEST_DELAY + 1)
        for delay in range(LONGEST_DELAY + 1):
            turned = attitude.turned(self._late_by(delay).rates, step)
            costs[delay] = sum(residual**2 for residual in attitude.residuals(measured, turned))
        costs = np.minimum(costs / DELAY_DEVIATION**2, 100.0)
        self._costs += 0.05 * (costs - costs.min() - self._costs * (np.ptp(costs) > 1))
        costs += 9.0 * (np.arange(LONGEST_DELAY + 1) != self.usual_delay)
        return self._late_by(int(np.argmin(costs)))

    def _late_by(self, delay: int) -> Command:
        return self._commands[-1 - delay]
