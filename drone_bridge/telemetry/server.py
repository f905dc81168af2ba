# SPDX-License-Identifier: Apache-2.0
"""telemetry_server: stands in for the drone and rover of the landing challenge, for programs written to land it.

The mirror of telemetry_bridge, see docs/telemetry_server.md: topics of a drone in ROS are sent as documents, and
commands become cmd_vel.
"""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import CompressedImage, Image
from std_msgs.msg import String

from drone_bridge.net.connector import (
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkRefusedError,
    LinkTimeoutError,
)
from drone_bridge.net.udp import UdpConnector, UdpStream
from drone_bridge.ros.common_parameters import (
    CMD_VEL,
    COMMAND_OUTPUT,
    NEUTRAL_TIME,
    SOURCE_TIMEOUT,
    common_parameters,
    full_scale_parameters,
    read_group,
)
from drone_bridge.ros.images import encoded
from drone_bridge.ros.last_word import OPERATORS_LOST, VelocityOutput
from drone_bridge.ros.link_node import AFTER_STALLS, STALE_DATAGRAMS, Endpoint, LinkNode
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.time import seconds_of
from drone_bridge.ros.topics import MissingTopicError, TopicSubscriptions
from drone_bridge.telemetry.codec import (
    DEFAULT_PORT,
    IMAGE_EVERY,
    PERIOD_S,
    ROVER_EVERY,
    Camera,
    DroneCommand,
    DroneConnection,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)
from drone_bridge.telemetry.topics import (
    COMMAND_TOPIC,
    DEFAULT_FOV,
    DRONE_TOPIC,
    OPPOSITE_SIGNS,
    ROVER_TOPIC,
    TOPICS,
    FullScale,
    LandingFrameNames,
    Translation,
    command_signs,
    shares_from_command,
    telemetry_signs,
    twist_from_command,
)
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.jpeg import read_size
from drone_bridge.wire.rate_limit import RateLimit

#: Of cmd_vel at least while the operator is heard, Hz; every command is also published at once.
REPEAT_RATE = 20.0

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "With udp, the operator's port for telemetry.", roles=("connect",)),
    SOURCE_TIMEOUT,
    NEUTRAL_TIME,
    ParameterDeclaration(
        "transport",
        "udp",
        "How documents are transported: as UDP datagrams, or as std_msgs/String on /drone/telemetry, /drone/command "
        "and /rover/telemetry.",
        choices=("udp", "topic"),
    ),
    ParameterDeclaration(
        "rate", 1 / PERIOD_S, "The maximum rate of the drone's documents, Hz.", range=(1.0, 500.0), live=True
    ),
    COMMAND_OUTPUT,
    *full_scale_parameters(FullScale._fields),
    OPPOSITE_SIGNS,
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether the operator expects velocity in level axes, or in those of the tilted body.",
    ),
    ParameterDeclaration(
        "images_from",
        "compressed",
        "The source of images: camera/image_raw/compressed, whose JPEGs are forwarded unchanged, camera/image_raw, or "
        "none.",
        choices=("compressed", "raw", "none"),
    ),
    ParameterDeclaration(
        "image_every", IMAGE_EVERY, "At most one in so many documents carries an image.", range=(1, 1000)
    ),
    DEFAULT_FOV,
    ParameterDeclaration(
        "rover_pattern", "unknown", "The name of its pattern in the rover's documents; no topic carries it."
    ),
)


# The transport of documents to and from an operator that is not UDP: text on topics.


class TopicStream:
    """Documents as text on topics, for as long as the node is active; commands arrive by subscriptions."""

    peer = COMMAND_TOPIC
    port = 0

    def __init__(self, cancellation: Cancellation, publish: Callable[[str, String], None]) -> None:
        """`publish` publishes a document on a topic."""
        self.backoff = Backoff()
        self._cancellation = cancellation
        self._publish = publish

    def open(self) -> "TopicStream":
        return self

    def send(self, document: bytes) -> None:
        """Publish: a document with an imu is the drone's."""
        text = document.decode()
        self._publish(DRONE_TOPIC if '"imu"' in text[:64] else ROVER_TOPIC, String(data=text))

    def receive(self, timeout_s: float | None = None) -> bytes:
        """Wait for cancellation, as commands arrive by subscriptions."""
        if self._cancellation.wait(timeout_s):
            raise LinkCancelledError("Waiting was cancelled.")
        raise LinkTimeoutError("Nothing comes by topics here.")

    def close(self) -> None:
        """Do nothing."""


# The drone's telemetry from ROS: what belongs to one moment, and the images.


IMAGES, ROVER = "camera/image_raw/compressed", "rover/odom"
#: Before the first image, and of raw ones at most: the size in the protocol's document, and the quality there.
DOCUMENTED_SIZE, JPEG_QUALITY = (320, 240), 70
#: Messages that belong to one document if their stamps are equal; the Imu comes first.
STAMPED = ("height", "altitude", "velocity", "vertical_velocity", "landing_pad")


class DroneSources:
    """Subscribes to the drone's topics, and reports when the messages of one moment are complete."""

    def __init__(self, node: LinkNode, translation: Translation, on_telemetry: Callable[[], None]) -> None:
        """Create the subscriptions. `on_telemetry` is called, in the executor, when a moment is complete."""
        get = node.parameters.__getitem__
        self._node = node
        self._on_telemetry = on_telemetry
        self._translation = translation
        self._pending: Time | None = None  # the stamp of a moment that is not complete yet
        self._image: tuple[bytes, tuple[int, int]] | None = None  # the next one to send, and its size
        self._size = DOCUMENTED_SIZE
        # Images first, as the executor handles subscriptions in this order.
        sensor = qos_profile_sensor_data
        if get("images_from") == "compressed":
            node.make_subscription(CompressedImage, IMAGES, self._take_jpeg, sensor)
        elif get("images_from") == "raw":
            node.make_subscription(Image, "camera/image_raw", self._take_raw, sensor)
        table = [row for row in TOPICS if row.name not in (IMAGES, ROVER)]
        self._topics = TopicSubscriptions(node, table, self._translation, self._take)

    @property
    def missing(self) -> str | None:
        """The topics of a mandatory value that is missing at present, or None."""
        if self._topics.message("imu/data") is None:
            return "imu/data"
        try:
            self._translation.telemetry(self._topics.value, Camera(*self._size), None)
        except MissingTopicError as missing:
            return str(missing)
        return None

    def telemetry(self, takes_image: bool) -> DroneTelemetry | None:
        """Return the drone's state, None while a mandatory value is missing. Each image is returned once."""
        message = self._topics.message("imu/data")
        if message is None:
            return None
        try:
            stamp_s = seconds_of(message.header.stamp)
            telemetry = self._translation.telemetry(self._topics.value, Camera(*self._size), stamp_s)
        except MissingTopicError:
            return None
        return replace(telemetry, camera=self._camera(takes_image))

    def begin(self) -> None:
        """Start for a new operator: discard the image that was not sent yet."""
        self._image = None

    def _camera(self, takes_image: bool) -> Camera:
        fov = self._topics.value("camera/camera_info") or self._node.parameters["default_fov"]
        jpeg = None
        if takes_image and self._image:
            jpeg, self._size = self._image
            self._image = None
        return Camera(*self._size, fov, jpeg)

    def _take(self, topic: str, message: Any) -> None:
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

    def _take_jpeg(self, message: CompressedImage) -> None:
        try:
            self._take_image(bytes(message.data))
        except ValueError as error:
            self._node.count_and_warn(BAD_IMAGES, f"An image on camera/image_raw/compressed {error}.")

    def _take_raw(self, message: Image) -> None:
        try:
            self._take_image(encoded(message, DOCUMENTED_SIZE[0], JPEG_QUALITY))
        except ValueError as error:
            self._node.count_and_warn(BAD_IMAGES, f"An image on camera/image_raw {error}.")

    def _take_image(self, jpeg: bytes) -> None:
        self._image = jpeg, read_size(jpeg)


# The node.


BAD_IMAGES = "unusable images"
UNHEARD = "undelivered documents"
UNSENT = "unsent documents"
TOO_LARGE = "images too large"
INCOMPLETE = "sources"
#: The largest payload of a UDP datagram.
MAX_DATAGRAM_BYTES = 65507
DEPTH = 10
#: The state while the operator's port is closed.
NOBODY_LISTENS = "nobody listens"
#: For how long that holds after a machine said so; some say so once a second at most.
NOBODY_LISTENS_S = 2.0


class TelemetryServer(LinkNode):
    """Sends documents from the executor; takes commands on the link's thread (UDP) or in the executor (topics).

    After `command_timeout` without a command, zero is published once.
    """

    is_server = True
    open_state = "talking"
    peer_may_be_silent = True
    rates = ("documents", "rover documents", "images", "commands")
    problems = (
        *LinkNode.problems,
        UNHEARD,
        UNSENT,
        TOO_LARGE,
        BAD_IMAGES,
        OPERATORS_LOST,
        STALE_DATAGRAMS,
        AFTER_STALLS,
        "dropped messages",
    )

    def __init__(self, **options: Any) -> None:
        super().__init__("telemetry_server", PARAMETERS, **options)
        self._stream: UdpStream | TopicStream | None = None  # while there is a link
        self._refused_s = -math.inf  # when the operator's machine last said that nobody listens

    # The lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._command_signs = command_signs(get("opposite_signs"))
        signs = telemetry_signs(get("opposite_signs"))
        names = LandingFrameNames(get("frame_prefix"))
        self._velocities = VelocityOutput(self, names.base_link if get("command_output") != CMD_VEL else None)
        self._taking = threading.Lock()  # commands on topics arrive in the executor
        self._translation = Translation(names, signs, is_levelled=get("is_levelled"))
        self._sources = DroneSources(self, self._translation, self._send_telemetry)
        self.make_subscription(Odometry, "rover/odom", self._send_rover, qos_profile_sensor_data)
        self._is_udp = get("transport") == "udp"
        if self._is_udp:
            self._texts = {ROVER_TOPIC: self.make_publisher(String, ROVER_TOPIC, DEPTH)}  # of the operator's rover
        else:
            self._texts = {topic: self.make_publisher(String, topic, DEPTH) for topic in (DRONE_TOPIC, ROVER_TOPIC)}
            self.make_subscription(String, COMMAND_TOPIC, self._take_text, DEPTH)

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        self._connection = DroneConnection()
        self._drone_rate_limit, self._rover_rate_limit = RateLimit(), RateLimit()
        self._since_image: int = self.parameters["image_every"]  # documents; the first one may have an image
        if not self._is_udp:
            return TopicStream(cancellation, self._publish_text)
        host, port = self.parameters["host"], self.parameters["port"]
        freshness = self.fresh_within("command_timeout")
        return UdpConnector(host, port, cancellation, self._connecting_failed, self.wire_log, freshness=freshness)

    def stop_waiting(self) -> None:
        self._stream = None

    # The conversation, on the link's thread.

    def converse(self, stream: UdpStream | TopicStream) -> None:
        """Handle commands until cancelled; publish zero at the end."""
        self._sources.begin()
        self._stream = stream
        due_s = time.monotonic()
        try:
            while True:
                try:
                    self._take(stream.receive(max(0.0, due_s - time.monotonic())), stream.peer)
                except LinkRefusedError as error:
                    self._note_refusal(error)
                except LinkTimeoutError:
                    pass
                self._follow_operator()
                if time.monotonic() >= due_s:
                    with self._taking:
                        self._velocities.repeat(stream.peer)
                    self._report_sources()
                    due_s = max(due_s + 1 / REPEAT_RATE, time.monotonic())
        finally:
            self._stream = None
            with self._taking:
                self._velocities.finish()

    def _note_refusal(self, error: LinkRefusedError) -> None:
        self._refused_s = time.monotonic()
        self.reports.count_and_warn_ongoing(UNHEARD, f"{error} Documents are still sent.")

    def _follow_operator(self) -> None:
        """Say that an operator is gone, and not that it is connected but silent."""
        is_gone = time.monotonic() - self._refused_s < NOBODY_LISTENS_S
        liveness = self.statistics.liveness
        if is_gone and liveness.is_open:
            liveness.closed()
        elif not is_gone and not liveness.is_open:
            liveness.opened()
            self.reports.end_ongoing(UNHEARD)
        self.statistics.state = NOBODY_LISTENS if is_gone else self.open_state

    def _take(self, document: bytes | str, source: str) -> None:
        if not self.takes_commands():
            return
        with self._taking:
            self._connection.receive_data(document)
            try:
                event = self._connection.next_event()
            except RemoteProtocolError as error:
                self.count_and_warn("rejected input", f"A document from {source} was refused: {error}")
                return
            if isinstance(event, DroneCommand):
                full_scale = read_group(self.parameters, "full_scale", FullScale)
                twist = twist_from_command(event, full_scale, self._command_signs)
                self._velocities.command(twist, shares_from_command(event, self._command_signs))
            elif isinstance(event, RoverTelemetry) and (relayed := self.encode(RoverConnection().send, event)):
                self._publish_text(ROVER_TOPIC, String(data=relayed.decode()))
        self.opened()
        self._refused_s = -math.inf
        self.statistics.liveness.heard()

    def _report_sources(self) -> None:
        missing = self._sources.missing
        problem = f"no topic gives {missing}, so no telemetry is sent" if missing else None
        self.reports.update_condition(INCOMPLETE, problem, "outdated values are not sent")

    # What the executor does.

    def _take_text(self, message: String) -> None:
        if self._stream:
            self._take(message.data, COMMAND_TOPIC)

    def _send_telemetry(self) -> None:
        if self._stream is None or not self._drone_rate_limit.is_due(time.monotonic(), self.parameters["rate"]):
            return
        self._since_image += 1
        telemetry = self._sources.telemetry(takes_image=self._since_image >= self.parameters["image_every"])
        if telemetry is None:
            return
        document = self.encode(self._connection.send, telemetry)
        if document and self._is_udp and len(document) > MAX_DATAGRAM_BYTES:
            sentence = f"An image makes a document of {len(document)} bytes, and a datagram holds"
            self.reports.count_and_warn_ongoing(TOO_LARGE, f"{sentence} {MAX_DATAGRAM_BYTES}: it was left out.")
            telemetry = replace(telemetry, camera=replace(telemetry.camera, jpeg=None))
            document = self.encode(self._connection.send, telemetry)
        if document is None:
            return
        if telemetry.camera.jpeg is not None:
            self._since_image = 0
        if self._send(document):
            self.statistics.counts["documents"] += 1
            self.statistics.counts["images"] += telemetry.camera.jpeg is not None

    def _send_rover(self, message: Odometry) -> None:
        rate = self.parameters["rate"] / ROVER_EVERY
        if self._stream is None or not self._rover_rate_limit.is_due(time.monotonic(), rate):
            return
        rover = self._translation.wire_rover(message, self.parameters["rover_pattern"])
        if document := self.encode(RoverConnection().send, rover):
            self.statistics.counts["rover documents"] += self._send(document)

    def _send(self, document: bytes) -> bool:
        """Send a document; return whether that worked."""
        stream = self._stream
        if stream is None:
            return False
        try:
            stream.send(document)
        except LinkRefusedError as error:
            self._note_refusal(error)
        except LinkError as error:
            self.count_and_warn(UNSENT, str(error))
            return False
        return True

    def _publish_text(self, topic: str, message: String) -> None:
        self.publish(self._texts[topic], message)


def main() -> int:
    """Run the node."""
    return run(TelemetryServer)
