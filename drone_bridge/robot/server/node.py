# SPDX-License-Identifier: Apache-2.0
"""robot_server: the robot's side of the robot protocol, as a ROS 2 node. See docs/robot.md."""

import math
import socket
import time
from typing import Any, Final

from geometry_msgs.msg import Twist
from rclpy.publisher import Publisher
from std_msgs.msg import Bool

from drone_bridge.net.connector import Cancellation, LinkError, Wakeup
from drone_bridge.net.discovery import DiscoveryResponder, DiscoveryRoute
from drone_bridge.net.tcp_clients import Connection, TcpClients
from drone_bridge.robot.codec import PROTOCOL_VERSION, FirmwareInfo
from drone_bridge.robot.device.control import MAX_DRIVERS, Control
from drone_bridge.robot.device.conversation import Conversation
from drone_bridge.robot.device.drivers import Driver, HangUpError, Instant
from drone_bridge.robot.device.protocol_1 import Protocol1Control
from drone_bridge.robot.device.robotd import Dialect, RobotdControl
from drone_bridge.robot.server.drive_commands import DriveCommands
from drone_bridge.robot.server.endpoint import DriverEndpoint, Drivers
from drone_bridge.robot.server.late_answers import LateAnswers
from drone_bridge.robot.server.listing import LIGHT_TOPIC, NONE, Listing, light_topics, listing_of_parameters
from drone_bridge.robot.server.log_lines import LogLines
from drone_bridge.robot.server.parameters import PARAMETERS, Lists
from drone_bridge.robot.server.ros_vehicle import RosVehicle
from drone_bridge.robot.server.sources import ListedSources, SensorSubscriptions, readings_of
from drone_bridge.robot.server.values import SensorValues
from drone_bridge.robot.topics.translation import BARE_MEASUREMENTS, MEASUREMENTS, STOPPED, SkidSteer, Speeds
from drone_bridge.ros.last_word import LastWord
from drone_bridge.ros.link_node import Endpoint, LinkNode, repeat_farewell
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import PROCESS, STALL_S
from drone_bridge.wire.events import ProtocolError

#: As told to drivers in packet 0x09.
FIRMWARE: Final = FirmwareInfo("drone_bridge", "0.2", PROTOCOL_VERSION)
ROBOT_GONE: Final = "the robot behind this server is not available"
OTHER_ROBOT: Final = "the subsystems or sensors of the robot behind this server have changed"
#: The condition of a robot behind a bridge that says nothing.
SILENT_ROBOT: Final = "silent robot"
#: How long a driver may take for its first packet, with `driver_timeout: 0` as well: drivers send keep-alives at once.
FIRST_MESSAGE_S = 10.0
#: Maximum delay in noticing the silence of a driver that does not drive.
WATCH_PERIOD_S: Final = 0.25


class RobotServer(LinkNode):
    """Lets legacy drivers control a robot in ROS, and sends them its sensor readings."""

    rates = ("commands", "readings")
    problems = (*LinkNode.problems, "silent drivers", "dropped drivers", "dropped messages", "unknown values")

    def __init__(self, **options: Any) -> None:
        super().__init__("robot_server", PARAMETERS, **options)
        self._wakeup = Wakeup()

    # The lifecycle.

    def set_up(self) -> None:
        get = self.parameters.__getitem__
        self._skid_steer = SkidSteer(get("wheel_separation"), get("max_wheel_speed"))
        publisher = self._commands_publisher = self.make_publisher(Twist, "cmd_vel", 10)
        self._last_word = LastWord(self, (publisher,), lambda: (publisher, Twist()))
        self._values = SensorValues()
        is_listed = get("lists_from") == Lists.TOPICS.value
        log_nodes = [name for name in get("log_nodes") if name != NONE]
        self._log_lines = LogLines(self, log_nodes, self._wakeup.wake, behind_bridge=is_listed)
        measurements = BARE_MEASUREMENTS if get("bare_floats") else MEASUREMENTS
        subscriptions = SensorSubscriptions(self, measurements, self._values, self._wakeup.wake)
        self.cleanup.callback(subscriptions.close)
        if is_listed:
            self._listed: ListedSources | None = ListedSources(self, subscriptions, self._wakeup.wake)
            self._configured = Listing()
            topics = [LIGHT_TOPIC]  # switches all lights of the bridge
        else:
            self._listed = None
            self._configured = listing_of_parameters(
                get("skid_steer"), get("lights"), get("sensors"), get("full_voltage")
            )
            subscriptions.follow(self._configured.sources, is_reliable=False)
            topics = sorted(set(light_topics(self._configured.subsystems).values()))
        self._lights: dict[str, Publisher[Any]] = {topic: self.make_publisher(Bool, topic, 10) for topic in topics}

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Listen for drivers and discovery requests. Raises LinkError or ValueError."""
        get = self.parameters.__getitem__
        self._commands = DriveCommands(1 / get("command_rate"), self._publish_speeds)
        self._vehicle = RosVehicle(
            self._configured,
            self._values,
            self._commands,
            self._switch_light,
            lambda: float(self.parameters["source_timeout"]),
        )
        self._is_robot_connected = self._listed is None
        self._late_answers: dict[Driver, LateAnswers] = {}
        self._read_s = -math.inf  # when readings were sent last
        if get("dialect") == Dialect.ROBOTD_1_2.value:
            self._control: Control = RobotdControl(self._vehicle, self.inform)
        elif get("dialect") == Dialect.PROTOCOL_1.value:
            self._control = Protocol1Control(self._vehicle, self.inform)
        else:
            self._control = Control(self._vehicle, self.inform, FIRMWARE)
        robot_name = get("robot_name") or socket.gethostname()
        responder = self._make_responder(robot_name) if get("discovery") else None
        try:
            self._driver_clients = TcpClients(
                get("host"),
                get("port"),
                self._begin,
                most=MAX_DRIVERS,
                ends=(ProtocolError, HangUpError),
                on_refused=self._refuse,
                first_message_s=FIRST_MESSAGE_S,
                wire_log=self.wire_log,
            )
        except LinkError as error:
            if responder:
                responder.close()
            raise LinkError(
                f"{error} Beside a robotd, choose another port (launch argument robot_server_port)."
            ) from error
        self._endpoint = DriverEndpoint(
            self._driver_clients,
            responder,
            cancellation,
            self._wakeup,
            tick=self._tick,
            may_be_found=lambda: self._is_robot_connected,
            on_found=lambda peer: self.inform(f"{peer} is looking for robots, and was told of {robot_name}."),
            on_fault=lambda sentence: self.count_and_warn("internal errors", sentence),
        )
        self._control.is_settling = self._endpoint.settling.look
        self.get_logger().info(f"Waiting for drivers on {get('host')}:{self._driver_clients.port}.")
        return self._endpoint

    def _make_responder(self, robot_name: str) -> DiscoveryResponder | None:
        """Return what answers discovery requests, None if another program does. Raises ValueError."""
        get = self.parameters.__getitem__
        route = DiscoveryRoute(get("discovery_address"), get("discovery_port"), get("discovery_interface"))
        try:
            responder = DiscoveryResponder(robot_name, route)
        except LinkError as error:
            self.warn(
                f"Drivers do not find this robot: {error} A robotd on this machine takes that port for itself: end it, "
                "or choose another port (launch argument discovery_port) for drivers that can ask there; to any other "
                "driver give the address."
            )
            return None
        if route.is_on_loopback:
            self.get_logger().info(
                "Only drivers on this machine find this robot. For those on others set discovery_interface and host "
                "(launch arguments discovery_interface and robot_server_host) to 0.0.0.0, or to this machine's address "
                "in their network."
            )
        return responder

    # The conversations, on the link's thread.

    def converse(self, stream: Drivers) -> None:
        """Serve drivers until the last one is gone, and stop the robot at the end."""
        try:
            stream.serve()
        finally:
            was_moving = self._commands.is_moving
            stream.close()  # which stops what they drive
            if was_moving:
                repeat_farewell(lambda: self._publish_speeds(STOPPED))
            self._note_drivers()

    def _begin(self, connection: Connection) -> "_DriverClient":
        answers = LateAnswers(self._is_robot_silent)
        conversation = Conversation(
            self._control, connection.peer, connection.send, connection.abort, _now, is_suppressed=answers.keeps
        )
        self._endpoint.changed()  # also if it never says anything: its time is up one day
        self._late_answers[conversation.driver] = answers
        if not self._is_robot_connected:
            conversation.driver.drop(ROBOT_GONE)
        elif len(self._control.drivers) > 1:  # the first one is reported by the link
            self.inform(f"Connected to {connection.peer}.")
        return _DriverClient(self, conversation)

    def _refuse(self, peer: str) -> None:
        self.reports.count_and_warn_ongoing(
            "refused peers", f"{peer} was refused: {MAX_DRIVERS} drivers are connected already."
        )

    def _is_robot_silent(self) -> bool:
        return self._listed is not None and self._listed.is_silent

    def heard(self) -> None:
        """Note that a driver has sent a valid packet."""
        self.statistics.liveness.heard()
        self.gone()

    def gone(self, driver: Driver | None = None) -> None:
        """Update who drives what, after any change; `driver` is one that has disconnected, if any."""
        if driver:
            self._late_answers.pop(driver, None)
        self._note_drivers()
        self._endpoint.changed()

    def _note_drivers(self) -> None:
        holders = self._control.holders
        names = {number: subsystem.name for number, subsystem in enumerate(self._vehicle.subsystems)}
        self.statistics.facts["drivers"] = "; ".join(
            f"{driver}: {', '.join(names[n] for n, holder in holders.items() if holder is driver) or 'nothing'}"
            for driver in self._control.drivers
        )

    def _tick(self, now_s: float) -> float:
        """Do what is due, and return when to call this next."""
        now = _now()
        get = self.parameters.__getitem__
        if self._listed:
            self._follow_robot(self._listed.newest(), now)
            self._follow_silence()
        allowed_s, dropped_s, period_s = get("command_timeout"), get("driver_timeout"), get("sensor_period")
        self.halt_silent()
        # After a stall of our own they are listened to first.
        is_judged = 0 < dropped_s < PROCESS.running_s()
        for driver in self._control.drop_silent(now, dropped_s) if is_judged else ():
            sentence = f"{driver} has been silent for {dropped_s:g} s (driver_timeout), and is dropped."
            self.count_and_warn("dropped drivers", sentence)
        self._commands.tick(now_s)
        if now_s >= self._readings_due_s(period_s):
            self._read_s = now_s
            readings = readings_of(self._vehicle.listing, self._values.take(now_s))
            self.statistics.counts["readings"] += len(readings)
            self._control.send_readings(readings)
        for line in self._log_lines.take():
            self._control.send_log(line)
        due_s = min(self._commands.due_s, self._readings_due_s(period_s), self._control.silent_at_s(allowed_s))
        return min(due_s, now_s + WATCH_PERIOD_S) if self._control.drivers else due_s

    def halt_silent(self) -> None:
        """Stop the subsystems of drivers that have been silent; also before what they say after that is looked at."""
        allowed_s = self.parameters["command_timeout"]
        for driver in self._control.halt_silent(_now(), allowed_s):
            sentence = f"{driver} has been silent for {allowed_s:g} s (command_timeout): its subsystems are stopped."
            self.count_and_warn("silent drivers", sentence)

    def _readings_due_s(self, period_s: float) -> float:
        """Return when readings are to be sent. `period_s`: the least time between new values."""
        if self._control.readings_period_s is None:
            return self._values.due_s(period_s)
        return self._read_s + self._control.readings_period_s if self._control.drivers else math.inf

    def _follow_robot(self, listing: Listing | None, now: Instant) -> None:
        """Disconnect drivers if the robot is gone or another one, and revoke what is no longer available."""
        was_connected, self._is_robot_connected = self._is_robot_connected, listing is not None
        if listing is None:
            if was_connected:
                self._driver_clients.hang_up(ROBOT_GONE)
        elif listing.identity != self._vehicle.listing.identity:
            self._driver_clients.hang_up(OTHER_ROBOT)
            self._vehicle.listing = listing
        elif listing != self._vehicle.listing:
            self._vehicle.listing = listing
            for number in self._control.holders:
                if not listing.subsystems[number].is_available:
                    self._control.revoke(number, now)

    def _follow_silence(self) -> None:
        """Report a silent robot, and send the answers that were held back once it is heard again."""
        self.reports.update_condition(
            SILENT_ROBOT,
            "The robot behind the bridge has been silent for a second" if self._is_robot_silent() else None,
            "keep-alives of drivers are answered when it is heard again",
        )
        for driver, answers in self._late_answers.items():
            answers.tick(driver.send)

    # Commands of drivers, on the link's thread.

    def _publish_speeds(self, speeds: Speeds) -> None:
        self.statistics.counts["commands"] += 1
        self._last_word.publish(self._commands_publisher, self._skid_steer.twist(speeds))

    def _switch_light(self, number: int, is_on: bool) -> None:
        topic = LIGHT_TOPIC if self._listed else light_topics(self._vehicle.subsystems)[number]
        self.publish(self._lights[topic], Bool(data=is_on))


class _DriverClient:
    """One driver's connection, whose events the node tracks."""

    def __init__(self, node: RobotServer, conversation: Conversation) -> None:
        self._node = node
        self._conversation = conversation
        self._is_heard = False  # and the node has not been told

    @property
    def inside_message(self) -> bool:
        return self._conversation.inside_message

    def receive_data(self, data: bytes) -> None:
        if time.monotonic() - self._conversation.driver.last_heard_s > STALL_S:
            self._node.halt_silent()
        self._conversation.receive_data(data)

    def handle_next(self) -> bool:
        """See Client. Raises ProtocolError or HangUpError."""
        try:
            is_handled = self._conversation.handle_next()
        except ProtocolError as error:
            self._reject(error)
            raise
        self._is_heard |= is_handled
        return is_handled

    def flush(self) -> None:
        """Note what has changed, once per turn."""
        if self._is_heard:
            self._is_heard = False
            self._node.heard()

    def receive_eof(self) -> None:
        """Handle the end of the driver's stream. Raises ProtocolError."""
        try:
            self._conversation.receive_eof()
        except ProtocolError as error:
            self._reject(error)
            raise

    def leave(self, reason: str) -> None:
        self._conversation.leave(reason)
        self._node.gone(self._conversation.driver)

    def _reject(self, error: ProtocolError) -> None:
        sentence = f"{self._conversation.driver}: {error} The connection is closed, as its bytes can't be trusted."
        self._node.count_and_warn("rejected input", sentence)


def _now() -> Instant:
    return Instant(time.monotonic(), time.time_ns() // 1_000_000)


def main() -> int:
    """Run the node."""
    return run(RobotServer)
