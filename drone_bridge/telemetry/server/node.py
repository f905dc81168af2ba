# SPDX-License-Identifier: Apache-2.0
"""telemetry_server: stands in for the drone and rover of the landing challenge, for programs written to land it.

The mirror of telemetry_bridge, see docs/telemetry.md: topics of a drone in ROS are sent as documents, and
commands become cmd_vel.
"""

import math
import threading
import time
from typing import Any, Final

from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from std_msgs.msg import String

from drone_bridge.net.connector import Cancellation, LinkError, LinkRefusedError, LinkTimeoutError
from drone_bridge.net.udp import UdpConnector
from drone_bridge.ros.common_parameters import read_group
from drone_bridge.ros.link_node import AFTER_STALLS, STALE_DATAGRAMS, Endpoint, LinkNode
from drone_bridge.ros.program import run
from drone_bridge.ros.velocity_output import OPERATORS_LOST, VelocityOutput
from drone_bridge.telemetry.codec import DroneCommand, RoverTelemetry
from drone_bridge.telemetry.device import MAX_DATAGRAM_BYTES, ROVER_EVERY, DroneSide, without_image
from drone_bridge.telemetry.server.pad import BAD_IMAGES
from drone_bridge.telemetry.server.parameters import PARAMETERS
from drone_bridge.telemetry.server.sources import DroneSources
from drone_bridge.telemetry.server.transports import Stream, TopicEndpoint, TopicStream
from drone_bridge.telemetry.topics import (
    COMMAND_TOPIC,
    DRONE_TOPIC,
    ROVER_TOPIC,
    FullScale,
    LandingFrameNames,
    TelemetryCommandSigns,
    TelemetrySigns,
    Translation,
    twist_from_command,
)
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError
from drone_bridge.wire.rate_limit import RateLimit

UNHEARD: Final = "undelivered documents"
UNSENT: Final = "unsent documents"
TOO_LARGE: Final = "images too large"
INCOMPLETE: Final = "sources"
DEPTH: Final = 10
#: The state while the operator's port is closed.
NOBODY_LISTENS = "nobody listens"
#: For how long that holds after a machine said so; some say so once a second at most.
NOBODY_LISTENS_S = 2.0


class TelemetryServer(LinkNode):
    """Sends documents from the executor; takes commands on the link's thread (UDP) or in the executor (topics).

    After `command_timeout` without a command, zero is published once.
    """

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
        self._stream: Stream | None = None  # while there is a link
        self._refused_s = -math.inf  # when the operator's machine last said that nobody listens

    # The lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._command_signs = read_group(self.parameters, "command_sign", TelemetryCommandSigns)
        signs = read_group(self.parameters, "telemetry_sign", TelemetrySigns)
        self._velocities = VelocityOutput(self)
        self._taking = threading.Lock()  # commands on topics arrive in the executor
        self._translation = Translation(LandingFrameNames(get("frame_prefix")), signs, is_levelled=get("is_levelled"))
        self._sources = DroneSources(self, self._translation, self._send_telemetry)
        self.make_subscription(Odometry, "rover/odom", self._send_rover, qos_profile_sensor_data)
        self._is_udp = get("transport") == "udp"
        if self._is_udp:
            self._texts = {ROVER_TOPIC: self.make_publisher(String, ROVER_TOPIC, DEPTH)}  # of the operator's rover
        else:
            self._texts = {topic: self.make_publisher(String, topic, DEPTH) for topic in (DRONE_TOPIC, ROVER_TOPIC)}
            self.make_subscription(String, COMMAND_TOPIC, self._take_text, DEPTH)

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        self._side = DroneSide(self)
        self._drone_rate_limit, self._rover_rate_limit = RateLimit(), RateLimit()
        self._since_image: int = self.parameters["image_every"]  # documents; the first one may have an image
        if not self._is_udp:
            return TopicEndpoint(TopicStream(cancellation, self._publish_text))
        host, port = self.parameters["host"], self.parameters["port"]
        freshness = self.fresh_within("command_timeout")
        return UdpConnector(host, port, cancellation, self._connecting_failed, self.wire_log, freshness=freshness)

    def stop_waiting(self) -> None:
        self._stream = None

    # The conversation, on the link's thread.

    def converse(self, stream: Stream) -> None:
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
                    due_s = max(due_s + 1 / self.parameters["repeat_rate"], time.monotonic())
        finally:
            self._stream = None
            with self._taking:
                self._velocities.finish()
            self._sources.end()

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

    def follow_command(self, command: DroneCommand) -> None:
        full_scale = read_group(self.parameters, "full_scale", FullScale)
        self._velocities.command(twist_from_command(command, full_scale, self._command_signs))

    def move_rover(self, rover: RoverTelemetry) -> None:
        self._publish_text(ROVER_TOPIC, String(data=self._side.rover(rover).decode()))

    def _take(self, document: bytes | str, source: str) -> None:
        if not self.takes_commands():
            return
        with self._taking:
            try:
                self._side.receive(document)
            except RemoteProtocolError as error:
                self.count_and_warn("rejected input", f"A document from {source} was refused: {error}")
                return
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
        try:
            document = self._side.telemetry(telemetry)
            if self._is_udp and len(document) > MAX_DATAGRAM_BYTES:
                sentence = f"An image makes a document of {len(document)} bytes, and a datagram holds"
                self.reports.count_and_warn_ongoing(TOO_LARGE, f"{sentence} {MAX_DATAGRAM_BYTES}: it was left out.")
                telemetry = without_image(telemetry)
                document = self._side.telemetry(telemetry)
        except LocalProtocolError as error:
            self.count_and_warn(UNSENT, str(error))
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
        try:
            document = self._side.rover(self._translation.wire_rover(message, self.parameters["rover_pattern"]))
        except LocalProtocolError as error:
            self.count_and_warn(UNSENT, str(error))
            return
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
