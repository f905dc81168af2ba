# SPDX-License-Identifier: Apache-2.0
"""robot_bridge: the driver's side of the robot protocol, as a ROS 2 node. See docs/robot.md."""

import contextlib
import getpass
import math
import time
from typing import Any, Final

from diagnostic_msgs.msg import DiagnosticStatus
from std_msgs.msg import Bool

from drone_bridge.msg import SensorArray, SubsystemArray
from drone_bridge.net.connector import Cancellation, LinkError, Wakeup
from drone_bridge.net.discovery import DiscoveryConnector, DiscoveryRoute
from drone_bridge.net.tcp import TcpStream
from drone_bridge.robot.bridge.dead_reckoning import DeadReckoning
from drone_bridge.robot.bridge.desired import DesiredSubsystems
from drone_bridge.robot.bridge.holders import Holders, Obstruction
from drone_bridge.robot.bridge.parameters import PARAMETERS
from drone_bridge.robot.bridge.sensors import SensorTopics, TopicBudget
from drone_bridge.robot.bridge.services import BIND, UNBIND, RobotServices, Task
from drone_bridge.robot.bridge.session import RobotSession
from drone_bridge.robot.codec import (
    HEADER_BYTES,
    NEED_DATA,
    ConnectionClosed,
    DriverConnection,
    FirmwareInfo,
    SensorInfo,
    SensorUpdate,
    SubsystemType,
    UnknownPacket,
    in_pieces,
)
from drone_bridge.robot.topics import translation as translate
from drone_bridge.robot.topics.translation import BARE_MEASUREMENTS, MEASUREMENTS, STOPPED, SkidSteer, Speeds
from drone_bridge.ros.commands import Arrival, CommandIntake
from drone_bridge.ros.common_parameters import frame_names
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.frames import FrameNames
from drone_bridge.ros.lease import VehicleLease, with_lease, with_vehicle_lease
from drone_bridge.ros.link_node import Endpoint
from drone_bridge.ros.link_requests import LinkRequest, ServiceResult
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import STALL_S
from drone_bridge.ros.tcp_link_node import TcpLinkNode
from drone_bridge.ros.topics import latched
from drone_bridge.wire.layouts import printable

#: How long the robot has to read the last packets and close.
LEAVE_TIMEOUT_S: Final = 0.3
LIST_PERIOD_S: Final = 0.1  # lists are not published more often
LONGEST_DRIVER_NAME: Final = 255  # bytes
_RECEIVE_BYTES: Final = 4096
#: Conditions in diagnostics.
OBSTRUCTION: Final = "obstruction"
STANDSTILL: Final = "standstill"


class RobotBridge(TcpLinkNode):
    """Drives a robot, and publishes its sensors, subsystems and log."""

    rates = ("packets", "commands", "updates")
    problems = (
        *TcpLinkNode.problems,
        "refused commands",
        "refused binds",
        "unanswered binds",
        "lost subsystems",
        "missing subsystems",
        "slow keep-alives",
        "unexpected packets",
        "unknown packets",
        "unknown types",
        "unknown sensors",
        "unreadable lists",
        "malformed strings",
        "other protocol versions",
        "dropped messages",
    )

    def __init__(self, **options: Any) -> None:
        super().__init__("robot_bridge", PARAMETERS, **options)
        self._wakeup = Wakeup()
        self._light: bool | None = None
        self._topic_budget = TopicBudget()
        self._operator_services = RobotServices(self, self._wakeup.wake, self._read_route)

    # The lifecycle.

    def set_up(self) -> None:
        """Read the parameters and create publishers and subscriptions."""
        get = self.parameters.__getitem__
        self._driver_name = get("driver_name") or _user_name()
        if len(self._driver_name.encode()) > LONGEST_DRIVER_NAME:
            raise ValueError(f"driver_name has more than the {LONGEST_DRIVER_NAME} bytes that are allowed.")
        self._skid_steer = SkidSteer(get("wheel_separation"), get("max_wheel_speed"))
        self._link_timeout_s = get("link_timeout")
        self._frame_id = frame_names(self.parameters, FrameNames).base_link
        self._route = self._read_route()
        self._robot_log = LogLimiter()

        self._sensors_publisher = self.make_publisher(SensorArray, "sensors", with_vehicle_lease(latched()))
        self._robot_lease = VehicleLease(self._sensors_publisher)
        self._subsystems_publisher = self.make_publisher(SubsystemArray, "subsystems", with_lease(latched()))
        self._sensor_topics = SensorTopics(
            self, self._frame_id, self._topic_budget, BARE_MEASUREMENTS if get("bare_floats") else MEASUREMENTS
        )
        self.cleanup.callback(self._sensor_topics.close)
        self._dead_reckoning = DeadReckoning(self, self._skid_steer)
        self._commands: CommandIntake[Speeds] = CommandIntake(self, on_command=self._wakeup.wake)
        self._commands.take_limited_velocities(self._skid_steer.speeds, ("linear.x", "angular.z"))
        self.make_subscription(Bool, "light", self._operator_services.switch_light, depth=1)

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Connect to a host, or to a robot found by name."""
        get = self.parameters.__getitem__
        self._desired = DesiredSubsystems(get("skid_steer"), get("lights"))
        self._holders = Holders(self._driver_name)
        self._undrivable_reason: str | None = None
        self._dead_reckoning.reset()
        self._light = None
        if not get("robot_name"):
            return super().make_endpoint(cancellation)
        return DiscoveryConnector(
            get("robot_name"),
            get("port"),
            cancellation,
            self._connecting_failed,
            route=self._route,
            timeout_s=get("discovery_timeout"),
            wire_log=self.wire_log,
        )

    def _read_route(self) -> DiscoveryRoute:
        get = self.parameters.__getitem__
        return DiscoveryRoute(get("discovery_address"), get("discovery_port"), get("discovery_interface"))

    # The conversation, on the link's thread.

    def prepare(self) -> None:
        """Forget old commands, and accept requests."""
        self._commands.mailbox.clear()
        self._operator_services.link_requests.open()

    def converse(self, stream: TcpStream) -> None:
        """Drive until either side ends the connection, and leave the robot stopped in any case."""
        now_s = time.monotonic()
        connection = DriverConnection()
        session = RobotSession(self._desired, self._holders, self._link_timeout_s, self, now_s)
        self._driven = STOPPED
        self._updated_s = now_s
        self._dead_reckoning.begin(now_s)
        self._lists_due_s = math.inf
        self._obstruction: Obstruction | None = None
        self._standstill_reason: str | None = None
        reason = "The connection to the robot ended."
        try:
            self._exchange(stream, connection, session)
        except LinkError as error:
            reason = str(error)
            raise
        finally:
            stream.leave(in_pieces(map(connection.send, session.farewell())), LEAVE_TIMEOUT_S)
            self._driven = STOPPED
            session.end(reason)
            self._end_conditions()
            self._operator_services.link_requests.close(reason)
            self._publish_lists(session)

    def _exchange(self, stream: TcpStream, connection: DriverConnection, session: RobotSession) -> None:
        buffer = memoryview(bytearray(_RECEIVE_BYTES))
        awake_s = time.monotonic()  # when this turn has to begin at the latest
        while True:
            if (now_s := time.monotonic()) > awake_s + STALL_S:
                session.resume(now_s)
            self._do_what_is_due(session)
            if session.outbox:
                packets = [connection.send(packet) for packet in session.outbox]
                session.outbox.clear()
                for packet in packets:
                    stream.send_all(packet, self._link_timeout_s, head_bytes=HEADER_BYTES)
            now_s = time.monotonic()
            awake_s = max(now_s, self._due_s(session))
            if not stream.wait(self._wakeup, awake_s - now_s):
                self._wakeup.clear()
                continue
            if count := stream.receive_into(buffer, timeout_s=0.0):
                connection.receive_data(buffer[:count])
            else:
                connection.receive_eof()
            while (event := connection.next_event()) is not NEED_DATA:
                if isinstance(event, ConnectionClosed):
                    raise LinkError(self._explain_closing(session))
                self.statistics.counts["packets"] += 1
                if not isinstance(event, UnknownPacket):  # which may mean anything
                    self.statistics.liveness.heard()
                    self._robot_lease.renew(time.monotonic())
                session.handle(event, time.monotonic())

    def _due_s(self, session: RobotSession) -> float:
        """Return when there is something to do, unless a packet arrives before."""
        due_s = min(session.due_s, self._dead_reckoning.due_s, self._lists_due_s)
        if command := self._commands.newest_arrival():
            is_waiting = command.command != self._driven and not session.has_backlog(time.monotonic())
            due_s = min(due_s, self._next_update_s() if is_waiting else self._stale_s(command))
        return due_s

    def _do_what_is_due(self, session: RobotSession) -> None:
        now_s = time.monotonic()
        is_bound = bool(session.bindings.bound_of(SubsystemType.SKID_STEER))
        self._dead_reckoning.move(self._driven if is_bound else STOPPED, now_s)
        session.tick(now_s, time.time_ns() // 1_000_000)
        for link_request in self._operator_services.link_requests.take():
            self._do(link_request, session, now_s)
        if self._light is not None:
            session.light(self._light)
        self._drive(session, now_s)
        self._update_conditions(session, now_s)
        self._sensor_topics.offer()
        if now_s >= self._lists_due_s:
            self._publish_lists(session)
        self._dead_reckoning.publish_if_due(now_s)

    def _drive(self, session: RobotSession, now_s: float) -> None:
        command = self._commands.newest_arrival()
        speeds = command.command if command else STOPPED
        if speeds != self._driven:
            if speeds != STOPPED and (now_s < self._next_update_s() or session.has_backlog(now_s)):
                speeds = self._driven
            else:
                self._updated_s = now_s
                self.statistics.counts["updates"] += 1
                if command and session.bindings.bound:
                    self.statistics.took("command received to sent", now_s - command.arrived_s)
        self._driven = session.drive(speeds, now_s)

    # Conditions.

    def _update_conditions(self, session: RobotSession, now_s: float) -> None:
        obstruction = session.bindings.obstruction
        if obstruction != self._obstruction:
            self._obstruction = obstruction
            self._set_condition(OBSTRUCTION, obstruction and obstruction.sentence, bool(obstruction and obstruction[1]))
        is_bound = bool(session.bindings.bound_of(SubsystemType.SKID_STEER))
        standstill_reason = session.standstill_reason(now_s) if is_bound else None
        if standstill_reason != self._standstill_reason:
            self._standstill_reason = standstill_reason
            self._set_condition(STANDSTILL, standstill_reason, is_error=False)
        if is_bound:
            self._undrivable_reason = standstill_reason
        else:
            self._undrivable_reason = obstruction.sentence if obstruction else "No skid steer is bound."

    def _set_condition(self, name: str, sentence: str | None, is_error: bool) -> None:
        if sentence is None:
            self.statistics.end_condition(name)
            return
        level = DiagnosticStatus.ERROR if is_error else DiagnosticStatus.WARN
        self.statistics.begin_condition(name, sentence, level)
        self.warn(sentence)

    def _end_conditions(self) -> None:
        self._undrivable_reason = None
        for name in (OBSTRUCTION, STANDSTILL):
            self.statistics.end_condition(name)

    def undeliverable(self) -> str | None:
        """Return why no command can move the robot now; None when one can. For the executor."""
        return super().undeliverable() or self._undrivable_reason

    def _explain_closing(self, session: RobotSession) -> str:
        """Return why the robot has closed the connection, as a sentence."""
        if attempts := session.bindings.attempts:
            return (
                f"The robot closed the connection while {attempts} was being bound: "
                f"{self._holders.closing_explanation}."
            )
        return "The robot closed the connection."

    def _next_update_s(self) -> float:
        return self._updated_s + 1 / float(self.parameters["max_update_rate"])

    def _stale_s(self, command: Arrival[Speeds]) -> float:
        # A little later, when the command is really stale.
        return command.expires_s(float(self.parameters["command_timeout"])) + 1e-3

    def _do(self, link_request: LinkRequest[Task], session: RobotSession, now_s: float) -> None:
        def answer(success: bool, message: str) -> None:
            self._operator_services.link_requests.finish(link_request, ServiceResult(success, message))

        if link_request.task.kind == BIND:
            session.bindings.bind(link_request.task.number, now_s, answer)
        elif link_request.task.kind == UNBIND:
            session.bindings.unbind(link_request.task.number, answer)
        elif lights := session.bindings.bound_of(SubsystemType.LIGHTS):
            self._light = bool(link_request.task.number)
            answer(True, f"{'On' if self._light else 'Off'}: {len(lights)} of the robot's lights.")
        else:
            answer(False, "No light of the robot is bound.")

    # Events of the session, on the link's thread.

    def inform(self, sentence: str) -> None:
        """Log an expected event."""
        if line := self._robot_log.admit(sentence):
            self.get_logger().info(line)

    def subsystems_changed(self) -> None:
        """Schedule publication of the lists."""
        self._lists_due_s = min(self._lists_due_s, time.monotonic() + LIST_PERIOD_S)

    def sensors_listed(self, info: SensorInfo) -> None:
        self._sensor_topics.update(info)
        self.subsystems_changed()

    def sensors_read(self, update: SensorUpdate) -> None:
        self._sensor_topics.read(update)

    def robot_logged(self, text: str) -> None:
        """Log a line of the robot without control characters."""
        if line := self._robot_log.admit(printable(text.strip())):
            self.get_logger().info(f"{translate.ROBOT_SAYS}{line}")

    def firmware_identified(self, firmware: FirmwareInfo) -> None:
        self.statistics.facts["firmware"] = f"{printable(firmware.type)} {printable(firmware.version)}"
        self.statistics.facts["protocol version"] = str(firmware.protocol_version)

    def round_trip_measured(self, seconds: float) -> None:
        self.statistics.took("keep-alive round trip", seconds)

    def settled(self) -> None:
        """Reconnect without delay when this connection is lost."""
        self.opened()

    def _publish_lists(self, session: RobotSession) -> None:
        self._lists_due_s = math.inf
        stamp = self.now()
        bindings = session.bindings
        if bindings.info:
            drivers = {number: bindings.driver(number) for number in range(len(bindings.info.subsystems))}
            message = translate.subsystem_array(bindings.info, drivers, bindings.bound, stamp, self._frame_id)
            self.publish(self._subsystems_publisher, message)
        self.statistics.facts["bound subsystems"] = ", ".join(map(str, sorted(bindings.bound))) or "none"
        topics = self._sensor_topics
        self.publish(self._sensors_publisher, translate.sensor_array(topics.info, topics.topics, stamp, self._frame_id))


def _user_name() -> str:
    with contextlib.suppress(Exception):  # a user without a name; which exception that is depends on Python's version
        return getpass.getuser()
    return "drone_bridge"


def main() -> int:
    """Run the node."""
    return run(RobotBridge)
