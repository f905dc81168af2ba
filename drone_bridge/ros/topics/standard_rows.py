# SPDX-License-Identifier: Apache-2.0
"""standard_row: rows of standard topics. MeasuredMessages: the standard messages of a Measurement, and back."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, FluidPressure, Imu, LaserScan, MagneticField, PointCloud2, Range
from tf2_msgs.msg import TFMessage

from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import euler_from_quaternion, quaternion_from_euler, unit_quaternion
from drone_bridge.msg import DetectionArray
from drone_bridge.ros.topics.covariances import UNKNOWN_VARIANCE
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.table import Topic
from drone_bridge.ros.topics.transforms import set_quaternion, set_vector

WireT = TypeVar("WireT")
#: Message type of each standard topic.
STANDARD_TOPICS: dict[str, type[Any]] = {
    "imu/data": Imu,
    "battery_state": BatteryState,
    "height": PointStamped,
    "altitude": Range,
    "range": Range,
    "scan": LaserScan,
    "bumper/points": PointCloud2,
    "velocity": TwistWithCovarianceStamped,
    "odom": Odometry,
    "magnetic_field": MagneticField,
    "fluid_pressure": FluidPressure,
    "detections": DetectionArray,
    "/tf": TFMessage,
}
#: First element of the covariance of a quantity that an Imu lacks.
_MISSING = -1.0
#: State of a battery by whether it charges.
_SUPPLY = {
    None: BatteryState.POWER_SUPPLY_STATUS_UNKNOWN,
    False: BatteryState.POWER_SUPPLY_STATUS_DISCHARGING,
    True: BatteryState.POWER_SUPPLY_STATUS_CHARGING,
}


def standard_row(
    of: type[Any],
    name: str,
    to_ros: Callable[[Any, Any, Time], Any] | None,
    from_ros: Callable[[Any, Any], Any] | None = None,
    meaning: str = "",
    **more: Any,
) -> Topic:
    """Return the row of a standard topic, whose name determines the message type. `more`: further fields of Topic."""
    return Topic(name, STANDARD_TOPICS[name], of, to_ros, from_ros, meaning=meaning, **more)


class ImuVariances(NamedTuple):
    """Variances of an Imu. 0: unknown."""

    tilt: float = 0.0  # rad^2
    yaw: float = 0.0  # rad^2
    rates: float = 0.0  # (rad/s)^2
    acceleration: float = 0.0  # (m/s^2)^2


class MeasuredMessages(ABC, Generic[WireT]):
    """Converter of a vehicle's wire messages. None where it reports no such value. For one thread."""

    imu_variances: ClassVar[ImuVariances] = ImuVariances()

    def __init__(self, names: DroneFrameNames) -> None:
        self.names = names
        #: The newest wire message with its measurement, which several rows need.
        self.last: tuple[WireT, Measurement] | None = None
        self._imu = Imu()
        #: Returns a measurement with its pose in `odom`: see `ContinuousPose.shifted`.
        self.shifted: Callable[[Measurement], Measurement] = lambda measured: measured

    @abstractmethod
    def measurement(self, wire: WireT) -> Measurement:
        """Return the measurement in a wire message."""

    def converted(self, wire: WireT) -> Measurement:
        """Return the measurement in a wire message, converted once."""
        if self.last is None or self.last[0] is not wire:
            self.last = wire, self.shifted(self.measurement(wire))
        return self.last[1]

    def imu(self, wire: WireT, stamp: Time) -> Imu | None:
        """Return attitude, rates and acceleration; a covariance of -1 marks missing ones. None without any of them.

        A heading without tilt has unknown tilt variances.

        Each call fills the same message: to make one takes half of the time.
        """
        measured, variances = self.converted(wire), self.imu_variances
        yaw = measured.yaw if measured.imu_yaw is None else measured.imu_yaw
        is_tilted = not (measured.roll is None or measured.pitch is None)
        has_heading = yaw is not None and (is_tilted or measured.imu_yaw is not None)
        if not has_heading and measured.rates is None and measured.acceleration is None:
            return None
        message = self._imu
        message.header.stamp, message.header.frame_id = stamp, self.names.base_link
        attitude = (measured.roll or 0.0, measured.pitch or 0.0, yaw or 0.0) if has_heading else (0.0, 0.0, 0.0)
        set_quaternion(message.orientation, quaternion_from_euler(*attitude))
        tilt = variances.tilt if is_tilted else UNKNOWN_VARIANCE
        message.orientation_covariance[::4] = (tilt, tilt, variances.yaw) if has_heading else (_MISSING, 0.0, 0.0)
        for name, vector, variance in (
            ("angular_velocity", measured.rates, variances.rates),
            ("linear_acceleration", measured.acceleration, variances.acceleration),
        ):
            set_vector(getattr(message, name), vector or (0.0, 0.0, 0.0))
            diagonal = (_MISSING, 0.0, 0.0) if vector is None else variance
            getattr(message, f"{name}_covariance")[::4] = diagonal
        return message

    def wire_imu(self, message: Imu) -> dict[str, Any]:
        """Return the fields of a measurement that an Imu has."""
        known: dict[str, Any] = {}
        if message.orientation_covariance[0] >= 0 and (q := unit_quaternion(message.orientation, 0.5)):
            angles = dict(zip(("roll", "pitch", "yaw"), euler_from_quaternion(q), strict=True))
            known = angles if message.orientation_covariance[0] < UNKNOWN_VARIANCE else {"imu_yaw": angles["yaw"]}
        for field, name in (("rates", "angular_velocity"), ("acceleration", "linear_acceleration")):
            if getattr(message, f"{name}_covariance")[0] >= 0:
                vector = getattr(message, name)
                known[field] = vector.x, vector.y, vector.z
        return known

    def height(self, wire: WireT, stamp: Time) -> PointStamped | None:
        """Return the vehicle's position above the ground below it."""
        if (height := self.converted(wire).height) is None:
            return None
        message = PointStamped()
        message.header.stamp, message.header.frame_id = stamp, self.names.footprint
        message.point.z = height
        return message

    def wire_height(self, message: PointStamped) -> dict[str, Any]:
        return {"height": message.point.z} if math.isfinite(message.point.z) else {}

    def battery_state(self, wire: WireT, stamp: Time) -> BatteryState | None:
        """Return voltage and charge. Other values are NaN."""
        measured, nan = self.converted(wire), math.nan
        if measured.voltage is None and measured.charge is None:
            return None
        message = BatteryState(
            temperature=nan, current=nan, charge=nan, capacity=nan, design_capacity=nan, present=True
        )
        message.header.stamp, message.header.frame_id = stamp, self.battery_frame
        message.voltage = nan if measured.voltage is None else measured.voltage
        message.percentage = nan if measured.charge is None else measured.charge
        message.power_supply_status = _SUPPLY[measured.is_charging]
        return message

    @property
    def battery_frame(self) -> str:
        """Frame of the battery."""
        return self.names.base_link
