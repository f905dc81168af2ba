# SPDX-License-Identifier: Apache-2.0
"""robot_server: the robot's side of the robot protocol, as a ROS 2 node. See docs/robot.md."""

import asyncio
import contextlib
import functools
import math
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from geometry_msgs.msg import Twist
from rclpy.publisher import Publisher
from std_msgs.msg import Bool

from drone_bridge.net.connector import Backoff, Cancellation, LinkCancelledError, LinkError, Wakeup
from drone_bridge.net.tcp_clients import Connection, TcpClients
from drone_bridge.robot.codec import (
    DISCOVERY_GROUP,
    PROTOCOL_VERSION,
    TCP_PORT,
    FirmwareInfo,
    FromRobot,
    KeepAlive,
    Sensor,
    SubsystemType,
)
from drone_bridge.robot.device.control import (
    HEADLIGHT,
    MAX_DRIVERS,
    TRACKS,
    Control,
    DrivenSubsystem,
    Driver,
    HangUpError,
    Instant,
    RobotConversation,
)
from drone_bridge.robot.device.dialects import Dialect, Protocol1Control, RobotdControl
from drone_bridge.robot.discovery import DiscoveryResponder, DiscoveryRoute
from drone_bridge.robot.server.sources import (
    LIGHT_TOPIC,
    NONE,
    ListedSources,
    Listing,
    LogLines,
    SensorSubscriptions,
    SensorValues,
    check_topics,
    light_topics,
    listing_of_parameters,
    readings_of,
)
from drone_bridge.robot.topics import (
    BARE_TABLE,
    DISCOVERY_UDP_PORT,
    SKID_STEER,
    STOPPED,
    TABLE,
    SkidSteer,
    Speeds,
    Translation,
)
from drone_bridge.ros.common_parameters import NEUTRAL_TIME, common_parameters
from drone_bridge.ros.last_word import LastWord
from drone_bridge.ros.link_node import AFTER_STALLS, Endpoint, LinkNode, repeat_farewell
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import PROCESS, LoopSettling
from drone_bridge.wire.events import ProtocolError


class Lists(str, Enum):
    """The source of the lists of subsystems and sensors."""

    PARAMETERS = "parameters"
    TOPICS = "topics"


def _check_names(names: Sequence[str]) -> str | None:
    if len(set(names)) < len(names) or not all(names):
        return f"is {list(names)}, and must be distinct names, or {NONE}."
    return None


#: A driver that sends keep-alives every 0.5 s may miss one.
_COMMON = tuple(
    replace(
        declaration,
        default=1.0,
        meaning="Seconds without a packet from a driver, keep-alives included, after which what it drives stops.",
    )
    if declaration.name == "command_timeout"
    else declaration
    for declaration in common_parameters(TCP_PORT, "The port to listen on for drivers.", ("listen",), 1.5)
)

PARAMETERS = (
    *_COMMON,
    ParameterDeclaration(
        "dialect",
        Dialect.DOCUMENT.value,
        "The variant of the protocol that drivers are served.",
        choices=tuple(dialect.value for dialect in Dialect),
    ),
    ParameterDeclaration(
        "driver_timeout",
        2.0,
        "Seconds of silence after which a driver is dropped and its subsystems are freed; 0 for never.",
        range=(0.0, 3600.0),
        live=True,
    ),
    *SKID_STEER,
    ParameterDeclaration(
        "command_rate",
        20.0,
        "Rate of cmd_vel while the robot is driven, Hz; drivers send changes only.",
        range=(1.0, 200.0),
    ),
    ParameterDeclaration(
        "lists_from",
        Lists.PARAMETERS.value,
        "The source of the lists of subsystems and sensors: the parameters below, or the topics subsystems and sensors "
        "as published by robot_bridge.",
        choices=tuple(lists.value for lists in Lists),
    ),
    ParameterDeclaration("skid_steer", TRACKS, f"The skid steer's name as shown to drivers; {NONE} for no drive."),
    ParameterDeclaration(
        "lights",
        [HEADLIGHT],
        f"The lights' names as shown to drivers, or {NONE}; the first one is on light, others on light/<name>.",
        check=_check_names,
    ),
    ParameterDeclaration(
        "sensors",
        ["battery_state"],
        "Topics of sensors in list order, followed by = and the name shown to drivers where that is not the topic's "
        f"last part: battery_state, temperature/left_motor, motor_pwm/m1=Sabertooth M1. {NONE} for no sensors.",
        check=check_topics,
    ),
    ParameterDeclaration(
        "full_voltage", 12.6, "Voltage of a full battery as reported to drivers, V.", range=(0.1, 1000.0)
    ),
    ParameterDeclaration(
        "bare_floats", False, "Expect currents and PWM as std_msgs/Float32, as robot_bridge can publish them."
    ),
    NEUTRAL_TIME,
    ParameterDeclaration(
        "source_timeout",
        5.0,
        "Seconds after which a sensor's last value is no longer reported as current.",
        range=(0.05, 3600.0),
        live=True,
    ),
    ParameterDeclaration(
        "sensor_period",
        0.1,
        "Minimum seconds between packets of readings; each contains the values that are new.",
        range=(0.0, 60.0),
        live=True,
    ),
    ParameterDeclaration(
        "log_nodes",
        [NONE],
        f"Nodes whose /rosout lines are forwarded as the robot's log, for instance /robot/robot_bridge, or {NONE}.",
    ),
    ParameterDeclaration("robot_name", "", "The name in discovery replies; empty for the host name."),
    ParameterDeclaration("discovery", True, "Answer discovery requests."),
    ParameterDeclaration(
        "discovery_address",
        DISCOVERY_GROUP,
        "The multicast group to join for discovery, or an address of this machine.",
    ),
    DISCOVERY_UDP_PORT,
    ParameterDeclaration(
        "discovery_interface",
        "127.0.0.1",
        "The address of the network interface for discovery; 127.0.0.1 for drivers on this machine, by whatever route, "
        "0.0.0.0 for all.",
    ),
)


# Schedules the publication of drivers' commands. Times are passed in, in s of a monotonic clock.


#: How often a stop is published, as messages may be lost.
STOPS = 3
#: Minimum time between published changes of speed; stopping is never delayed.
LEAST_GAP_S = 0.01


class DriveCommands:
    """Repeats speeds while the robot moves, as drivers only send changes, and a stop a few times."""

    def __init__(self, period_s: float, publish: Callable[[Speeds], None]) -> None:
        """`period_s`: between repetitions."""
        self._period_s = period_s
        self._publish = publish
        self._speeds = STOPPED
        self._left = 0  # stops to publish
        self._published_s = -math.inf
        #: When `tick` is due.
        self.due_s = math.inf

    @property
    def is_moving(self) -> bool:
        """Whether the last command was anything but a stop."""
        return self._speeds != STOPPED

    def drive(self, speeds: Speeds, now_s: float) -> None:
        if speeds == self._speeds and self.due_s < math.inf:
            return
        self._speeds, self._left = speeds, STOPS
        self.due_s = now_s if speeds == STOPPED else max(now_s, self._published_s + LEAST_GAP_S)
        self.tick(now_s)

    def stop(self, now_s: float) -> None:
        """Stop if the robot moves."""
        if self.is_moving:
            self.drive(STOPPED, now_s)

    def tick(self, now_s: float) -> None:
        """Publish what is due."""
        if now_s < self.due_s:
            return
        self._published_s = now_s
        self._left -= not self.is_moving
        self.due_s = now_s + self._period_s if self._left else math.inf
        self._publish(self._speeds)


# The robot in ROS as drivers control it. For the link's thread.


class RosVehicle:
    """A RobotVehicle made of topics: commands are published, sensor values subscribed to."""

    def __init__(
        self,
        listing: Listing,
        values: SensorValues,
        commands: DriveCommands,
        switch_light: Callable[[int, bool], None],
        allowed_age_s: Callable[[], float],
    ) -> None:
        """`switch_light` takes the number of a subsystem; `allowed_age_s` is how long a value stays current."""
        self.listing = listing
        self._values, self._commands = values, commands
        self._switch_light, self._allowed_age_s = switch_light, allowed_age_s

    @property
    def subsystems(self) -> Sequence[DrivenSubsystem]:
        return self.listing.subsystems

    def drive(self, number: int, left: int, right: int) -> None:
        """Publish a command. All skid steers share one topic, as in robot_bridge."""
        del number
        self._commands.drive(Speeds(left, right), time.monotonic())

    def stop(self, number: int) -> None:
        """Publish a stop, if the robot moves."""
        del number
        self._commands.stop(time.monotonic())

    def light(self, number: int, is_on: bool) -> None:
        """Publish the state of a light."""
        if self.listing.subsystems[number].type == SubsystemType.LIGHTS:
            self._switch_light(number, is_on)

    def sensors(self) -> list[Sensor]:
        """Return every sensor, with its value if that is fresh."""
        now_s, allowed_s = time.monotonic(), self._allowed_age_s()
        return [
            replace(source.sensor, value=self._values.current(number, now_s, allowed_s))
            for number, source in enumerate(self.listing.sources)
        ]


# Answers to keep-alives that wait for the robot: for the link's thread.


_MOST = 100  # per driver: ten seconds' worth at usual rates


class LateAnswers:
    """Keeps back the answers to one driver's keep-alives while the robot behind a bridge says nothing.

    As with a direct connection to the robot, they come late, or not at all.
    """

    def __init__(self, is_silent: Callable[[], bool]) -> None:
        self._is_silent = is_silent
        self._kept: deque[KeepAlive] = deque(maxlen=_MOST)

    def keeps(self, packet: FromRobot) -> bool:
        """Return whether a packet is kept back."""
        if not isinstance(packet, KeepAlive) or not self._is_silent():
            return False
        self._kept.append(packet)
        return True

    def tick(self, send: Callable[[FromRobot], None]) -> None:
        """Send what was kept back once the robot is heard again; `send` sends to the driver, by way of `keeps`."""
        while self._kept and not self._is_silent():
            send(self._kept.popleft())


# The endpoint for drivers: answers discovery requests and serves all connected drivers.


#: How long drivers have to read the last packets when the server ends.
GOODBYE_S = 0.1
_LONGEST_WAIT_S = 3600.0


class Drivers:
    """All connected drivers, as the one peer of a link node."""

    def __init__(self, endpoint: "DriverEndpoint", peer: str) -> None:
        self._endpoint = endpoint
        #: The first driver.
        self.peer = peer
        self._has_ended = False

    def serve(self) -> None:
        """Serve until no driver is connected, or the link is cancelled."""
        self._has_ended = self._endpoint.serve()

    def close(self) -> None:
        """Close all connections that are still open."""
        if not self._has_ended:
            self._has_ended = True
            self._endpoint.hang_up()


class DriverEndpoint:
    """An asyncio loop on the link's thread. `open` waits for the first driver, `serve` until the last one is gone."""

    def __init__(
        self,
        clients: TcpClients,
        responder: DiscoveryResponder | None,
        cancellation: Cancellation,
        wakeup: Wakeup,
        *,
        tick: Callable[[float], float],
        may_be_found: Callable[[], bool],
        on_found: Callable[[str], None],
        on_fault: Callable[[str], None],
    ) -> None:
        """Prepare to serve.

        Args:
            clients: the TCP server.
            responder: answers discovery requests; None for no discovery.
            cancellation: ends all waiting.
            wakeup: triggers `tick`.
            tick: does what is due at a time (time.monotonic), and returns when it is due next.
            may_be_found: returns whether discovery requests are to be answered.
            on_found: gets the address of each peer that was answered.
            on_fault: gets a sentence about each internal error.
        """
        self._clients, self._responder, self._cancellation, self._wakeup = clients, responder, cancellation, wakeup
        self._tick, self._may_be_found, self._on_found, self._on_fault = tick, may_be_found, on_found, on_fault
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._report_fault)
        self._changed = asyncio.Event()
        #: Whether what drivers say may have waited while this process stood still.
        self.settling = LoopSettling(self._loop)
        self.backoff = Backoff()

    @property
    def port(self) -> int:
        return self._clients.port

    def changed(self) -> None:
        """Trigger `tick`. For the link's thread."""
        self._changed.set()

    def open(self) -> Drivers:
        """Wait for a driver. Raises LinkCancelledError."""
        while True:
            self._run_until(lambda: bool(self._clients.connections))
            if self._cancellation.is_set:
                raise LinkCancelledError("Waiting for drivers was cancelled.")
            if connections := self._clients.connections:  # else it had reset its connection before the loop ended
                return Drivers(self, connections[0].peer)

    def serve(self) -> bool:
        """Serve until no driver is connected or the link is cancelled; return whether no driver is connected."""
        while self._clients.connections and not self._cancellation.is_set:
            # A driver may connect in the same turn of the loop in which the last one disconnects.
            self._run_until(lambda: not self._clients.connections)
        return not self._clients.connections

    def hang_up(self) -> None:
        """Close all connections after sending what is queued."""
        if self._clients.connections:
            self._clients.hang_up()
            self._loop.run_until_complete(asyncio.sleep(GOODBYE_S))

    def close(self) -> None:
        """Release everything, once the link's thread has ended."""
        self._clients.close()
        if self._responder:
            self._responder.close()
        self._loop.close()

    def _run_until(self, is_done: Callable[[], bool]) -> None:
        self._loop.run_until_complete(self._turn_until(is_done))

    async def _turn_until(self, is_done: Callable[[], bool]) -> None:
        await self._clients.start()
        with contextlib.ExitStack() as stack:
            self._watch(self._cancellation, self._changed.set, stack)
            self._watch(self._wakeup, self._wake, stack)
            for opened in self._responder.sockets if self._responder else ():
                self._watch(opened, functools.partial(self._answer, opened), stack)
            while not self._cancellation.is_set and not is_done():
                self._changed.clear()
                wait_s = self._tick(time.monotonic()) - time.monotonic()
                if wait_s > 0 and not self._cancellation.is_set and not is_done():
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), min(wait_s, _LONGEST_WAIT_S))
                else:
                    await asyncio.sleep(0)

    def _watch(self, file: Any, callback: Callable[[], None], stack: contextlib.ExitStack) -> None:
        self._loop.add_reader(file.fileno(), callback)
        stack.callback(self._loop.remove_reader, file.fileno())

    def _wake(self) -> None:
        self._wakeup.clear()
        self._changed.set()

    def _answer(self, readable: socket.socket) -> None:
        assert self._responder
        for peer in self._responder.answer(readable, is_silent=not self._may_be_found()):
            self._on_found(peer)

    def _report_fault(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        self._on_fault(f"{context.get('message')}: {error!r}" if error else str(context.get("message")))


# The node.


#: As told to drivers in packet 0x09.
FIRMWARE = FirmwareInfo("drone_bridge", "0.2", PROTOCOL_VERSION)
ROBOT_GONE = "the robot behind this server is not available"
OTHER_ROBOT = "the subsystems or sensors of the robot behind this server have changed"
#: The condition of a robot behind a bridge that says nothing.
SILENT_ROBOT = "silent robot"
#: How long a driver may take for its first packet, with `driver_timeout: 0` as well: drivers send keep-alives at once.
FIRST_MESSAGE_S = 10.0
#: Maximum delay in noticing the silence of a driver that does not drive.
WATCH_PERIOD_S = 0.25


class RobotServer(LinkNode):
    """Lets legacy drivers control a robot in ROS, and sends them its sensor readings."""

    rates = ("commands", "readings")
    problems = (
        *LinkNode.problems,
        AFTER_STALLS,
        "silent drivers",
        "dropped drivers",
        "dropped messages",
        "unknown values",
    )

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
        table, translation = BARE_TABLE if get("bare_floats") else TABLE, Translation()
        subscriptions = SensorSubscriptions(self, table, translation, self._values, self._wakeup.wake)
        self.cleanup.callback(subscriptions.close)
        if is_listed:
            self._listed: ListedSources | None = ListedSources(self, translation, subscriptions, self._wakeup.wake)
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
        conversation = RobotConversation(
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
        """Stop what silent drivers drive, and after a stall what all drive; also before what they say next is read."""
        if self._endpoint.settling.look():
            for driver in self._control.halt_all(_now()):
                sentence = f"This process stood still: what {driver} drives is stopped until it is heard again."
                self.count_and_warn(AFTER_STALLS, sentence)
            return
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

    def __init__(self, node: RobotServer, conversation: RobotConversation) -> None:
        self._node = node
        self._conversation = conversation
        self._is_heard = False  # and the node has not been told

    @property
    def inside_message(self) -> bool:
        return self._conversation.inside_message

    def receive_data(self, data: bytes) -> None:
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
