# SPDX-License-Identifier: Apache-2.0
"""telemetry_server: emulates the drone and rover of the landing challenge, for programs written to land it.

It mirrors telemetry_bridge, see docs/telemetry.md: topics of a ROS drone are sent as documents, and commands become
cmd_vel. `session.drone` has the state machine.
"""

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from drone_bridge.net.datagram_link import DatagramCaller, DatagramPort
from drone_bridge.net.link_loop import Link
from drone_bridge.ros.commands.command_axes import FullScale, velocity_from_shares
from drone_bridge.ros.node.common_parameters import (
    ALLOWED_PEERS,
    CMD_VEL,
    COMMAND_OUTPUT,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    full_scale_parameters,
    read_allowed_peers,
    read_group,
)
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.role_links import datagram_link
from drone_bridge.ros.node.text_link import TextLink
from drone_bridge.ros.qos import queued
from drone_bridge.ros.servers.topic_subscriptions import TopicSubscriptions
from drone_bridge.ros.servers.velocity_publisher import VelocityPublisher
from drone_bridge.ros.time import seconds_of
from drone_bridge.ros.topics.jpeg_images import encoded
from drone_bridge.ros.topics.table import MissingTopicError
from drone_bridge.telemetry.codec import (
    COMMAND_TOPIC,
    DEFAULT_PORT,
    DRONE_TOPIC,
    ROVER_TOPIC,
    Camera,
    DroneCommand,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)
from drone_bridge.telemetry.topics import (
    DEFAULT_FOV,
    OPPOSITE_SIGNS,
    TOPICS,
    TRANSPORT,
    LandingFrameNames,
    TelemetryTranslation,
)
from drone_bridge.telemetry.units import Units
from drone_bridge.telemetry.vehicle.session.drone import CONNECTED, TelemetryDroneParameters, TelemetryDroneSession
from drone_bridge.wire.addresses import address_name
from drone_bridge.wire.counters import ProblemCounter
from drone_bridge.wire.jpeg import read_size

PARAMETERS = (
    *common_parameters(
        DEFAULT_PORT,
        "With udp, the operator's port for telemetry. With role: listen, our port for operators, 0 for a free port.",
    ),
    ALLOWED_PEERS,
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    TRANSPORT,
    *declarations(TelemetryDroneParameters),
    COMMAND_OUTPUT,
    *full_scale_parameters(FullScale._fields),
    OPPOSITE_SIGNS,
    ParameterDeclaration(
        "is_levelled", True, "Whether the operator expects velocity in level axes, instead of those of the tilted body."
    ),
    ParameterDeclaration(
        "images_from",
        "compressed",
        "Source of images: camera/image_raw/compressed, with JPEGs forwarded unchanged, camera/image_raw, or none.",
        choices=("compressed", "raw", "none"),
    ),
    DEFAULT_FOV,
    ParameterDeclaration("rover_pattern", "unknown", "The pattern in the rover's documents if rover/pattern has none."),
)


# Sources of the drone's telemetry in ROS: messages of one moment, and images.


IMAGES, ROVER = "camera/image_raw/compressed", "rover/odom"
#: Size before the first image, maximum size of raw images, and JPEG quality, as in the protocol's document.
DOCUMENTED_SIZE, JPEG_QUALITY = (320, 240), 70
#: Messages that belong to one document if they have the Imu's stamp: all but images, odometry and latched topics.
STAMPED = [
    row.name for row in TOPICS if row.from_ros and row.qos is queued and row.name not in ("imu/data", "odom", ROVER)
]


class DroneSources:
    """Subscribes to the drone's topics, and reports when the messages of one moment are complete."""

    def __init__(self, node: ProtocolNode, translation: TelemetryTranslation, on_telemetry: Callable[[], None]) -> None:
        """Create the subscriptions. The executor calls `on_telemetry` when a moment is complete."""
        get = node.parameters.__getitem__
        self._node = node
        self._on_telemetry = on_telemetry
        self._translation = translation
        self._pending: Time | None = None  # stamp of an incomplete moment
        self._image: bytes | None = None  # newest JPEG, and its size in pixels
        self._size = DOCUMENTED_SIZE
        # Images first, because the executor handles subscriptions in this order.
        sources = {"compressed": (CompressedImage, IMAGES), "raw": (Image, "camera/image_raw"), "none": None}
        if source := sources[get("images_from")]:
            kind, topic = source
            node.make_subscription(kind, topic, partial(self._take_image, topic), qos_profile_sensor_data)
        table = [row for row in TOPICS if row.name not in (IMAGES, ROVER)]
        self._topics = TopicSubscriptions(node, table, self._translation, self._receive)

    def telemetry(self) -> DroneTelemetry:
        """Return the drone's state and the newest image. Raises MissingTopicError, which names the missing topics."""
        message = self._topics.message("imu/data")
        if message is None:
            raise MissingTopicError("imu/data")
        fov = self._topics.value("camera/camera_info") or self._node.parameters["default_fov"]
        camera = Camera(*self._size, fov, self._image)
        return self._translation.telemetry(self._topics.value, camera, seconds_of(message.header.stamp))

    def rover_pattern(self) -> str | None:
        """Return the name of the rover's pattern, None if it is unknown."""
        pattern: str | None = self._topics.value("rover/pattern")
        return pattern

    def _receive(self, topic: str, message: Any) -> None:
        if topic == "imu/data":
            if self._pending is not None:
                self._complete()  # the rest of the previous moment is missing
            self._pending = message.header.stamp
        self._topics.put(topic, message)
        if self._pending is not None and self._is_complete(self._pending):
            self._complete()

    def _is_complete(self, stamp: Time) -> bool:
        """Return whether all stamped messages have this stamp."""
        stamped = [message for topic in STAMPED if (message := self._topics.message(topic))]
        return bool(stamped) and all(message.header.stamp == stamp for message in stamped)

    def _complete(self) -> None:
        self._pending = None
        self._on_telemetry()

    def _take_image(self, topic: str, message: CompressedImage | Image) -> None:
        is_jpeg = isinstance(message, CompressedImage)
        try:
            jpeg = bytes(message.data) if is_jpeg else encoded(message, DOCUMENTED_SIZE[0], JPEG_QUALITY)
            self._size, self._image = read_size(jpeg), jpeg
        except ValueError as error:
            self._node.report.count_and_warn(BAD_IMAGES, f"An image on {topic} {error}.")


# The node.


BAD_IMAGES = ProblemCounter("unusable_images")
INCOMPLETE = "sources"
#: Maximum payload of a UDP datagram.
MAX_DATAGRAM_BYTES = 65507
DEPTH = 10


class TelemetryServer(ProtocolNode):
    """Sends documents about a ROS drone, and publishes the operator's commands."""

    is_server = True
    open_state = CONNECTED

    def __init__(self, **options: Any) -> None:
        super().__init__("telemetry_server", PARAMETERS, **options)
        self._session: TelemetryDroneSession | None = None  # until the node is active

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._units = Units(get("opposite_signs"), is_levelled=get("is_levelled"))
        names = LandingFrameNames(get("frame_prefix"))
        self._velocities = VelocityPublisher(self, names.base_link if get("command_output") != CMD_VEL else None)
        self._translation = TelemetryTranslation(names, self._units)
        self._sources = DroneSources(self, self._translation, self._send_telemetry)
        self.make_subscription(Odometry, "rover/odom", self._send_rover, qos_profile_sensor_data)
        self._allowed_peers = read_allowed_peers(self.parameters)
        self._is_udp = get("transport") == "udp"
        topics = (ROVER_TOPIC,) if self._is_udp else (DRONE_TOPIC, ROVER_TOPIC)
        self._texts = {topic: self.make_publisher(String, topic, DEPTH) for topic in topics}
        if not self._is_udp:
            self.make_subscription(String, COMMAND_TOPIC, self._take_text, DEPTH)
        self.each_second(self._report_sources)

    def make_transport(self) -> Link:
        """Send to the operator's port, wait for an operator on ours, or publish on topics."""
        self._link: Link
        if self._is_udp:
            self._link = datagram_link(self, "an operator")
        else:
            self._link = TextLink(self.publish, self._texts)
        return self._link

    def make_session(self) -> TelemetryDroneSession:
        link = self._link
        self._session = TelemetryDroneSession(
            address_name(self.parameters["host"], link.port) if self._is_udp else COMMAND_TOPIC,
            self.parameters.live(TelemetryDroneParameters),
            MAX_DATAGRAM_BYTES if self._is_udp else math.inf,
            called=(lambda: link.address) if isinstance(link, DatagramCaller) else None,
            callers=self._allowed_peers if isinstance(link, DatagramPort) else None,
        )
        return self._session

    # Events of the session, on the link's thread.

    def publish_event(self, message: DroneCommand | RoverTelemetry) -> None:
        """Publish a command, or the rover's position from the operator."""
        if isinstance(message, DroneCommand):
            shares = self._units.shares(message)
            velocity = velocity_from_shares(shares, read_group(self.parameters, "full_scale", FullScale))
            self._velocities.publish(velocity, shares, self.decided_s)
        elif relayed := self.encode(RoverConnection().send, message):
            self.publish(self._texts[ROVER_TOPIC], String(data=relayed.decode()))

    # For the executor.

    def _take_text(self, message: String) -> None:
        if self._session:
            self.post(partial(self._session.receive, message.data, COMMAND_TOPIC))

    def _send_telemetry(self) -> None:
        if self._session:
            with contextlib.suppress(MissingTopicError):
                self.post(partial(self._session.send, self._sources.telemetry()))

    def _send_rover(self, message: Odometry) -> None:
        if not self._session:
            return
        pattern = self._sources.rover_pattern() or self.parameters["rover_pattern"]
        rover = self._translation.wire_rover(message, pattern)
        self.post(partial(self._session.send_rover, rover))

    def _report_sources(self) -> None:
        problem = None
        try:
            if self.has_link:
                self._sources.telemetry()
        except MissingTopicError as missing:
            problem = f"no topic provides {missing}, so no telemetry is sent"
        self.report.update_condition(INCOMPLETE, problem, "stale values are not sent")


def main() -> int:
    """Run the node."""
    return run(TelemetryServer)
