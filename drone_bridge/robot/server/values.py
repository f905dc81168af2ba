# SPDX-License-Identifier: Apache-2.0
"""The newest value of each sensor, passed from the executor to the link's thread."""

import math
import threading
import time
from typing import Final, NamedTuple

from drone_bridge.robot.codec import SensorReading

#: Values received within this time are sent in one packet.
GATHER_S: Final = 0.02


class _Value(NamedTuple):
    value: int
    heard_s: float  # by time.monotonic


class SensorValues:
    """Sensor values. Each is sent once, and listed as current only while it is fresh."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[int, _Value] = {}
        self._new: dict[int, int] = {}
        self._new_since_s = math.inf
        self._sent_s = -math.inf

    def clear(self) -> None:
        """Forget everything, as the sensors have changed. Thread-safe."""
        with self._lock:
            self._values.clear()
            self._new.clear()
            self._new_since_s = math.inf

    def put(self, sensor: int, value: int | None) -> None:
        """Set the value of a sensor, None if it is no longer known. Thread-safe."""
        now_s = time.monotonic()
        with self._lock:
            if value is None:
                self._values.pop(sensor, None)
                self._new.pop(sensor, None)
                return
            self._values[sensor] = _Value(value, now_s)
            self._new[sensor] = value
            self._new_since_s = min(self._new_since_s, now_s)

    def current(self, sensor: int, now_s: float, allowed_age_s: float) -> int | None:
        """Return the last value, if it is fresh."""
        with self._lock:
            last = self._values.get(sensor)
        return last.value if last and now_s - last.heard_s <= allowed_age_s else None

    def due_s(self, period_s: float) -> float:
        """Return when new values are to be sent. `period_s`: minimum time between packets."""
        with self._lock:
            return max(self._new_since_s + GATHER_S, self._sent_s + period_s) if self._new else math.inf

    def take(self, now_s: float) -> list[SensorReading]:
        """Return the values that were not sent yet, in the order of the list."""
        with self._lock:
            new, self._new = self._new, {}
            self._new_since_s, self._sent_s = math.inf, now_s
        return [SensorReading(sensor, value) for sensor, value in sorted(new.items())]
