# SPDX-License-Identifier: Apache-2.0
"""Steering: sets the vehicle's velocities by cmd_vel, again and again. For the link's thread.

A vehicle in the simulator has no watchdog: it goes on as it was told. So a bridge that connects first says zero, as
one that was killed may have left the vehicle moving. Nothing tells such a one from another client that steers, which
is stopped as well.
"""

import math
import time
from collections.abc import Callable

from drone_bridge.motion.quaternions import IDENTITY, Quaternion
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.session.arbiter import Arbiter
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.client import OnAnswer, ignore
from drone_bridge.simulator.topics import STILL, Axes, Velocity, set_velocity

_UNKNOWN_ATTITUDE = (
    "The vehicle can't be steered, as its attitude is unknown: either it does not exist, or the rotation from its "
    "principal axes to its model has not been learned, which takes a moment in which the simulation is paused."
)

#: Sends a request, and goes on; the answer comes later.
Ask = Callable[[sim.Request, OnAnswer], None]


class Steering:
    """Sends zero on each new connection, then the newest command at a rate; zero when there is none, for a while.

    A vehicle without commands is left alone from then on, as others may steer it.
    """

    def __init__(self, node: LinkNode, arbiter: Arbiter[Velocity], axes: Axes, vehicle: int) -> None:
        self._node = node
        self._arbiter = arbiter
        self._axes = axes
        self._vehicle = vehicle
        self._is_engaged = False
        self._stale_since_s: float | None = None
        self._sent_s = -math.inf
        self._unanswered = 0
        self._sent: Velocity | None = None

    @property
    def due_s(self) -> float:
        """When `tick` is due, unless a command comes before."""
        if self._is_engaged or self._node.hold.is_held or self._arbiter.decide(elapsed_s()).command:
            return self._sent_s + 1.0 / float(self._node.parameters["rate"])
        return math.inf

    def tick(self, now_s: float, attitude: Quaternion | None, ask: Ask) -> None:
        """Send what is due. Without an attitude, only zero can be sent, as the direction of forward is unknown."""
        if now_s < self.due_s:
            return
        self._sent_s = now_s
        # Others may steer it as well: on hold it is kept still for as long as that lasts.
        command = STILL if self._node.hold.is_held else self._arbiter.decide(elapsed_s()).command
        if command:
            if attitude is None and command != STILL:
                self._node.reports.count_and_warn_ongoing("unsteered commands", _UNKNOWN_ATTITUDE)
                return
            self._node.reports.end_ongoing("unsteered commands")
            self._is_engaged, self._stale_since_s = True, None
        elif self._stale_since_s is None:
            self._stale_since_s = now_s
        velocity = command or STILL
        # A slow simulator gets the newest one when it has answered, but a stop does not wait for that.
        if self._unanswered and (velocity != STILL or self._sent == STILL):
            self._node.statistics.counts["late velocities"] += 1
            return
        self._sent = velocity
        for request in set_velocity(self._vehicle, velocity, attitude or IDENTITY, self._axes):
            self._unanswered += 1
            ask(request, self._answered)
        self._node.statistics.counts["velocities"] += 1
        release_s = float(self._node.parameters["release_after"])
        if self._stale_since_s is not None and release_s and now_s - self._stale_since_s >= release_s:
            self.disengage()

    def _answered(self, answer: sim.Response) -> None:
        self._unanswered -= 1
        if isinstance(answer, sim.Error):
            self._node.count_and_warn(
                "refused velocities",
                f"The simulator refuses to steer entity {self._vehicle} (code {answer.code}).",
            )

    def start_over(self, ask: Ask) -> None:
        """Stop the vehicle, on a new connection."""
        self._unanswered, self._sent = 0, None
        self._sent_s = -math.inf
        self._stale_since_s = time.monotonic() if self._is_engaged else None
        for request in set_velocity(self._vehicle, STILL, IDENTITY, self._axes):
            ask(request, ignore)  # that there is no vehicle is said by who asks for its state

    def disengage(self) -> None:
        """Leave the vehicle alone until the next command."""
        self._is_engaged, self._stale_since_s = False, None

    def last_requests(self) -> list[bytes]:
        """Return the last messages, which stop a vehicle that is being steered."""
        if not self._is_engaged:
            return []
        still = set_velocity(self._vehicle, STILL, IDENTITY, self._axes)
        return [sim.frame(request) for request in still]
