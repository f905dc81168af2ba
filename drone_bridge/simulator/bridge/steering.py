# SPDX-License-Identifier: Apache-2.0
"""Steers the vehicle by cmd_vel, setting its velocities repeatedly. For the link's thread.

A vehicle in the simulator has no watchdog: it goes on as it was told. So an extended attribute of it says who steers
it, with a count that goes up while that bridge lives. Whoever finds the mark of another bridge watches the count, and
stops the vehicle once it stands still. The time is counted in answers: a simulator that stands still itself, or a
bridge that was stopped, has nobody declared dead. That of a process of this machine which is no more is not watched.
"""

import functools
import hashlib
import math
import os
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from drone_bridge.motion.quaternions import IDENTITY, Quaternion
from drone_bridge.ros.commands import CommandIntake
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.client import OnAnswer, ignore
from drone_bridge.simulator.topics import STILL, Axes, Velocity, set_velocity

STEERED_KEY = "drone_bridge.steered"
NOBODY = b"0"
#: Between two counts of who steers, and between two looks at them.
BEAT_S = 0.25
#: So many answers with the same count are of a bridge that was killed.
MOST_UNCHANGED = 5
_COUNT_BYTES = 4

_UNKNOWN_ATTITUDE = (
    "The vehicle can't be steered, as its attitude is unknown: either it does not exist, or the rotation from its "
    "principal axes to its model has not been learned, which takes a moment in which the simulation is paused."
)

#: Sends a request, and goes on; the answer comes later.
Ask = Callable[[sim.Request, OnAnswer], None]


@functools.cache
def _host() -> bytes:
    """Return what processes have in common whose numbers are of one table: the boot, and the namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).digest()[:8]
    except OSError:  # not Linux: nobody else has this
        return os.urandom(8)


def make_owner() -> bytes:
    """Return what distinguishes a node from all others, and tells whether its process lives."""
    return _host() + os.getpid().to_bytes(4, "big") + os.urandom(4)


def is_dead(owner: bytes) -> bool:
    """Return whether an owner is known to be a process of this machine that has ended."""
    number = int.from_bytes(owner[8:12], "big")
    return owner.startswith(_host()) and not Path(f"/proc/{number}").exists()


class SteeringMark:
    """Keeps our own mark fresh while we steer, and watches another's while we don't. For the link's thread."""

    def __init__(self, node: LinkNode, owner: bytes, axes: Axes, vehicle: int) -> None:
        """`owner` is from `make_owner`, and stays the same for as long as the node lives."""
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
            ask(sim.GetExtended(self.vehicle, STEERED_KEY), lambda answer: self._look(answer, ask))

    def _look(self, answer: sim.Response, ask: Ask) -> None:
        if self._is_ours or not isinstance(answer, sim.ExtendedGot) or answer.data == NOBODY:
            return
        if answer.data.startswith(self._owner):
            self._stop("This bridge lost its connection, or was deactivated without one, while it steered", ask)
            return
        self._unchanged = self._unchanged + 1 if answer.data == self._seen else 0
        self._seen = answer.data
        if self._unchanged < MOST_UNCHANGED and not is_dead(answer.data):
            self.due_s = time.monotonic() + BEAT_S
        else:
            self._stop("A bridge was killed while it steered", ask)

    def _stop(self, what: str, ask: Ask) -> None:
        self._node.warn(f"{what} entity {self.vehicle}: the entity is stopped.")
        for request in set_velocity(self.vehicle, STILL, IDENTITY, self._axes):
            ask(request, ignore)
        ask(self.release(), ignore)


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
        self._sent: Velocity | None = None

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
        self._release(now_s, ask)

    def _release(self, now_s: float, ask: Ask) -> None:
        release_s = float(self._node.parameters["release_after"])
        if self._stale_since_s is not None and release_s and now_s - self._stale_since_s >= release_s:
            self._is_engaged, self._stale_since_s = False, None
            ask(self._mark.release(), ignore)

    def _answered(self, answer: sim.Response) -> None:
        self._unanswered -= 1
        if isinstance(answer, sim.Error):
            self._node.count_and_warn(
                "refused velocities",
                f"The simulator refuses to steer entity {self._vehicle} (code {answer.code}).",
            )

    def start_over(self) -> None:
        self._unanswered, self._sent = 0, None
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
