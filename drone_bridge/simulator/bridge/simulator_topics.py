# SPDX-License-Identifier: Apache-2.0
"""SimulatorTopics: topics of simulator_bridge from the table of topics, tf, and stamps. For the loop's thread."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rosgraph_msgs.msg import Clock
from tf2_msgs.msg import TFMessage

from drone_bridge.net.clock import time_of_day_ms
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.simulated_time import CLOCK_TOPIC, Stamps
from drone_bridge.ros.publishers import NO_EVENTS
from drone_bridge.ros.qos import latched, newest
from drone_bridge.ros.time import NANOSECONDS, time_from_nanoseconds
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.table import Topic
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.ros.topics.transforms import transform
from drone_bridge.simulator import units
from drone_bridge.simulator.session import events
from drone_bridge.simulator.topics import (
    ENTITY_STATES,
    EVENTS,
    SIMULATION_STARTED,
    VEHICLE_STATES,
    EntityState,
    Labels,
    SimulatorTranslation,
    entity_state,
)


class EntityTopics:
    """Topics of one entity: odom and imu/data of the vehicle, pose and twist of others."""

    def __init__(self, node: ProtocolNode, translation: SimulatorTranslation, name: str | None) -> None:
        """`name` is None for the vehicle."""
        self._node = node
        self.translation = translation
        self._made: list[Publisher[Any]] = []
        #: Publishers of states.
        self.publishers = (
            TopicPublishers(node, VEHICLE_STATES, translation)
            if name is None
            else TopicPublishers(
                node,
                [replace(row, name=row.name.format(name=name)) for row in ENTITY_STATES],
                translation,
                make_publisher=self._make_publisher,
            )
        )

    def _make_publisher(self, row: Topic) -> "Publisher[Any]":
        """Create a publisher without QoS override parameters, which would accumulate with every name."""
        publisher = self._node.create_publisher(row.message, row.name, row.qos(), event_callbacks=NO_EVENTS)
        self._made.append(publisher)
        return publisher

    def close(self) -> None:
        for publisher in self._made:
            self._node.destroy_publisher(publisher)
        self._made.clear()


@dataclass(frozen=True, slots=True)
class StepStates:
    """States of a step, with the topics of their entities."""

    of: list[tuple[EntityTopics, EntityState]]

    def transforms(self, stamp: Time) -> TFMessage:
        """Return the transforms of all entities in one message."""
        return TFMessage(transforms=[topics.translation.transform(state, stamp) for topics, state in self.of])


TF = Topic(
    "/tf",
    TFMessage,
    of=StepStates,
    to_ros=lambda _, moved, stamp: moved.transforms(stamp),
    qos=lambda: QoSProfile(depth=100),  # subscribers may be slow
    if_parameter="publish_tf",
)


class SimulatorTopics:
    """All topics of the node."""

    def __init__(self, node: ProtocolNode, vehicle: int, frames: FrameNames) -> None:
        self._node, self._vehicle, self._frames = node, vehicle, frames
        self.stamps = Stamps(node.parameters, node.now)
        self._time = Time()  # simulated
        self._newest: tuple[float, Time] | None = None  # stamp of this step, and its time
        self._topics = {vehicle: EntityTopics(node, SimulatorTranslation(frames), None)}  # by entity
        #: Translation of events.
        self._translation = self._topics[vehicle].translation
        self._events: dict[type, tuple[Publisher[Any], Any]] = {}
        publishers: dict[str, Publisher[Any]] = {}
        for row in EVENTS:
            if row.name not in publishers:
                publishers[row.name] = node.make_publisher(row.message, row.name, row.qos())
            self._events[row.of] = publishers[row.name], row.to_ros
        self._tf = TopicPublishers(node, [TF], None)
        self._static_tf = node.make_publisher(TFMessage, "/tf_static", latched())
        self._simulation_started = node.make_publisher(Time, SIMULATION_STARTED, latched())
        is_told = node.parameters["publish_clock"]
        self._clock = node.make_publisher(Clock, CLOCK_TOPIC, newest()) if is_told else None
        self._static_transforms: dict[str, TransformStamped] = {}
        #: Publishing functions by type of event.
        self.handlers: dict[type, Callable[[Any], None]] = {
            events.ClockTime: self._publish_time,
            events.States: self._publish_states,
            events.SimulatorEvent: self._publish_event,
            events.PublishedScene: self.set_scene,
            events.ConnectionStarted: self._begin,
            events.CameraPlaced: self._place_camera,
            events.BodyToModelKnown: self._set_heading,
        }

    def set_scene(self, scene: events.PublishedScene) -> None:
        """Create topics of these entities and static transforms of these cameras, and remove all others."""
        for gone in self._topics.keys() - scene.entities:
            self._topics.pop(gone).close()
        for entity in scene.entities.keys() - self._topics:
            name = scene.entities[entity]
            translation = SimulatorTranslation(self._frames, f"{self._frames.frame_prefix}{name}")
            self._topics[entity] = EntityTopics(self._node, translation, name)
        frames = {self._frames.odom, *map(self._translation.camera_frame, scene.cameras)}
        for frame in self._static_transforms.keys() - frames:
            del self._static_transforms[frame]

    def close(self) -> None:
        """Destroy the topics of entities."""
        for topics in self._topics.values():
            topics.close()
        self._topics.clear()

    # Time.

    def _publish_time(self, time: events.ClockTime) -> None:
        self._newest = None
        seconds, nanoseconds = divmod(time.nanoseconds, NANOSECONDS)
        self._time = self.stamps.newest = Time(sec=min(seconds, 2**31 - 1), nanosec=nanoseconds)  # ends in 2038
        if time.is_due and self._clock:
            self._node.publish(self._clock, Clock(clock=self._time))

    def _stamp(self) -> Time:
        """Return the header stamp, which is the same for all messages of a step."""
        come_s = self._node.decided_s
        if self._newest is None or self._newest[0] != come_s:
            self._newest = come_s, self.stamps.of(self._time)
        return self._newest[1]

    # States and events.

    def _publish_states(self, states: events.States) -> None:
        """Publish the states of a step, and the transforms of its entities in one message."""
        stamp, made, moved = self._stamp(), [], StepStates([])
        for entity, values in states.of:
            if (topics := self._topics.get(entity)) is None:
                continue
            state = entity_state(values)
            made += topics.publishers.made(state, stamp)
            moved.of.append((topics, state))
        self._node.publish_all((*made, *self._tf.made(moved, stamp)))

    def _publish_event(self, reported: events.SimulatorEvent) -> None:
        publisher, to_ros = self._events[type(reported.message)]
        self._translation.labels = Labels(reported.name, reported.camera)
        self._node.publish(publisher, to_ros(self._translation, reported.message, self._stamp()))

    def _set_heading(self, known: events.BodyToModelKnown) -> None:
        self._translation.is_attitude_known = known.rotation is not None

    # Latched topics.

    def _begin(self, begun: events.ConnectionStarted) -> None:
        """Publish the wall time at which a simulation was first connected, and the transform from map to odom."""
        if begun.is_new:
            self._node.publish(self._simulation_started, time_from_nanoseconds(time_of_day_ms() * 1_000_000))
        if self._node.parameters["publish_map_to_odom"]:  # positions do not drift
            self._publish_static(transform(self._frames.map, self._frames.odom))

    def _place_camera(self, placed: events.CameraPlaced) -> None:
        camera = placed.camera
        if topics := self._topics.get(camera.entity):
            position, rotation = units.body(*camera.position), units.rotation(camera.orientation)
            frame = self._translation.camera_frame(placed.name)
            self._publish_static(transform(topics.translation.frame, frame, position, rotation))

    def _publish_static(self, message: TransformStamped) -> None:
        message.header.stamp = self._stamp()
        self._static_transforms[message.child_frame_id] = message
        self._node.publish(self._static_tf, TFMessage(transforms=list(self._static_transforms.values())))
