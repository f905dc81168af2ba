# SPDX-License-Identifier: Apache-2.0
"""telemetry_bridge: the controller's side of the telemetry protocol, as a ROS 2 node. See docs/telemetry.md."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from std_msgs.msg import String

from drone_bridge.motion.tilt_control import TiltedDrone
from drone_bridge.net.connector import (
    Backoff,
    Cancellation,
    LinkCancelledError,
    LinkError,
    LinkTimeoutError,
    address_name,
)
from drone_bridge.net.udp import Datagram, UdpListener, name
from drone_bridge.net.udp import name as name_of
from drone_bridge.ros.commands import limit_parameters
from drone_bridge.ros.common_parameters import (
    ALLOWED_PEERS,
    common_parameters,
    frame_names,
    frame_parameters,
    read_allowed_peers,
)
from drone_bridge.ros.link_node import STALE_DATAGRAMS, Endpoint, LinkNode, repeat_farewell
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import PROCESS
from drone_bridge.ros.tilt_flight import TiltFlight, drone_parameters
from drone_bridge.ros.time import Stamps, time_from_seconds, time_parameters
from drone_bridge.ros.topics import Output, TopicPublishers
from drone_bridge.telemetry.codec import (
    DEFAULT_PORT,
    MAX_TILT,
    ControllerConnection,
    Document,
    DroneCommand,
    DroneTelemetry,
    LateTelemetry,
    RoverConnection,
    RoverTelemetry,
    Sender,
)
from drone_bridge.telemetry.topics import (
    COMMAND_TOPIC,
    DEFAULT_FOV,
    DRONE_TOPIC,
    HOVER,
    OPPOSITE_SIGNS,
    ROVER_TOPIC,
    TOPICS,
    LandingFrameNames,
    Translation,
    command_from_shares,
    command_signs,
    static_transforms,
    telemetry_signs,
)
from drone_bridge.wire.events import RemoteProtocolError

#: Of a rover that has no telemetry of its own, and how far above that its documents put it, m.
WHEEL_ODOMETRY = "rover/wheel_odom"
ROVER_HEIGHT = 0.15

#: What the document's shares of tilt and turn rate are, and the thrust of the emulated drone against its drag.
LANDING_DRONE = TiltedDrone(max_tilt=MAX_TILT, max_climb=2.5, max_yaw_rate=MAX_TILT, climb_lag=0.5)

PARAMETERS = (
    *common_parameters(DEFAULT_PORT, "The port to listen on for telemetry; 0 picks a free one.", roles=("listen",)),
    ParameterDeclaration(
        "transport",
        "topic",
        "How documents are transported: as std_msgs/String on /drone/telemetry, /drone/command and /rover/telemetry, "
        "or as UDP datagrams.",
        choices=("topic", "udp"),
    ),
    ParameterDeclaration("rate", 25.0, "Commands per second.", (1.0, 500.0), live=True),
    *drone_parameters(LANDING_DRONE),
    OPPOSITE_SIGNS,
    ParameterDeclaration(
        "is_levelled",
        True,
        "Whether velocity and landing_pad are measured in level axes (base_stabilized), or in those of the tilted "
        "body (base_link).",
    ),
    *time_parameters("the drone's"),
    *frame_parameters("publish_map_to_odom", "odom_frame"),
    *limit_parameters(is_drone=True),
    ParameterDeclaration(
        "telemetry_timeout",
        1.0,
        "Seconds without telemetry after which the drone counts as silent; over UDP it is then commanded to hover, "
        "and sent nothing more until it is heard again.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "takeover_timeout",
        5.0,
        "With udp, seconds of silence after which another sender may replace the drone.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ALLOWED_PEERS,
    ParameterDeclaration(
        "rover_documents",
        False,
        f"Publish /rover/telemetry for a rover whose odometry comes on {WHEEL_ODOMETRY}.",
    ),
    ParameterDeclaration("rover_pattern", "unknown", "The name of its pattern in them; no topic carries it."),
    DEFAULT_FOV,
)


# The transports of telemetry and commands: datagrams, or text on topics.


class Drone(NamedTuple):
    """The peer, for as long as the node is active."""

    peer: str

    def close(self) -> None:
        """Do nothing, as the transport is closed with the node."""


class UdpTransport:
    """Datagrams from any sender to one port, and to `drone`."""

    def __init__(
        self,
        listener: UdpListener,
        cancellation: Cancellation,
        take: Callable[[Datagram], None],
        on_failure: Callable[[str, float], None],
    ) -> None:
        """`take` gets each datagram, and sets `drone` to the source that is to be commanded.

        `on_failure` gets a sentence about a port that nothing can be received from, and when it is tried again.
        """
        self.drone: Any = None  # an address, as sockets have it
        self.backoff = listener.backoff
        self._listener = listener
        self._cancellation = cancellation
        self._take = take
        self._on_failure = on_failure

    @property
    def port(self) -> int:
        return self._listener.port

    def open(self) -> Drone:
        """Wait for a drone's telemetry. Raises LinkCancelledError."""
        while self.drone is None:
            self._receive(None)
        return Drone(name(self.drone))

    def receive_until(self, due_s: float) -> None:
        """Receive until a time of time.monotonic. Raises LinkCancelledError."""
        while (left_s := due_s - time.monotonic()) > 0:
            self._receive(left_s)

    def send(self, document: bytes) -> None:
        """Send to the drone, even if cancelled. Raises LinkError. Thread-safe."""
        self._listener.send(document, self.drone)

    def close(self) -> None:
        self._listener.close()

    def _receive(self, timeout_s: float | None) -> None:
        try:
            datagram = self._listener.receive(timeout_s)
        except LinkTimeoutError:
            return
        except LinkCancelledError:
            raise
        except LinkError as error:
            delay_s = self.backoff.next_delay_s()
            self._on_failure(str(error), delay_s)
            self._cancellation.wait(delay_s)
            return
        self._take(datagram)


class TopicTransport:
    """Commands as text on a topic. Telemetry arrives by subscriptions, in the executor."""

    def __init__(self, cancellation: Cancellation, publish: Callable[[String], None]) -> None:
        """`publish` publishes a command and never raises."""
        self.backoff = Backoff()
        self.port = 0
        self._cancellation = cancellation
        self._publish = publish

    def open(self) -> Drone:
        """Return at once, as topics have no peer to wait for."""
        return Drone(COMMAND_TOPIC)

    def receive_until(self, due_s: float) -> None:
        """Wait, as telemetry arrives by subscriptions."""
        if self._cancellation.wait(max(0.0, due_s - time.monotonic())):
            raise LinkCancelledError("Waiting was cancelled.")

    def send(self, document: bytes) -> None:
        self._publish(String(data=document.decode()))

    def close(self) -> None:
        """Do nothing."""


DEPTH = 10  # of documents that wait for the executor
SILENT = "no telemetry"


class TelemetryBridge(LinkNode):
    """Publishes the telemetry of drone and rover, and commands the drone at a steady rate.

    With UDP the link's thread reads and writes; with topics telemetry arrives in the executor.
    """

    open_state = "talking"
    silence_parameter = "telemetry_timeout"
    rates = ("documents", "rover documents", "late documents", "images", "images decoded", "commands")
    problems = (
        *LinkNode.problems,
        "undecodable images",
        "silences",
        "undelivered commands",
        "undelivered rover documents",
        "refused commands",
        STALE_DATAGRAMS,
        "dropped messages",
    )

    def __init__(self, **options: Any) -> None:
        super().__init__("telemetry_bridge", PARAMETERS, **options)
        self._is_active = False

    # The lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._command_signs = command_signs(get("opposite_signs"))
        self._stamps = Stamps(self)
        names = frame_names(self.parameters, LandingFrameNames)
        self._translation = translation = Translation(
            names,
            telemetry_signs(get("opposite_signs")),
            get("default_fov"),
            get("is_levelled"),
            refuse_image=partial(self.count_and_warn, "undecodable images"),
        )
        clock = self._stamps.clock_publisher
        more = [(DroneTelemetry, Output(clock, translation.clock))] if clock else []
        self._topics = TopicPublishers(self, TOPICS, translation, static_transforms(names), more)
        self._tilt_flight = TiltFlight(self, LANDING_DRONE, hovers=False, now=self._stamps.command_clock)
        self._is_udp = get("transport") == "udp"
        self._allowed_peers = read_allowed_peers(self.parameters)
        if not self._is_udp:
            self._command_publisher = self.make_publisher(String, COMMAND_TOPIC, DEPTH)
            self.make_subscription(String, DRONE_TOPIC, self._take_drone_text, DEPTH)
        self.make_subscription(String, ROVER_TOPIC, self._take_rover_text, DEPTH)
        if get("rover_documents"):
            publisher = self.make_publisher(String, ROVER_TOPIC, DEPTH)
            self.make_subscription(
                Odometry, WHEEL_ODOMETRY, partial(self._publish_rover_document, publisher, translation), DEPTH
            )

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Listen on a port, or publish on a topic."""
        # For the drone, other senders to the same port, and the rover's topic.
        self._from_drone, self._from_others, self._from_rover = (ControllerConnection() for _ in range(3))
        self._heard_s = -math.inf  # when the drone was last heard
        self._topics.restart()
        self._transport: UdpTransport | TopicTransport
        if self._is_udp:
            host = self.parameters["host"]
            freshness = self.fresh_within("telemetry_timeout")
            listener = UdpListener(host, self.parameters["port"], cancellation, self.wire_log, freshness=freshness)
            self.get_logger().info(f"Waiting for telemetry on {address_name(host, listener.port)}.")
            self._udp = self._transport = UdpTransport(
                listener, cancellation, self._take_datagram, self._connecting_failed
            )
        else:
            self._transport = TopicTransport(cancellation, partial(self.publish, self._command_publisher))
        self._is_active = True
        return self._transport

    def stop_waiting(self) -> None:
        """Ignore further messages from topics."""
        self._is_active = False

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget old commands."""
        self._tilt_flight.intake.mailbox.clear()
        self._tilt_flight.restart()

    def converse(self, stream: Drone) -> None:
        """Send commands and receive telemetry until cancelled, and leave the drone hovering."""
        self._send(HOVER)
        due_s = time.monotonic()
        try:
            while True:
                # After a delay, continue from now without catching up.
                due_s = max(due_s + 1 / self.parameters["rate"], time.monotonic())
                self._transport.receive_until(due_s)
                if self._check_silence():
                    self._send(self._commanded())
        except LinkCancelledError:
            repeat_farewell(partial(self._send, HOVER))
            raise

    def _commanded(self) -> DroneCommand:
        """Return the command to send."""
        shares = self._tilt_flight.shares()
        if shares is None:
            self.statistics.counts["hover commands"] += 1
            return HOVER
        return command_from_shares(shares, self._command_signs)

    def _send(self, command: DroneCommand) -> None:
        document = self.encode(self._from_drone.send, command, HOVER)
        assert document  # hover can always be encoded
        try:
            self._transport.send(document)
        except LinkError as error:
            self.count_and_warn("undelivered commands", str(error))
        else:
            self.statistics.counts["sent commands"] += 1

    def _check_silence(self) -> bool:
        """Return whether to send commands, and report a drone that is silent.

        On topics commands continue, as the drone may still receive them. A datagram's source may be forged, so what one
        document triggers is limited.
        """
        timeout_s = self.parameters["telemetry_timeout"]
        is_silent = PROCESS.silent_s(self._heard_s) > timeout_s
        if not is_silent:
            self.statistics.state = self.open_state
        elif self.statistics.state != SILENT:
            self.statistics.state = SILENT
            self._from_drone.forget("drone")  # which may have been restarted, so none of its timestamps are late
            if self._is_udp:
                repeat_farewell(partial(self._send, HOVER))
            if self._heard_s > -math.inf:
                consequence = (
                    "The drone was commanded to hover, and gets no commands until it is heard."
                    if self._is_udp
                    else "Commands are still sent."
                )
                self.count_and_warn("silences", f"No telemetry was received for {timeout_s:g} s. {consequence}")
        return not (is_silent and self._is_udp)

    # Telemetry: by UDP on the link's thread, by topics in the executor.

    def _take_datagram(self, datagram: Datagram) -> None:
        if not self._allowed_peers.allows(datagram.source[0]):
            self._refuse(datagram.source, "it is not in allowed_peers.")
            return
        is_drones = datagram.source == self._udp.drone
        connection = self._from_drone if is_drones else self._from_others
        event = self._read(connection, datagram.data, datagram.source)
        if isinstance(event, DroneTelemetry):
            if is_drones or self._adopt(datagram.source):
                self._publish_drone(event)
        elif event:
            self._publish_rover(event)

    def _adopt(self, source: Any) -> bool:
        """Command the sender of telemetry, unless there is another drone; return whether it is commanded."""
        peer = name_of(source)
        if self._udp.drone is not None:
            silent_s = PROCESS.silent_s(self._heard_s)
            present = name_of(self._udp.drone)
            if silent_s <= self.parameters["telemetry_timeout"]:
                self._peer_refused(peer)
                return False
            if silent_s <= self.parameters["takeover_timeout"]:
                allowed_s = self.parameters["takeover_timeout"]
                self._refuse(
                    source,
                    f"{present} keeps its place for {allowed_s:g} s of silence (takeover_timeout), and has been silent "
                    f"for {silent_s:.1f} s.",
                )
                return False
            self.statistics.counts["connections"] += 1
            self.inform(f"{peer} takes the place of {present}, which has been silent for {silent_s:.1f} s.")
            self._tilt_flight.intake.mailbox.clear()  # commands for the previous one
            self._tilt_flight.restart()
        self._udp.drone = source
        self._from_drone = ControllerConnection()
        self.statistics.peer = peer
        return True

    def _refuse(self, source: Any, reason: str) -> None:
        self.count_and_warn("refused peers", f"{name_of(source)} was refused: {reason}")

    def _take_drone_text(self, message: String) -> None:
        if not self._is_active:
            return
        event = self._read(self._from_drone, message.data, DRONE_TOPIC, "drone")
        if isinstance(event, DroneTelemetry):
            self._publish_drone(event)

    def _take_rover_text(self, message: String) -> None:
        if not self._is_active:
            return
        event = self._read(self._from_rover, message.data, ROVER_TOPIC, "rover")
        if not isinstance(event, RoverTelemetry):
            return
        self._publish_rover(event)
        if self._is_udp and self._udp.drone is not None:
            if self.statistics.state == SILENT:
                self.statistics.counts["undelivered rover documents"] += 1
                return
            try:
                self._udp.send(message.data.encode())
            except LinkError as error:
                self.count_and_warn("undelivered rover documents", str(error))

    def _read(
        self, connection: ControllerConnection, document: Document, source: Any, sender: Sender | None = None
    ) -> DroneTelemetry | RoverTelemetry | None:
        """Decode a document; one that is late or refused is counted."""
        connection.receive_data(document, sender)
        try:
            event = connection.next_event()
        except RemoteProtocolError as error:
            where = source if isinstance(source, str) else name_of(source)
            self.count_and_warn("rejected input", f"A document from {where} was refused: {error}")
            return None
        if isinstance(event, LateTelemetry):
            self.statistics.counts["late documents"] += 1
            return None
        assert isinstance(event, (DroneTelemetry, RoverTelemetry))
        return event

    def _publish_drone(self, telemetry: DroneTelemetry) -> None:
        received_s = self._heard_s = time.monotonic()
        self.statistics.liveness.heard()
        self.statistics.counts["documents"] += 1
        stamp = self._stamps.stamp(_time(telemetry.timestamp))
        yaw, velocity = self._translation.yaw_and_velocity(telemetry)
        self.observed.measured(yaw, velocity=velocity, height=telemetry.altimeter.altitude)
        self._tilt_flight.stands() if telemetry.landed else self._tilt_flight.measured(
            self._translation.motion(telemetry)
        )
        self._topics.publish(telemetry, stamp)
        if (camera := telemetry.camera).jpeg is not None:
            self.statistics.counts["images"] += 1
            self.statistics.counts["images of another size"] += camera.jpeg_size != (camera.width, camera.height)
        self.statistics.took("document read to published", time.monotonic() - received_s)

    def _publish_rover(self, telemetry: RoverTelemetry) -> None:
        self.statistics.counts["rover documents"] += 1
        self._topics.publish(telemetry, self._stamps.of(_time(telemetry.timestamp)))

    # What the executor does.

    def _publish_rover_document(self, publisher: Any, translation: Translation, message: Odometry) -> None:
        """Say where the rover is, to this bridge as well, which goes on as with any rover's document."""
        get = self.parameters.__getitem__
        rover = translation.wire_rover(message, get("rover_pattern"), ROVER_HEIGHT)
        if document := self.encode(RoverConnection().send, rover):
            self.publish(publisher, String(data=document.decode()))


def _time(timestamp: float | None) -> Time | None:
    return None if timestamp is None else time_from_seconds(timestamp)


def main() -> int:
    """Run the node."""
    return run(TelemetryBridge)
