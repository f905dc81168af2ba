# SPDX-License-Identifier: Apache-2.0
"""Steers the vehicle by cmd_vel, setting its velocities repeatedly. For the link's thread."""

import math
import time
from typing import Final

from drone_bridge.motion.quaternions import IDENTITY, Quaternion
from drone_bridge.ros.commands import CommandIntake
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.link import Outcome, ignore
from drone_bridge.simulator.bridge.steering_mark import Ask, SteeringMark
from drone_bridge.simulator.topics.translation import STILL, Axes, Velocity, set_velocity

_UNKNOWN_ATTITUDE: Final = (
    "The vehicle can't be steered, as its attitude is unknown: either it does not exist, or the rotation from its "
    "principal axes to its model has not been learned, which takes a moment in which the simulation is paused."
)


class Steering:
    """Sends the newest command at a rate; zero when there is none, for a while.

    A vehicle without commands is left alone, as others may steer it.
    """

    def __init__(self, node: LinkNode, commands: CommandIntake[Velocity], axes: Axes, mark: SteeringMark) -> None:
        self._node = node
        self._commands = commands
        self._axes = axes
        self._vehicle = mark.vehicle
        self._mark = mark
        self._is_engaged = False
        self._stale_since_s: float | None = None
        self._sent_s = -math.inf
        self._unanswered = 0

    @property
    def due_s(self) -> float:
        """When `tick` is due, unless a command comes before."""
        return min(self._velocities_due_s, self._mark.due_s)

    @property
    def _velocities_due_s(self) -> float:
        if self._is_engaged or self._commands.is_held or self._commands.newest():
            return self._sent_s + 1.0 / float(self._node.parameters["rate"])
        return math.inf

    def tick(self, now_s: float, attitude: Quaternion | None, ask: Ask) -> None:
        """Send what is due. Without an attitude, only zero can be sent, as the direction of forward is unknown."""
        if now_s >= self._velocities_due_s:
            self._steer(now_s, attitude, ask)
        self._mark.tick(now_s, ask)

    def _steer(self, now_s: float, attitude: Quaternion | None, ask: Ask) -> None:
        self._sent_s = now_s
        # Others may steer it as well: on hold it is kept still for as long as that lasts.
        command = STILL if self._commands.is_held else self._commands.newest()
        if command:
            if attitude is None and command != STILL:
                self._node.reports.count_and_warn_ongoing("unsteered commands", _UNKNOWN_ATTITUDE)
                return
            self._node.reports.end_ongoing("unsteered commands")
            self._mark.take()
            self._mark.tick(now_s, ask)  # before the vehicle moves
            self._is_engaged, self._stale_since_s = True, None
        elif self._stale_since_s is None:
            self._stale_since_s = now_s
        if self._unanswered:  # the simulator is slow, and gets the newest one when it has answered
            self._node.statistics.counts["late velocities"] += 1
            return
        for request in set_velocity(self._vehicle, command or STILL, attitude or IDENTITY, self._axes):
            self._unanswered += 1
            ask(request, self._answered)
        self._node.statistics.counts["velocities"] += 1
        self._release(now_s, ask)

    def _release(self, now_s: float, ask: Ask) -> None:
        release_s = float(self._node.parameters["release_after"])
        if self._stale_since_s is not None and release_s and now_s - self._stale_since_s >= release_s:
            self._is_engaged, self._stale_since_s = False, None
            ask(self._mark.release(), ignore)

    def _answered(self, outcome: Outcome) -> None:
        self._unanswered -= 1
        if isinstance(outcome, sim.Error):
            self._node.count_and_warn(
                "refused velocities",
                f"The simulator refuses to steer entity {self._vehicle} (code {outcome.code}).",
            )

    def start_over(self) -> None:
        self._unanswered = 0
        self._sent_s = -math.inf
        self._stale_since_s = time.monotonic() if self._is_engaged else None
        self._mark.start_over()
        if self._is_engaged:
            self._mark.take()

    def disengage(self) -> None:
        """Leave the vehicle alone until the next command."""
        self._is_engaged, self._stale_since_s = False, None
        self._mark.release()

    def last_requests(self) -> list[bytes]:
        """Return the last messages, which stop a vehicle that is being steered."""
        if not self._is_engaged:
            return []
        still = set_velocity(self._vehicle, STILL, IDENTITY, self._axes)
        return [sim.frame(request) for request in (*still, self._mark.clearing)]
