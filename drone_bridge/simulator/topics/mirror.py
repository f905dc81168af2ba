# SPDX-License-Identifier: Apache-2.0
"""Converts ROS messages to entity states of the simulator, and its velocities to cmd_vel.

Messages that are not made of finite numbers, or whose orientation is not a rotation, raise ValueError with a sentence.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

from geometry_msgs.msg import Pose, PoseStamped, Transform, Twist, TwistStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from drone_bridge.motion.quaternions import Quaternion, inverse, rotated
from drone_bridge.simulator.codec import Attribute, AttributeValue
from drone_bridge.simulator.topics.requests import quaternion, vector
from drone_bridge.simulator.topics.translation import Axes, EntityState, Vector, Velocity

_ZERO: Vector = (0.0, 0.0, 0.0)


# States. What a message does not tell is 0.


def state_from_odometry(message: Odometry) -> EntityState:
    """Return what odometry says: velocities are in the body's own frame there."""
    return with_twist(_state_from_pose(message.pose.pose), message.twist.twist)


def state_from_pose(message: PoseStamped) -> EntityState:
    """Return what a pose says."""
    return _state_from_pose(message.pose)


def state_from_transform(transform: Transform) -> EntityState:
    """Return what a transform of tf says, from the world to the entity."""
    return _still(vector(transform.translation), quaternion(transform.rotation))


def with_twist(state: EntityState, twist: Twist) -> EntityState:
    """Return the state with velocities that are in the entity's own frame."""
    velocity = rotated(state.orientation, *vector(twist.linear))
    return state._replace(velocity=velocity, angular_velocity=vector(twist.angular))


def with_stamped_twist(state: EntityState, message: TwistStamped) -> EntityState:
    """Return the state with velocities that are in the entity's own frame."""
    return with_twist(state, message.twist)


def with_imu(state: EntityState, message: Imu, against_gravity: Vector) -> EntityState:
    """Return the state with the acceleration of the motion; an IMU at rest reads `against_gravity`."""
    ax, ay, az = rotated(state.orientation, *vector(message.linear_acceleration))
    gx, gy, gz = against_gravity
    return state._replace(acceleration=(ax - gx, ay - gy, az - gz))


def with_motion(state: EntityState, before: EntityState, duration_s: float, *, has_velocity: bool) -> EntityState:
    """Return the state with the mean acceleration since the previous one, and the mean velocity if it has none."""
    if not has_velocity:
        state = state._replace(velocity=_rate(state.position, before.position, duration_s))
        if before.velocity == _ZERO:  # perhaps just because nothing was known yet
            return state
    return state._replace(acceleration=_rate(state.velocity, before.velocity, duration_s))


def _rate(after: Vector, before: Vector, duration_s: float) -> Vector:
    x, y, z = ((a - b) / duration_s for a, b in zip(after, before, strict=True))
    return x, y, z


def _state_from_pose(pose: Pose) -> EntityState:
    return _still(vector(pose.position), quaternion(pose.orientation))


def _still(position: Vector, orientation: Quaternion) -> EntityState:
    return EntityState(position, _ZERO, _ZERO, orientation, _ZERO)


def check_vector(message: Any) -> None:
    """Raise ValueError unless a Vector3 is finite."""
    vector(message)


def wire_value(state: EntityState, corporeal: bool, attribute: int, axes: Axes) -> AttributeValue:
    """Return an attribute as on the wire, with identical body and model frames."""
    if attribute == Attribute.POSITION:
        return axes.world(*state.position)
    if attribute == Attribute.VELOCITY:
        return axes.world(*state.velocity)
    if attribute == Attribute.ACCELERATION:
        return axes.world(*state.acceleration)
    if attribute == Attribute.ORIENTATION:
        w, x, y, z = axes.wire_orientation(state.orientation)
        # Clients compute the angle as 2 acos(w): of the two that mean the same, the smaller one, and never above 1.
        return (min(w, 1.0), x, y, z) if w >= 0.0 else (min(-w, 1.0), -x, -y, -z)
    if attribute == Attribute.ANGULAR_VELOCITY:
        return axes.body(*state.angular_velocity)
    return corporeal


# Commands.


@dataclass(frozen=True, slots=True)
class WireVelocity:
    """The velocities set by ESET."""

    v: Vector = _ZERO  # world, m/s
    w: Vector = _ZERO  # model, rad/s

    def changed(self, attribute: int, value: Vector) -> "WireVelocity":
        """Return a copy with another v or w."""
        return replace(self, v=value) if attribute == Attribute.VELOCITY else replace(self, w=value)


def velocity_from_wire(velocity: WireVelocity, orientation: Quaternion, axes: Axes) -> Velocity:
    """Return the velocity in the body's frame for an entity of this orientation."""
    linear = rotated(inverse(orientation), *axes.world(*velocity.v))
    return Velocity(linear, axes.body(*velocity.w))


def shortened(velocity: Velocity, max_linear: float, max_angular: float) -> Velocity:
    """Return the velocity scaled down to the limits."""
    return Velocity(_shortened(velocity.linear, max_linear), _shortened(velocity.angular, max_angular))


def _shortened(vector: Vector, longest: float) -> Vector:
    largest = max(map(abs, vector))
    if largest == 0.0 or math.hypot(*vector) <= longest:
        return vector
    x, y, z = (part / largest for part in vector)  # lengths may be infinite
    scale = longest / math.hypot(x, y, z)
    return x * scale, y * scale, z * scale


def twist_from_velocity(velocity: Velocity) -> Twist:
    """Return the cmd_vel."""
    twist = Twist()
    twist.linear.x, twist.linear.y, twist.linear.z = velocity.linear
    twist.angular.x, twist.angular.y, twist.angular.z = velocity.angular
    return twist
