# SPDX-License-Identifier: Apache-2.0
"""The topics of simulator_bridge. For the link's thread, except for creating topics."""

from collections.abc import Iterable
from typing import Any, Final

from builtin_interfaces.msg import Time
from geometry_msgs.msg import TransformStamped
from rclpy.qos import QoSProfile
from std_msgs.msg import Empty
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.quaternions import Quaternion
from drone_bridge.msg import CameraView, ExtendedAttributes, ItemEvent, TriggerEvent
from drone_bridge.ros.common_parameters import frame_names
from drone_bridge.ros.frames import FrameNames, serialized_transforms, transform
from drone_bridge.ros.lease import with_lease
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.ros.topics import Output, Outputs, latched
from drone_bridge.simulator import codec as sim
from drone_bridge.simulator.bridge.entity_topics import QUEUE_DEPTH, EntityTopics
from drone_bridge.simulator.bridge.time import TimeKeeper
from drone_bridge.simulator.topics import translation as translate
from drone_bridge.simulator.topics.plans import CameraPlan
from drone_bridge.simulator.topics.requests import attribute_message, fill_view
from drone_bridge.simulator.topics.translation import Axes, BodyToModel, EntityState

MAX_ENTITIES: Final = 256  # that have topics
VEHICLE_NAME: Final = "vehicle"  # in messages; its topics are odom and imu/data
#: tf holds the states of all entities of a step in one message, and listeners may be slow.
TF_DEPTH: Final = 100
#: Of the vehicle.
UNKNOWN_HEADING: Final = (
    "The rotation from the vehicle's principal axes to its model is unknown, so its orientation may be wrong. It is "
    "learned while the simulation is paused, or given by the parameter body_to_model."
)


class SimulatorOutputs:
    """All topics."""

    def __init__(self, node: LinkNode, axes: Axes, keeper: TimeKeeper, vehicle: int) -> None:
        get = node.parameters.__getitem__
        self._node = node
        self._publishes_tf: bool = get("publish_tf")
        self.axes = axes
        self.keeper = keeper
        self._vehicle = vehicle
        self._frames = frame_names(node.parameters, FrameNames)
        self._against_gravity = axes.against_gravity(get("gravity"))
        self._topics: dict[int, EntityTopics] = {}  # by entity
        #: Rotations from principal axes to models, where known.
        self.body_to_model: dict[int, BodyToModel] = {}
        self._no_rotation = BodyToModel()
        #: The newest orientation of the vehicle; None while it is not known.
        self.attitude: Quaternion | None = None
        #: The names of entities that have one.
        self.names: dict[int, str] = {vehicle: VEHICLE_NAME}

        tf = Output(node.make_publisher(TFMessage, "/tf", TF_DEPTH), self._make_tf)
        self._tf: Outputs[Iterable[EntityTopics]] = Outputs(node, [tf])
        self._static_tf = node.make_publisher(TFMessage, "/tf_static", latched())
        self._views = node.make_publisher(CameraView, "camera_view", QUEUE_DEPTH)
        self._trigger_events = node.make_publisher(TriggerEvent, "trigger_events", 100)
        self._item_events = node.make_publisher(ItemEvent, "item_events", with_lease(QoSProfile(depth=100)))
        self._attributes = node.make_publisher(ExtendedAttributes, "attributes", QUEUE_DEPTH)
        self._completed = node.make_publisher(Empty, "completed", QUEUE_DEPTH)
        #: Whose transforms have yet to be published, in order; a list would be searched with every state.
        self._waiting: dict[EntityTopics, None] = {}
        self._static_transforms: dict[str, TransformStamped] = {}
        self._topics[vehicle] = EntityTopics(node, None, self._frames, self._against_gravity)

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
        self._topics[entity] = EntityTopics(self._node, self.names[entity], self._frames, self._against_gravity)

    def forget_entity(self, entity: int) -> None:
        """Destroy the topics of a removed entity."""
        if entity == self._vehicle:
            return
        self.names.pop(entity, None)
        self.body_to_model.pop(entity, None)
        if topics := self._topics.pop(entity, None):
            self.flush()
            topics.close()

    def close(self) -> None:
        """Destroy the topics of entities."""
        for topics in self._topics.values():
            topics.close()
        self._topics.clear()

    def frame(self, entity: int) -> str:
        """Return the tf frame of an entity, empty if it has none."""
        topics = self._topics.get(entity)
        return topics.frame if topics else ""

    def state(self, entity: int, values: Any) -> EntityState:
        """Return the state given by an entity's attributes. Raises ValueError."""
        return translate.entity_state(values, self.axes, self.body_to_model.get(entity, self._no_rotation))

    @property
    def is_body_to_model_known(self) -> bool:
        """Whether the rotation from the vehicle's principal axes to its model is known, and so its heading."""
        return self._vehicle in self.body_to_model

    def learn_body_to_model(self, rotation: BodyToModel | None) -> None:
        """Set the rotation from the vehicle's principal axes to its model, None if unknown."""
        self.body_to_model.pop(self._vehicle, None)
        if rotation:
            self.body_to_model[self._vehicle] = rotation
        self._topics[self._vehicle].is_attitude_known = rotation is not None
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
        """Publish an entity's attributes after a step. Raises ValueError for an invalid state."""
        topics = self._topics.get(entity)
        if topics is None:
            return
        state = self.state(entity, values)
        if entity == self._vehicle:
            self.attitude = state.orientation if self.is_body_to_model_known else None
        if topics in self._waiting:  # a new step has begun
            self.flush()
        topics.publish(state, self.keeper.stamp())
        if self._publishes_tf and self._tf.wanted():
            self._waiting[topics] = None

    def flush(self) -> None:
        """Publish the queued transforms of all entities in one message."""
        if self._waiting:
            self._tf.publish(self._waiting, self.keeper.stamp())
            self._waiting.clear()

    def _make_tf(self, entities: Iterable[EntityTopics], _: Time) -> bytes:
        return serialized_transforms((topics.transform, topics.stamp, topics.pose) for topics in entities)

    # The rest.

    def announce(self) -> None:
        """Publish the static transform from map to odom, which coincide, as positions do not drift."""
        if self._node.parameters["publish_map_to_odom"]:
            self._publish_static(transform(self._frames.map, self._frames.odom))

    def announce_camera(self, plan: CameraPlan) -> None:
        """Publish the static transform of a camera."""
        if frame := self.frame(plan.entity):
            self._publish_static(transform(frame, self.camera_frame(plan.name), plan.position, plan.rotation))

    def keep_cameras(self, frames: set[str]) -> None:
        """Forget the static transforms of all other cameras; `frames` are without prefix."""
        kept = {self._frames.odom, *(f"{self._frames.prefix}{frame}" for frame in frames)}
        for frame in self._static_transforms.keys() - kept:
            del self._static_transforms[frame]

    def _publish_static(self, message: TransformStamped) -> None:
        message.header.stamp = self.keeper.stamp()
        self._static_transforms[message.child_frame_id] = message
        self._node.publish(self._static_tf, TFMessage(transforms=list(self._static_transforms.values())))

    def camera_frame(self, name: str) -> str:
        return f"{self._frames.prefix}{topic_token(name, 'camera')}"

    def view(
        self, view: sim.CameraData | sim.CameraGot, camera: tuple[int, str], target: int, stream: int
    ) -> CameraView:
        """Return a message about where an entity appears; `camera` is its ID and name."""
        message = CameraView(camera=camera[1], camera_id=camera[0], target=self.names.get(target, ""))
        message.target_id, message.stream_id = target, stream
        message.header.stamp = self.keeper.stamp()
        message.header.frame_id = self.camera_frame(camera[1]) if camera[1] else ""
        fill_view(message, view)
        return message

    def publish_view(self, message: CameraView) -> None:
        self._node.publish(self._views, message)

    def publish_trigger(self, event: int, number: int, name: str) -> None:
        message = TriggerEvent(event=event, trigger_id=number, name=name)
        message.header.stamp = self.keeper.stamp()
        self._node.publish(self._trigger_events, message)

    def publish_item(self, is_added: bool, kind: int, number: int, former_name: str = "") -> None:
        """Publish that an item was added or removed; `former_name` is for an entity that has lost its name."""
        name = self.names.get(number, former_name) if kind == sim.ItemType.ENTITY else ""
        message = ItemEvent(added=is_added, type=kind, id=number, name=name)
        message.header.stamp = self.keeper.stamp()
        self._node.publish(self._item_events, message)

    def publish_attributes(self, entity: int, data: sim.ExtendedData) -> None:
        message = ExtendedAttributes(entity=self.names.get(entity, ""), entity_id=entity, stream_id=data.id)
        message.header.stamp = self.keeper.stamp()
        message.attributes = [attribute_message(attribute.key, attribute.data) for attribute in data.attributes]
        self._node.publish(self._attributes, message)

    def publish_completed(self) -> None:
        self._node.publish(self._completed, Empty())
