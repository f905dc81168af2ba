# SPDX-License-Identifier: Apache-2.0
"""MoveInProgress: execution of a Move by odometry, in an emulator or by a ROS vehicle. Pure."""

from __future__ import annotations

import math
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot_class.robot import Move, Robot, Telemetry, as_commanded, clamped

#: Speed for each remaining m or rad, 1/s.
GAIN = 1.5
#: Errors with which a move ends, m and rad, and beside its way, as a share: a vehicle may be unable to move sideways.
NEAR_M, NEAR_RAD, BESIDE = 0.03, 0.02, 0.1
#: Time for a move beyond twice that at its speeds, s. Then it has failed.
SPARE_S = 5.0


class MoveInProgress:
    """A Move that is executed: a velocity for each report, until `is_done` or a `failure`."""

    def __init__(self, robot: type[Robot], move: Move, client: Any, now_s: float) -> None:
        """Begin with the next report. `client` is who requested it."""
        self.client, self.is_done, self.failure = client, False, ""
        #: Whether the next one takes its place, and whether it goes on when it is done.
        self.is_setpoint, self.holds = move.is_setpoint, move.heading is not None
        self._robot, self._move, self._way_m = robot, move, math.hypot(move.forward, move.left, move.up)
        self._turn = move.turn if move.heading is None else math.pi
        moving_s = self._way_m / move.speed + abs(self._turn) / move.turn_speed
        self._until_s = math.inf if self.holds else now_s + SPARE_S + 2 * moving_s
        self._goal: PlanarPose | None = None
        self._start = PlanarPose()
        self._height = self._yaw = self._turned = 0.0

    def velocity(self, told: Telemetry | None, now_s: float, *, is_body: bool) -> BodyVelocity:
        """Return the velocity to command now, to a vehicle or the `is_body` of an emulator; zero once it has ended."""
        if told is None or told.position is None or told.yaw is None:
            self.failure = "there is no odometry"
            return BodyVelocity()
        (x, y, z), move = told.position, self._move
        here = PlanarPose(x, y, told.yaw)
        if self._goal is None:
            self._start, self._goal, self._height = here, here.seeing(PlanarPose(move.forward, move.left)), z + move.up
            self._yaw = here.yaw
            self._turn = move.turn if move.heading is None else math.remainder(move.heading - here.yaw, math.tau)
        self._turned, self._yaw = self._turned + math.remainder(here.yaw - self._yaw, math.tau), here.yaw
        way, turn = self._goal.seen_from(here), self._turn - self._turned
        ahead, left, up = (way.x, way.y, self._height - z) if self._way_m else (0.0, 0.0, 0.0)
        left_m = math.hypot(ahead, left, up)
        self.is_done = self._is_there(here, up, left_m) and abs(turn) <= NEAR_RAD and not move.cruise
        if told.is_flying is False:
            self.failure = "it is not flying"
        elif now_s > self._until_s:
            self.failure = f"{left_m:.2f} m and {math.degrees(turn):.0f} degrees are left"
        share = min(GAIN, move.speed / left_m) if left_m else 0.0
        turn_speed = max(-move.turn_speed, min(move.turn_speed, GAIN * turn))
        wanted = BodyVelocity(share * ahead or move.cruise, share * left, share * up, turn=turn_speed)
        velocity = clamped(self._robot, wanted)
        return as_commanded(self._robot, velocity, is_back=True) if is_body else velocity

    def _is_there(self, here: PlanarPose, up: float, left_m: float) -> bool:
        """Return whether the end of the way is reached or passed, within BESIDE. `left_m` are left, `up` upwards."""
        move, made = self._move, here.seen_from(self._start)
        parts = (move.forward, made.x), (move.left, made.y), (move.up, move.up - up)
        ahead_m = self._way_m - sum(whole * part for whole, part in parts) / (self._way_m or 1.0)
        beside_m = math.sqrt(max(0.0, left_m**2 - ahead_m**2))
        return ahead_m <= NEAR_M and beside_m <= max(NEAR_M, BESIDE * self._way_m)
