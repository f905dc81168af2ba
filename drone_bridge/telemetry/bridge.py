# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge: the controller side of the telemetry protocol, as a ROS 2 node. See docs/telemetry.md.

`session.controller` has the state machine. This node adds topics, parameters and a link: a UDP port, a connection to a
waiting drone, or documents as text on topics.
"""

from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from std_msgs.msg import String

from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.datagram_link import DatagramCaller
from drone_bridge.net.link_loop import Link
from drone_bridge.ros.commands.tilt_commands import TiltCommands, drone_parameters, read_drone
from drone_bridge.ros.node.common_parameters import (
    ALLOWED_PEERS,
    DRONE_ODOMETRY,
    common_parameters,
    frame_parameters,
    read_allowed_peers,
)
from drone_bridge.ros.node.doubt_reports import report_doubts
from drone_bridge.ros.node.limit_reports import LAND_UNATTENDED_S, limit_parameters
from drone_bridge.ros.node.parameters import ParameterDeclaration, declarations, read
from drone_bridge.ros.node.pose_restarts import make_drone_pose
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.role_links import datagram_link
from drone_bridge.ros.node.simulated_time import Stamps, time_parameters
from drone_bridge.ros.node.text_link import TextLink
from drone_bridge.ros.time import time_from_seconds
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.session.arbiter import LANDING_SPEED
from drone_bridge.session.feedback import Feedback
from drone_bridge.session.tilt_pilot import TiltPilot
from drone_bridge.telemetry.codec import (
    COMMAND_TOPIC,
    DEFAULT_PORT,
    DRONE_TOPIC,
    ROVER_TOPIC,
    DroneTelemetry,
    RoverConnection,
    RoverTelemetry,
)
from drone_bridge.telemetry.session.controller import (
    BAD_IMAGES,
    CONNECTED,
    DOCUMENTS,
    IMAGES,
    ROVER_DOCUMENTS,
    TelemetryControllerParameters,
    TelemetryControllerSession,
)
from drone_bridge.telemetry.topics import (
    DEFAULT_FOV,
    OPPOSITE_SIGNS,
    TOPICS,
    TRANSPORT,
    LandingFrameNames,
    TelemetryTranslation,
    static_transforms,
)
from drone_bridge.telemetry.units import LANDING_DRONE, Units

#: Wheel odometry of a rover without its own telemetry, and the height of its documents' position above that, m.
WHEEL_ODOMETRY = "rover/wheel_odom"
ROVER_HEIGHT = 0.15

PARAMETERS = (
    *common_parameters(
        DEFAULT_PORT,
        "With udp, the port for telemetry, 0 for a free port. With role: connect, the drone's port.",
        roles=("listen", "connect"),
    ),
    TRANSPORT,
    *declarations(TelemetryControllerParameters),
    *drone_parameters(LANDING_DRONE),
    OPPOSITE_SIGNS,
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether velocity and landing_pad are measured in level axes (base_stabilized), instead of those of the tilted "
        "body (base_link).",
    ),
    *time_parameters("the drone's"),
    *frame_parameters(without=("publish_map_to_odom",)),
    DRONE_ODOMETRY,
    *limit_parameters(is_drone=True, land_unattended_s=LAND_UNATTENDED_S),
    ALLOWED_PEERS,
    ParameterDeclaration(
        "rover_documents", False, f"Publish /rover/telemetry for a rover with odometry on {WHEEL_ODOMETRY}."
    ),
    ParameterDeclaration("rover_pattern", "unknown", "Name of the rover's pattern in /rover/telemetry."),
    DEFAULT_FOV,
)

DEPTH = 10  # maximum number of documents that wait for the executor


class TelemetryBridge(ProtocolNode):
    """Publishes the telemetry of drone and rover, and sends commands to the drone at a steady rate."""

    open_state = CONNECTED
    silence_parameter = "telemetry_timeout"
    says_silence = True

    def __init__(self, **options: Any) -> None:
        super().__init__("telemetry_bridge", PARAMETERS, **options)
        self._session: TelemetryControllerSession | None = None  # until the node is active

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._stamps = Stamps(self.parameters, self.now)
        names = read(LandingFrameNames, self.parameters)
        self._units = Units(get("opposite_signs"), is_levelled=get("is_levelled"))
        self._translation = translation = TelemetryTranslation(
            names, self._units, get("default_fov"), refuse_image=partial(self.report.count_and_warn, BAD_IMAGES)
        )
        rows = [row for row in TOPICS if get("publish_odometry") or row.of is not DeadReckonedPose]
        self._topics = TopicPublishers(self, rows, translation, static_transforms(names))
        self._stamp = Time()  # of the newest telemetry
        self._drone = drone = read_drone(self.parameters, LANDING_DRONE)
        commands = TiltCommands(self, drone, now=self._stamps.command_clock)
        self._pilot = TiltPilot(commands.arbiter, drone, hovers=False)
        self._pose = make_drone_pose(self, drone, translation)
        report_doubts(self, lambda: self._pilot.doubts, lambda: self._pilot.is_drifting)
        self._allowed_peers = read_allowed_peers(self.parameters)
        self._is_udp = get("transport") == "udp"
        if not self._is_udp:
            self._command_publisher = self.make_publisher(String, COMMAND_TOPIC, DEPTH)
            self.make_subscription(String, DRONE_TOPIC, partial(self._take_text, DRONE_TOPIC), DEPTH)
        self.make_subscription(String, ROVER_TOPIC, partial(self._take_text, ROVER_TOPIC), DEPTH)
        if get("rover_documents"):
            publisher = self.make_publisher(String, ROVER_TOPIC, DEPTH)
            self.make_subscription(Odometry, WHEEL_ODOMETRY, partial(self._publish_rover_document, publisher), DEPTH)

    def make_transport(self) -> Link:
        """Listen on a port, connect to one, or publish on a topic."""
        self._link: Link
        if self._is_udp:
            self._link = datagram_link(self, "telemetry")
        else:
            self._link = TextLink(self.publish, {COMMAND_TOPIC: self._command_publisher})
        return self._link

    def make_session(self) -> TelemetryControllerSession:
        link = self._link
        self._topics.restart()
        self._session = TelemetryControllerSession(
            self._pilot,
            Feedback(self.observed, self._pilot.arbiter.limits, self._pilot),
            self._units,
            self.parameters.live(TelemetryControllerParameters),
            self._allowed_peers,
            sinking=self._drone.climbing(-LANDING_SPEED),
            by_topics=not self._is_udp,
            called=(lambda: link.address) if isinstance(link, DatagramCaller) else None,
            pose=self._pose,
        )
        return self._session

    # Telemetry, on the link's thread.

    def publish_event(self, message: DroneTelemetry | RoverTelemetry | DeadReckonedPose) -> None:
        """Publish the topics of a document, or of the pose that follows."""
        if isinstance(message, DeadReckonedPose):
            self._topics.publish(message, self._stamp)
            return
        if isinstance(message, RoverTelemetry):
            self.report.counts[ROVER_DOCUMENTS] += 1
            self._topics.publish(message, self._stamps.of(_time(message.timestamp)))
            return
        received_s = self.decided_s
        self.report.counts[DOCUMENTS] += 1
        self._stamp = self._stamps.stamp(_time(message.timestamp))
        self._topics.publish(message, self._stamp)
        self.report.counts[IMAGES] += message.camera.jpeg is not None
        self.report.record_duration("document_read_to_published", elapsed_s() - received_s)

    # For the executor.

    def _take_text(self, topic: str, message: String) -> None:
        if self._session:
            self.post(partial(self._session.receive, message.data, topic))

    def _publish_rover_document(self, publisher: Any, message: Odometry) -> None:
        """Publish the rover's position. This bridge also receives it, like any rover's document."""
        rover = self._translation.wire_rover(message, self.parameters["rover_pattern"], ROVER_HEIGHT)
        if document := self.encode(RoverConnection().send, rover):
            self.publish(publisher, String(data=document.decode()))


def _time(timestamp: float | None) -> Time | None:
    return None if timestamp is None else time_from_seconds(timestamp)


def main() -> int:
    """Run the node."""
    return run(TelemetryBridge)
