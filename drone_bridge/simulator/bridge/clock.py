# SPDX-License-Identifier: Apache-2.0
"""Simulation time, counted in steps."""

import math

from builtin_interfaces.msg import Time

from drone_bridge.ros.time import NANOSECONDS
from drone_bridge.simulator.codec import Configured


class SimulationClock:
    """Counts steps from the first one seen. Never runs back, even if the simulator is restarted."""

    def __init__(self) -> None:
        self._step_ns = 0.0  # 0: not known
        self._base_ns = 0
        self._steps = 0  # since the base

    @property
    def is_known(self) -> bool:
        """Whether the duration of a step is known."""
        return self._step_ns > 0.0

    @property
    def nanoseconds(self) -> int:
        return self._base_ns + round(self._steps * self._step_ns)

    def configure(self, configured: Configured) -> None:
        """Set the duration of a step: `frequency` steps and `speed` simulated seconds per second of the wall clock.

        Raises ValueError when that makes no sense.
        """
        frequency, speed = configured.frequency, configured.speed
        step_ns = speed / frequency * NANOSECONDS if frequency > 0.0 and speed > 0.0 else math.nan
        if not (0.0 < step_ns < 1e15):
            raise ValueError(
                f"The simulator reports {frequency:g} steps per second at speed {speed:g}, so its time is unknown."
            )
        self._base_ns, self._steps = self.nanoseconds, 0
        self._step_ns = step_ns

    def step(self) -> None:
        self._steps += 1

    def message(self) -> Time:
        """Return the time as a message, which ends in 2038."""
        seconds, nanoseconds = divmod(self.nanoseconds, NANOSECONDS)
        return Time(sec=min(seconds, 2**31 - 1), nanosec=nanoseconds)
