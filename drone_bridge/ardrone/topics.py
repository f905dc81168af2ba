# SPDX-License-Identifier: Apache-2.0
"""Translation: navdata of an AR.Drone to topics and back; the table of topics. `units` has the signs.

What navdata does not report gives no message, or an unknown in it. On topics, velocities are along the body's axes.
"""

import math
from collections.abc import Callable
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TransformStamped, TwistWithCovarianceStamped
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, FluidPressure, Imu, MagneticField, Range
from tf2_msgs.msg import TFMessage

from drone_bridge.ardrone import units
from drone_bridge.ardrone.codec import Detected, FlightState, Navdata, State
from drone_bridge.ardrone.codec.navdata import demo_option, physical_option
from drone_bridge.motion.ar_drone import (
    CLIMB_VARIANCE,
    FARTHEST_RANGE_M,
    NEAREST_RANGE_M,
    PICTURE_UNITS,
    TILT_DEVIATION,
    YAW_DEVIATION,
)
from drone_bridge.motion.dead_reckoning import Pose
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import (
    euler_from_quaternion,
    quaternion_from_euler,
    rotated_back,
    unit_quaternion,
)
from drone_bridge.msg import DetectionArray
from drone_bridge.pictures.topics import PICTURE_ROWS
from drone_bridge.ros import covariances, frames
from drone_bridge.ros.covariances import UNKNOWN_VARIANCE, OdometryCovariances, covariance_from_diagonal
from drone_bridge.ros.detections import Found, detection_array
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.topics import Topic, TopicTable
from drone_bridge.ros.transforms import odometry_transform, set_quaternion, set_vector, transform
from drone_bridge.wire.flight_state import MAJOR_STATE_SHIFT

# Of odometry. Those of x and y are initial values, to which drift is added.
POSE_VARIANCES = (1e-4, 1e-4, 1e-2, 3e-4, 3e-4, 3e-2)  # 1 cm, 10 cm, 1 and 10 degrees
TWIST_VARIANCES = (1e-2, 1e-2, *[UNKNOWN_VARIANCE] * 4)
ODOMETRY_COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)
RATE_VARIANCE = math.radians(0.5) ** 2  # (rad/s)^2
ACCELERATION_VARIANCE = 0.5**2  # (m/s^2)^2, of a drone whose motors run


def static_transforms(names: DroneFrameNames) -> list[TransformStamped]:
    """Return the transform from base_link to the rangefinder, which points down."""
    return [transform(names.base_link, names.altimeter, rotation=frames.DOWN_IN_BODY)]


class Translation:
    """Converter between navdata and ROS. `wire_*` return the fields of a Measurement in a message."""

    def __init__(self, names: DroneFrameNames) -> None:
        self._names = names
        self._last: tuple[Navdata, Measurement] | None = None

    def imu(self, navdata: Navdata, stamp: Time) -> Imu | None:
        """Return attitude, rates and acceleration. Covariances mark what is not reported."""
        measured = self._measured(navdata)
        if measured.roll is None or measured.pitch is None or measured.yaw is None:
            return None
        message = Imu()
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        set_quaternion(message.orientation, quaternion_from_euler(measured.roll, measured.pitch, measured.yaw))
        message.orientation_covariance[0] = message.orientation_covariance[4] = TILT_DEVIATION**2
        message.orientation_covariance[8] = YAW_DEVIATION**2
        for values, vector, covariance, variance in (
            (measured.rates, message.angular_velocity, message.angular_velocity_covariance, RATE_VARIANCE),
            (
                measured.acceleration,
                message.linear_acceleration,
                message.linear_acceleration_covariance,
                ACCELERATION_VARIANCE,
            ),
        ):
            if values is None:
                covariance[0] = -1.0
            else:
                set_vector(vector, values)
                covariance[0] = covariance[4] = covariance[8] = variance
        return message

    def magnetic_field(self, navdata: Navdata, stamp: Time) -> MagneticField | None:
        magnetometer = navdata.magnetometer
        if magnetometer is None or (field := units.magnetic_field(magnetometer)) is None:
            return None
        message = MagneticField()
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        set_vector(message.magnetic_field, field)
        return message

    def fluid_pressure(self, navdata: Navdata, stamp: Time) -> FluidPressure | None:
        if (pressure := navdata.pressure) is None:
            return None
        message = FluidPressure(fluid_pressure=float(pressure.pressure))
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        return message

    def battery_state(self, navdata: Navdata, stamp: Time) -> BatteryState | None:
        """Return the charge, the only value on the wire."""
        if (charge := self._measured(navdata).charge) is None:
            return None
        message = BatteryState(percentage=charge, present=True)
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        for field in ("voltage", "temperature", "current", "charge", "capacity", "design_capacity"):
            setattr(message, field, math.nan)
        return message

    def altitude(self, navdata: Navdata, stamp: Time) -> Range | None:
        """Return the height above ground, as the drone estimates it."""
        height = self._measured(navdata).height
        return None if height is None else self._range(height, stamp)

    def range(self, navdata: Navdata, stamp: Time) -> Range | None:
        """Return the height by the ultrasound sensor alone."""
        ultrasound = navdata.ultrasound
        return None if ultrasound is None else self._range(ultrasound / 1000, stamp)

    def height(self, navdata: Navdata, stamp: Time) -> PointStamped | None:
        """Return the drone's position above the ground below it."""
        if (height := self._measured(navdata).height) is None:
            return None
        message = PointStamped()
        message.header.stamp, message.header.frame_id = stamp, self._names.footprint
        message.point.z = height
        return message

    def velocity(self, navdata: Navdata, stamp: Time) -> TwistWithCovarianceStamped | None:
        """Return the velocity in body axes. The vertical one is not measured."""
        measured = self._measured(navdata)
        if (velocity := measured.level_velocity) is None:
            return None
        message = TwistWithCovarianceStamped()
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        tilt = quaternion_from_euler(measured.roll or 0.0, measured.pitch or 0.0, 0.0)
        set_vector(message.twist.twist.linear, rotated_back(tilt, *velocity))
        of_linear = (*TWIST_VARIANCES[:2], CLIMB_VARIANCE)
        message.twist.covariance = covariance_from_diagonal([*of_linear, *TWIST_VARIANCES[3:]])
        return message

    def detections(self, navdata: Navdata, stamp: Time) -> DetectionArray | None:
        """Return the current detections."""
        if (detected := navdata.detections) is None:
            return None
        return detection_array(map(_found, detected), self._names.optical, stamp)

    def odometry(self, pose: Pose, stamp: Time) -> Odometry:
        """Return the pose, with the drift added to the covariances of x and y."""
        message = Odometry(child_frame_id=self._names.base_link)
        message.header.stamp, message.header.frame_id = stamp, self._names.odom
        set_vector(message.pose.pose.position, (pose.x, pose.y, pose.z))
        set_quaternion(message.pose.pose.orientation, quaternion_from_euler(pose.roll, pose.pitch, pose.yaw))
        tilt = quaternion_from_euler(pose.roll, pose.pitch, 0.0)
        set_vector(message.twist.twist.linear, rotated_back(tilt, *pose.velocity))
        ODOMETRY_COVARIANCES.fill(message)
        for diagonal in (0, covariances.AXES + 1):
            message.pose.covariance[diagonal] += pose.variance
        return message

    def transforms(self, pose: Pose, stamp: Time) -> TFMessage:
        """Return the transforms from odom to base_link, and to the ground below it."""
        flown = odometry_transform(self.odometry(pose, stamp))
        heading = quaternion_from_euler(0.0, 0.0, pose.yaw)
        below = transform(self._names.odom, self._names.footprint, (pose.x, pose.y, 0.0), heading)
        below.header.stamp = stamp
        return TFMessage(transforms=[flown, below])

    # From ROS.

    def wire_imu(self, message: Imu) -> dict[str, Any]:
        known: dict[str, Any] = {}
        if message.orientation_covariance[0] >= 0 and (q := unit_quaternion(message.orientation, 0.5)):
            known = dict(zip(("roll", "pitch", "yaw"), euler_from_quaternion(q), strict=True))
        for name, vector, covariance in (
            ("rates", message.angular_velocity, message.angular_velocity_covariance),
            ("acceleration", message.linear_acceleration, message.linear_acceleration_covariance),
        ):
            if covariance[0] >= 0:
                known[name] = vector.x, vector.y, vector.z
        return known

    def wire_charge(self, message: BatteryState) -> dict[str, Any]:
        return {"charge": message.percentage} if 0.0 <= message.percentage <= 1.0 else {}

    def wire_height(self, message: PointStamped) -> dict[str, Any]:
        return {"height": message.point.z} if math.isfinite(message.point.z) else {}

    def _range(self, height: float, stamp: Time) -> Range:
        message = Range(radiation_type=Range.ULTRASOUND, min_range=NEAREST_RANGE_M, max_range=FARTHEST_RANGE_M)
        message.header.stamp, message.header.frame_id = stamp, self._names.altimeter
        message.range = height
        return message

    def _measured(self, navdata: Navdata) -> Measurement:
        """Return the measurement, which several rows need."""
        if self._last is None or self._last[0] is not navdata:
            self._last = navdata, units.measurement(navdata)
        return self._last[1]


def _found(detected: Detected) -> Found:
    x, y, width, height = (v / PICTURE_UNITS for v in (detected.xc, detected.yc, detected.width, detected.height))
    return Found(x, y, width, height, detected.distance / 100)


def assembled_navdata(value: Callable[[str], Any], state: FlightState = FlightState.HOVERING) -> Navdata:
    """Assemble navdata of a drone; `value` returns the newest value of a topic, or None."""
    known = {name: field for row in TOPICS if row.from_ros for name, field in (value(row.name) or {}).items()}
    measured = Measurement(**known)
    options = [demo_option(units.demo(measured, state << MAJOR_STATE_SHIFT))]
    if measured.rates is not None or measured.acceleration is not None:
        options.append(physical_option(units.physical(measured)))
    return Navdata(State.FLYING, 1, 0, tuple(options))


TOPICS = (
    Topic(
        "imu/data",
        Imu,
        of=Navdata,
        to_ros=Translation.imu,
        from_ros=Translation.wire_imu,
        meaning="attitude; rates and accelerations with full navdata, else marked as unknown",
    ),
    # The others are published at most 30 times per second: `is_slow` tells them apart.
    Topic(
        "battery_state",
        BatteryState,
        of=Navdata,
        to_ros=Translation.battery_state,
        from_ros=Translation.wire_charge,
        is_slow=True,
        meaning="charge, the only value on the wire",
    ),
    Topic(
        "height",
        PointStamped,
        of=Navdata,
        to_ros=Translation.height,
        from_ros=Translation.wire_height,
        is_slow=True,
        meaning="height above the ground below, m",
    ),
    Topic(
        "altitude",
        Range,
        of=Navdata,
        to_ros=Translation.altitude,
        is_slow=True,
        meaning="height as the drone estimates it, by ultrasound and pressure, m",
    ),
    Topic(
        "range",
        Range,
        of=Navdata,
        to_ros=Translation.range,
        is_slow=True,
        meaning="height by the ultrasound rangefinder alone, m; full navdata only",
    ),
    Topic(
        "velocity",
        TwistWithCovarianceStamped,
        of=Navdata,
        to_ros=Translation.velocity,
        is_slow=True,
        meaning="velocity in body axes, m/s; the vertical one is not measured",
    ),
    Topic(
        "magnetic_field",
        MagneticField,
        of=Navdata,
        to_ros=Translation.magnetic_field,
        is_slow=True,
        meaning="magnetic field in body axes, T; full navdata of an AR.Drone 2 only",
    ),
    Topic(
        "fluid_pressure",
        FluidPressure,
        of=Navdata,
        to_ros=Translation.fluid_pressure,
        is_slow=True,
        meaning="pressure of the air, Pa; full navdata of an AR.Drone 2 only",
    ),
    Topic(
        "detections",
        DetectionArray,
        of=Navdata,
        to_ros=Translation.detections,
        is_slow=True,
        meaning="detections of the drone's vision, as shares of the image",
    ),
    Topic(
        "odom",
        Odometry,
        of=Pose,
        to_ros=Translation.odometry,
        if_parameter="publish_odometry",
        meaning="pose by integrated velocities, with measured height and attitude",
    ),
    Topic("/tf", TFMessage, of=Pose, to_ros=Translation.transforms, if_parameter="publish_tf"),
)

TABLE = TopicTable(
    (*TOPICS, *PICTURE_ROWS),
    lambda: Translation(DroneFrameNames()),
    {Navdata: lambda translation, value, stamp: assembled_navdata(value)},
)
