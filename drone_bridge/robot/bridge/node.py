# SPDX-License-Identifier: Apache-2.0
"""robot_bridge: the driver's side of the robot protocol, as a ROS 2 node. See docs/robot.md.

`session.driver` decides what to send. This node provides its topics, services, parameters and the connection.
"""

import contextlib
import getpass
from typing import Any, NoReturn

from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import Bool

from drone_bridge.motion.measurement import Measurement
from drone_bridge.net.clock import time_of_day_ms
from drone_bridge.net.link_loop import Link
from drone_bridge.net.tcp_connection import StreamOptions
from drone_bridge.robot import codec
from drone_bridge.robot.bridge.parameters import PARAMETERS
from drone_bridge.robot.bridge.sensor_topics import SensorTopics
from drone_bridge.robot.bridge.services import RobotServices
from drone_bridge.robot.discovery import REPLIES_S, DiscoveredPeer, DiscoveryRoute
from drone_bridge.robot.session.connected_driver import DriverParameters, KeepAliveRoundTrip
from drone_bridge.robot.session.desired import DesiredSubsystems
from drone_bridge.robot.session.driver import DriverSession, Lists, Problem
from drone_bridge.robot.topics import ROBOT_LOG_PREFIX, TABLE, RobotTranslation
from drone_bridge.robot.units import SkidSteer
from drone_bridge.ros.commands.command_streams import PROMPT_PERIOD_S
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.node.log_limiter import LogLimiter
from drone_bridge.ros.node.parameters import read
from drone_bridge.ros.node.program import run
from drone_bridge.ros.node.protocol_node import ProtocolNode
from drone_bridge.ros.node.role_links import stream_link
from drone_bridge.ros.topics.covariances import OdometryCovariances
from drone_bridge.ros.topics.frames import FrameNames
from drone_bridge.ros.topics.topic_publishers import TopicPublishers
from drone_bridge.ros.topics.wheel_odometry import POSE_VARIANCES
from drone_bridge.session.feedback import Feedback
from drone_bridge.wire.printable import printable

LONGEST_DRIVER_NAME = 255  # bytes
#: Small chunks, so that a robot that floods the connection does not delay a stop.
OPTIONS = StreamOptions(chunk_bytes=1024)


class RobotBridge(ProtocolNode):
    """Node that drives a robot, and publishes its sensors, subsystems and log."""

    def __init__(self, **options: Any) -> None:
        super().__init__("robot_bridge", PARAMETERS, **options)
        #: The session; None before the first activation.
        self.session: DriverSession | None = None
        self._robot_services = RobotServices(self, lambda: self.session, self._read_route)

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        self._driver_name = get("driver_name") or _user_name()
        if len(self._driver_name.encode()) > LONGEST_DRIVER_NAME:
            raise ValueError(f"driver_name must have at most {LONGEST_DRIVER_NAME} bytes.")
        self._read_route()  # validates the route early
        self._skid_steer = read(SkidSteer, self.parameters)
        covariances = OdometryCovariances(POSE_VARIANCES, get("twist_covariance_diagonal"))
        self._translation = RobotTranslation(read(FrameNames, self.parameters), covariances)
        self._robot_log = LogLimiter()
        self._sensors_publisher, self._subsystems_publisher = (
            self.make_publisher(row.message, row.name, row.qos()) for row in map(TABLE.row, ("sensors", "subsystems"))
        )
        self._sensor_topics = SensorTopics(self, self._translation)
        rows = [row for row in TABLE.rows if row.of is Measurement] if get("publish_odometry") else []
        self._odometry = TopicPublishers(self, rows, self._translation)
        self._commands: CommandTopics[NoReturn] = CommandTopics(
            self, on_command=self._post_command, period_s=PROMPT_PERIOD_S, within_maxima=self._skid_steer.within_maxima
        )
        self._commands.take_velocities(("linear.x", "angular.z"))
        self.make_subscription(Bool, "light", self._robot_services.switch_light, depth=1)

    def make_transport(self) -> Link:
        """Return a link to a host, or to a robot found by name."""
        get = self.parameters.__getitem__
        if not get("robot_name"):
            return stream_link(self, OPTIONS)
        return DiscoveredPeer(
            get("robot_name"),
            get("port"),
            self.connecting_failed,
            route=self._read_route(),
            timeout_s=REPLIES_S,
            on_other=self._hold_other_robot,
            options=OPTIONS,
            wire_log=self.wire_log,
        )

    def hardware_id(self) -> str:
        """See ProtocolNode. A robot that is found by its name has no configured address."""
        name = self.parameters["robot_name"]
        return f"robot {name!r}" if name else super().hardware_id()

    def _hold_other_robot(self, known: str, other: str) -> None:
        """Hold another robot of the name. On the link's thread, before it connects."""
        name = self.parameters["robot_name"]
        self.report.warn(f"Another robot named {name!r} answers, at {other} instead of {known}. It is held.")
        self.hold.hold(f"another robot named {name!r} answers, at {other}")

    def make_session(self) -> DriverSession:
        get = self.parameters.__getitem__
        arbiter = self._commands.arbiter
        desired = DesiredSubsystems(get("skid_steer"), get("lights"))
        self.session = DriverSession(
            self._driver_name,
            desired,
            arbiter,
            self.parameters.live(DriverParameters),
            time_of_day_ms,
            skid_steer=self._skid_steer,
            feedback=Feedback(self.observed, arbiter.limits) if get("publish_odometry") else None,
        )
        return self.session

    def undeliverable(self) -> str | None:
        """Return why no command can move the robot now, or None. For the executor."""
        return super().undeliverable() or (self.session.undrivable if self.session else None)

    def _read_route(self) -> DiscoveryRoute:
        get = self.parameters.__getitem__
        return DiscoveryRoute(codec.DISCOVERY_GROUP, get("discovery_port"), get("discovery_interface"))

    def _post_command(self) -> None:
        if self.session:
            self.post(self.session.commanded)

    # The robot, on the loop's thread.

    def publish_event(self, message: Any) -> None:
        """Publish a packet of the robot, or an event of the session."""
        if isinstance(message, Measurement):
            self._odometry.publish(message, self.now())
        elif isinstance(message, KeepAliveRoundTrip):
            self.report.record_duration("keep_alive_round_trip", message.duration_s)
        elif isinstance(message, codec.SensorUpdate):
            self._sensor_topics.read(message)
        elif isinstance(message, codec.SensorInfo):
            self._sensor_topics.update(message)
        elif isinstance(message, Lists):
            self._publish_lists(message)
        elif isinstance(message, Problem):
            self._report_problem(message)
        elif isinstance(message, codec.LogMessage):
            if line := self._robot_log.admit(printable(message.text.strip())):
                self.get_logger().info(f"{ROBOT_LOG_PREFIX}{line}")
        elif isinstance(message, codec.FirmwareInfo):
            self.report.facts["firmware"] = f"{printable(message.type)} {printable(message.version)}"
            self.report.facts["protocol_version"] = str(message.protocol_version)

    def _publish_lists(self, lists: Lists) -> None:
        stamp = self.now()
        if lists.subsystems:
            self._translation.bound = lists.bound
            self.publish(self._subsystems_publisher, self._translation.subsystems(lists.subsystems, stamp))
        self.report.facts["bound_subsystems"] = ", ".join(map(str, sorted(lists.bound))) or "none"
        if lists.sensors:
            self.publish(self._sensors_publisher, self._translation.sensors(lists.sensors, stamp))

    def _report_problem(self, problem: Problem) -> None:
        if problem.sentence is None:
            self.report.end_condition(problem.name)
            return
        level = DiagnosticStatus.ERROR if problem.is_error else DiagnosticStatus.WARN
        self.report.begin_condition(problem.name, problem.sentence, level)
        self.report.warn(problem.sentence)


def _user_name() -> str:
    with contextlib.suppress(Exception):  # no user name; the exception depends on Python's version
        return getpass.getuser()
    return "drone_bridge"


def main() -> int:
    """Run the node."""
    return run(RobotBridge)
