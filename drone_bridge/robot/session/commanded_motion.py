# SPDX-License-Identifier: Apache-2.0
"""CommandedMotion: odometry from the speeds that a robot has acknowledged, since it reports none."""

import math

from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.units import SkidSteer, measurement
from drone_bridge.session.session import next_due

ODOMETRY_RATE = 20.0  # per second


class CommandedMotion:
    """Pose across all connections."""

    def __init__(self, skid_steer: SkidSteer) -> None:
        self._skid_steer = skid_steer
        #: Time of the next measurement.
        self.due_s = math.inf
        self._pose, self._speeds, self._since_s = PlanarPose(), STOPPED, 0.0

    def begin(self, now_s: float) -> None:
        """Begin on a connection."""
        self._speeds, self._since_s, self.due_s = STOPPED, now_s, now_s + 1 / ODOMETRY_RATE

    def move(self, speeds: Speeds, now_s: float) -> Measurement | None:
        """Move by the speeds until now, and continue with others. Return the motion if a measurement is due."""
        is_due = now_s >= self.due_s
        if not is_due and speeds == self._speeds:
            return None
        velocity = self._skid_steer.velocity(self._speeds)
        self._pose = self._pose.moved(now_s - self._since_s, velocity.forward, velocity.turn)
        self._speeds, self._since_s = speeds, now_s
        if not is_due:
            return None
        self.due_s = next_due(self.due_s, 1 / ODOMETRY_RATE, now_s)
        return measurement(self._pose, velocity)

    def end(self, now_s: float) -> None:
        """Stop at the end of a connection."""
        self.move(STOPPED, now_s)
        self.due_s = math.inf
