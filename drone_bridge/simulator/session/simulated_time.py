# SPDX-License-Identifier: Apache-2.0
"""SimulatedTime: counts steps from the first one. Pure, with the wall time as an argument."""

import math

from drone_bridge.simulator.codec import Configured
from drone_bridge.simulator.session.events import ClockTime

NANOSECONDS = 1_000_000_000
#: Repeat period of the time while the simulation is paused, for new subscribers.
IDLE_PERIOD_S = 0.2
#: Maximum rate of publication, Hz.
RATE = 100.0


class SimulatedTime:
    """Simulated time that never decreases, even after a restart of the simulator. Published at a limited rate."""

    def __init__(self, *, is_published: bool) -> None:
        self._is_published = is_published
        self._step_ns = 0.0  # 0: unknown
        self._base_ns = 0
        self._steps = 0  # since the base
        self._published_s = -math.inf
        self._next_s = -math.inf  # scheduled time of the next one, at the maximum rate
        self._is_pending = False

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
        self._is_pending = True
        return self._time(now_s)

    @property
    def due_s(self) -> float:
        """ClockTime of the next `tick`."""
        if not self._is_published or not self._step_ns:
            return math.inf
        if self._is_pending:
            # Steps at about this rate arrive early or late. Waiting for early ones would cost an additional turn of the
            # link's thread each.
            return self._next_s - 0.5 / RATE
        return self._published_s + IDLE_PERIOD_S

    def tick(self, now_s: float) -> ClockTime | None:
        """Return the time if it is due."""
        return self._time(now_s) if now_s >= self.due_s else None

    def _time(self, now_s: float) -> ClockTime:
        is_due = now_s >= self.due_s
        if is_due:
            self._published_s = now_s
            self._next_s = max(self._next_s, now_s) + 1 / RATE
            self._is_pending = False
        return ClockTime(self.nanoseconds, is_due)
