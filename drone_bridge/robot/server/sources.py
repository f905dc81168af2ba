# SPDX-License-Identifier: Apache-2.0
"""The lists of subsystems and sensors for drivers: from parameters, or from robot_bridge's topics."""

import math
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from rcl_interfaces.msg import Log
from rclpy.qos import QoSProfile, ReliabilityPolicy

from drone_bridge.msg import SensorArray, SubsystemArray
from drone_bridge.robot.codec import MotorSensors, Sensor, SensorReading, SensorType, SubsystemType
from drone_bridge.robot.device.control import DrivenSubsystem
from drone_bridge.robot.topics import (
    LONGEST_NAME,
    MAX_SENSORS,
    ROBOT_SAYS,
    TABLE,
    TOPIC_OF_TYPE,
    ListedSubsystem,
    SensorSource,
    Translation,
)
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.lease import LeaseWatch, with_vehicle_lease
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topic_names import topic_token
from drone_bridge.ros.topics import Topic, TopicTable
from drone_bridge.wire.layouts import printable

NONE = "none"
LIGHT_TOPIC = "light"
_MOTOR_FIELDS = {
    "battery": SensorType.BATTERY,
    "temperature": SensorType.THERMOMETER,
    "current": SensorType.AMMETER,
    "pwm": SensorType.MOTOR_PWM,
}
_TYPES_BY_TOPIC = {topic: SensorType(kind) for kind, topic in TOPIC_OF_TYPE.items()}
#: Stands for a sensor that a motor lacks, for which a list has no other representation.
_NO_SENSOR = Sensor(SensorType.NULL, "none")


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
    subsystems = [DrivenSubsystem(SubsystemType.LIGHTS, name) for name in lights if name != NONE]
    if skid_steer != NONE:
        left, right = (_motor(side, sources) for side in ("left", "right"))
        subsystems.append(DrivenSubsystem(SubsystemType.SKID_STEER, skid_steer, (left, right)))
    return Listing(tuple(subsystems), tuple(sources))


def _source(entry: str, full_voltage: float) -> SensorSource:
    topic, _, name = entry.partition("=")
    kind = _TYPES_BY_TOPIC[topic.split("/")[0]]
    name = name or ("battery" if "/" not in topic else topic.rpartition("/")[2].replace("_", " "))
    full_voltage_mv = round(1000 * full_voltage) if kind == SensorType.BATTERY else None
    return SensorSource(Sensor(kind, name[:LONGEST_NAME], full_voltage_mv=full_voltage_mv), topic)


def _motor(side: str, sources: list[SensorSource]) -> MotorSensors:
    """Return the sensors of one side's motor: those whose names contain the side, and the first battery."""

    def find(kind: SensorType) -> int:
        for number, source in enumerate(sources):
            names_side = side in f"{source.topic} {source.sensor.name}".lower()
            if source.sensor.type == kind and (names_side or kind == SensorType.BATTERY):
                return number
        if sources[-1:] != [SensorSource(_NO_SENSOR)]:
            sources.append(SensorSource(_NO_SENSOR))
        return len(sources) - 1

    return MotorSensors(**{field: find(kind) for field, kind in _MOTOR_FIELDS.items()})


def light_topics(subsystems: Sequence[DrivenSubsystem]) -> dict[int, str]:
    """Return the topic of each light by its number: light for the first, light/<name> for the others."""
    lights = [number for number, subsystem in enumerate(subsystems) if subsystem.type == SubsystemType.LIGHTS]
    return {
        number: f"{LIGHT_TOPIC}/{topic_token(subsystems[number].name, f'light_{number}')}" if place else LIGHT_TOPIC
        for place, number in enumerate(lights)
    }


# From the topics of robot_bridge.


def driven(listed: Iterable[ListedSubsystem]) -> tuple[DrivenSubsystem, ...]:
    """Return the subsystems that robot_bridge lists; those that it has not bound are not available."""
    return tuple(
        DrivenSubsystem(
            SubsystemType(subsystem.type),
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

    def take(self, now_s: float) -> list[SensorReading]:
        """Return the values that were not sent yet, in the order of the list."""
        with self._lock:
            new, self._new = self._new, {}
            self._new_since_s, self._sent_s = math.inf, now_s
        return [SensorReading(sensor, value) for sensor, value in sorted(new.items())]


# Subscriptions to sensors and to robot_bridge's lists. For the executor.


QUEUE_DEPTH = 10
BRIDGE_WATCH_PERIOD_S = 0.5


class SensorSubscriptions:
    """Subscribes to the topics of the sensors in a list."""

    def __init__(
        self,
        node: LinkNode,
        table: TopicTable,
        translation: Translation,
        values: SensorValues,
        wake: Callable[[], None],
    ) -> None:
        """`wake` wakes the link's thread to send `values`."""
        self._node, self._table, self._translation, self._values, self._wake = node, table, translation, values, wake
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
                row = self._table.row(f"{TOPIC_OF_TYPE[source.sensor.type]}/{number}")
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
        self._lease = LeaseWatch(node, subsystems.message, subsystems.name, wake)
        self._robot_lease = LeaseWatch(node, sensors.message, sensors.name, wake, with_vehicle_lease)
        node.make_timer(BRIDGE_WATCH_PERIOD_S, self._watch_bridge)

    def newest(self) -> Listing | None:
        """Return the robot's lists, None while it is not connected. For the link's thread."""
        with self._lock:
            if not self._is_connected or self._lease.is_expired or self._subsystems is None or self._sources is None:
                return None
            return Listing(self._subsystems, self._sources)

    @property
    def is_silent(self) -> bool:
        """Whether the robot is connected to the bridge, but has been silent for a second. For any thread."""
        return self._is_connected and self._robot_lease.is_expired

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
        """Notice that a bridge without a lease is gone."""
        if self._is_connected and not self._node.count_publishers(self._node.resolve_topic_name("subsystems")):
            with self._lock:
                self._is_connected = False
            self._wake()


def readings_of(listing: Listing, readings: list[SensorReading]) -> list[SensorReading]:
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
