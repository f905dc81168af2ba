# SPDX-License-Identifier: Apache-2.0
"""SimulatedTime: counts steps from the first one. Pure, with the wall time as an argument."""

import math

from drone_bridge.simulator.codec import Configured
from drone_bridge.simulator.session.events import ClockTime

NANOSECONDS = 1_000_000_000
#: Repeat period of the time while the simulation is paused, for new subscribers.
IDLE_PERIOD_S = 0.2
#: Minimum period of publication. Steps of 10 ms, the usual ones, are early or late by some ms.
MIN_PERIOD_S = 0.005


class SimulatedTime:
    """Simulated time that never decreases, even after a restart of the simulator. Published at a limited rate."""

    def __init__(self, *, is_published: bool) -> None:
        self._is_published = is_published
        self._step_ns = 0.0  # 0: unknown
        self._base_ns = 0
        self._steps = 0  # since the base
        self._published_s = -math.inf

    @property
    def nanoseconds(self) -> int:
        return self._base_ns + round(self._steps * self._step_ns)

    def configure(self, configured: Configured) -> None:
        """Set the duration of a step: `frequency` steps and `speed` simulated seconds per second of the wall clock.

        Raises ValueError for invalid values.
        """
        frequency, speed = configured.frequency, configured.speed
        step_ns = speed / frequency * NANOSECONDS if frequency > 0.0 and speed > 0.0 else math.nan
        if not (0.0 < step_ns < 1e15):
            raise ValueError(
                f"The simulator reports {frequency:g} steps per second at speed {speed:g}, so its time is unknown."
            )
        self._base_ns, self._steps = self.nanoseconds, 0
        self._step_ns = step_ns

    def step(self, now_s: float) -> ClockTime:
        """Count a step, and return the time."""
        self._steps += 1
        return self._time(now_s, MIN_PERIOD_S)

    @property
    def due_s(self) -> float:
        """Time of the next `tick`."""
        return self._published_s + IDLE_PERIOD_S if self._is_published and self._step_ns else math.inf

    def tick(self, now_s: float) -> ClockTime | None:
        """Return the time if it is due."""
        return self._time(now_s, IDLE_PERIOD_S) if now_s >= self.due_s else None

    def _time(self, now_s: float, period_s: float) -> ClockTime:
        is_due = self._is_published and self._step_ns > 0.0 and now_s >= self._published_s + period_s
        if is_due:
            self._published_s = now_s
        return ClockTime(self.nanoseconds, is_due)
