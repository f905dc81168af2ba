# SPDX-License-Identifier: Apache-2.0
"""Converts between navdata of the dronegui protocol and ROS messages.

What a block leaves out gives no message, or an unknown in it; what no message tells is left out of a block.
"""

import math
from typing import Final, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import Quaternion as QuaternionMessage
from geometry_msgs.msg import TransformStamped, TwistStamped, Vector3
from nav_msgs.msg import Odometry
from sensor_msgs.msg import BatteryState, Imu, Range
from tf2_msgs.msg import TFMessage

from drone_bridge.dronegui.codec import (
    MAJOR_STATE_SHIFT,
    MAX_FEATURES,
    MAX_MAGNITUDE,
    PICTURE_UNITS,
    Demo,
    Feature,
    FlightState,
    VisionDetect,
)
from drone_bridge.dronegui.topics.frames import (
    dronegui_angles_from_orientation,
    millidegrees_from_radians,
    orientation_from_dronegui,
    radians_from_millidegrees,
)
from drone_bridge.motion.quaternions import Quaternion, rotated
from drone_bridge.msg import Detection, DetectionArray
from drone_bridge.ros import frames
from drone_bridge.ros.frames import (
    AXES,
    UNKNOWN_VARIANCE,
    DroneFrameNames,
    OdometryCovariances,
    odometry_transform,
    set_quaternion,
    transform,
)

#: What the AR.Drone's ultrasound rangefinder measures, by its data sheet.
NEAREST_RANGE_M: Final = 0.2
FARTHEST_RANGE_M: Final = 6.0

# How far what is measured is to be trusted: standard deviations. The wire tells none.
DRIFT: Final = 0.1  # of the way so far: velocities come from a camera that looks down
TILT_DEVIATION: Final = math.radians(1.0)
YAW_DEVIATION: Final = math.radians(10.0)  # of a gyroscope that drifts
# Of odometry, unless the user says otherwise. That of x and y is where it begins: how it drifts is added.
POSE_VARIANCES: Final = (1e-4, 1e-4, 1e-2, 3e-4, 3e-4, 3e-2)  # 1 cm, 10 cm, 1 and 10 degrees
TWIST_VARIANCES: Final = (1e-2, 1e-2, *[UNKNOWN_VARIANCE] * 4)  # vertical speed is on the wire, but left at zero

#: A longer gap between two velocities is not bridged: nobody knows how the drone moved.
LONGEST_GAP_S: Final = 0.5
#: How fast it may have been meanwhile.
GREATEST_SPEED: Final = 5.0  # m/s


class Pose(NamedTuple):
    """The drone's pose in odom."""

    x: float  # m
    y: float  # m
    z: float  # m, above the ground below
    orientation: Quaternion
    variance: float  # m^2, of x and of y, by drift alone


class DeadReckoning:
    """Integrates velocities from x = y = 0 on. Height and orientation are measured."""

    def __init__(self) -> None:
        self._x = self._y = 0.0  # m
        self._way = 0.0  # m
        self._gap_variance = 0.0  # m^2
        self._before_s: float | None = None

    def update(self, demo: Demo, now_s: float) -> Pose | None:
        """Return the pose at a time of time.monotonic, None if the block lacks a necessary value."""
        orientation = _orientation(demo)
        if orientation is None or demo.altitude is None or demo.vx is None or demo.vy is None:
            return None
        velocity_x, velocity_y, _ = rotated(orientation, *_velocity(demo.vx, demo.vy, demo.vz))
        step_s = 0.0 if self._before_s is None else now_s - self._before_s
        self._before_s = now_s
        if step_s > LONGEST_GAP_S:
            self._gap_variance += (GREATEST_SPEED * step_s) ** 2
        else:
            self._x += velocity_x * step_s
            self._y += velocity_y * step_s
            self._way += math.hypot(velocity_x, velocity_y) * step_s
        variance = (DRIFT * self._way) ** 2 + self._gap_variance
        return Pose(self._x, self._y, demo.altitude / 1000, orientation, variance)


def imu(demo: Demo, stamp: Time, names: DroneFrameNames) -> Imu | None:
    """Return the attitude; the covariances mark rates and accelerations as unknown."""
    if (orientation := _orientation(demo)) is None:
        return None
    message = Imu()
    message.header.stamp, message.header.frame_id = stamp, names.base_link
    set_quaternion(message.orientation, orientation)
    message.orientation_covariance[0] = message.orientation_covariance[4] = TILT_DEVIATION**2
    message.orientation_covariance[8] = YAW_DEVIATION**2
    message.angular_velocity_covariance[0] = message.linear_acceleration_covariance[0] = -1.0
    return message


def battery_state(demo: Demo, stamp: Time, names: DroneFrameNames) -> BatteryState | None:
    """Return the charge, the only value on the wire."""
    if demo.vbat_flying_percentage is None:
        return None
    message = BatteryState(percentage=demo.vbat_flying_percentage / 100, present=True)
    message.header.stamp, message.header.frame_id = stamp, names.base_link
    for field in ("voltage", "temperature", "current", "charge", "capacity", "design_capacity"):
        setattr(message, field, math.nan)
    return message


def altitude(demo: Demo, stamp: Time, names: DroneFrameNames) -> Range | None:
    """Return the height above ground, as measured by ultrasound."""
    if demo.altitude is None:
        return None
    message = Range(radiation_type=Range.ULTRASOUND, min_range=NEAREST_RANGE_M, max_range=FARTHEST_RANGE_M)
    message.header.stamp, message.header.frame_id = stamp, names.altimeter
    message.range = demo.altitude / 1000
    return message


def velocity(demo: Demo, stamp: Time, names: DroneFrameNames) -> TwistStamped | None:
    """Return the velocity along the body's axes; a component that is missing, and all rates, are NaN."""
    if demo.vx is None and demo.vy is None and demo.vz is None:
        return None
    message = TwistStamped()
    message.header.stamp, message.header.frame_id = stamp, names.base_link
    linear, angular = message.twist.linear, message.twist.angular
    missing = (math.nan if value is None else value for value in (demo.vx, demo.vy, demo.vz))
    linear.x, linear.y, linear.z = (value / 1000 for value in frames.flu_from_frd(*missing))
    angular.x = angular.y = angular.z = math.nan
    return message


def odometry(demo: Demo, pose: Pose, covariances: OdometryCovariances, stamp: Time, names: DroneFrameNames) -> Odometry:
    """Return the pose by dead reckoning, with the drift added to the covariances of x and y."""
    assert demo.vx is not None
    assert demo.vy is not None
    message = Odometry(child_frame_id=names.base_link)
    message.header.stamp, message.header.frame_id = stamp, names.odom
    position, linear = message.pose.pose.position, message.twist.twist.linear
    position.x, position.y, position.z = pose.x, pose.y, pose.z
    set_quaternion(message.pose.pose.orientation, pose.orientation)
    linear.x, linear.y, linear.z = _velocity(demo.vx, demo.vy, demo.vz)
    covariances.fill(message)
    for diagonal in (0, AXES + 1):
        message.pose.covariance[diagonal] += pose.variance
    return message


def odometry_tf(message: Odometry) -> TFMessage:
    """Return odom to base_link."""
    return TFMessage(transforms=[odometry_transform(message)])


def static_transforms(names: DroneFrameNames, stamp: Time) -> TFMessage:
    """Return base_link to the rangefinder, which points down."""
    down: TransformStamped = transform(names.base_link, names.altimeter, rotation=frames.DOWN_IN_BODY)
    down.header.stamp = stamp
    return TFMessage(transforms=[down])


def detections(block: VisionDetect, stamp: Time, names: DroneFrameNames) -> DetectionArray:
    """Return the current detections."""
    message = DetectionArray(detections=[_detection(feature) for feature in block.features])
    message.header.stamp, message.header.frame_id = stamp, names.optical
    return message


def _detection(feature: Feature) -> Detection:
    return Detection(
        center_x=feature.xc / PICTURE_UNITS,
        center_y=feature.yc / PICTURE_UNITS,
        width=feature.width / PICTURE_UNITS,
        height=feature.height / PICTURE_UNITS,
        distance=math.nan if feature.dist is None else feature.dist / 100,
    )


def _orientation(demo: Demo) -> Quaternion | None:
    if demo.phi is None or demo.theta is None or demo.psi is None:
        return None
    return orientation_from_dronegui(*map(radians_from_millidegrees, (demo.phi, demo.theta, demo.psi)))


def _velocity(vx: float, vy: float, vz: float | None) -> tuple[float, float, float]:
    """Return a velocity of the wire along the axes of REP 103, m/s; upward 0 where it is missing."""
    forward, left, up = frames.flu_from_frd(vx, vy, vz or 0.0)
    return forward / 1000, left / 1000, up / 1000


# The other way round: what a drone of ROS tells, as navdata.


def demo(
    state: FlightState | None,
    orientation: QuaternionMessage | None,
    height: float | None,
    velocity: Vector3 | None,
    percentage: float | None,
) -> Demo:
    """Return the block for a drone; values that are None or not finite are left out.

    Args:
        state: what it is about.
        orientation: of its body.
        height: above the ground below, m.
        velocity: along the body's axes, m/s.
        percentage: of its battery, from 0 to 1, as BatteryState has it.
    """
    phi, theta, psi = _angles(orientation) if orientation else (None, None, None)
    vx, vy, vz = frames.flu_from_frd(velocity.x, velocity.y, velocity.z) if velocity else (None, None, None)
    charge, altitude_mm = _scaled(percentage, 100), _scaled(height, 1000)
    return Demo(
        ctrl_state=None if state is None else state << MAJOR_STATE_SHIFT,
        # The wire has whole percent and whole millimetres.
        vbat_flying_percentage=None if charge is None else round(charge),
        theta=theta,
        phi=phi,
        psi=psi,
        altitude=None if altitude_mm is None else round(altitude_mm),
        vx=_scaled(vx, 1000),
        vy=_scaled(vy, 1000),
        vz=_scaled(vz, 1000),
    )


def vision_detect(message: DetectionArray) -> VisionDetect:
    """Return the current detections, as far as they have a position in the image."""
    features = []
    for found in message.detections:
        place = [_scaled(value, PICTURE_UNITS) for value in (found.center_x, found.center_y, found.width, found.height)]
        xc, yc, width, height = (None if value is None else round(value) for value in place)
        if xc is not None and yc is not None and width is not None and height is not None:
            distance = _scaled(found.distance, 100)
            features.append(Feature(xc, yc, width, height, None if distance is None else round(distance)))
    return VisionDetect(tuple(features[:MAX_FEATURES]))


def _angles(message: QuaternionMessage) -> tuple[float | None, float | None, float | None]:
    """Return phi, theta and psi in the wire's unit, None unless it is a rotation."""
    norm = math.hypot(message.x, message.y, message.z, message.w)
    if not 0.5 < norm < 2.0:  # zero, as in messages that nobody has filled, or NaN
        return None, None, None
    q = Quaternion(message.x / norm, message.y / norm, message.z / norm, message.w / norm)
    phi, theta, psi = map(millidegrees_from_radians, dronegui_angles_from_orientation(q))
    return phi, theta, psi


def _scaled(value: float | None, factor: float) -> float | None:
    """Return a value in the wire's unit, if it is valid there."""
    return value * factor if value is not None and abs(value) * factor <= MAX_MAGNITUDE else None
