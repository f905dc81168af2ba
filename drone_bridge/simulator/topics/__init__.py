# SPDX-License-Identifier: Apache-2.0
"""SimulatorTranslation: conversion between the simulator's messages and ROS messages, and the table of topics.

On the wire, the world is north-east-down, bodies are forward-right-down, and quaternions are w, x, y, z. `units`
converts them to REP 103 and back. q is about an entity's principal axes when received (EGOT, EDATA), and about its
model when it is set. `BodyToModel` converts between the two. ROS has only models. Fields without data on the wire are
0.

All conversions from ROS raise ValueError, with a sentence, for non-finite numbers and invalid orientations.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import (
    Pose,
    PoseStamped,
    PoseWithCovarianceStamped,
    TransformStamped,
    Twist,
    TwistStamped,
    TwistWithCovarianceStamped,
)
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from sensor_msgs.msg import FluidPressure, Imu
from std_msgs.msg import Empty, Header

from drone_bridge.motion.body_to_model import unit_rotation
from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.limits import shortened
from drone_bridge.motion.quaternions import IDENTITY, Quaternion, rotated, rotated_back
from drone_bridge.motion.wxyz import Vector
from drone_bridge.msg import CameraView, ExtendedAttribute, ItemEvent, TriggerEvent
from drone_bridge.ros.topics.covariances import (
    AXES,
    EXACT_VARIANCE,
    UNKNOWN_VARIANCE,
    OdometryCovariances,
    covariance_from_diagonal,
)
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.standard_rows import standard_row
from drone_bridge.ros.topics.table import Topic, TopicTable
from drone_bridge.ros.topics.topic_names import topic_token
from drone_bridge.ros.topics.transforms import set_quaternion, set_vector, transform
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator import units
from drone_bridge.simulator.codec import STREAMED, AttributeValue

#: Reading of an IMU at rest, m/s², in the world's axes of ROS.
AGAINST_GRAVITY: Vector = (0.0, 0.0, 9.81)
#: Pressure at the surface, Pa, and its increase with the depth in sea water, Pa/m.
SURFACE_PRESSURE, PRESSURE_PER_M = 101_325.0, 1025.0 * 9.80665
_NOT_MEASURED = -1.0  # covariance of a missing measurement
EXACT_COVARIANCES = OdometryCovariances([EXACT_VARIANCE] * AXES, [EXACT_VARIANCE] * AXES)
_ZERO: Vector = (0.0, 0.0, 0.0)


# Parts of messages.


def vector(message: Any) -> Vector:
    """Return a geometry_msgs/Vector3 or Point."""
    values = (message.x, message.y, message.z)
    if not all(map(math.isfinite, values)):
        raise ValueError(f"The vector is {values}, but must be finite.")
    return values


def quaternion(message: Any) -> Quaternion:
    """Return a geometry_msgs/Quaternion, normalized. All zeros are no rotation."""
    if not any((message.x, message.y, message.z, message.w)):
        return IDENTITY
    w, x, y, z = unit_rotation((message.w, message.x, message.y, message.z))
    return Quaternion(x, y, z, w)


def attribute_message(key: str, data: bytes) -> ExtendedAttribute:
    """Return an extended attribute with its data, and as text if it is valid UTF-8."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if "\0" in text:
        text = ""
    # Invalid UTF-8 was decoded to surrogates, which a ROS string can't contain.
    return ExtendedAttribute(key=key.encode(errors="surrogateescape").decode(errors="replace"), text=text, data=data)


# States of entities.


class EntityState(NamedTuple):
    """The pose and motion of an entity's model, in ROS's axes."""

    position: Vector  # m, world
    velocity: Vector  # m/s, world
    acceleration: Vector  # m/s², world: of the motion, so 0 at rest
    orientation: Quaternion
    angular_velocity: Vector  # rad/s, body

    @property
    def own_velocity(self) -> Vector:
        """Velocity in the entity's own frame, m/s."""
        return rotated_back(self.orientation, *self.velocity)


def _fill_pose(message: Pose, state: EntityState) -> None:
    set_vector(message.position, state.position)
    set_quaternion(message.orientation, state.orientation)


def _fill_twist(message: Twist, state: EntityState) -> None:
    """Set the velocities of a message, in the entity's own frame."""
    set_vector(message.linear, state.own_velocity)
    set_vector(message.angular, state.angular_velocity)


def entity_state(values: Sequence[Any]) -> EntityState:
    """Return the state for values of STREAMED, with q of the model."""
    x, v, a, q, w = values
    return EntityState(units.world(*x), units.world(*v), units.world(*a), units.orientation(q), units.body(*w))


def wire_state(state: EntityState) -> tuple[AttributeValue, ...]:
    """Return the values of STREAMED on the wire, with identical body and model frames."""
    w, x, y, z = units.wire_orientation(state.orientation)
    # Clients compute the angle as 2 acos(w). Of the two equivalent quaternions, send the one with 0 <= w <= 1.
    q = (min(w, 1.0), x, y, z) if w >= 0.0 else (min(-w, 1.0), -x, -y, -z)
    motion = units.world(*state.velocity), units.world(*state.acceleration)
    return units.world(*state.position), *motion, q, units.body(*state.angular_velocity)


def state_at(position: Vector, orientation: Quaternion) -> EntityState:
    """Return a state at rest."""
    return EntityState(position, _ZERO, _ZERO, orientation, _ZERO)


def with_twist(state: EntityState, twist: Twist) -> EntityState:
    """Return the state with velocities given in the entity's own frame."""
    velocity = rotated(state.orientation, *vector(twist.linear))
    return state._replace(velocity=velocity, angular_velocity=vector(twist.angular))


def with_specific_force(state: EntityState, force: Vector) -> EntityState:
    """Return the state with the acceleration of the motion, from the reading of an IMU on the entity."""
    (ax, ay, az), (gx, gy, gz) = rotated(state.orientation, *force), AGAINST_GRAVITY
    return state._replace(acceleration=(ax - gx, ay - gy, az - gz))


def with_motion(state: EntityState, before: EntityState, duration_s: float, *, has_velocity: bool) -> EntityState:
    """Return the state with the mean acceleration since the previous one, and the mean velocity if it has none."""
    if not has_velocity:
        state = state._replace(velocity=_rate(state.position, before.position, duration_s))
        if before.velocity == _ZERO:  # possibly unknown
            return state
    return state._replace(acceleration=_rate(state.velocity, before.velocity, duration_s))


def _rate(after: Vector, before: Vector, duration_s: float) -> Vector:
    x, y, z = ((a - b) / duration_s for a, b in zip(after, before, strict=True))
    return x, y, z


# Commands.


#: m/s and rad/s; faster commands are clamped.
MAX_SPEED = 10.0


def within_maxima(velocity: BodyVelocity) -> BodyVelocity:
    """Return a velocity limited to MAX_SPEED in the same direction."""
    return BodyVelocity(*shortened(velocity.linear, MAX_SPEED), *shortened(velocity.angular, MAX_SPEED))


# Messages.


class Labels(NamedTuple):
    """Names of the IDs in the next message, which only the bridge knows."""

    name: str = ""
    """Name of the entity or trigger, if any."""
    camera: tuple[int, str, int] = (0, "", 0)
    """ID and name of the camera, and ID of the target."""


class SimulatorTranslation:
    """Conversion of the simulator's messages about one entity, or of any other kind, to ROS and back.

    A message for a state is valid until the next one of its kind is created.
    """

    def __init__(self, names: FrameNames, frame: str = "") -> None:
        """`names` are the vehicle's frames. `frame` is that of the entity, if it is not the vehicle."""
        self.names, self.frame = names, frame or names.base_link
        #: Names of the IDs in the next message.
        self.labels = Labels()
        #: Whether the entity's heading is known.
        self.is_attitude_known = True

    # States: messages are reused, since there are about 100 per second.

    @cached_property
    def _odometry(self) -> Odometry:
        message = Odometry(header=Header(frame_id=self.names.odom), child_frame_id=self.frame)
        EXACT_COVARIANCES.fill(message)
        return message

    @cached_property
    def _imu(self) -> Imu:
        message = Imu(header=Header(frame_id=self.frame))
        for covariance in (
            message.orientation_covariance,
            message.angular_velocity_covariance,
            message.linear_acceleration_covariance,
        ):
            covariance[0] = covariance[4] = covariance[8] = EXACT_VARIANCE
        return message

    @cached_property
    def _pose(self) -> PoseStamped:
        return PoseStamped(header=Header(frame_id=self.names.odom))

    @cached_property
    def _twist(self) -> TwistStamped:
        return TwistStamped(header=Header(frame_id=self.frame))

    @cached_property
    def _transform(self) -> TransformStamped:
        return transform(self.names.odom, self.frame)

    def odometry(self, state: EntityState, stamp: Time) -> Odometry:
        message = self._odometry
        message.header.stamp = stamp
        _fill_pose(message.pose.pose, state)
        _fill_twist(message.twist.twist, state)
        return message

    def imu(self, state: EntityState, stamp: Time) -> Imu:
        """Return an Imu with the reading of an accelerometer in the body: + gravity upwards at rest."""
        (ax, ay, az), (gx, gy, gz) = state.acceleration, AGAINST_GRAVITY
        message = self._imu
        message.header.stamp = stamp
        set_quaternion(message.orientation, state.orientation)
        set_vector(message.angular_velocity, state.angular_velocity)
        set_vector(message.linear_acceleration, rotated_back(state.orientation, ax + gx, ay + gy, az + gz))
        # Without the heading, neither the orientation nor gravity is known.
        message.orientation_covariance[0] = EXACT_VARIANCE if self.is_attitude_known else _NOT_MEASURED
        message.linear_acceleration_covariance[0] = message.orientation_covariance[0]
        return message

    # What an underwater vehicle's sensors measure.

    def depth(self, state: EntityState, stamp: Time) -> PoseWithCovarianceStamped:
        """Return the depth, as a negative z in odom. All other values are unknown."""
        message = PoseWithCovarianceStamped(header=Header(stamp=stamp, frame_id=self.names.odom))
        message.pose.pose.position.z = state.position[2]
        unknown = [UNKNOWN_VARIANCE] * 2
        message.pose.covariance = covariance_from_diagonal([*unknown, EXACT_VARIANCE, *unknown, UNKNOWN_VARIANCE])
        return message

    def fluid_pressure(self, state: EntityState, stamp: Time) -> FluidPressure:
        """Return the absolute pressure at the vehicle's depth in sea water."""
        message = FluidPressure(header=Header(stamp=stamp, frame_id=self.frame))
        message.fluid_pressure = SURFACE_PRESSURE + PRESSURE_PER_M * max(0.0, -state.position[2])
        message.variance = EXACT_VARIANCE * PRESSURE_PER_M**2
        return message

    def velocity(self, state: EntityState, stamp: Time) -> TwistWithCovarianceStamped:
        """Return the velocity in body axes, as of a Doppler velocity log, which measures no rotation."""
        message = TwistWithCovarianceStamped(header=Header(stamp=stamp, frame_id=self.frame))
        set_vector(message.twist.twist.linear, state.own_velocity)
        message.twist.covariance = covariance_from_diagonal([EXACT_VARIANCE] * 3 + [UNKNOWN_VARIANCE] * 3)
        return message

    def pose(self, state: EntityState, stamp: Time) -> PoseStamped:
        message = self._pose
        message.header.stamp = stamp
        _fill_pose(message.pose, state)
        return message

    def twist(self, state: EntityState, stamp: Time) -> TwistStamped:
        message = self._twist
        message.header.stamp = stamp
        _fill_twist(message.twist, state)
        return message

    def transform(self, state: EntityState, stamp: Time) -> TransformStamped:
        """Return the transform from odom to the entity."""
        message = self._transform
        message.header.stamp = stamp
        set_vector(message.transform.translation, state.position)
        set_quaternion(message.transform.rotation, state.orientation)
        return message

    def wire_odometry(self, message: Odometry) -> EntityState:
        """Return the state. The message's velocities are in the body's own frame."""
        return with_twist(self._state(message.pose.pose), message.twist.twist)

    def wire_imu(self, message: Imu) -> Vector | None:
        """Return the specific force. None if it is not measured."""
        is_measured = message.linear_acceleration_covariance[0] != _NOT_MEASURED
        return vector(message.linear_acceleration) if is_measured else None

    def wire_pose(self, message: PoseStamped) -> EntityState:
        return self._state(message.pose)

    def wire_twist(self, message: TwistStamped) -> Twist:
        """Return the velocities in the entity's own frame."""
        for part in (message.twist.linear, message.twist.angular):
            vector(part)
        return message.twist

    def _state(self, pose: Pose) -> EntityState:
        return state_at(vector(pose.position), quaternion(pose.orientation))

    # Other events of the simulator.

    def camera_view(self, view: sim.CameraData, stamp: Time) -> CameraView:
        """Return an entity's position in the image."""
        camera, name, target = self.labels.camera
        message = CameraView(camera=name, camera_id=camera, target=self.labels.name)
        message.target_id, message.stream_id = target, view.id
        message.header.stamp, message.header.frame_id = stamp, self.camera_frame(name) if name else ""
        message.x, message.y, message.radius, message.depth = view.x, view.y, view.radius, view.depth
        message.visible = view.radius > 0.0
        return message

    def camera_frame(self, name: str) -> str:
        return f"{self.names.frame_prefix}{topic_token(name, 'camera')}"

    def wire_camera_data(self, message: CameraView) -> sim.CameraData:
        return sim.CameraData(message.stream_id, message.x, message.y, message.radius, message.depth)

    def trigger_event(self, event: Any, stamp: Time) -> TriggerEvent:
        message = TriggerEvent(event=event.ID, trigger_id=event.id, name=self.labels.name)
        message.header.stamp = stamp
        return message

    def wire_trigger_event(self, message: TriggerEvent) -> Any:
        event = _TRIGGER_EVENTS.get(message.event)
        return event and event(message.trigger_id)

    def item_event(self, event: sim.Spied, stamp: Time) -> ItemEvent:
        message = ItemEvent(added=event.is_added, type=event.type, id=event.id, name=self.labels.name)
        message.header.stamp = stamp
        return message

    def wire_item_event(self, message: ItemEvent) -> sim.Spied:
        return sim.Spied(message.added, message.type, message.id, 1 if message.id < 256 else 4)

    def completed(self, event: sim.Completed, stamp: Time) -> Empty:
        return Empty()

    def wire_completed(self, message: Empty) -> sim.Completed:
        return sim.Completed()

    # Messages with several topics.

    def parts(self, wire: Any) -> Iterator[tuple[str, Any]]:
        """Yield the topics of a streamed state."""
        if isinstance(wire, sim.EntityData) and wire.attributes == STREAMED:
            state = entity_state(wire.values)
            for row in STATES:  # of the vehicle, or of another entity
                yield row.name.format(name="buoy"), state

    def assemble(self, value: Callable[[str], Any], stamp: Time) -> sim.EntityData | None:
        """Return the vehicle's state from odom and imu/data. None without them."""
        state, force = value("odom"), value("imu/data")
        if state is None or force is None:
            return None
        return sim.EntityData(0, STREAMED, wire_state(with_specific_force(state, force)))


_TRIGGER_EVENTS = {
    event.ID: event for event in (sim.Triggered, sim.Untriggered, sim.PathStarted, sim.PathFailed, sim.PathEnded)
}


def _events() -> QoSProfile:
    return QoSProfile(depth=100)


_T = SimulatorTranslation
_row = partial(standard_row, EntityState)
#: Topics of the vehicle, and of each other entity.
VEHICLE_STATES = (
    _row(
        "odom",
        _T.odometry,
        _T.wire_odometry,
        "the vehicle's pose and velocities",
        needed="its state is unknown, and it can't be steered",
    ),
    _row(
        "imu/data",
        _T.imu,
        _T.wire_imu,
        "reading of a simulated IMU on the vehicle; -1 in a covariance while its heading is unknown",
    ),
    Topic(
        "depth",
        PoseWithCovarianceStamped,
        of=EntityState,
        to_ros=_T.depth,
        meaning="the vehicle's depth, as a negative z in odom; other values have a large variance",
    ),
    _row("fluid_pressure", _T.fluid_pressure, None, "absolute pressure at that depth, in sea water"),
    _row("velocity", _T.velocity, None, "the vehicle's velocity in body axes, as of a DVL"),
)
ENTITY_STATES = (
    Topic(
        "entities/{name}/pose",
        PoseStamped,
        of=EntityState,
        to_ros=_T.pose,
        from_ros=_T.wire_pose,
        meaning="pose of each further entity",
    ),
    Topic(
        "entities/{name}/twist",
        TwistStamped,
        of=EntityState,
        to_ros=_T.twist,
        from_ros=_T.wire_twist,
        meaning="twist of each further entity, in its own frame",
    ),
)
STATES = (*VEHICLE_STATES, *ENTITY_STATES)
#: Latched topic with the time at which the bridge first connected to the simulation. A new time means a new simulation.
SIMULATION_STARTED = "simulation_started"
#: Events of the simulator. None may be lost.
EVENTS = (
    Topic(
        "camera_view",
        CameraView,
        of=sim.CameraData,
        to_ros=_T.camera_view,
        from_ros=_T.wire_camera_data,
        requested=_events,
        meaning="an entity's position in the image of a camera",
    ),
    *(
        Topic(
            "trigger_events",
            TriggerEvent,
            of=event,
            to_ros=_T.trigger_event,
            from_ros=_T.wire_trigger_event,
            qos=_events,
            requested=_events,
            meaning="events of triggers",
        )
        for event in _TRIGGER_EVENTS.values()
    ),
    Topic(
        "item_events",
        ItemEvent,
        of=sim.Spied,
        to_ros=_T.item_event,
        from_ros=_T.wire_item_event,
        qos=_events,
        requested=_events,
        meaning="entities added or removed by any client",
    ),
    Topic(
        "completed",
        Empty,
        of=sim.Completed,
        to_ros=_T.completed,
        from_ros=_T.wire_completed,
        requested=_events,
        meaning="completion of a run",
    ),
)


def _reported_on(topic: str) -> Callable[[SimulatorTranslation, Callable[[str], Any], Time], Any]:
    """Return a function that converts the message on one topic."""
    return lambda translation, value, stamp: value(topic)


TABLE = TopicTable(
    (*STATES, *EVENTS),
    lambda: SimulatorTranslation(FrameNames()),
    {sim.EntityData: SimulatorTranslation.assemble, **{row.of: _reported_on(row.name) for row in EVENTS}},
    parts=SimulatorTranslation.parts,
)
