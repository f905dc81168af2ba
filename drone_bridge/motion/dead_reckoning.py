# SPDX-License-Identifier: Apache-2.0
"""DeadReckoning: poses of a vehicle that reports its level velocity, but no position. Pure."""

import math
from typing import NamedTuple

from drone_bridge.motion.derived_velocity import DerivedVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.motion.report_gaps import ReportGaps
from drone_bridge.motion.vectors import Triple

#: Drift with velocities of a downward camera, as a share of the distance so far.
DRIFT = 0.1
#: Assumed maximum speed in a gap whose motion is unknown, m/s.
GREATEST_SPEED = 5.0
#: Turn rate above which a heading leaps, rad/s.
FASTEST_TURN = 10.0
#: Largest variance of a place that is known at all, m^2.
MOST_VARIANCE = 1e5


class DeadReckonedPose(NamedTuple):
    """Pose in odom, by dead reckoning."""

    x: float  # m
    y: float  # m
    z: float  # m, above the ground below
    roll: float  # rad
    pitch: float  # rad
    yaw: float  # rad
    velocity: Triple  # m/s, along level axes
    variance: float  # m^2, of x and of y, by drift only; infinite while the velocity is doubted
    turn: float | None = None  # rad/s, reported or from the last headings; None while the velocity is doubted


class DeadReckoning:
    """Integrates velocities from x = y = 0. Height and attitude of a drone are measured."""

    def __init__(self, drift: float = DRIFT, *, in_plane: bool = False) -> None:
        """`drift` is the standard deviation of a place, as a share of the distance so far.

        `in_plane`: height, roll and pitch are 0 until one is reported, and yaw is integrated until it is.
        """
        self._drift, self._pose, self._in_plane = drift, PlanarPose(), in_plane
        self._gaps = ReportGaps()
        self._reported: set[str] = set()
        self._distance = 0.0  # m
        self._gap_variance = 0.0  # m^2
        self._before_s: float | None = None
        self._derived = DerivedVelocity(GREATEST_SPEED, FASTEST_TURN)

    def update(self, measured: Measurement, now_s: float, *, is_doubted: bool = False) -> DeadReckonedPose | None:
        """Return the pose at a time, s of any one clock, None if the report lacks a required value.

        A doubted velocity is not integrated. The motion in a longer doubt is unknown, like that in a gap.
        """
        values = {name: getattr(measured, name) for name in ("roll", "pitch", "yaw", "height")}
        lacking = {name for name, value in values.items() if value is None}
        self._reported |= values.keys() - lacking
        velocity, turning = measured.level_velocity, measured.velocity
        if not (velocity and turning) or lacking & (self._reported if self._in_plane else values.keys()):
            return None
        roll, pitch, yaw, height = (value or 0.0 for value in values.values())
        yaw, turn = (self._pose.yaw, turning.turn) if "yaw" in lacking else (yaw, 0.0)
        pose, (forward, left, _) = self._pose._replace(yaw=yaw), velocity
        if is_doubted:
            return DeadReckonedPose(pose.x, pose.y, height, roll, pitch, yaw, velocity, math.inf)
        step_s = 0.0 if self._before_s is None else now_s - self._before_s
        self._before_s = now_s
        if not self._gaps.is_short(step_s):
            self._gap_variance += (GREATEST_SPEED * step_s) ** 2
        else:
            pose = pose.moved(step_s, forward, turn, left)
            self._distance += math.hypot(forward, left) * step_s
        variance = min((self._drift * self._distance) ** 2 + self._gap_variance, MOST_VARIANCE)
        self._pose, yaw = pose, pose.yaw if turn else yaw
        derived = self._derived.update(measured, now_s) or turning
        return DeadReckonedPose(pose.x, pose.y, height, roll, pitch, yaw, velocity, variance, derived.turn)
