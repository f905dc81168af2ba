# SPDX-License-Identifier: Apache-2.0
"""Landings: where the pad is that a drone has landed on, for pages that are opened afterwards."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from rclpy.node import Node
from std_msgs.msg import Bool

from drone_bridge.msg import LandingPad
from drone_bridge.ros.qos import latched
from drone_bridge.ros.streams import UNWATCHED, TopicStream

LANDED, PAD = "landed", "landing_pad"
PERIOD_S = 0.2
#: A drone that lands stands on the pad if it saw it within this time, and this near. As in web/src/sightings.ts.
LANDED_S, LANDED_M = 1.0, 0.5


class PadPlace(NamedTuple):
    """Place of a pad, in level axes with the drone's heading, m."""

    x: float  # ahead
    y: float  # to the left


class LandedPad:
    """Last sighting of a pad by one drone. Pure."""

    def __init__(self) -> None:
        self._seen: tuple[PadPlace, float] | None = None
        self._stands: bool | None = None

    def see(self, x: float, y: float, distance: float, now_s: float) -> None:
        """Record a sighting; NaN for a pad that is not visible."""
        if math.hypot(x, y, distance) < LANDED_M:
            self._seen = PadPlace(x, y), now_s
        elif not math.isnan(x):
            self._seen = None

    def place(self, stands: bool, now_s: float) -> PadPlace | None:
        """Return the place of the pad below a drone that has just landed, None if it does not stand on one."""
        has_landed, self._stands = stands and self._stands is False, stands
        return self._seen[0] if has_landed and self._seen and now_s - self._seen[1] < LANDED_S else None


class Landings:
    """Follows the drones that report pads. For the executor's thread."""

    def __init__(self, node: Node, on_place: Callable[[str, PadPlace | None], None]) -> None:
        """`on_place` gets the topic of a vehicle's commands, and the pad below it after a landing, else None."""
        self._node, self._on_place = node, on_place
        self._followed: dict[str, tuple[LandedPad, TopicStream, Any]] = {}
        node.create_timer(PERIOD_S, self._look)

    def update(self, topics: Mapping[str, Sequence[str]], vehicles: Iterable[str]) -> None:
        """Follow new vehicles. Those that have left are kept, as they may come back: their topics are silent."""
        for vehicle in vehicles:
            prefix = vehicle.rpartition("/")[0]
            if vehicle not in self._followed and {f"{prefix}/{LANDED}", f"{prefix}/{PAD}"} <= topics.keys():
                take, landed = partial(self._take, vehicle), f"{prefix}/{LANDED}"
                self._followed[vehicle] = (
                    LandedPad(),
                    TopicStream(self._node, LandingPad, f"{prefix}/{PAD}"),
                    self._node.create_subscription(Bool, landed, take, latched(), event_callbacks=UNWATCHED),
                )

    def _take(self, vehicle: str, message: Bool) -> None:
        self._look()
        self._on_place(vehicle, self._followed[vehicle][0].place(message.data, time.monotonic()))

    def _look(self) -> None:
        for pad, stream, _ in self._followed.values():
            if seen := stream.take():
                pad.see(seen.offset_x, seen.offset_y, seen.distance, time.monotonic())
