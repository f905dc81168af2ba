# SPDX-License-Identifier: Apache-2.0
"""Speeds of a robot's sides, from -2048 to 2048, positive forward: to velocities in SI units, and back. Pure."""

from dataclasses import dataclass

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.planar_pose import PlanarPose
from drone_bridge.parameter_fields import parameter
from drone_bridge.robot.codec import FULL_SPEED, Speeds

_ENORMOUS = 1e9  # m/s or rad/s; beyond it sums may overflow


@dataclass(frozen=True, slots=True)
class SkidSteer:
    """Geometry and maximum speed of a robot."""

    wheel_separation: float = parameter(0.5, "Distance between left and right wheels, m.", 0.01, 10.0)
    max_wheel_speed: float = parameter(1.0, "Speed of one side at full command, m/s.", 0.01, 100.0)

    def within_maxima(self, velocity: BodyVelocity) -> BodyVelocity:
        """Return a finite velocity that both sides can reach, scaled so that the path keeps its curvature."""
        forward, turn = velocity.forward, velocity.turn
        if (excess := max(abs(forward), abs(turn)) / _ENORMOUS) > 1:
            forward, turn = forward / excess, turn / excess
        fastest = max(map(abs, self.sides(forward, turn)))
        if fastest <= self.max_wheel_speed * (1 + 1e-9):
            return velocity
        return BodyVelocity(forward * self.max_wheel_speed / fastest, turn=turn * self.max_wheel_speed / fastest)

    def sides(self, forward: float, turn: float) -> tuple[float, float]:
        """Return the speeds of the left and right sides, m/s. In a left turn the right side is faster."""
        return forward - turn * self.wheel_separation / 2, forward + turn * self.wheel_separation / 2

    def speeds(self, velocity: BodyVelocity) -> Speeds:
        """Return the wire's speeds for a velocity within the maxima. The wire has only `forward` and `turn`."""
        left, right = self.sides(velocity.forward, velocity.turn)
        unit = FULL_SPEED / self.max_wheel_speed
        return Speeds(round(left * unit), round(right * unit))

    def velocity(self, speeds: Speeds) -> BodyVelocity:
        """Return the velocity for these speeds. Inverse of `speeds`."""
        left, right = (self.max_wheel_speed * speed / FULL_SPEED for speed in speeds)
        return BodyVelocity((left + right) / 2, turn=(right - left) / self.wheel_separation)


def measurement(pose: PlanarPose, velocity: BodyVelocity) -> Measurement:
    """Return the motion of a robot, dead reckoned from the speeds that it has acknowledged."""
    return Measurement(position=(pose.x, pose.y, 0.0), yaw=pose.yaw, velocity=velocity)
