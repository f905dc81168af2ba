# SPDX-License-Identifier: Apache-2.0
"""The mark that a bridge leaves in the simulator while it steers, so that others can stop what it leaves behind.

A vehicle in the simulator has no watchdog: it goes on as it was told. So an extended attribute of it says who steers
it, with a count that goes up while that bridge lives. Whoever finds the mark of another bridge watches the count, and
stops the vehicle once it stands still. The time is counted in answers: a simulator that stands still itself, or a
bridge that was stopped, has nobody declared dead.
"""

import math
import time
from collections.abc import Callable
from itertools import count

from drone_bridge.motion.quaternions import IDENTITY
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.link import Outcome, ignore
from drone_bridge.simulator.topics.translation import STILL, Axes, set_velocity

STEERED_KEY = "drone_bridge.steered"
NOBODY = b"0"
#: Between two counts of who steers, and between two looks at them.
BEAT_S = 0.25
#: So many answers with the same count are of a bridge that was killed.
MOST_UNCHANGED = 5
_COUNT_BYTES = 4

Ask = Callable[[sim.Request, Callable[[Outcome], None]], None]


class SteeringMark:
    """Keeps our own mark fresh while we steer, and watches another's while we don't. For the link's thread."""

    def __init__(self, node: LinkNode, owner: bytes, axes: Axes, vehicle: int) -> None:
        """`owner` distinguishes this node from all others, and stays the same for as long as it lives."""
        self._node = node
        self._owner = owner
        self._axes = axes
        self.vehicle = vehicle
        #: The request by which nobody steers any more.
        self.clearing = sim.SetExtended(vehicle, STEERED_KEY, NOBODY)
        self._beats = count()
        self._is_ours = False
        self._seen: bytes | None = None  # the mark of another bridge
        self._unchanged = 0  # answers with the same mark
        #: When `tick` is due.
        self.due_s = math.inf

    def start_over(self) -> None:
        """Look at the mark, on a new connection."""
        self._seen, self._unchanged, self.due_s = None, 0, -math.inf

    def take(self) -> None:
        """Mark the vehicle as ours."""
        if not self._is_ours:
            self._is_ours, self.due_s = True, -math.inf

    def release(self) -> sim.SetExtended:
        """Mark it no longer; return the request that says so."""
        self._is_ours, self.due_s = False, math.inf
        return self.clearing

    def tick(self, now_s: float, ask: Ask) -> None:
        """Send what is due."""
        if now_s < self.due_s:
            return
        if self._is_ours:
            mark = self._owner + (next(self._beats) % 256**_COUNT_BYTES).to_bytes(_COUNT_BYTES, "big")
            self.due_s = now_s + BEAT_S
            ask(sim.SetExtended(self.vehicle, STEERED_KEY, mark), ignore)
        else:
            self.due_s = math.inf  # until this is answered
            ask(sim.GetExtended(self.vehicle, STEERED_KEY), lambda outcome: self._look(outcome, ask))

    def _look(self, outcome: Outcome, ask: Ask) -> None:
        if self._is_ours or not isinstance(outcome, sim.ExtendedGot) or outcome.data == NOBODY:
            return
        if outcome.data.startswith(self._owner):
            self._stop("This bridge lost its connection, or was deactivated without one, while it steered", ask)
            return
        self._unchanged = self._unchanged + 1 if outcome.data == self._seen else 0
        self._seen = outcome.data
        if self._unchanged < MOST_UNCHANGED:
            self.due_s = time.monotonic() + BEAT_S
        else:
            self._stop("A bridge was killed while it steered", ask)

    def _stop(self, what: str, ask: Ask) -> None:
        self._node.warn(f"{what} entity {self.vehicle}: the entity is stopped.")
        for request in set_velocity(self.vehicle, STILL, IDENTITY, self._axes):
            ask(request, ignore)
        ask(self.release(), ignore)
