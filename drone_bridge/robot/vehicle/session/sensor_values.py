# SPDX-License-Identifier: Apache-2.0
"""SensorValues: sends each sensor value once, and lists it as current only while it is fresh."""

import math
from typing import NamedTuple

from drone_bridge.robot import codec

#: Values received within this time are sent in one packet.
GATHER_S = 0.02


class _Value(NamedTuple):
    value: int
    received_s: float


class SensorValues:
    """Newest value of each sensor, by number. Times are seconds of the session's clock."""

    def __init__(self) -> None:
        self._values: dict[int, _Value] = {}
        self._new: dict[int, int] = {}
        self._new_since_s = math.inf
        self._sent_s = -math.inf

    def put(self, sensor: int, value: int | None, now_s: float) -> None:
        """Set the value of a sensor. None: no longer known."""
        if value is None:
            self._values.pop(sensor, None)
            self._new.pop(sensor, None)
            return
        self._values[sensor] = _Value(value, now_s)
        self._new[sensor] = value
        self._new_since_s = min(self._new_since_s, now_s)

    def current(self, sensor: int, now_s: float, allowed_age_s: float) -> int | None:
        """Return the last value if it is fresh, or None."""
        last = self._values.get(sensor)
        return last.value if last and now_s - last.received_s <= allowed_age_s else None

    def due_s(self, period_s: float) -> float:
        """Return the time at which to send new values. `period_s`: minimum time between packets."""
        return max(self._new_since_s + GATHER_S, self._sent_s + period_s) if self._new else math.inf

    def take(self, now_s: float) -> list[codec.SensorReading]:
        """Return the values that were not sent yet, in the order of the list."""
        new, self._new = self._new, {}
        self._new_since_s, self._sent_s = math.inf, now_s
        return [codec.SensorReading(sensor, value) for sensor, value in sorted(new.items())]
