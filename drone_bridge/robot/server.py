# SPDX-License-Identifier: Apache-2.0
"""robot_server: the robot's side of the robot protocol, as a ROS 2 node. See docs/robot_server.md.

The lists of subsystems and sensors are from parameters, or from robot_bridge's topics.
"""

import asyncio
import contextlib
import math
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

from geometry_msgs.msg import Twist
from rcl_interfaces.msg import Log
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool

from drone_bridge.msg import SensorArray, SubsystemArray
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation, LinkCancelledError, LinkError
from drone_bridge.net.tcp import Wakeup
from drone_bridge.net.tcp_clients import Connection, Listening, ListeningEndpoint, TcpClients
from drone_bridge.robot import codec
from drone_bridge.robot.device import (
    MAX_DRIVERS,
    TRACKS,
    Control,
    Dialect,
    DrivenSubsystem,
    HangUpError,
    Instant,
    Protocol1Control,
    RobotConversation,
    RobotdControl,
)
from drone_bridge.robot.discovery import MAX_NAME_BYTES, DiscoveryResponder, DiscoveryRoute
from drone_bridge.robot.topics import (
    DISCOVERY_UDP_PORT,
    LONGEST_NAME,
    MAX_SENSORS,
    ROBOT_SAYS,
    SKID_STEER,
    STOPPED,
    TABLE,
    TOPIC_OF_TYPE,
    ListedSubsystem,
    SensorSource,
    SkidSteer,
    Speeds,
    Translation,
)
from drone_bridge.ros.bridge_watch import BridgeWatch, publishing_nodes
from drone_bridge.ros.common_parameters import NEUTRAL_TIME, common_parameters
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.last_word import LastWord
from drone_bridge.ros.link_node import LinkNode, repeat_farewell
from drone_bridge.ros.parameters import ParameterDeclaration
from drone_bridge.ros.program import run
from drone_bridge.ros.stall_watch import PROCESS, LoopSettling
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.ros.topics import Topic
from drone_bridge.ros.velocity_messages import cmd_vel_type
from drone_bridge.session.session import AFTER_STALLS
from drone_bridge.wire.events import ProtocolError
from drone_bridge.wire.layouts import printable
from drone_bridge.wire.outgoing import UNENCODABLE

NONE = "none"
LIGHT_TOPIC = "light"
_MOTOR_FIELDS = {
    "battery": codec.SensorType.BATTERY,
    "temperature": codec.SensorType.THERMOMETER,
    "current": codec.SensorType.AMMETER,
    "pwm": codec.SensorType.MOTOR_PWM,
}
_TYPES_BY_TOPIC = {topic: codec.SensorType(kind) for kind, topic in TOPIC_OF_TYPE.items()}
#: Stands for a sensor that a motor lacks, for which a list has no other representation.
_NO_SENSOR = codec.Sensor(codec.SensorType.NULL, "none")


@dataclass(frozen=True, slots=True)
class Listing:
    """The subsystems and sensors of a robot."""

    subsystems: tuple[DrivenSubsystem, ...] = ()
    sources: tuple[SensorSource, ...] = ()

    @property
    def identity(self) -> tuple[object, ...]:
        """Everything but who holds what; if it changes, drivers face another robot."""
        return tuple((s.type, s.name, s.motors) for s in self.subsystems), self.sources


# From parameters.


def check_topics(entries: Sequence[str]) -> str | None:
    """Return what is wrong with the parameter sensors, or None."""
    if len(entries) > MAX_SENSORS:
        return f"has {len(entries)} topics; at most {MAX_SENSORS} are allowed."
    topics = [entry.partition("=")[0] for entry in entries if entry != NONE]
    for topic in topics:
        if topic.split("/")[0] not in _TYPES_BY_TOPIC:
            return f"has {topic!r}; sensor topics must begin with one of {', '.join(_TYPES_BY_TOPIC)}."
        if not re.fullmatch(r"[a-z_]+(/[A-Za-z_][A-Za-z0-9_]*)*", topic):
            return f"has {topic!r}, which is not a topic name."
    if len(set(topics)) < len(topics):
        return f"has a topic twice: {', '.join(topics)}."
    return None


def listing_of_parameters(
    skid_steer: str, lights: Sequence[str], sensors: Sequence[str], full_voltage: float
) -> Listing:
    """Return the lists given by parameters. `full_voltage` is in V.

    The skid steer comes last: robotd's Java driver, NetRobot, can't read a list that goes on after one.
    """
    sources = [_source(entry, full_voltage) for entry in sensors if entry != NONE]
    subsystems = [DrivenSubsystem(codec.SubsystemType.LIGHTS, name) for name in lights if name != NONE]
    if skid_steer != NONE:
        left, right = (_motor(side, sources) for side in ("left", "right"))
        subsystems.append(DrivenSubsystem(codec.SubsystemType.SKID_STEER, skid_steer, (left, right)))
    return Listing(tuple(subsystems), tuple(sources))


def _source(entry: str, full_voltage: float) -> SensorSource:
    topic, _, name = entry.partition("=")
    kind = _TYPES_BY_TOPIC[topic.split("/")[0]]
    name = name or ("battery" if "/" not in topic else topic.rpartition("/")[2].replace("_", " "))
    full_voltage_mv = round(1000 * full_voltage) if kind == codec.SensorType.BATTERY else None
    return SensorSource(codec.Sensor(kind, name[:LONGEST_NAME], full_voltage_mv=full_voltage_mv), topic)


def _motor(side: str, sources: list[SensorSource]) -> codec.MotorSensors:
    """Return the sensors of one side's motor: those whose names contain the side, and the first battery."""

    def find(kind: codec.SensorType) -> int:
        for number, source in enumerate(sources):
            names_side = side in f"{source.topic} {source.sensor.name}".lower()
            if source.sensor.type == kind and (names_side or kind == codec.SensorType.BATTERY):
                return number
        if sources[-1:] != [SensorSource(_NO_SENSOR)]:
            sources.append(SensorSource(_NO_SENSOR))
        return len(sources) - 1

    return codec.MotorSensors(**{field: find(kind) for field, kind in _MOTOR_FIELDS.items()})


def light_topics(subsystems: Sequence[DrivenSubsystem]) -> dict[int, str]:
    """Return the topic of each light by its number: light for the first, light/<name> for the others."""
    lights = [number for number, subsystem in enumerate(subsystems) if subsystem.type == codec.SubsystemType.LIGHTS]
    return {
        number: f"{LIGHT_TOPIC}/{topic_token(subsystems[number].name, f'light_{number}')}" if place else LIGHT_TOPIC
        for place, number in enumerate(lights)
    }


# From the topics of robot_bridge.


def driven(listed: Iterable[ListedSubsystem]) -> tuple[DrivenSubsystem, ...]:
    """Return the subsystems that robot_bridge lists; those that it has not bound are not available."""
    return tuple(
        DrivenSubsystem(
            codec.SubsystemType(subsystem.type),
            subsystem.name,
            (subsystem.left, subsystem.right) if subsystem.left and subsystem.right else None,
            is_available=is_bound,
            other_driver="" if is_bound else subsystem.driver,
        )
        for subsystem, is_bound in listed
    )


def is_robot_connected(message: SubsystemArray) -> bool:
    """Return whether the bridge is connected to a robot; otherwise no subsystem has a driver."""
    return any(subsystem.bound or subsystem.driver for subsystem in message.subsystems)


# The newest value of each sensor, passed from the executor to the link's thread.


#: Values received within this time are sent in one packet.
GATHER_S = 0.02


class _Value(NamedTuple):
    value: int
    heard_s: float  # by time.monotonic


class SensorValues:
    """Sensor values. Each is sent once, and listed as current only while it is fresh."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[int, _Value] = {}
        self._new: dict[int, int] = {}
        self._new_since_s = math.inf
        self._sent_s = -math.inf

    def clear(self) -> None:
        """Forget everything, as the sensors have changed. Thread-safe."""
        with self._lock:
            self._values.clear()
            self._new.clear()
            self._new_since_s = math.inf

    def put(self, sensor: int, value: int | None) -> None:
        """Set the value of a sensor, None if it is no longer known. Thread-safe."""
        now_s = time.monotonic()
        with self._lock:
            if value is None:
                self._values.pop(sensor, None)
                self._new.pop(sensor, None)
                return
            self._values[sensor] = _Value(value, now_s)
            self._new[sensor] = value
            self._new_since_s = min(self._new_since_s, now_s)

    def current(self, sensor: int, now_s: float, allowed_age_s: float) -> int | None:
        """Return the last value, if it is fresh."""
        with self._lock:
            last = self._values.get(sensor)
        return last.value if last and now_s - last.heard_s <= allowed_age_s else None

    def due_s(self, period_s: float) -> float:
        """Return when new values are to be sent. `period_s`: minimum time between packets."""
        with self._lock:
            return max(self._new_since_s + GATHER_S, self._sent_s + period_s) if self._new else math.inf

    def take(self, now_s: float) -> list[codec.SensorReading]:
        """Return the values that were not sent yet, in the order of the list."""
        with self._lock:
            new, self._new = self._new, {}
            self._new_since_s, self._sent_s = math.inf, now_s
        return [codec.SensorReading(sensor, value) for sensor, value in sorted(new.items())]


# Subscriptions to sensors and to robot_bridge's lists. For the executor.


QUEUE_DEPTH = 10
BRIDGE_WATCH_PERIOD_S = 0.5


class SensorSubscriptions:
    """Subscribes to the topics of the sensors in a list."""

    def __init__(
        self,
        node: LinkNode,
        translation: Translation,
        values: SensorValues,
        wake: Callable[[], None],
    ) -> None:
        """`wake` wakes the link's thread to send `values`."""
        self._node, self._translation, self._values, self._wake = node, translation, values, wake
        self._subscriptions: list[Any] = []

    def follow(self, sources: tuple[SensorSource, ...], *, is_reliable: bool) -> None:
        """Subscribe to these sensors, and no others.

        Best effort matches every publisher, including those of most sensor drivers.
        """
        self.close()
        reliability = ReliabilityPolicy.RELIABLE if is_reliable else ReliabilityPolicy.BEST_EFFORT
        qos = QoSProfile(depth=QUEUE_DEPTH, reliability=reliability)
        for number, source in enumerate(sources[:MAX_SENSORS]):
            if source.topic:
                row = TABLE.row(f"{TOPIC_OF_TYPE[source.sensor.type]}/{number}")
                receive = self._receiver(number, row)
                self._subscriptions.append(self._node.create_subscription(row.message, source.topic, receive, qos))

    def close(self) -> None:
        """Unsubscribe, and forget all values."""
        while self._subscriptions:
            self._node.destroy_subscription(self._subscriptions.pop())
        self._values.clear()

    def _receiver(self, number: int, row: Topic) -> Callable[[Any], None]:
        assert row.from_ros
        read = row.from_ros

        def receive(message: Any) -> None:
            value = read(self._translation, message)
            if value is None:
                self._node.statistics.counts["unknown values"] += 1
            self._values.put(number, value)
            self._wake()

        return receive


class ListedSources:
    """robot_bridge's lists, and whether its robot is connected. Written in the executor, read on the link's thread."""

    def __init__(
        self, node: LinkNode, translation: Translation, subscriptions: SensorSubscriptions, wake: Callable[[], None]
    ) -> None:
        self._node, self._translation, self._subscriptions, self._wake = node, translation, subscriptions, wake
        self._lock = threading.Lock()
        self._sources: tuple[SensorSource, ...] | None = None
        self._subsystems: tuple[DrivenSubsystem, ...] | None = None
        self._is_connected = False
        sensors, subsystems = map(TABLE.row, ("sensors", "subsystems"))
        node.make_subscription(sensors.message, sensors.name, self._on_sensors, sensors.requested())
        node.make_subscription(subsystems.message, subsystems.name, self._on_subsystems, subsystems.requested())
        self._bridge = BridgeWatch(node, partial(publishing_nodes, node, subsystems.name), wake)
        node.make_timer(BRIDGE_WATCH_PERIOD_S, self._watch_bridge)

    def newest(self) -> Listing | None:
        """Return the robot's lists, None while it is not connected. For the link's thread."""
        with self._lock:
            if not self._is_connected or self._bridge.is_gone or self._subsystems is None or self._sources is None:
                return None
            return Listing(self._subsystems, self._sources)

    @property
    def is_silent(self) -> bool:
        """Whether the robot is connected to the bridge, but has been silent for a second. For any thread."""
        return self._is_connected and self._bridge.is_vehicle_silent

    def _on_sensors(self, message: SensorArray) -> None:
        sources = self._translation.wire_sensors(message)
        if sources != self._sources:
            self._subscriptions.follow(sources, is_reliable=True)
            with self._lock:
                self._sources = sources
        self._wake()

    def _on_subsystems(self, message: SubsystemArray) -> None:
        with self._lock:
            self._subsystems = driven(self._translation.wire_subsystems(message))
            self._is_connected = is_robot_connected(message)
        self._wake()

    def _watch_bridge(self) -> None:
        """Notice that a bridge that reports nothing is gone."""
        if self._is_connected and not self._node.count_publishers(self._node.resolve_topic_name("subsystems")):
            with self._lock:
                self._is_connected = False
            self._wake()


def readings_of(listing: Listing, readings: list[codec.SensorReading]) -> list[codec.SensorReading]:
    """Return the readings of sensors that are still in the list."""
    return [reading for reading in readings if reading.sensor < len(listing.sources)]


# Forwards lines of /rosout to drivers as the robot's log.


ROSOUT = "/rosout"
MAX_WAITING = 64  # lines queued for the link's thread; older ones are dropped
LONGEST_LINE = 1000  # characters
_LEAST_SEVERITY = 20  # information
_QUEUE_DEPTH = 100


class LogLines:
    """Subscribes to the log of named nodes, and queues it for the link's thread."""

    def __init__(self, node: LinkNode, names: Sequence[str], wake: Callable[[], None], *, behind_bridge: bool) -> None:
        """Subscribe, if there is anything to forward.

        Args:
            node: in the namespace of the bridge.
            names: full names of nodes, or of their loggers.
            wake: wakes the link's thread.
            behind_bridge: also forward the robot's own log, as logged by robot_bridge in the same namespace.
        """
        own = node.get_logger().name
        self._namespace = own.rpartition(".")[0]
        self._behind_bridge = behind_bridge
        self._names = {name.strip("/").replace("/", ".") for name in names} - {own}  # its own would loop
        self._wake = wake
        self._waiting: deque[str] = deque(maxlen=MAX_WAITING)
        self._limiter = LogLimiter()
        if self._names or behind_bridge:
            node.make_subscription(Log, ROSOUT, self._on_log, _QUEUE_DEPTH)

    def take(self) -> list[str]:
        """Return the queued lines. For the link's thread."""
        lines = []
        while self._waiting:
            lines.append(self._waiting.popleft())
        return lines

    def _on_log(self, message: Log) -> None:
        if not self._is_wanted(message) or _severity(message) < _LEAST_SEVERITY:
            return
        if (line := self._limiter.admit(line_of(message))) is not None:
            self._waiting.append(line)
            self._wake()

    def _is_wanted(self, message: Log) -> bool:
        is_of_robot = self._behind_bridge and message.msg.startswith(ROBOT_SAYS)
        return message.name in self._names or (is_of_robot and message.name.rpartition(".")[0] == self._namespace)


def line_of(message: Log) -> str:
    """Return a line for drivers: a robot's log unchanged, a node's with its name in front."""
    text = printable(message.msg.strip(), LONGEST_LINE)
    return text.removeprefix(ROBOT_SAYS) if text.startswith(ROBOT_SAYS) else f"[{message.name}] {text}"


def _severity(message: Log) -> int:
    level = message.level
    return level[0] if isinstance(level, bytes) else int(level)  # depending on the distribution


# Parameters.


class ListsFrom(str, Enum):
    """The source of the lists of subsystems and sensors."""

    PARAMETERS = "parameters"
    TOPICS = "topics"


def _check_names(names: Sequence[str]) -> str | None:
    if len(set(names)) < len(names) or not all(names):
        return f"is {list(names)}, and must be distinct names, or {NONE}."
    return None


def _check_robot_name(name: str) -> str | None:
    size = len(name.encode())
    return f"has {size} bytes, and must have {MAX_NAME_BYTES} at most." if size > MAX_NAME_BYTES else None


#: A driver that sends keep-alives every 0.5 s may miss one.
_COMMON = tuple(
    replace(
        declaration,
        default=1.0,
        meaning="Seconds without a packet from a driver, keep-alives included, after which what it drives stops.",
    )
    if declaration.name == "command_timeout"
    else declaration
    for declaration in common_parameters(codec.TCP_PORT, "The port to listen on for drivers.", ("listen",), 1.5)
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
        "lists_from",
        ListsFrom.PARAMETERS.value,
        "The source of the lists of subsystems and sensors: the parameters below, or the topics subsystems and sensors "
        "as published by robot_bridge.",
        choices=tuple(lists.value for lists in ListsFrom),
    ),
    ParameterDeclaration("skid_steer", TRACKS, f"The skid steer's name as shown to drivers; {NONE} for no drive."),
    ParameterDeclaration(
        "lights",
        [NONE],
        f"The lights' names as shown to drivers, as headlight, or {NONE}: robotd's Java driver, NetRobot, fails at any "
        "light. The first one is on light, others on light/<name>.",
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
    ParameterDeclaration(
        "robot_name",
        "",
        f"The name in discovery replies, up to {MAX_NAME_BYTES} bytes; empty for the host name.",
        check=_check_robot_name,
    ),
    ParameterDeclaration("discovery", True, "Answer discovery requests."),
    ParameterDeclaration(
        "discovery_address",
        codec.DISCOVERY_GROUP,
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


#: Of cmd_vel while the robot moves, Hz.
COMMAND_RATE = 20.0


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
        if self.listing.subsystems[number].type == codec.SubsystemType.LIGHTS:
            self._switch_light(number, is_on)

    def sensors(self) -> list[codec.Sensor]:
        """Return every sensor, with its value if that is fresh."""
        now_s, allowed_s = time.monotonic(), self._allowed_age_s()
        return [
            replace(source.sensor, value=self._values.current(number, now_s, allowed_s))
            for number, source in enumerate(self.listing.sources)
        ]


# The node.


#: As told to drivers in packet 0x09.
FIRMWARE = codec.FirmwareInfo("drone_bridge", "0.2", codec.PROTOCOL_VERSION)
ROBOT_GONE = "the robot behind this server is not available"
OTHER_ROBOT = "the subsystems or sensors of the robot behind this server have changed"
#: The condition of a robot behind a bridge that says nothing.
SILENT_ROBOT = "silent robot"
#: How long a driver may take for its first packet, with `driver_timeout: 0` as well: drivers send keep-alives at once.
FIRST_MESSAGE_S = 10.0
#: Maximum delay in noticing the silence of a driver that does not drive.
WATCH_PERIOD_S = 0.25
MAX_LATE_ANSWERS = 100  # per driver: ten seconds' worth at usual rates
#: How long drivers have to read the last packets when the server ends.
GOODBYE_S = 0.1
_LONGEST_WAIT_S = 3600.0


class RobotServer(LinkNode):
    """Lets legacy drivers control a robot in ROS, and sends them its sensor readings."""

    is_server = True
    open_state = "listening"
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
        publisher = self._commands_publisher = self.make_publisher(cmd_vel_type(self.parameters), "cmd_vel", 10)
        self._last_word = LastWord(self, (publisher,), lambda: (publisher, Twist()))
        self._values = SensorValues()
        is_listed = get("lists_from") == ListsFrom.TOPICS.value
        log_nodes = [name for name in get("log_nodes") if name != NONE]
        self._log_lines = LogLines(self, log_nodes, self._wakeup.wake, behind_bridge=is_listed)
        translation = Translation()
        subscriptions = SensorSubscriptions(self, translation, self._values, self._wakeup.wake)
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

    def make_endpoint(self, cancellation: Cancellation) -> ListeningEndpoint:
        """Listen for drivers. Raises LinkError, and ValueError for a route of discovery that there can't be."""
        get = self.parameters.__getitem__
        self._cancellation = cancellation
        self._route = DiscoveryRoute(get("discovery_address"), get("discovery_port"), get("discovery_interface"))
        try:
            endpoint = ListeningEndpoint(get("host"), cancellation, self._listen)
        except LinkError as error:
            raise LinkError(
                f"{error} Beside a robotd, choose another port (launch argument robot_server_port)."
            ) from error
        self.get_logger().info(f"Waiting for drivers on {get('host')}:{endpoint.port}.")
        return endpoint

    def _listen(self, port: int | None) -> TcpClients:
        get = self.parameters.__getitem__
        return TcpClients(
            get("host"),
            get("port") if port is None else port,
            self._begin,
            most=MAX_DRIVERS,
            ends=(ProtocolError, HangUpError),
            on_refused=self._refuse,
            first_message_s=FIRST_MESSAGE_S,
            wire_log=self.wire_log,
        )

    def _make_control(self) -> Control:
        dialect = self.parameters["dialect"]
        if dialect == Dialect.ROBOTD_1_2.value:
            return RobotdControl(self._vehicle, self.inform)
        if dialect == Dialect.PROTOCOL_1.value:
            return Protocol1Control(self._vehicle, self.inform)
        return Control(self._vehicle, self.inform, FIRMWARE)

    # The conversations, on the link's thread.

    def converse(self, listening: Listening) -> None:
        """Serve drivers until the link is cancelled, and stop the robot at the end."""
        self._commands = DriveCommands(1 / COMMAND_RATE, self._publish_speeds)
        self._vehicle = RosVehicle(
            self._configured,
            self._values,
            self._commands,
            self._switch_light,
            lambda: float(self.parameters["source_timeout"]),
        )
        self._control = self._make_control()
        self._is_robot_connected = self._listed is None
        self._read_s = -math.inf  # when readings were sent last
        self._conversations: list[_DriverConversation] = []
        self._driver_clients = listening.clients
        asyncio.run(self._serve())
        raise LinkCancelledError("Serving drivers was cancelled.")

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._report_fault)
        self._changed = asyncio.Event()
        self._settling = LoopSettling(loop)
        self._control.is_settling = self._settling.look
        self.statistics.liveness.closed()
        with contextlib.ExitStack() as stack:
            for file, callback in ((self._cancellation, self._changed.set), (self._wakeup, self._wake)):
                loop.add_reader(file.fileno(), callback)
                stack.callback(loop.remove_reader, file.fileno())
            if self.parameters["discovery"]:
                self._answer_discovery(loop, stack)
            try:
                await self._driver_clients.start()
                while not self._cancellation.is_set:
                    self._changed.clear()
                    wait_s = self._tick(time.monotonic()) - time.monotonic()
                    with contextlib.suppress(asyncio.TimeoutError):
                        await asyncio.wait_for(self._changed.wait(), max(0.0, min(wait_s, _LONGEST_WAIT_S)))
            finally:
                await self._hang_up()

    async def _hang_up(self) -> None:
        was_moving, had_drivers = self._commands.is_moving, bool(self._driver_clients.connections)
        self._driver_clients.hang_up()  # which stops what they drive
        if was_moving:
            repeat_farewell(lambda: self._publish_speeds(STOPPED))
        if had_drivers:
            await asyncio.sleep(GOODBYE_S)

    def _wake(self) -> None:
        self._wakeup.clear()
        self._changed.set()

    def _report_fault(self, _: Any, context: dict[str, Any]) -> None:
        error = context.get("exception")
        fault = f"{context.get('message')}: {error!r}" if error else str(context.get("message"))
        self.count_and_warn("internal errors", fault)

    def _answer_discovery(self, loop: asyncio.AbstractEventLoop, stack: contextlib.ExitStack) -> None:
        """Answer discovery requests, unless another program does."""
        name = self.parameters["robot_name"] or socket.gethostname()
        try:
            responder = DiscoveryResponder(name, self._route)
        except LinkError as error:
            self.warn(
                f"Drivers do not find this robot: {error} A robotd on this machine takes that port for itself: end it, "
                "or choose another port (launch argument discovery_port) for drivers that can ask there; to any other "
                "driver give the address."
            )
            return
        stack.callback(responder.close)
        if self._route.is_on_loopback:
            self.get_logger().info(
                "Only drivers on this machine find this robot. For those on others set discovery_interface and host "
                "(launch arguments discovery_interface and robot_server_host) to 0.0.0.0, or to this machine's address "
                "in their network."
            )

        def answer(readable: socket.socket) -> None:
            for peer in responder.answer(readable, is_silent=not self._is_robot_connected):
                self.inform(f"{peer} is looking for robots, and was told of {name}.")

        for opened in responder.sockets:
            loop.add_reader(opened, answer, opened)
            stack.callback(loop.remove_reader, opened)

    def _begin(self, connection: Connection) -> "_DriverConversation":
        if not self._control.drivers:
            self.statistics.liveness.opened()
        self.statistics.counts["connections"] += 1
        conversation = _DriverConversation(self, self._control, connection)
        self._conversations.append(conversation)
        self.inform(f"Connected to {connection.peer}.")
        self._note_drivers()
        self._changed.set()  # also if it never says anything: its time is up one day
        if not self._is_robot_connected:
            conversation.driver.drop(ROBOT_GONE)
        return conversation

    def _refuse(self, peer: str) -> None:
        self.reports.count_and_warn_ongoing(
            "refused peers", f"{peer} was refused: {MAX_DRIVERS} drivers are connected already."
        )

    @property
    def is_robot_silent(self) -> bool:
        """Whether the robot behind a bridge has been silent for a second."""
        return self._listed is not None and self._listed.is_silent

    def heard(self) -> None:
        """Note that a driver has sent a valid packet."""
        self.statistics.liveness.heard()
        self.changed()

    def gone(self, conversation: "_DriverConversation") -> None:
        """Note that a driver has disconnected."""
        self._conversations.remove(conversation)
        self.changed()

    def changed(self) -> None:
        """Update who drives what, after any change."""
        self._note_drivers()
        self._changed.set()
        if not self._control.drivers:
            self.statistics.liveness.closed()

    def _note_drivers(self) -> None:
        drivers, holders = self._control.drivers, self._control.holders
        names = {number: subsystem.name for number, subsystem in enumerate(self._vehicle.subsystems)}
        self.statistics.peer = ", ".join(driver.peer for driver in drivers)
        self.statistics.facts["drivers"] = "; ".join(
            f"{driver}: {', '.join(names[n] for n, holder in holders.items() if holder is driver) or 'nothing'}"
            for driver in drivers
        )

    def _tick(self, now_s: float) -> float:
        """Do what is due, and return when to call this next."""
        now = _now()
        get = self.parameters.__getitem__
        if self._listed:
            self._follow_robot(self._listed.newest(), now)
            self.reports.update_condition(
                SILENT_ROBOT,
                "The robot behind the bridge has been silent for a second" if self.is_robot_silent else None,
                "keep-alives of drivers are answered when it is heard again",
            )
            for conversation in self._conversations:
                conversation.answer_late()
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
        if self._settling.look():
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

    # Commands of drivers, on the link's thread.

    def _publish_speeds(self, speeds: Speeds) -> None:
        self.statistics.counts["commands"] += 1
        self._last_word.publish(self._commands_publisher, self._skid_steer.twist(speeds), elapsed_s())

    def _switch_light(self, number: int, is_on: bool) -> None:
        topic = LIGHT_TOPIC if self._listed else light_topics(self._vehicle.subsystems)[number]
        self.publish(self._lights[topic], Bool(data=is_on))


class _DriverConversation(RobotConversation):
    """One driver's conversation, whose events the node tracks."""

    def __init__(self, node: RobotServer, control: Control, connection: Connection) -> None:
        send, close = connection.send, connection.abort
        unencodable = partial(node.count_and_warn, UNENCODABLE)
        super().__init__(
            control, connection.peer, send, close, _now, is_suppressed=self._keeps_back, unencodable=unencodable
        )
        self._node = node
        self._is_heard = False  # and the node has not been told
        self._kept: deque[codec.KeepAlive] = deque(maxlen=MAX_LATE_ANSWERS)

    def _keeps_back(self, packet: codec.FromRobot) -> bool:
        """Return whether a packet is an answer that is kept back: of a silent robot it would come late as well."""
        if not isinstance(packet, codec.KeepAlive) or not self._node.is_robot_silent:
            return False
        self._kept.append(packet)
        return True

    def answer_late(self) -> None:
        """Send what was kept back, once the robot is heard again."""
        while self._kept and not self._node.is_robot_silent:
            self.driver.send(self._kept.popleft())

    def receive_data(self, data: bytes) -> None:
        self._node.halt_silent()
        super().receive_data(data)

    def handle_next(self) -> bool:
        """See Client. Raises ProtocolError or HangUpError."""
        with self._rejecting():
            is_handled = super().handle_next()
        self._is_heard |= is_handled
        return is_handled

    def flush(self) -> None:
        """Note what has changed, once per turn."""
        if self._is_heard:
            self._is_heard = False
            self._node.heard()

    def receive_eof(self) -> None:
        """Handle the end of the driver's stream. Raises ProtocolError."""
        with self._rejecting():
            super().receive_eof()

    def leave(self, reason: str) -> None:
        super().leave(reason)
        self._node.gone(self)

    @contextlib.contextmanager
    def _rejecting(self) -> Iterator[None]:
        try:
            yield
        except ProtocolError as error:
            sentence = f"{self.driver}: {error} The connection is closed, as its bytes can't be trusted."
            self._node.count_and_warn("rejected input", sentence)
            raise


def _now() -> Instant:
    return Instant(time.monotonic(), time.time_ns() // 1_000_000)


def main() -> int:
    """Run the node."""
    return run(RobotServer)
