# SPDX-License-Identifier: Apache-2.0
"""Axes of the simulator, north-east-down and forward-right-down, to those of REP 103, and back. Units are SI. Pure."""

import math
from collections.abc import Sequence
from typing import Any

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion, inverse, quaternion_from_euler, rotated
from drone_bridge.motion.vectors import Triple, turned
from drone_bridge.motion.wxyz import WxyzQuaternion
from drone_bridge.simulator.codec import Attribute, SetEntity

_HALF_ROOT = math.sqrt(0.5)


def world(north: float, east: float, down: float) -> Triple:
    """Convert a point or vector of the world from NED to ENU. The inverse is the same swap."""
    return east, north, 0.0 - down  # avoids -0.0


def body(forward: float, right: float, down: float) -> Triple:
    """Convert a vector of a body from FRD to FLU (REP 103). The inverse is the same rotation."""
    return forward, 0.0 - right, 0.0 - down


def orientation(q: Sequence[float]) -> Quaternion:
    """Return an orientation (w, x, y, z) in ROS axes. Facing north is a yaw of 90 degrees."""
    w, x, y, z = q
    return Quaternion(_HALF_ROOT * (x + y), _HALF_ROOT * (x - y), _HALF_ROOT * (w - z), _HALF_ROOT * (w + z))


def wire_orientation(q: Quaternion) -> WxyzQuaternion:
    """Return an orientation in the simulator's axes: w, x, y, z."""
    return (_HALF_ROOT * (q.w + q.z), _HALF_ROOT * (q.x + q.y), _HALF_ROOT * (q.x - q.y), _HALF_ROOT * (q.w - q.z))


def rotation(q: Sequence[float]) -> Quaternion:
    """Return a rotation (w, x, y, z) between two frames of a body, such as of its camera, in ROS axes."""
    w, x, y, z = q
    return Quaternion(x, -y, -z, w)


def wire_rotation(q: Quaternion) -> WxyzQuaternion:
    """Return a rotation between two frames of a body in the simulator's axes: w, x, y, z."""
    return q.w, q.x, -q.y, -q.z


# Commands are in the vehicle's own frame. On the wire, v is in the world's axes, and w in the model's.


def set_velocity(entity: int, velocity: BodyVelocity, attitude: WxyzQuaternion | None) -> tuple[SetEntity, SetEntity]:
    """Return the requests that set the velocity of an entity with this attitude on the wire. Zero needs none."""
    linear = rotated(orientation(attitude), *velocity.linear) if attitude else velocity.linear
    return (
        SetEntity(entity, Attribute.VELOCITY, world(*linear)),
        SetEntity(entity, Attribute.ANGULAR_VELOCITY, body(*velocity.angular)),
    )


def velocity_from_wire(v: Triple, w: Triple, attitude: WxyzQuaternion) -> BodyVelocity:
    """Return the velocity for v and w of an entity with this attitude on the wire."""
    return BodyVelocity(*rotated(inverse(orientation(attitude)), *world(*v)), *body(*w))


def measurement(values: Sequence[Any], *, is_attitude_known: bool) -> Measurement:
    """Convert a vehicle's values of STREAMED, with q of its model."""
    x, v, _, q, w = values
    if not is_attitude_known:
        return Measurement(position=world(*x))
    roll, pitch, yaw = euler_from_quaternion(orientation(q))
    rates = body(*w)
    level_rates = rotated(quaternion_from_euler(roll, pitch, 0.0), *rates)
    return Measurement(
        position=world(*x),
        yaw=yaw,
        velocity=BodyVelocity(*turned(world(*v), -yaw), *level_rates),
        roll=roll,
        pitch=pitch,
        rates=rates,
    )
