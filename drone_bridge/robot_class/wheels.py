# SPDX-License-Identifier: Apache-2.0
"""Wheels: odometry of a robot with two driven wheels by their counters, for both ends of a Robot. Pure."""

from __future__ import annotations

import math
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.planar_pose import PlanarPose, chord_share
from drone_bridge.motion.vectors import Triple
from drone_bridge.session.continuous_pose import FAR, NEAR, SHORT


class Wheels:
    """Two driven wheels, left and right, of one end of a connection. `Robot.keeps` carries them over a reconnection."""

    #: Names of the joints in the robot's model.
    joints = "left_wheel_joint", "right_wheel_joint"

    def __init__(
        self, axle_m: float, m_per_count: float, bits: int = 16, max_speed: float = math.inf, radius_m: float = 1.0
    ) -> None:
        """Start at the origin.

        Args:
            axle_m: distance of the wheels, m.
            m_per_count: way of a wheel for each count of its encoder, m.
            bits: size of the counters, which wrap.
            max_speed: of a wheel, m/s.
            radius_m: of a wheel, m, for `joint_states`.
        """
        self._axle_m, self._m_per_count, self._max_speed = axle_m, m_per_count, max_speed
        self._range, self._radius_m = 1 << bits, radius_m
        self._speeds: tuple[float, ...] = ()  # of the wheels, m/s, if they are known
        self._counts: tuple[int, int] | None = None  # the newest ones, at the client's end
        self._step = 0.0  # the longest one of late, m
        self.pose = PlanarPose()
        #: Ways of the left and the right wheel, m. They never wrap.
        self.ways = 0.0, 0.0
        #: Whether a bumper, a cliff or a dropped wheel is reported, so that the robot only turns and backs up.
        self.is_blocked = False

    def sides(self, velocity: BodyVelocity) -> tuple[float, float]:
        """Return the speeds of the wheels, m/s. If one is above the maximum, both are reduced: the arc stays."""
        ahead = min(0.0, velocity.forward) if self.is_blocked else velocity.forward
        left, right = self._ways(ahead, velocity.turn)
        share = max(1.0, abs(left) / self._max_speed, abs(right) / self._max_speed)
        return left / share, right / share

    def velocity(self, left: float, right: float) -> BodyVelocity:
        """Return the velocity of the robot from the speeds of its wheels, m/s."""
        return BodyVelocity((left + right) / 2, turn=(right - left) / self._axle_m)

    def counted(
        self, left: int, right: int, elapsed_s: float | None = None
    ) -> tuple[Triple, float, BodyVelocity | None]:
        """Move by what the counters have counted since the last call. Either direction, less than half of their range.

        A leap of both to nearly 0 is a reset of the robot's board: the pose begins again, or is kept if the leap is a
        short one to 0. Returns position, yaw and velocity, as Telemetry begins. Velocity needs the time since then by
        the robot's clock; None without it.
        """
        before, self._counts = self._counts or (left, right), (left, right)
        ways = [self._way(now - then) for now, then in zip(self._counts, before, strict=True)]
        leap = max(map(abs, ways))
        if leap > FAR + 3 * self._step and max(abs(self._way(each)) for each in self._counts) <= NEAR:
            self.pose, ways, leap = PlanarPose(), [0.0, 0.0], 0.0
        elif leap > SHORT + 2 * self._step and left == right == 0:
            ways, leap = [0.0, 0.0], 0.0
        self._step = max(leap, 0.9 * self._step)
        step = self.velocity(*ways)
        self.pose = self.pose.moved(1.0, step.forward, step.turn)
        self._add(*ways)
        self._speeds = tuple(way / elapsed_s for way in ways) if elapsed_s else ()
        velocity = self.velocity(*self._speeds) if elapsed_s else None
        return (self.pose.x, self.pose.y, 0.0), self.pose.yaw, velocity

    def counts(self, position: Triple | None, yaw: float | None) -> tuple[int, int]:
        """Move to a pose along an arc, as Telemetry has it. Return the counters, for the robot's end."""
        x, y = position[:2] if position else self.pose[:2]
        there = PlanarPose(x, y, self.pose.yaw if yaw is None else yaw)
        step, self.pose = there.seen_from(self.pose), there
        half = step.yaw / 2
        ahead = (step.x * math.cos(half) + step.y * math.sin(half)) / chord_share(step.yaw)
        self._add(*self._ways(ahead, step.yaw))
        left, right = (round(way / self._m_per_count) % self._range for way in self.ways)
        return left, right

    def joint_states(self) -> Any:
        """Return the angles of both wheels since the start, and their speeds if known, as a sensor_msgs/JointState."""
        from sensor_msgs.msg import JointState  # only the bridge has ROS

        angles, speeds = ([each / self._radius_m for each in sides] for sides in (self.ways, self._speeds))
        return JointState(name=self.joints, position=angles, velocity=speeds)

    def _way(self, counts: int) -> float:
        """Return the shortest way of a wheel that changes its counter by so much, m."""
        half = self._range // 2
        return self._m_per_count * ((counts + half) % self._range - half)

    def _ways(self, ahead: float, turned: float) -> tuple[float, float]:
        """Return what each wheel moves, while the robot moves ahead and turns to the left."""
        return ahead - turned * self._axle_m / 2, ahead + turned * self._axle_m / 2

    def _add(self, left: float, right: float) -> None:
        self.ways = self.ways[0] + left, self.ways[1] + right
