# SPDX-License-Identifier: Apache-2.0
"""What the behaviours share: reading poses, collecting messages of one stamp, publishing states and velocities."""

import contextlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion as QuaternionMessage
from geometry_msgs.msg import Twist, Vector3
from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node
from rclpy.publisher import Publisher
from sensor_msgs.msg import Imu

from drone_bridge.motion.matrices import Vector
from drone_bridge.motion.quaternions import euler_from_quaternion, unit_quaternion
from drone_bridge.msg import ControllerState
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.parameters import DeclaredParameters
from drone_bridge.ros.time import stamp_numbers
from drone_bridge.ros.topics import PUBLISHER_ERRORS, wait_for_delivery
from drone_bridge.ros.velocity_messages import as_published, cmd_vel_type

Angles = tuple[float, float, float]  # roll, pitch and yaw of REP 103, rad

# A quaternion whose length is further from 1 is not a rotation.
_UNIT_TOLERANCE = 0.1
# No vehicle is farther from where odometry counts from, m. Beyond it, what is computed may be no finite number.
_FARTHEST = 1e9


def read_angles(imu: Imu, topic: str) -> Angles | None:
    """Return roll, pitch and yaw of REP 103 in rad, None if the message has no orientation.

    Raises ValueError with a sentence for what is not a rotation.
    """
    return None if imu.orientation_covariance[0] < 0 else _angles(imu.orientation, topic)


def read_pose(odometry: Odometry, topic: str) -> tuple[Vector, Angles]:
    """Return the position, m, and roll, pitch and yaw in rad. Raises ValueError with a sentence for an invalid pose."""
    at = odometry.pose.pose.position
    position = np.array([at.x, at.y, at.z])
    if not (np.abs(position) <= _FARTHEST).all():
        raise ValueError(
            f"the position in {topic} is ({at.x}, {at.y}, {at.z}), and has to be within {_FARTHEST:g} m of the origin."
        )
    return position, _angles(odometry.pose.pose.orientation, topic)


def _angles(q: QuaternionMessage, topic: str) -> Angles:
    if (unit := unit_quaternion(q, _UNIT_TOLERANCE)) is None:
        raise ValueError(f"the orientation in {topic} is ({q.x}, {q.y}, {q.z}, {q.w}), and has to have length 1.")
    return euler_from_quaternion(unit)


# What a behaviour says about bad input, and when it looks at the time.


class ErrorLog:
    """Logs errors about messages, at a limited rate."""

    def __init__(self, node: Node) -> None:
        self._node, self._limiter = node, LogLimiter()

    def log(self, sentence: str) -> None:
        if line := self._limiter.admit(sentence):
            self._node.get_logger().error(line)


#: Per second, of what flies or drives by odometry or by the clock.
COMMAND_RATE = 20.0


def make_steady_timer(node: Node, period_s: float, callback: Callable[[], None]) -> None:
    """Call back in this period by a steady clock: a paused simulation must not leave a vehicle on its last command."""
    node.create_timer(period_s, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def plan_clock(node: Node) -> Callable[[], float]:
    """Return what tells the seconds that plans go by: simulated time if the node uses it, else a steady clock."""
    if node.get_parameter("use_sim_time").value:
        return lambda: node.get_clock().now().nanoseconds / 1e9
    return time.monotonic


# Collects messages of several topics with the same stamp.


KEPT = 4  # incomplete sets; what is older will not be completed any more


class StampedSets:
    """Collects one message of each topic per stamp, and passes on complete sets; the newest wins."""

    def __init__(self, topics: tuple[str, ...], on_complete: Callable[[dict[str, Any]], None]) -> None:
        self.topics = frozenset(topics)
        self._on_complete = on_complete
        self._sets: OrderedDict[tuple[int, int], dict[str, Any]] = OrderedDict()

    def add(self, topic: str, message: Any) -> None:
        stamp = stamp_numbers(message.header.stamp)
        messages = self._sets.setdefault(stamp, {})
        messages[topic] = message
        if messages.keys() >= self.topics:
            # What came before can only be completed by something older than this.
            for key in list(self._sets):
                del self._sets[key]
                if key == stamp:
                    break
            self._on_complete(messages)
        while len(self._sets) > KEPT:
            self._sets.popitem(last=False)


# Publishes what a behaviour is doing.


class StatePublisher:
    """Publishes the state of a behaviour on ~/state, and logs it when it changes."""

    def __init__(self, node: Node, behaviour: str, *, logs_reasons: bool = False) -> None:
        """With `logs_reasons`, a state is also logged when only its reason changes."""
        self._node, self._behaviour, self._logs_reasons = node, behaviour, logs_reasons
        self._publisher = node.create_publisher(ControllerState, "~/state", 10)
        self._logged = ""
        #: The vehicle's body, as its own messages name it.
        self.frame_id = "base_link"
        #: Of the newest measurements that were answered, whose clock need not be this node's; None stands for ROS time.
        self.stamp: Time | None = None

    def publish(self, state: str, reason: str, distance: float | None = None) -> None:
        """Publish a state, with the distance to its goal in m."""
        message = ControllerState(
            behaviour=self._behaviour, state=state, reason=reason, distance=math.nan if distance is None else distance
        )
        message.header.stamp = self.stamp or self._node.get_clock().now().to_msg()
        message.header.frame_id = self.frame_id
        self._publisher.publish(message)
        line = f"{state}: {reason}"
        if (logged := line if self._logs_reasons else state) != self._logged:
            self._logged = logged
            self._node.get_logger().info(line)


# Publishes the commands of a controller, and zero at the end.


class Commands:
    """Publishes commands until `leave`, which publishes zero. Thread-safe."""

    def __init__(self, publisher: "Publisher[Any]") -> None:
        self._publisher = publisher
        self._publishing = threading.Lock()  # as another thread may call leave, whose zero has to be the last
        self._has_left = False

    def zero(self) -> Any:
        """Return the message that moves nothing."""
        raise NotImplementedError

    def send(self, message: Any) -> None:
        """Publish a message, unless this was left."""
        with self._publishing:
            if not self._has_left:
                self._publish(message)

    def leave(self) -> None:
        """Publish zero, and then nothing more."""
        with self._publishing:
            if not self._has_left:
                self._publish(self.zero())
                wait_for_delivery(self._publisher)
            self._has_left = True

    def _publish(self, message: Any) -> None:
        with contextlib.suppress(*PUBLISHER_ERRORS):
            self._publisher.publish(message)


class VelocityCommands(Commands):
    """Velocities on cmd_vel."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        super().__init__(node.create_publisher(cmd_vel_type(parameters), "cmd_vel", 1))
        self._node = node

    def publish(self, velocity: tuple[float, float, float], turn: tuple[float, float, float]) -> None:
        """Publish a velocity (m/s) and an angular velocity (rad/s), both in body axes."""
        self.send(self._message(velocity, turn))

    def zero(self) -> Any:
        return self._message((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))

    def _message(self, velocity: tuple[float, float, float], turn: tuple[float, float, float]) -> Any:
        (x, y, z), (about_x, about_y, about_z) = velocity, turn
        twist = Twist(linear=Vector3(x=x, y=y, z=z), angular=Vector3(x=about_x, y=about_y, z=about_z))
        return as_published(twist, self._publisher, self._node)
