# SPDX-License-Identifier: Apache-2.0
"""LandingVerdict: how the flight of a drone that reports landings has ended, in a sentence."""

import math
from typing import Any

_PAD, _LANDED, _PAD_TOPIC = "drone_bridge/msg/LandingPad", "landed", "landing_pad"
#: Longest time between the last sighting of a pad and a landing on it, s, and the farthest place of its middle, m.
_LANDED_S, _LANDED_M = 1.0, 0.5


class LandingVerdict:
    """Collects the landings of drones, by namespace. Pure."""

    def __init__(self) -> None:
        self._flying_s: dict[str, float | None] = {}  # time of the start in flight, s; None on the ground
        self._pads: dict[str, tuple[float, float, float]] = {}  # time, s, and distance aside and in space, m
        self._ends: dict[str, str] = {}

    def note(self, topic: str, type_name: str, time_s: float, message: Any) -> None:
        """Collect a message."""
        namespace, _, name = topic.rpartition("/")
        if type_name == _PAD and name == _PAD_TOPIC and message.detected:
            aside_m = math.hypot(message.offset_x, message.offset_y)
            self._pads[namespace] = time_s, aside_m, math.hypot(aside_m, message.distance)
        elif name == _LANDED and isinstance(getattr(message, "data", None), bool):
            since_s = self._flying_s.get(namespace)
            if not message.data:
                self._flying_s[namespace] = time_s if since_s is None else since_s
                self._ends[namespace] = "In the air at the end."
            elif since_s is not None:
                self._flying_s[namespace] = None
                self._ends[namespace] = f"Landed after {time_s - since_s:.1f} s{self._aside(namespace, time_s)}."

    @property
    def sentences(self) -> list[str]:
        """The end of each drone's last flight, with its namespace if there is one."""
        return [f"{namespace.strip('/')}: {end}".removeprefix(": ") for namespace, end in sorted(self._ends.items())]

    def _aside(self, namespace: str, time_s: float) -> str:
        seen_s, aside_m, away_m = self._pads.get(namespace, (-math.inf, 0.0, 0.0))
        is_below = time_s - seen_s <= _LANDED_S and away_m <= _LANDED_M
        return f", {100 * aside_m:.0f} cm off the middle of the pad" if is_below else ""
