# SPDX-License-Identifier: Apache-2.0
"""robot_bridge: the driver's side of the robot protocol, as a ROS 2 node. See docs/robot.md."""

import contextlib
import getpass
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.publisher import Publisher
from rclpy.task import Future
from std_msgs.msg import Bool
from std_srvs.srv import SetBool

from drone_bridge.msg import Robot
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError, LinkTimeoutError
from drone_bridge.net.tcp import TcpStream, Wakeup
from drone_bridge.robot import codec
from drone_bridge.robot.bridge.session import (
    FIRST,
    MAY_MOVE,
    DesiredSubsystems,
    Obstruction,
    OtherDrivers,
    RobotSession,
)
from drone_bridge.robot.codec import STOPPED, Speeds
from drone_bridge.robot.discovery import DiscoveryConnector, DiscoveryRoute, find_robots
from drone_bridge.robot.topics import (
    DISCOVERY_UDP_PORT,
    MAX_SENSORS,
    ROBOT_SAYS,
    SKID_STEER,
    TABLE,
    TOPIC_OF_TYPE,
    SkidSteer,
    Translation,
)
from drone_bridge.ros.command_topics import CommandTopics
from drone_bridge.ros.common_parameters import (
    common_parameters,
    frame_names,
    frame_parameters,
)
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.frames import AXES, FrameNames, OdometryCovariances
from drone_bridge.ros.limits import limit_parameters
from drone_bridge.ros.link_node import Endpoint, LinkNode
from drone_bridge.ros.link_requests import LinkRequest, LinkRequests, ServiceResult, complete
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import Resumptions
from drone_bridge.ros.tcp_link_node import TcpLinkNode
from drone_bridge.ros.topics import NO_EVENTS, Topic, TopicPublishers
from drone_bridge.ros.wheel_odometry import POSE_VARIANCES, TWIST_VARIANCES, WheelOdometry
from drone_bridge.session.arbiter import Decision
from drone_bridge.srv import Bind, Discover, Unbind
from drone_bridge.wire.layouts import printable


def _check_variances(values: Sequence[float]) -> str | None:
    if len(values) != AXES or not all(math.isfinite(value) and value >= 0.0 for value in values):
        return f"is {list(values)}, and must be {AXES} finite, non-negative numbers."
    return None


PARAMETERS = (
    *common_parameters(codec.TCP_PORT, "The robot's port.", roles=("connect",), silence_warning_s=1.5),
    ParameterDeclaration(
        "robot_name", "", "Connect to the robot of this name, at the address that discovery finds, instead of to host."
    ),
    ParameterDeclaration(
        "driver_name", "", "The driver's name, shown to the robot and its other drivers; empty for the user's name."
    ),
    ParameterDeclaration(
        "skid_steer", [FIRST], "The skid steers to bind: first, all, none, names, or numbers in the robot's list."
    ),
    ParameterDeclaration(
        "lights", [FIRST], "The lights to bind: first, all, none, names, or numbers in the robot's list."
    ),
    *SKID_STEER,
    ParameterDeclaration(
        "max_update_rate",
        50.0,
        "Maximum speed updates per second; stopping is never delayed.",
        range=(1.0, 1000.0),
        live=True,
    ),
    ParameterDeclaration(
        "link_timeout",
        2.0,
        "Seconds of silence after which the connection counts as lost and is reopened.",
        (0.6, 60.0),
    ),
    ParameterDeclaration(
        "discovery_address",
        codec.DISCOVERY_GROUP,
        "Where discovery requests are sent: a multicast group, or the address of one robot.",
    ),
    DISCOVERY_UDP_PORT,
    ParameterDeclaration(
        "discovery_interface",
        "127.0.0.1",
        "The address of the network interface for discovery; 0.0.0.0 leaves the choice to the system.",
    ),
    ParameterDeclaration(
        "discovery_timeout", 1.0, "Seconds to collect discovery replies.", range=(0.05, 60.0), live=True
    ),
    ParameterDeclaration(
        "publish_odometry",
        True,
        "Publish odom by dead reckoning from the commands. Disable it where something measures odometry.",
    ),
    *frame_parameters("publish_map_to_odom", "map_frame"),
    *limit_parameters(is_drone=False, can_climb=False),
    # Commanded, not measured: the pose drifts without limit, the velocity is known roughly.
    ParameterDeclaration(
        "twist_covariance_diagonal",
        list(TWIST_VARIANCES),
        "Variances of the twist on odom: x, y, z, then about x, y, z. Large values mean unknown.",
        check=_check_variances,
    ),
)


# Odometry from the speeds that a robot was sent, as it reports none of its own.

ODOMETRY_RATE = 20.0  # messages per second


class DeadReckoning:
    """Publishes odom and its transform, if `publish_odometry` is true. For the link's thread."""

    def __init__(self, node: LinkNode, translation: Translation, skid_steer: SkidSteer) -> None:
        self._node, self._skid_steer = node, skid_steer
        is_wanted = node.parameters["publish_odometry"]
        self._period_s = 1 / ODOMETRY_RATE if is_wanted else math.inf
        rows = [row for row in TABLE.rows if is_wanted and row.of is WheelOdometry]
        self._publishers = TopicPublishers(node, rows, translation)

    def reset(self) -> None:
        """Return to the origin."""
        self._odometry = WheelOdometry()

    def begin(self, now_s: float) -> None:
        """Begin a conversation, with the robot where it was; times are of a monotonic clock, in s."""
        self._moved_s = now_s
        #: When `publish_if_due` is.
        self.due_s = now_s + self._period_s

    def move(self, speeds: Speeds, now_s: float) -> None:
        """Follow the speeds that the robot has had since the last call."""
        self._odometry.advance(now_s - self._moved_s, *self._skid_steer.motion(speeds))
        self._moved_s = now_s

    def publish_if_due(self, now_s: float, *, is_known: bool) -> None:
        """Publish the odometry at its rate; nothing while it is not known how the robot moves."""
        if now_s >= self.due_s:
            self.due_s = max(self.due_s + self._period_s, now_s)
            if not is_known:
                return
            self._node.observed.measured(*self._odometry.motion)
            self._publishers.publish(self._odometry, self._node.now())


# A topic for each sensor of a robot, which are known only once it is connected.


#: DDS never frees all of a destroyed topic, so there is a limit for the life of the node, on the number of names and on
#: how often they return.
MAX_NAMES_EVER = 128
MAX_RETURNS = 128  # at once
RETURNS_PER_S = 0.1  # in the long run


class TopicBudget:
    """Limits the topics created over all robots and connections of a node. For the link's thread."""

    def __init__(self) -> None:
        self._known: set[tuple[str, type]] = set()
        self._returns = float(MAX_RETURNS)
        self._updated_s = time.monotonic()

    def grants(self, topic: str, message_type: type) -> bool:
        """Return whether a publisher may be created, and count it."""
        if (topic, message_type) not in self._known:
            if len(self._known) >= MAX_NAMES_EVER:
                return False
            self._known.add((topic, message_type))
            return True
        now_s = time.monotonic()
        self._returns = min(MAX_RETURNS, self._returns + (now_s - self._updated_s) * RETURNS_PER_S)
        self._updated_s = now_s
        if self._returns < 1:
            return False
        self._returns -= 1
        return True


class SensorTopics:
    """Publishers by topic, kept while the robot lists the sensor. For the link's thread."""

    def __init__(self, node: LinkNode, translation: Translation, budget: TopicBudget) -> None:
        self._node, self._translation, self._budget = node, translation, budget
        self._publishers: dict[str, tuple[type, Publisher[Any]]] = {}
        self._forget()

    def _forget(self) -> None:
        #: The newest list.
        self.info = codec.SensorInfo(())
        self._is_listed = False
        self._unheard: dict[int, Any] = {}  # messages by sensor that were not published yet
        self._topics: list[str] = []  # of each sensor in the list; empty for none

    def update(self, info: codec.SensorInfo) -> None:
        """Create and destroy topics for a new list, and offer its values."""
        self.info, self._is_listed = info, True
        self._translation.withheld = ()
        wanted = {topic: TABLE.row(topic) for topic in self._translation.sensor_topics(info) if topic}
        withheld = self._translation.withheld = self._make_topics(wanted)
        left_out = sum(sensor.type in TOPIC_OF_TYPE for sensor in info.sensors) - len(wanted)
        for number, reason in (
            (left_out, f"the limit is {MAX_SENSORS}"),
            (
                len(withheld),
                f"the robot renames them too often, and this node makes topics of {MAX_NAMES_EVER} names at most",
            ),
        ):
            if number:
                self._node.count_and_warn("sensors without a topic", f"{number} sensors get no topic: {reason}.")
        self._topics = self._translation.sensor_topics(info)
        messages = {number: self._message(number, sensor) for number, sensor in enumerate(info.sensors)}
        self._unheard = {number: message for number, message in messages.items() if message is not None}
        for number, message in self._unheard.items():
            if _is_battery(info.sensors[number]):  # for who comes later: not every robot sends readings
                self._node.publish(self._publishers[self._topics[number]][1], message)
        self.offer()

    def _make_topics(self, wanted: Mapping[str, Topic]) -> set[str]:
        """Create the topics that are wanted and destroy others; return those for which there is no room."""
        for topic in tuple(self._publishers):
            if topic not in wanted or wanted[topic].message is not self._publishers[topic][0]:
                self._destroy(topic)
        withheld = set()
        for topic, row in wanted.items():
            if topic in self._publishers:
                continue
            if not self._budget.grants(topic, row.message):
                withheld.add(topic)
                continue
            # Without QoS override parameters, which would pile up with a hostile robot's names.
            made: Publisher[Any] = self._node.create_publisher(row.message, topic, row.qos(), event_callbacks=NO_EVENTS)
            self._publishers[topic] = row.message, made
        return withheld

    def offer(self) -> None:
        """Publish each value of the list once, as soon as there is a subscriber.

        A topic that has just been made has no listeners yet, and not every robot sends readings later.
        """
        for number in tuple(self._unheard):
            publisher = self._publishers[self._topics[number]][1]
            if self._node.is_wanted(publisher):
                self._node.publish(publisher, self._unheard.pop(number))

    def read(self, update: codec.SensorUpdate) -> None:
        """Publish the newest reading of each sensor."""
        if not self._is_listed:
            return  # some robots send readings before the list
        sensors = self.info.sensors
        if not update.has_ids and len(update.readings) != len(sensors):
            self._node.count_and_warn(
                "unknown sensors",
                f"The robot sent {len(update.readings)} readings without ids, and has {len(sensors)} sensors.",
            )
            return
        newest = {reading.sensor: reading.value for reading in update.readings}
        known = {number: value for number, value in newest.items() if number < len(sensors)}
        if len(known) < len(newest):
            self._node.count_and_warn("unknown sensors", "The robot sent readings of sensors that it has not listed.")
        for number, value in known.items():
            self._publish(number, replace(sensors[number], value=value))

    def close(self) -> None:
        for topic in tuple(self._publishers):
            self._destroy(topic)
        self._forget()

    def _publish(self, number: int, sensor: codec.Sensor) -> None:
        self._unheard.pop(number, None)
        if topic := self._topics[number]:
            publisher = self._publishers[topic][1]
            if _is_battery(sensor) or self._node.is_wanted(publisher):
                self._node.publish(publisher, self._message(number, sensor))

    def _message(self, number: int, sensor: codec.Sensor) -> Any:
        """Return what a sensor says on its topic; None for nothing, and without a topic."""
        topic = self._topics[number]
        to_ros = TABLE.row(topic).to_ros if topic else None
        return to_ros(self._translation, sensor, self._node.now()) if to_ros else None

    def _destroy(self, topic: str) -> None:
        _, publisher = self._publishers.pop(topic)
        self._node.destroy_publisher(publisher)


def _is_battery(sensor: codec.Sensor) -> bool:
    """Return whether a sensor's topic is latched."""
    return sensor.type == codec.SensorType.BATTERY


# The services of robot_bridge and the topic light, as requests to the link's thread.


BIND, UNBIND, LIGHT = "bind", "unbind", "light"


class Task(NamedTuple):
    """A request to the link's thread."""

    kind: str  # one of the above
    number: int  # the id of a subsystem, or whether lights are on


class RobotServices:
    """Always available; they return an error until a robot is connected."""

    def __init__(self, node: LinkNode, wake: Callable[[], None], read_route: Callable[[], DiscoveryRoute]) -> None:
        """`wake` wakes the link's thread; `read_route` returns the route for discovery."""
        self._node = node
        self._wake = wake
        self._read_route = read_route
        self._discovery: Future[Discover.Response] | None = None
        # Reentrant, as callbacks wait.
        group = ReentrantCallbackGroup()
        self.link_requests: LinkRequests[Task] = LinkRequests(node, "robot")
        node.make_service(Discover, "discover", self._serve_discover, callback_group=group)
        for task, service in ((BIND, Bind), (UNBIND, Unbind), (LIGHT, SetBool)):
            node.make_service(service, task, partial(self._run, task), callback_group=group)

    def switch_light(self, message: Bool) -> None:
        """Switch the light as the service does, without a response."""
        try:
            self._node.check_age("light")
            link_request = self.link_requests.submit(Task(LIGHT, int(message.data)))
        except ValueError as error:
            self._refuse_light(str(error))
            return
        link_request.result.add_done_callback(self._report_light)
        self._wake()

    def _report_light(self, done: "Future[ServiceResult]") -> None:
        answer = done.result()
        if answer and not answer.success:
            self._refuse_light(answer.message)

    def _refuse_light(self, reason: str) -> None:
        self._node.count_and_warn("refused commands", f"A message on light was refused: {reason}")

    async def _run(self, task: str, request: Any, response: Any) -> Any:
        """Run a task on the link's thread, and fill the response."""
        number = int(request.data) if task == LIGHT else request.id
        try:
            self._node.check_age(task)
            link_request = self.link_requests.submit(Task(task, number))
        except ValueError as error:
            response.success, response.message = False, str(error)
            return response
        self._wake()
        response.success, response.message = await link_request.result  # type: ignore[misc]
        return response

    async def _serve_discover(self, _: Discover.Request, response: Discover.Response) -> Discover.Response:
        """Run discovery, once for all concurrent callers."""
        discovery = self._discovery
        if discovery is None:
            discovery = self._discovery = Future()
            threading.Thread(target=self._discover, args=[discovery], name="discover", daemon=True).start()
        return await discovery or response

    def _discover(self, answer: "Future[Discover.Response]") -> None:
        response = Discover.Response()
        cancellation = Cancellation()
        try:
            route = self._read_route()
            found = find_robots(route, self._node.parameters["discovery_timeout"], cancellation)
            response.robots = [Robot(address=robot.address, name=printable(robot.name)) for robot in found]
            response.success, response.message = True, f"{len(found)} answered."
            if not found and route.is_on_loopback:
                response.message += f" Only this machine was asked: discovery_interface is {route.interface}."
        except (LinkError, ValueError) as error:
            response.message = str(error)
        finally:
            cancellation.close()
            self._discovery = None
            complete(self._node, answer, response)


# The node.


#: How long the robot has to read the last packets and close.
LEAVE_TIMEOUT_S = 0.3
LIST_PERIOD_S = 0.1  # lists are not published more often
LONGEST_DRIVER_NAME = 255  # bytes
_RECEIVE_BYTES = 4096
#: Conditions in diagnostics.
OBSTRUCTION = "obstruction"
STANDSTILL = "standstill"
UNANSWERED_STOP = "unanswered stop"


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
        covariances = OdometryCovariances(POSE_VARIANCES, get("twist_covariance_diagonal"))
        self._translation = Translation(frame_names(self.parameters, FrameNames), covariances)
        self._route = self._read_route()
        self._robot_log = LogLimiter()

        self._sensors_publisher, self._subsystems_publisher = (
            self.make_publisher(row.message, row.name, row.qos()) for row in map(TABLE.row, ("sensors", "subsystems"))
        )
        self._sensor_topics = SensorTopics(self, self._translation, self._topic_budget)
        self.cleanup.callback(self._sensor_topics.close)
        self._dead_reckoning = DeadReckoning(self, self._translation, self._skid_steer)
        self._commands: CommandTopics[Speeds] = CommandTopics(self, on_command=self._wakeup.wake)
        self._commands.take_velocities(self._skid_steer.speeds, ("linear.x", "angular.z"))
        self.make_subscription(Bool, "light", self._operator_services.switch_light, depth=1)

    def make_endpoint(self, cancellation: Cancellation) -> Endpoint:
        """Connect to a host, or to a robot found by name."""
        get = self.parameters.__getitem__
        self._desired = DesiredSubsystems(get("skid_steer"), get("lights"))
        self._others = OtherDrivers(self._driver_name)
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
        self._commands.arbiter.forget()
        self._operator_services.link_requests.open()

    def converse(self, stream: TcpStream) -> None:
        """Drive until either side ends the connection, and leave the robot stopped in any case."""
        now_s = time.monotonic()
        connection = codec.DriverConnection()
        session = RobotSession(self._desired, self._others, self._link_timeout_s, self, now_s)
        self._updated_s = now_s
        self._dead_reckoning.begin(now_s)
        self._lists_due_s = math.inf
        self._obstruction: Obstruction | None = None
        self._standstill_reason: str | None = None
        self._may_move = False
        reason = "The connection to the robot ended."
        try:
            self._exchange(stream, connection, session)
        except LinkError as error:
            reason = self._explain(error, session)
            raise type(error)(reason) from error
        finally:
            last_words = (self._encoded(connection, packet) for packet in session.farewell())
            stream.leave([session.unsent, *codec.in_pieces(last_words)], LEAVE_TIMEOUT_S)
            session.end(reason)
            self._end_conditions()
            self._operator_services.link_requests.close(reason)
            self._publish_lists(session)

    def _exchange(self, stream: TcpStream, connection: codec.DriverConnection, session: RobotSession) -> None:
        buffer = memoryview(bytearray(_RECEIVE_BYTES))
        send = partial(stream.send_all, timeout_s=self._link_timeout_s, head_bytes=codec.HEADER_BYTES)
        resumptions = Resumptions()

        def notice_stall() -> None:
            if resumptions.look():
                session.resume(time.monotonic())

        while True:
            notice_stall()  # before silence is judged, and before what has waited is
            self._do_what_is_due(session)
            session.flush(partial(self._encoded, connection), send, time.monotonic())
            is_readable = stream.wait(self._wakeup, max(0.0, self._due_s(session) - time.monotonic()))
            notice_stall()
            if not is_readable:
                self._wakeup.clear()
                continue
            if count := stream.receive_into(buffer, timeout_s=0.0):
                connection.receive_data(buffer[:count])
            else:
                connection.receive_eof()
            while (event := connection.next_event()) is not codec.NEED_DATA:
                if isinstance(event, codec.ConnectionClosed):
                    raise LinkError("The robot closed the connection.")
                self.statistics.counts["packets"] += 1
                if not isinstance(event, codec.UnknownPacket):  # which may mean anything
                    self.statistics.liveness.heard()
                session.handle(event, time.monotonic())

    def _encoded(self, connection: codec.DriverConnection, packet: codec.FromDriver) -> bytes:
        """Return the bytes of a packet; those of speeds of zero, or none, for one that can't be sent."""
        neutral = replace(packet, left=0, right=0) if isinstance(packet, codec.SkidSteerUpdate) else None
        return self.encode(connection.send, packet, neutral) or b""

    def _due_s(self, session: RobotSession) -> float:
        """Return when there is something to do, unless a packet arrives before."""
        due_s = min(session.due_s, self._dead_reckoning.due_s, self._lists_due_s)
        decision = self._commands.arbiter.decide(elapsed_s())
        if decision.command is not None:
            is_waiting = decision.command != session.driven and not session.has_backlog(time.monotonic())
            due_s = min(due_s, self._next_update_s() if is_waiting else self._stale_s(decision))
        return due_s

    def _do_what_is_due(self, session: RobotSession) -> None:
        now_s = time.monotonic()
        self._dead_reckoning.move(session.moving, now_s)
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
        self._dead_reckoning.publish_if_due(now_s, is_known=not self._may_move)

    def _drive(self, session: RobotSession, now_s: float) -> None:
        speeds = self._commands.arbiter.decide(elapsed_s()).command or STOPPED
        before = session.driven
        if speeds not in (STOPPED, before) and now_s < self._next_update_s():
            speeds = before
        if speeds != before:
            self._updated_s = now_s
        session.drive(speeds, now_s)
        if session.driven != before:
            self.statistics.counts["updates"] += 1

    # Conditions.

    def _update_conditions(self, session: RobotSession, now_s: float) -> None:
        obstruction = session.bindings.obstruction
        if obstruction != self._obstruction:
            self._obstruction = obstruction
            self._set_condition(OBSTRUCTION, obstruction and obstruction.sentence, bool(obstruction and obstruction[1]))
        is_bound = bool(session.bindings.bound_of(codec.SubsystemType.SKID_STEER))
        standstill_reason = session.standstill_reason(now_s) if is_bound else None
        if standstill_reason != self._standstill_reason:
            self._standstill_reason = standstill_reason
            self._set_condition(STANDSTILL, standstill_reason, is_error=False)
        if (may_move := session.may_move(now_s)) != self._may_move:
            self._may_move = may_move
            self._set_condition(UNANSWERED_STOP, MAY_MOVE if may_move else None, is_error=False)
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
        for name in (OBSTRUCTION, STANDSTILL, UNANSWERED_STOP):
            self.statistics.end_condition(name)

    def undeliverable(self) -> str | None:
        """Return why no command can move the robot now; None when one can. For the executor."""
        return super().undeliverable() or self._undrivable_reason

    def _explain(self, error: LinkError, session: RobotSession) -> str:
        """Return why the connection has ended, as a sentence. Sending may be what notices that the robot closed it."""
        attempts = session.bindings.attempts
        if not attempts or isinstance(error, (LinkCancelledError, LinkTimeoutError)):
            return str(error)
        return f"The robot closed the connection while {attempts} was being bound: {self._others.closing_explanation}."

    def _next_update_s(self) -> float:
        return self._updated_s + 1 / float(self.parameters["max_update_rate"])

    def _stale_s(self, decision: Decision[Speeds]) -> float:
        # A little later, when the command is really stale.
        age_s = elapsed_s() - (decision.arrived_s or 0.0)
        return time.monotonic() + float(self.parameters["command_timeout"]) - age_s + 1e-3

    def _do(self, link_request: LinkRequest[Task], session: RobotSession, now_s: float) -> None:
        def answer(success: bool, message: str) -> None:
            self._operator_services.link_requests.finish(link_request, ServiceResult(success, message))

        if link_request.task.kind == BIND:
            session.bindings.bind(link_request.task.number, now_s, answer)
        elif link_request.task.kind == UNBIND:
            session.bindings.unbind(link_request.task.number, answer)
        elif lights := session.bindings.bound_of(codec.SubsystemType.LIGHTS):
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

    def sensors_listed(self, info: codec.SensorInfo) -> None:
        self._sensor_topics.update(info)
        self.subsystems_changed()

    def sensors_read(self, update: codec.SensorUpdate) -> None:
        self._sensor_topics.read(update)

    def robot_logged(self, text: str) -> None:
        """Log a line of the robot without control characters."""
        if line := self._robot_log.admit(printable(text.strip())):
            self.get_logger().info(f"{ROBOT_SAYS}{line}")

    def firmware_identified(self, firmware: codec.FirmwareInfo) -> None:
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
            listed = (
                replace(each, driver=bindings.driver(number)) for number, each in enumerate(bindings.info.subsystems)
            )
            self._translation.bound = bindings.bound
            message = self._translation.subsystems(replace(bindings.info, subsystems=tuple(listed)), stamp)
            self.publish(self._subsystems_publisher, message)
        self.statistics.facts["bound subsystems"] = ", ".join(map(str, sorted(bindings.bound))) or "none"
        self.publish(self._sensors_publisher, self._translation.sensors(self._sensor_topics.info, stamp))


def _user_name() -> str:
    with contextlib.suppress(Exception):  # a user without a name; which exception that is depends on Python's version
        return getpass.getuser()
    return "drone_bridge"


def main() -> int:
    """Run the node."""
    return run(RobotBridge)
