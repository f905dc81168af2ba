# SPDX-License-Identifier: Apache-2.0
"""robot_server: the robot's side of the robot protocol, as a ROS 2 node. See docs/robot.md.

`session.robot` decides what to send. This node provides its topics, parameters, and the ports for drivers and
discovery.
"""

import platform
from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import Twist
from rclpy.publisher import Publisher
from std_msgs.msg import Bool

from drone_bridge.net.clock import elapsed_s, time_of_day_ms
from drone_bridge.net.connector import LinkError, LinkInUseError
from drone_bridge.net.link_loop import Link
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.net.tcp_port import TcpPort
from drone_bridge.robot.codec import DISCOVERY_GROUP, LightUpdate, Speeds
from drone_bridge.robot.discovery import DiscoveryResponder, DiscoveryRoute, RobotPort
from drone_bridge.robot.topics import RobotTranslation
from drone_bridge.robot.units import SkidSteer
from drone_bridge.robot.vehicle.device.dialects import RobotDialect
from drone_bridge.robot.vehicle.server.listing import LIGHT_TOPIC, light_topics, listing_from_parameters
from drone_bridge.robot.vehicle.server.parameters import PARAMETERS, ListSource
from drone_bridge.robot.vehicle.server.sources import ListedParts, SensorSubscriptions
from drone_bridge.robot.vehicle.session.listing import Listing
from drone_bridge.robot.vehicle.session.robot import LISTENING, RobotParameters, RobotSession
from drone_bridge.ros.commands.cmd_vel_type import CmdVelPublisher
from drone_bridge.ros.commands.velocity_messages import twist_from_velocity
from drone_bridge.ros.node.parameters import read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import COMMANDS, ProtocolNode
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater
from drone_bridge.session.session import Actions

#: Condition: the robot behind a bridge is silent.
SILENT_ROBOT = "silent_robot"
#: Small chunks, since a session handles all packets of a chunk before those of another driver.
CHUNK_BYTES = 256


class RobotServer(ProtocolNode):
    """Node that lets legacy drivers control a robot in ROS, and sends them its sensor readings."""

    is_server = True
    open_state = LISTENING

    def __init__(self, **options: Any) -> None:
        super().__init__("robot_server", PARAMETERS, **options)
        self._session: RobotSession | None = None  # until the first activation

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._skid_steer = read(SkidSteer, self.parameters)
        publisher: Any = CmdVelPublisher(self, lambda kind: self.make_publisher(kind, "cmd_vel", 10))
        self._commands = publisher
        self._repeater = NeutralRepeater(self, (publisher,), lambda: (publisher, Twist()))
        is_listed = get("lists_from") == ListSource.TOPICS.value
        self._is_posted = False  # whether a call of `_deliver_pending` is pending
        translation = RobotTranslation()
        self._sensors = SensorSubscriptions(self, translation, self._post_pending)
        self.cleanup.callback(self._sensors.close)
        self._listed: ListedParts | None = None
        if is_listed:
            self._listed = ListedParts(self, translation, self._sensors, self._follow_robot)
            self._light_topics: Callable[[int], str] = lambda number: LIGHT_TOPIC  # switches all lights of the bridge
            topics = {LIGHT_TOPIC}
        else:
            self._fixed, sources = listing_from_parameters(
                get("skid_steer"), get("lights"), get("sensors"), get("full_voltage")
            )
            self._sensors.follow(sources, are_of_bridge=False)
            self._light_topics = light_topics(self._fixed.subsystems).__getitem__
            topics = set(light_topics(self._fixed.subsystems).values())
        self._lights: dict[str, Publisher[Any]] = {
            topic: self.make_publisher(Bool, topic, 10) for topic in sorted(topics)
        }
        self.each_second(self._report_drivers)

    def make_transport(self) -> Link:
        """Return a link for drivers and discovery. Raises LinkError, and ValueError for an invalid route."""
        get = self.parameters.__getitem__
        route = DiscoveryRoute(DISCOVERY_GROUP, get("discovery_port"), get("discovery_interface"))
        options = StreamOptions(CHUNK_BYTES, expects_acknowledgements=True)
        port = TcpPort(get("host"), get("port"), options=options, wire_log=self.wire_log, has_small_buffers=True)
        self.get_logger().info(f"Waiting for drivers on {get('host')}:{port.port}.")
        return RobotPort(port, self._responder(route) if get("discovery") else None)

    def make_session(self) -> RobotSession:
        parameters = self.parameters.live(RobotParameters)
        listing: Listing | None = self._listed.newest() if self._listed else self._fixed
        dialect = RobotDialect(self.parameters["dialect"])
        is_silent = self._listed is not None and self._listed.is_silent
        session = RobotSession(self._robot_name(), parameters, time_of_day_ms, listing, dialect, is_silent=is_silent)
        session.take(self._sensors.take(), elapsed_s())  # values received earlier
        self._session, self._is_posted = session, False
        return session

    def _robot_name(self) -> str:
        return self.parameters["robot_name"] or platform.node()

    def _responder(self, route: DiscoveryRoute) -> DiscoveryResponder | None:
        """Return the responder for discovery. None if disabled, or if another program has the port."""
        try:
            responder = DiscoveryResponder(route)
        except LinkError as error:
            if isinstance(error, LinkInUseError):
                error.argument = "discovery_port:=, if drivers can use it"
            self.report.warn(f"Discovery is unavailable: {error} Give other drivers the address.")
            return None
        if route.is_on_loopback:
            self.get_logger().info(
                "Only drivers on this machine can find this robot. For others, set discovery_interface and host "
                "(launch arguments discovery_interface and robot_server_host) to 0.0.0.0, or to this machine's address "
                "in their network."
            )
        return responder

    # Commands of drivers, on the loop's thread.

    def publish_event(self, message: Speeds | LightUpdate) -> None:
        """Publish a driver's command."""
        if isinstance(message, Speeds):
            self.report.counts[COMMANDS] += 1
            twist = twist_from_velocity(self._skid_steer.velocity(message))
            self._repeater.publish(self._commands, twist, self.decided_s)
        else:
            self.publish(self._lights[self._light_topics(message.id)], Bool(data=message.is_on))

    # The robot, in the executor.

    def _follow_robot(self) -> None:
        if self._session and self._listed:
            follow = partial(self._session.follow, self._listed.newest(), is_silent=self._listed.is_silent)
            self.post(follow, is_kept=True)

    def _post_pending(self) -> None:
        """Post a call of `_deliver_pending`, which is never dropped: some values come only once."""
        if not self._is_posted:
            self._is_posted = True  # set first, since the other thread clears it
            if not self.post(self._deliver_pending, is_kept=True):
                self._is_posted = False

    def _deliver_pending(self, now_s: float) -> Actions:
        """Pass pending values to the session, on the loop's thread."""
        self._is_posted = False
        values = self._sensors.take()
        return self._session.take(values, now_s) if self._session else []

    def _report_drivers(self) -> None:
        if self._session:
            self.report.facts["drivers"] = self._session.holdings
        self.report.update_condition(
            SILENT_ROBOT,
            "The robot behind the bridge has been silent for 1 s" if self._listed and self._listed.is_silent else None,
            "keep-alives of drivers are not answered until it responds",
        )


def main() -> int:
    """Run the node."""
    return run(RobotServer)
