# SPDX-License-Identifier: Apache-2.0
"""The topics of simulator_bridge: entities and events by the table of topics, tf, and time in steps.

Under the lock of the session, as the streams' thread publishes what it reads, and the link's thread what else happens.
"""

import math
import time
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rclpy.publisher import Publisher
from rosgraph_msgs.msg import Clock
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion
from drone_bridge.ros.common_parameters import frame_names
from drone_bridge.ros.frames import FrameNames, transform
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.time import NANOSECONDS, Stamps, time_from_nanoseconds
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.ros.topics import NO_EVENTS, Output, Outputs, latched
from drone_bridge.simulator.bridge.desired_items import CameraStream, DesiredItems, Trigger
from drone_bridge.simulator.codec import Configured, ItemType
from drone_bridge.simulator.topics import (
    ENTITY_STATES,
    EVENTS,
    SIMULATION_STARTED,
    VEHICLE_STATES,
    Axes,
    BodyToModel,
    EntityState,
    Labels,
    Translation,
    entity_state,
)
from drone_bridge.simulator.topics.plans import CameraPlan

# Time.


class SimulationClock:
    """Counts steps from the first one seen. Never runs back, even if the simulator is restarted."""

    def __init__(self) -> None:
        self._step_ns = 0.0  # 0: not known
        self._base_ns = 0
        self._steps = 0  # since the base

    @property
    def is_known(self) -> bool:
        """Whether the duration of a step is known."""
        return self._step_ns > 0.0

    @property
    def nanoseconds(self) -> int:
        return self._base_ns + round(self._steps * self._step_ns)

    def configure(self, configured: Configured) -> None:
        """Set the duration of a step: `frequency` steps and `speed` simulated seconds per second of the wall clock.

        Raises ValueError when that makes no sense.
        """
        frequency, speed = configured.frequency, configured.speed
        step_ns = speed / frequency * NANOSECONDS if frequency > 0.0 and speed > 0.0 else math.nan
        if not (0.0 < step_ns < 1e15):
            raise ValueError(
                f"The simulator reports {frequency:g} steps per second at speed {speed:g}, so its time is unknown."
            )
        self._base_ns, self._steps = self.nanoseconds, 0
        self._step_ns = step_ns

    def step(self) -> None:
        self._steps += 1

    def message(self) -> Time:
        """Return the time as a message, which ends in 2038."""
        seconds, nanoseconds = divmod(self.nanoseconds, NANOSECONDS)
        return Time(sec=min(seconds, 2**31 - 1), nanosec=nanoseconds)


# /clock and header stamps.


#: How often /clock is repeated while the simulation stands still, for those who have come meanwhile.
IDLE_PERIOD_S = 0.2


#: Of /clock at most, Hz.
CLOCK_RATE = 100.0


class TimeKeeper:
    """Publishes simulation time at a limited rate, and stamps messages."""

    def __init__(self, node: LinkNode) -> None:
        self._node = node
        self.clock = SimulationClock()
        stamps = Stamps(node)
        self._publisher, self.stamps_are_simulated = stamps.clock_publisher, stamps.are_wire_time
        self._period_s: float = 1.0 / CLOCK_RATE
        self._published_s = -math.inf
        self._next_s = -math.inf  # when the next message would be on time, if there are as many as there may be
        self._is_pending = False
        self._stamp: Time | None = None

    def stamp(self) -> Time:
        """Return the header stamp, the same one for all messages of a step."""
        if self._stamp is None:
            self._stamp = self.clock.message() if self.stamps_are_simulated else self._node.now()
        return self._stamp

    def step(self) -> None:
        """Count a step, and publish the time if due."""
        self.clock.step()
        self._stamp = None
        self._is_pending = True
        self.tick(time.monotonic())

    @property
    def due_s(self) -> float:
        """When `tick` is due."""
        if self._publisher is None or not self.clock.is_known:
            return math.inf
        if self._is_pending:
            # Steps that come about as often come now early, now late. To wait for the early ones would be one more
            # turn of the link's thread each.
            return self._next_s - self._period_s / 2
        return self._published_s + IDLE_PERIOD_S

    def tick(self, now_s: float) -> None:
        """Publish the time if due; to be called before messages are read."""
        self._stamp = None
        if now_s >= self.due_s and self._publisher:
            self._published_s = now_s
            self._next_s = max(self._next_s, now_s) + self._period_s
            self._is_pending = False
            self._node.publish(self._publisher, Clock(clock=self.clock.message()))


# Entities and events.


MAX_ENTITIES = 256  # that have topics
VEHICLE_NAME = "vehicle"  # in messages; its topics are odom and imu/data
#: tf holds the states of all entities of a step in one message, and listeners may be slow.
TF_DEPTH = 100
#: Of the vehicle.
UNKNOWN_HEADING = (
    "The rotation from the vehicle's principal axes to its model is unknown, so its orientation may be wrong. It is "
    "learned while the simulation is paused, or given by the parameter body_to_model."
)


class EntityTopics:
    """The topics of one entity: odom and imu/data of the vehicle, pose and twist of others."""

    def __init__(self, node: LinkNode, translation: Translation, name: str | None) -> None:
        """`name` is None for the vehicle."""
        self._node = node
        self.translation = translation
        self._made: list[Publisher[Any]] = []
        outputs: list[Output] = []
        for row in VEHICLE_STATES if name is None else ENTITY_STATES:
            if name is None:
                publisher = node.make_publisher(row.message, row.name, row.qos())
            else:  # without QoS override parameters, which would pile up with every name ever given
                topic = row.name.format(name=topic_token(name, "entity"))
                publisher = node.create_publisher(row.message, topic, row.qos(), event_callbacks=NO_EVENTS)
                self._made.append(publisher)
            assert row.to_ros
            outputs.append(Output(publisher, partial(row.to_ros, translation)))
        #: The messages about a state.
        self.outputs: Outputs[EntityState] = Outputs(node, outputs)

    def close(self) -> None:
        for publisher in self._made:
            self._node.destroy_publisher(publisher)
        self._made.clear()


class ItemLabels(Labels):
    """What IDs stand for, by our own items and the names that entities were given."""

    def __init__(self, items: DesiredItems, vehicle: int) -> None:
        self._items = items
        #: The names of entities that have one, and of those that we have removed, until that is reported.
        self.names: dict[int, str] = {vehicle: VEHICLE_NAME}
        self.former_names: dict[int, str] = {}

    def entity(self, entity: int) -> str:
        return self.names.get(entity) or self.former_names.get(entity, "")

    def camera_stream(self, stream: int) -> tuple[int, str, int]:
        item = self._items.find(ItemType.CAMERA_STREAM, stream)
        return (item.camera_id or 0, item.camera_name, item.target) if isinstance(item, CameraStream) else (0, "", 0)

    def trigger(self, trigger: int) -> str:
        item = self._items.find(ItemType.TRIGGER, trigger)
        return item.plan.name if isinstance(item, Trigger) else ""


class SimulatorOutputs:
    """All topics."""

    def __init__(self, node: LinkNode, axes: Axes, keeper: TimeKeeper, vehicle: int, items: DesiredItems) -> None:
        get = node.parameters.__getitem__
        self._node = node
        self._publishes_tf: bool = get("publish_tf")
        self.axes = axes
        self.keeper = keeper
        self._vehicle = vehicle
        self._frames = frame_names(node.parameters, FrameNames)
        self._labels = ItemLabels(items, vehicle)
        self.names, self.former_names = self._labels.names, self._labels.former_names
        #: Rotations from principal axes to models, where known.
        self.body_to_model: dict[int, BodyToModel] = {}
        self._no_rotation = BodyToModel()
        #: The newest orientation of the vehicle; None while it is not known.
        self.attitude: Quaternion | None = None
        self._topics = {vehicle: EntityTopics(node, self._translation(), None)}  # by entity
        #: What camera views, too, are made by.
        self.translation = self._topics[vehicle].translation
        self._events: dict[type, tuple[Publisher[Any], Any]] = {}
        publishers: dict[str, Publisher[Any]] = {}
        for row in EVENTS:
            if row.name not in publishers:
                publishers[row.name] = node.make_publisher(row.message, row.name, row.qos())
            self._events[row.of] = publishers[row.name], row.to_ros
        tf = Output(node.make_publisher(TFMessage, "/tf", TF_DEPTH), self._make_tf)
        self._tf: Outputs[dict[EntityTopics, tuple[EntityState, Time]]] = Outputs(node, [tf])
        self._static_tf = node.make_publisher(TFMessage, "/tf_static", latched())
        self._simulation_started = node.make_publisher(Time, SIMULATION_STARTED, latched())
        #: What was made of what came together: publishing it one by one would wake other threads as often.
        self._made: list[tuple[Publisher[Any], Any]] = []
        #: The states of this step, each with its stamp, that have yet to be published.
        self._waiting: dict[EntityTopics, tuple[EntityState, Time]] = {}
        self._static_transforms: dict[str, TransformStamped] = {}

    def _translation(self, frame: str = "") -> Translation:
        return Translation(
            self._frames,
            self.axes,
            self._labels,
            frame=frame,
        )

    def publish(self, event: Any) -> None:
        """Publish what the simulator has told unasked."""
        publisher, to_ros = self._events[type(event)]
        self._made.append((publisher, to_ros(self.translation, event, self.keeper.stamp())))
        self._publish_made()

    def _publish_made(self) -> None:
        made, self._made = self._made, []
        self._node.publish_all(made)

    # Entities.

    def name_entity(self, entity: int, name: str) -> str:
        """Give an entity a unique name, unless it has one, and return it."""
        if entity in self.names:
            return self.names[entity]
        token = topic_token(name, "entity")
        taken = self.entity_frames() | {frame.removeprefix(self._frames.prefix) for frame in self._static_transforms}
        number = 2
        while token in taken:
            token, number = f"{topic_token(name, 'entity')}_{number}", number + 1
        self.names[entity] = token
        return token

    def entity_frames(self) -> set[str]:
        """Return the tf frames of entities and the bridge's own, without prefix."""
        return {topic_token(name, "entity") for name in self.names.values()} | self._frames.own

    def open_entity(self, entity: int) -> None:
        """Create the topics of a named entity. Raises ValueError if there are too many."""
        if entity in self._topics:
            return
        if len(self._topics) >= MAX_ENTITIES:
            raise ValueError(f"{MAX_ENTITIES} entities have topics already, which is the limit.")
        name = self.names[entity]
        frame = f"{self._frames.prefix}{topic_token(name, 'entity')}"
        self._topics[entity] = EntityTopics(self._node, self._translation(frame), name)

    def forget_entity(self, entity: int) -> None:
        """Destroy the topics of a removed entity."""
        if entity == self._vehicle:
            return
        self.names.pop(entity, None)
        self.body_to_model.pop(entity, None)
        if topics := self._topics.pop(entity, None):
            self.flush()
            topics.close()

    def forget_entities_but(self, kept: set[int]) -> None:
        """Forget the names of all other entities, and destroy their topics."""
        for entity in (self.names.keys() | self._topics.keys()) - kept:
            self.forget_entity(entity)
        self.former_names.clear()

    def announce_simulation(self) -> None:
        """Publish when a simulation was first met, by the clock on the wall."""
        self._node.publish(self._simulation_started, time_from_nanoseconds(time.time_ns()))

    def close(self) -> None:
        """Destroy the topics of entities."""
        for topics in self._topics.values():
            topics.close()
        self._topics.clear()

    def frame(self, entity: int) -> str:
        """Return the tf frame of an entity, empty if it has none."""
        topics = self._topics.get(entity)
        return topics.translation.frame if topics else ""

    def state(self, entity: int, values: Any) -> EntityState:
        """Return the state given by an entity's attributes. Raises ValueError."""
        return entity_state(values, self.axes, self.body_to_model.get(entity, self._no_rotation))

    @property
    def is_body_to_model_known(self) -> bool:
        """Whether the rotation from the vehicle's principal axes to its model is known, and so its heading."""
        return self._vehicle in self.body_to_model

    def learn_body_to_model(self, rotation: BodyToModel | None) -> None:
        """Set the rotation from the vehicle's principal axes to its model, None if unknown."""
        self.body_to_model.pop(self._vehicle, None)
        if rotation:
            self.body_to_model[self._vehicle] = rotation
        self.translation.is_attitude_known = rotation is not None
        self._node.statistics.end_condition("heading")
        self._node.statistics.facts["vehicle's body to model"] = (
            " ".join(f"{number:.6g}" for number in rotation.rotation) if rotation else "not known"
        )

    def known_body_to_model(self, entity: int) -> BodyToModel:
        """Return the rotation of an entity, identity by default. Raises ValueError if the vehicle's is unknown."""
        if entity == self._vehicle and not self.is_body_to_model_known:
            raise ValueError(UNKNOWN_HEADING)
        return self.body_to_model.get(entity, self._no_rotation)

    def orientation(self, entity: int, q: Any) -> Quaternion:
        """Return an entity's orientation from q. Raises ValueError, also if the vehicle's rotation is unknown."""
        return self.axes.orientation(self.known_body_to_model(entity).model(q))

    def publish_state(self, entity: int, values: Any) -> None:
        """Have `flush` publish an entity's attributes after a step. Raises ValueError for an invalid state."""
        topics = self._topics.get(entity)
        if topics is None:
            return
        state = self.state(entity, values)
        if entity == self._vehicle:
            self.attitude = state.orientation if self.is_body_to_model_known else None
            yaw = euler_from_quaternion(self.attitude)[2] if self.attitude else None
            self._node.observed.measured(yaw, state.position, state.velocity)
        if topics in self._waiting:  # a new step has begun, and its messages are those of the last one
            self.flush()
        stamp = self.keeper.stamp()
        self._made += topics.outputs.made(state, stamp)
        self._waiting[topics] = state, stamp

    def flush(self) -> None:
        """Publish the states that have come, and the transforms of all these entities in one message."""
        if self._waiting and self._publishes_tf:
            self._made += self._tf.made(self._waiting, self.keeper.stamp())
        self._waiting.clear()
        if self._made:
            self._publish_made()

    def _make_tf(self, states: dict[EntityTopics, tuple[EntityState, Time]], _: Time) -> TFMessage:
        return TFMessage(transforms=[topics.translation.transform(*state) for topics, state in states.items()])

    # Frames.

    def announce(self) -> None:
        """Publish the static transform from map to odom, which coincide, as positions do not drift."""
        if self._node.parameters["publish_map_to_odom"]:
            self._publish_static(transform(self._frames.map, self._frames.odom))

    def announce_camera(self, plan: CameraPlan) -> None:
        """Publish the static transform of a camera."""
        if frame := self.frame(plan.entity):
            self._publish_static(
                transform(frame, self.translation.camera_frame(plan.name), plan.position, plan.rotation)
            )

    def keep_cameras(self, frames: set[str]) -> None:
        """Forget the static transforms of all other cameras; `frames` are without prefix."""
        kept = {self._frames.odom, *(f"{self._frames.prefix}{frame}" for frame in frames)}
        for frame in self._static_transforms.keys() - kept:
            del self._static_transforms[frame]

    def _publish_static(self, message: TransformStamped) -> None:
        message.header.stamp = self.keeper.stamp()
        self._static_transforms[message.child_frame_id] = message
        self._node.publish(self._static_tf, TFMessage(transforms=list(self._static_transforms.values())))
