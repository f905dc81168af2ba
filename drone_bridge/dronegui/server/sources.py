# SPDX-License-Identifier: Apache-2.0
"""The drone's state from ROS: the newest message of each topic while it is fresh."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from geometry_msgs.msg import Quaternion, TwistStamped, Vector3
from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import Bool

from drone_bridge.dronegui.codec import Demo, FlightState
from drone_bridge.dronegui.topics import navdata as translate
from drone_bridge.ros.latest_messages import LatestMessages
from drone_bridge.ros.link_node import LinkNode
from drone_bridge.ros.topics import latched

#: Charge changes slowly, and many drivers publish it rarely.
BATTERY_TIMEOUT_S: Final = 30.0
#: The count of messages that the drone is on the ground which were not believed.
DOUBTFUL: Final = "doubtful landings"


class DroneSources:
    """Subscribes to the drone's topics and builds the block `demo` from them."""

    def __init__(self, node: LinkNode, on_motion: Callable[[], None]) -> None:
        """Create the subscriptions. `on_motion` is called, in the executor, for each message about motion."""
        self._on_motion = on_motion
        self._messages = LatestMessages(node)
        self._node = node
        #: Whether the drone flies, as far as is known; what was commanded counts only where nothing else says so.
        self.is_flying: bool | None = None
        self._is_told = False  # by a topic
        self._vouching: frozenset[bytes] = frozenset()  # the publishers of `flying` when the drone was known to fly
        self._is_landed_doubtful = False
        self._was_told_to_land = False
        self._is_stopped = False  # by an emergency
        for topic, kind in (("imu/data", Imu), ("odom", Odometry), ("velocity", TwistStamped), ("altitude", Range)):
            node.make_subscription(kind, topic, partial(self._take_motion, topic), qos_profile_sensor_data)
        take_battery = partial(self._messages.put, "battery_state")
        node.make_subscription(BatteryState, "battery_state", take_battery, qos_profile_sensor_data)
        node.make_subscription(Bool, "flying", self._take_flying, latched())

    @property
    def has_motion(self) -> bool:
        """Whether any topic gives the drone's motion at present."""
        return any(self._messages.fresh(topic) for topic in ("imu/data", "odom", "velocity", "altitude"))

    def pressed(self, name: str) -> None:
        """Note a press of takeoff, land or reset, which stops the motors in the air."""
        self._is_stopped = name == "reset" and bool(self.is_flying)

    def done(self, name: str) -> None:
        """Note that the drone carries out a press."""
        self._was_told_to_land = name == "land"
        if not self._is_told or (self._is_landed_doubtful and name != "takeoff"):
            self._know(name == "takeoff")

    def shown(self, is_flying: bool) -> None:
        """Note what the drone's navdata shows."""
        self._is_told = True
        if is_flying is not self.is_flying:
            self._know(is_flying)

    def demo(self, is_hovering: bool) -> Demo:
        """Return the drone's state without values older than `source_timeout`."""
        odometry = self._messages.fresh("odom")
        battery = self._messages.fresh("battery_state", BATTERY_TIMEOUT_S)
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
        imu = self._messages.fresh("imu/data")
        if imu and imu.orientation_covariance[0] >= 0:  # -1: the IMU measures none
            orientation: Quaternion = imu.orientation
            return orientation
        return odometry.pose.pose.orientation if odometry else None

    def _height(self, odometry: Odometry | None) -> float | None:
        if (measured := self._messages.fresh("altitude")) and math.isfinite(measured.range):
            return float(measured.range)
        return float(odometry.pose.pose.position.z) if odometry else None

    def _velocity(self, odometry: Odometry | None) -> Vector3 | None:
        if measured := self._messages.fresh("velocity"):
            linear: Vector3 = measured.twist.linear
            return linear
        return odometry.twist.twist.linear if odometry else None

    def _take_flying(self, message: Bool) -> None:
        self._is_told = True
        publishers = self._publishers_of_flying()
        if self.is_flying and not message.data and publishers - self._vouching:
            # A bridge that was started in flight may take the drone for landed, and a press would then take off.
            self._is_landed_doubtful = True
            self._node.reports.count_and_warn(
                DOUBTFUL,
                f"{self._node.resolve_topic_name('flying')} says that the drone is on the ground, but so may a node "
                "started while it flew: take_off means land until navdata shows that, or land or reset succeeds.",
            )
            return
        self._know(message.data, publishers)

    def _know(self, is_flying: bool, publishers: frozenset[bytes] | None = None) -> None:
        self.is_flying, self._is_landed_doubtful = is_flying, False
        self._is_stopped &= not is_flying
        self._was_told_to_land &= is_flying
        self._vouching = self._publishers_of_flying() if publishers is None else publishers

    def _publishers_of_flying(self) -> frozenset[bytes]:
        found = self._node.get_publishers_info_by_topic(self._node.resolve_topic_name("flying"))
        return frozenset(bytes(publisher.endpoint_gid) for publisher in found)

    def _take_motion(self, topic: str, message: Any) -> None:
        self._messages.put(topic, message)
        self._on_motion()
