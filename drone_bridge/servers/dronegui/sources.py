# SPDX-License-Identifier: Apache-2.0
"""The drone's state from ROS: the newest message of each topic while it is fresh."""

import math
import time
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from geometry_msgs.msg import Quaternion, TwistStamped, Vector3
from nav_msgs.msg import Odometry
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import Bool

from drone_bridge.link_node.link_node import LinkNode
from drone_bridge.protocols.dronegui import Demo, FlightState
from drone_bridge.translate import dronegui_navdata as translate

#: Charge changes slowly, and drivers tell it now and then.
BATTERY_TIMEOUT_S: Final = 30.0

MessageT = TypeVar("MessageT")


class _Told(NamedTuple, Generic[MessageT]):
    message: MessageT
    came_s: float


class DroneSources:
    """Subscribes to the drone's topics and builds the block `demo` from them."""

    def __init__(self, node: LinkNode, on_motion: Callable[[], None]) -> None:
        """Create the subscriptions. `on_motion` is called, in the executor, when it is known anew how it moves."""
        self._node = node
        self._on_motion = on_motion
        self._told: dict[str, _Told[Any]] = {}  # by topic; entries are replaced as one, for any thread to read
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        #: Whether the drone flies, where no topic tells: what it was told to do.
        self.assumed_flying: bool | None = None
        self._was_told_to_land = False
        self._is_stopped = False  # by an emergency
        for topic, kind in (("imu/data", Imu), ("odom", Odometry), ("velocity", TwistStamped), ("altitude", Range)):
            node.make_subscription(kind, topic, self._take_motion(topic), qos_profile_sensor_data)
        node.make_subscription(BatteryState, "battery_state", self._take("battery_state"), qos_profile_sensor_data)
        node.make_subscription(Bool, "flying", self._take_flying, latched)

    @property
    def is_flying(self) -> bool | None:
        """Whether the drone flies, as far as is known."""
        flying = self._told.get("flying")
        return flying.message.data if flying else self.assumed_flying

    @property
    def is_told(self) -> bool:
        """Whether anything tells how the drone moves at present."""
        return any(self._newest(topic) for topic in ("imu/data", "odom", "velocity", "altitude"))

    def pressed(self, name: str) -> None:
        """Note what was pressed: takeoff, land or reset, which in the air stops the motors."""
        self._is_stopped = name == "reset" and bool(self.is_flying)

    def done(self, name: str) -> None:
        """Note that the drone does it."""
        self._was_told_to_land = name == "land"
        self.assumed_flying = name == "takeoff"

    def demo(self, is_hovering: bool) -> Demo:
        """Return what is known, and nothing that is older than `source_timeout`."""
        odometry = self._newest("odom")
        battery = self._newest("battery_state", BATTERY_TIMEOUT_S)
        return translate.demo(
            self._state(is_hovering),
            self._orientation(odometry),
            self._height(odometry),
            self._velocity(odometry),
            battery.percentage if battery else None,
        )

    def _state(self, is_hovering: bool) -> FlightState | None:
        if self.is_flying is None:
            return None
        if not self.is_flying:
            return FlightState.DEFAULT if self._is_stopped else FlightState.LANDED
        if self._was_told_to_land:
            return FlightState.LANDING
        return FlightState.HOVERING if is_hovering else FlightState.FLYING

    def _orientation(self, odometry: Odometry | None) -> Quaternion | None:
        imu = self._newest("imu/data")
        if imu and imu.orientation_covariance[0] >= 0:  # -1 says that the Imu does not know
            orientation: Quaternion = imu.orientation
            return orientation
        return odometry.pose.pose.orientation if odometry else None

    def _height(self, odometry: Odometry | None) -> float | None:
        if (measured := self._newest("altitude")) and math.isfinite(measured.range):
            return float(measured.range)
        return float(odometry.pose.pose.position.z) if odometry else None

    def _velocity(self, odometry: Odometry | None) -> Vector3 | None:
        if measured := self._newest("velocity"):
            linear: Vector3 = measured.twist.linear
            return linear
        return odometry.twist.twist.linear if odometry else None

    def _newest(self, topic: str, timeout_s: float | None = None) -> Any:
        """Return the newest message of a topic, None where there is none that is young enough."""
        told = self._told.get(topic)
        allowed_s = timeout_s or self._node.parameters["source_timeout"]
        return told.message if told and time.monotonic() - told.came_s <= allowed_s else None

    def _take(self, topic: str) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            self._told[topic] = _Told(message, time.monotonic())

        return take

    def _take_flying(self, message: Bool) -> None:
        self._told["flying"] = _Told(message, time.monotonic())
        if message.data:
            self._is_stopped = False
        else:
            self._was_told_to_land = False

    def _take_motion(self, topic: str) -> Callable[[Any], None]:
        def take(message: Any) -> None:
            self._told[topic] = _Told(message, time.monotonic())
            self._on_motion()

        return take
