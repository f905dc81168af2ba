# SPDX-License-Identifier: Apache-2.0
"""DerivedVelocity: velocity of a vehicle that reports its pose only, from the way that it has moved of late. Pure.

So is the turn rate of one whose velocity never has any.
"""

import math
from collections import deque
from dataclasses import replace

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.motion.report_gaps import ReportGaps

#: Time over which the velocity is averaged, s: reports may arrive in bursts.
AVERAGED_S = 0.3
#: Multiple of the vehicle's maxima, and what is added, m/s and rad/s, above which a pose has leapt instead.
PLAUSIBLE, MARGIN = 2.0, 0.5


class DerivedVelocity:
    """Velocity of one vehicle. For one thread."""

    def __init__(self, max_speed: float, max_turn_rate: float) -> None:
        """`max_speed` and `max_turn_rate` are the vehicle's own maxima, m/s and rad/s."""
        self._most, self._most_turn = (PLAUSIBLE * each + MARGIN for each in (max_speed, max_turn_rate))
        self._turns = False  # whether a reported velocity has had a turn rate
        self._poses = deque[tuple[float, PlanarPose, float]]()  # time, s, pose, and z, m
        self._gaps = ReportGaps()

    def update(self, measured: Measurement, now_s: float) -> BodyVelocity | None:
        """Return the velocity at a time, s: the reported one, or the derived one. None while it is unknown."""
        reported, yaw = measured.velocity, measured.yaw
        place = measured.position or ((0.0, 0.0, 0.0) if reported else None)
        self._turns |= reported is not None and reported.turn != 0.0
        if self._turns or place is None or yaw is None:
            return reported
        pose = PlanarPose(*place[:2], yaw)
        poses = self._poses
        if poses and not self._gaps.is_short(now_s - poses[-1][0]):
            poses.clear()
        while poses and poses[-1][0] >= now_s:
            poses.pop()
        while len(poses) > 1 and now_s - poses[1][0] >= AVERAGED_S:
            poses.popleft()
        poses.append((now_s, pose, place[2]))
        (before_s, before, z), turned = poses[0], math.remainder(yaw - poses[0][1].yaw, math.tau)
        step_s = now_s - before_s
        back = before.seen_from(pose._replace(yaw=yaw - turned / 2))  # along the chord of the arc
        if not step_s or math.hypot(back.x, back.y) > self._most * step_s or abs(turned) > self._most_turn * step_s:
            self._poses = deque([poses[-1]])
            return reported
        turn = turned / step_s
        if reported:
            return replace(reported, turn=turn)
        return BodyVelocity(-back.x / step_s, -back.y / step_s, (place[2] - z) / step_s, turn=turn)
