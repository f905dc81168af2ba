# SPDX-License-Identifier: Apache-2.0
"""Converts entity states of the simulator to ROS messages, and velocity commands to requests."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from geometry_msgs.msg import Twist

from drone_bridge.motion.quaternions import Quaternion, inverse, multiplied, rotated, rotated_back
from drone_bridge.ros import frames
from drone_bridge.simulator.codec import Attribute, SetEntity
from drone_bridge.simulator.topics.frames import (
    SimulatorQuaternion,
    frd_from_rotation,
    ned_frd_from_orientation,
    orientation_from_ned_frd,
    rotation_from_frd,
)

Vector = tuple[float, float, float]

#: The attributes that states are made of, in the order in which they are asked for.
STREAMED = (
    Attribute.POSITION,
    Attribute.VELOCITY,
    Attribute.ACCELERATION,
    Attribute.ORIENTATION,
    Attribute.ANGULAR_VELOCITY,
)
_LARGEST_NORM_ERROR = 0.01  # of a quaternion that still counts as a rotation


class Axes:
    """Converts between the simulator's axes (north-east-down, forward-right-down) and ROS's, unless disabled.

    Every vector that is turned comes back when it is turned again.
    """

    def __init__(self, convert: bool = True) -> None:
        self.convert = convert
        #: Turns a point or vector of the world, given as x, y, z, into the other axes.
        self.world: Callable[[float, float, float], Vector] = frames.enu_from_ned if convert else _as_it_is
        #: Turns a vector of a body into the other axes.
        self.body: Callable[[float, float, float], Vector] = frames.flu_from_frd if convert else _as_it_is

    def orientation(self, q: Sequence[float]) -> Quaternion:
        """Convert an orientation of the simulator (w, x, y, z) to ROS's axes."""
        w, x, y, z = q
        return orientation_from_ned_frd(w, x, y, z) if self.convert else Quaternion(x, y, z, w)

    def wire_orientation(self, q: Quaternion) -> SimulatorQuaternion:
        """Convert an orientation to the simulator's axes: w, x, y, z."""
        return ned_frd_from_orientation(q) if self.convert else (q.w, q.x, q.y, q.z)

    def wire_rotation(self, q: Quaternion) -> SimulatorQuaternion:
        """Convert a rotation between two frames of a body to the simulator's axes: w, x, y, z."""
        return frd_from_rotation(q) if self.convert else (q.w, q.x, q.y, q.z)

    def rotation(self, q: Sequence[float]) -> Quaternion:
        """Convert a rotation between two frames of a body (w, x, y, z) to ROS's axes."""
        w, x, y, z = q
        return rotation_from_frd(w, x, y, z) if self.convert else Quaternion(x, y, z, w)

    def against_gravity(self, gravity: float) -> Vector:
        """Return the specific force of a body at rest, m/s², in the world."""
        return (0.0, 0.0, gravity if self.convert else -gravity)


def _as_it_is(x: float, y: float, z: float) -> Vector:
    return x, y, z


class BodyToModel:
    """The rotation from an entity's principal axes, which q on the wire refers to, to its model, which ROS uses.

    On the wire w, ESET q and cameras are about the model already.
    """

    def __init__(self, rotation: Sequence[float] = (1.0, 0.0, 0.0, 0.0)) -> None:
        """`rotation` is btom: w, x, y, z. Raises ValueError unless it is a rotation."""
        self.rotation = _unit(rotation)
        w, x, y, z = self.rotation
        self._btom = Quaternion(x, y, z, w)
        self.is_identity = max(abs(x), abs(y), abs(z)) < 1e-12  # w alone could not tell below 1e-6 rad

    def model(self, q: Sequence[float]) -> SimulatorQuaternion:
        """Return the orientation of the model for q on the wire: w, x, y, z. Raises ValueError."""
        w, x, y, z = _unit(q)
        if self.is_identity:
            return w, x, y, z
        turned = multiplied(Quaternion(x, y, z, w), inverse(self._btom))
        return turned.w, turned.x, turned.y, turned.z

    def body(self, q: Sequence[float]) -> SimulatorQuaternion:
        """Return q on the wire for the orientation of the model: w, x, y, z. Raises ValueError."""
        w, x, y, z = _unit(q)
        turned = multiplied(Quaternion(x, y, z, w), self._btom)
        return turned.w, turned.x, turned.y, turned.z

    def rotation_in_body(self, q: Sequence[float]) -> SimulatorQuaternion:
        """Convert a rotation (w, x, y, z) from the model to the principal axes."""
        w, x, y, z = q
        turned = multiplied(inverse(self._btom), Quaternion(x, y, z, w))
        return turned.w, turned.x, turned.y, turned.z

    def vector_in_body(self, vector: Vector) -> Vector:
        """Convert a vector from the model to the principal axes."""
        return rotated(inverse(self._btom), *vector)

    @classmethod
    def between(cls, model: Sequence[float], body: Sequence[float]) -> "BodyToModel":
        """Return the rotation between two orientations, each w, x, y, z. Raises ValueError."""
        (mw, mx, my, mz), (bw, bx, by, bz) = _unit(model), _unit(body)
        turned = multiplied(inverse(Quaternion(mx, my, mz, mw)), Quaternion(bx, by, bz, bw))
        return cls((turned.w, turned.x, turned.y, turned.z))


def _unit(q: Sequence[float]) -> SimulatorQuaternion:
    w, x, y, z = q
    norm = math.sqrt(w * w + x * x + y * y + z * z)
    if not abs(norm - 1.0) <= _LARGEST_NORM_ERROR:  # so that NaN is refused, too
        raise ValueError(f"The quaternion {w:g}, {x:g}, {y:g}, {z:g} has the length {norm:g}, and has to have 1.")
    return w / norm, x / norm, y / norm, z / norm


class EntityState(NamedTuple):
    """The pose and motion of an entity's model, in ROS's axes."""

    position: Vector  # m, world
    velocity: Vector  # m/s, world
    acceleration: Vector  # m/s², world: of the motion, so 0 at rest
    orientation: Quaternion
    angular_velocity: Vector  # rad/s, body


def entity_state(values: Sequence[Any], axes: Axes, body_to_model: BodyToModel) -> EntityState:
    """Return the state for values of STREAMED. Raises ValueError unless they are finite and a rotation."""
    x, v, a, q, w = values
    # The sum is NaN if any of them is.
    if not math.isfinite(sum(x + v + a + w)):
        raise ValueError(f"The state x {x}, v {v}, a {a}, w {w} is not made of finite numbers.")
    return EntityState(
        axes.world(*x),
        axes.world(*v),
        axes.world(*a),
        axes.orientation(body_to_model.model(q)),
        axes.body(*w),
    )


# The numbers of messages, in the order of their fields.


def pose_numbers(state: EntityState) -> tuple[float, ...]:
    """Return the pose in the world, of a Pose or a Transform."""
    return (*state.position, *state.orientation)


def twist_numbers(state: EntityState) -> tuple[float, ...]:
    """Return the velocities in the entity's own frame, of a Twist."""
    return (*rotated_back(state.orientation, *state.velocity), *state.angular_velocity)


def specific_force(state: EntityState, against_gravity: Vector) -> Vector:
    """Return what an accelerometer in the body would read, m/s²: + gravity upwards for a body at rest."""
    ax, ay, az = state.acceleration
    gx, gy, gz = against_gravity
    return rotated_back(state.orientation, ax + gx, ay + gy, az + gz)


# Commands.


class Velocity(NamedTuple):
    """A velocity command, in the body's frame."""

    linear: Vector  # m/s
    angular: Vector  # rad/s


STILL = Velocity((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))


def velocity_from_twist(twist: Twist, max_linear: float, max_angular: float) -> tuple[Velocity, bool]:
    """Return a finite cmd_vel, scaled down to the limits, and whether it was within them."""
    linear, was_slow = _shortened(twist.linear, max_linear)
    angular, turned_slowly = _shortened(twist.angular, max_angular)
    return Velocity(linear, angular), was_slow and turned_slowly


def _shortened(vector: Any, longest: float) -> tuple[Vector, bool]:
    length = math.hypot(vector.x, vector.y, vector.z)
    if length <= longest:
        return (vector.x, vector.y, vector.z), True
    # The largest number first: lengths may be infinite, and then no ratio is left.
    largest = max(abs(vector.x), abs(vector.y), abs(vector.z))
    x, y, z = vector.x / largest, vector.y / largest, vector.z / largest
    scale = longest / math.hypot(x, y, z)
    return (x * scale, y * scale, z * scale), False


def set_velocity(entity: int, velocity: Velocity, orientation: Quaternion, axes: Axes) -> tuple[SetEntity, SetEntity]:
    """Return the requests that set an entity's velocity: v is in world axes, w in the model's."""
    linear = axes.world(*rotated(orientation, *velocity.linear))
    return (
        SetEntity(entity, Attribute.VELOCITY, linear),
        SetEntity(entity, Attribute.ANGULAR_VELOCITY, axes.body(*velocity.angular)),
    )
