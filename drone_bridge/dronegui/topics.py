# SPDX-License-Identifier: Apache-2.0
"""Translation: dronegui packets and navdata to topics and back; the table of topics.

The wire has directions instead of frames: roll + goes right, pitch + goes backward, yaw + turns right; phi + banks
right, theta + raises the nose, psi + turns right; velocities are forward, right and down. Units are thousandths of a
degree, a metre, and a metre per second. Values missing in a block give no message, or an unknown in it. Values without
a message are left out of a block.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TransformStamped, TwistWithCovarianceStamped, Vector3
from geometry_msgs.msg import Quaternion as QuaternionMessage
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage

from drone_bridge.dronegui.codec import (
    AXES,
    BUTTONS,
    CHARGE,
    MAJOR_STATE_SHIFT,
    MAX_FEATURES,
    MAX_MAGNITUDE,
    Controls,
    Demo,
    Feature,
    FlightState,
    VisionDetect,
)
from drone_bridge.dronegui.pictures.packets import VIDEO_ROW
from drone_bridge.motion.ar_drone import (
    CLIMB_VARIANCE,
    DRIFT,
    FARTHEST_RANGE_M,
    NEAREST_RANGE_M,
    PICTURE_UNITS,
    TILT_DEVIATION,
    YAW_DEVIATION,
)
from drone_bridge.motion.quaternions import (
    Quaternion,
    euler_from_quaternion,
    quaternion_from_euler,
    rotated,
    unit_quaternion,
)
from drone_bridge.motion.tilted_drone import Motion, Shares, pull_of
from drone_bridge.msg import DetectionArray, DroneGuiState
from drone_bridge.pictures.topics import PICTURE_ROWS
from drone_bridge.ros import covariances, frames
from drone_bridge.ros.covariances import UNKNOWN_VARIANCE, OdometryCovariances, covariance_from_diagonal, is_measured
from drone_bridge.ros.detections import Found, detection_array, found_in
from drone_bridge.ros.frames import DroneFrameNames
from drone_bridge.ros.qos import queued
from drone_bridge.ros.topics import Topic, TopicTable
from drone_bridge.ros.transforms import odometry_transform, set_quaternion, transform

# Controls.


def controls_from_shares(shares: Shares) -> Controls:
    """Convert shares to controls."""
    # 0.0 - x instead of -x avoids -0.0.
    return Controls(hover=False, roll=shares.roll, pitch=0.0 - shares.pitch, yaw=0.0 - shares.yaw, gas=shares.thrust)


def shares_from_controls(controls: Controls) -> Shares:
    """Convert controls to shares; all zero while hover is pressed, which overrides the axes."""
    if controls.hover:
        return Shares()
    return Shares(controls.gas, 0.0 - controls.pitch, controls.roll, 0.0 - controls.yaw)


def drone_gui_state(seq: int, controls: Controls, stamp: Time) -> DroneGuiState:
    """Return a sent packet as a message."""
    message = DroneGuiState(seq=seq, **{name: getattr(controls, name) for name in (*BUTTONS, *AXES)})
    message.header.stamp = stamp
    return message


# Navdata.

# Of odometry. Those of x and y are initial values, to which drift is added.
POSE_VARIANCES = (1e-4, 1e-4, 1e-2, 3e-4, 3e-4, 3e-2)  # 1 cm, 10 cm, 1 and 10 degrees
TWIST_VARIANCES = (1e-2, 1e-2, *[UNKNOWN_VARIANCE] * 4)  # vertical speed is on the wire, but always zero
ODOMETRY_COVARIANCES = OdometryCovariances(POSE_VARIANCES, TWIST_VARIANCES)

#: Longest gap between two velocities that is integrated. The motion in a longer gap is unknown, s.
LONGEST_GAP_S = 0.5
#: Assumed maximum speed in such a gap, m/s.
GREATEST_SPEED = 5.0

#: Fields that odometry needs.
_OF_ODOMETRY = ("phi", "theta", "psi", "altitude", "vx", "vy")


def navdata_facts(demo: Demo) -> dict[str, str]:
    """Return the values of navdata that diagnostics show."""
    state = demo.flight_state
    unknown = "nothing" if demo.ctrl_state is None else f"an unknown state (ctrl_state {demo.ctrl_state})"
    return {
        "flight_state": unknown if state is None else state.name.lower().replace("_", " "),
        "navdata_lacks": ", ".join(name for name in _OF_ODOMETRY if getattr(demo, name) is None),
    }


def charge_note(demo: Demo) -> str:
    """Return a sentence about an impossible charge, empty if it is within its range."""
    charge = demo.vbat_flying_percentage
    if charge is None or CHARGE.holds(charge):
        return ""
    return f"The drone reports a battery of {charge:g} %: using {CHARGE.clamped(charge):g} %."


def measured_motion(demo: Demo) -> Motion | None:
    """Return the drone's motion, None if the block lacks a required value. Its vertical speed is always zero."""
    if demo.psi is None or demo.altitude is None or demo.vx is None or demo.vy is None:
        return None
    forward, left, _ = _flu_metres(demo.vx, demo.vy, 0.0)
    yaw, pull = 0.0 - math.radians(demo.psi / 1000), None
    if demo.phi is not None and demo.theta is not None:
        pull = pull_of(math.radians(demo.phi / 1000), 0.0 - math.radians(demo.theta / 1000))
    return Motion(forward, left, None, demo.altitude / 1000, yaw, pull)


def observed_motion(demo: Demo) -> dict[str, Any]:
    """Return the arguments of `ObservedMotion.measured`, None for each value that the block lacks."""
    return {
        "yaw": None if demo.psi is None else 0.0 - math.radians(demo.psi / 1000),
        "velocity": None if demo.vx is None or demo.vy is None else _flu_metres(demo.vx, demo.vy, demo.vz or 0.0),
        "height": None if demo.altitude is None else demo.altitude / 1000,
    }


class Pose(NamedTuple):
    """Pose of the drone in odom, by dead reckoning."""

    x: float  # m
    y: float  # m
    z: float  # m, above the ground below
    orientation: Quaternion
    velocity: tuple[float, float, float]  # m/s, along the body's axes
    variance: float  # m^2, of x and of y, by drift only


class DeadReckoning:
    """Integrates velocities from x = y = 0. Height and orientation are measured."""

    def __init__(self) -> None:
        self._x = self._y = 0.0  # m
        self._distance = 0.0  # m
        self._gap_variance = 0.0  # m^2
        self._before_s: float | None = None

    def update(self, demo: Demo, now_s: float) -> Pose | None:
        """Return the pose at a time, s of any one clock, None if the block lacks a required value."""
        orientation = _orientation(demo)
        if orientation is None or demo.altitude is None or demo.vx is None or demo.vy is None:
            return None
        velocity = _flu_metres(demo.vx, demo.vy, demo.vz or 0.0)
        velocity_x, velocity_y, _ = rotated(orientation, *velocity)
        step_s = 0.0 if self._before_s is None else now_s - self._before_s
        self._before_s = now_s
        if step_s > LONGEST_GAP_S:
            self._gap_variance += (GREATEST_SPEED * step_s) ** 2
        else:
            self._x += velocity_x * step_s
            self._y += velocity_y * step_s
            self._distance += math.hypot(velocity_x, velocity_y) * step_s
        variance = (DRIFT * self._distance) ** 2 + self._gap_variance
        return Pose(self._x, self._y, demo.altitude / 1000, orientation, velocity, variance)


def static_transforms(names: DroneFrameNames) -> list[TransformStamped]:
    """Return the transform from base_link to the rangefinder, which points down."""
    return [transform(names.base_link, names.altimeter, rotation=frames.DOWN_IN_BODY)]


class Translation:
    """Converter between navdata and ROS. `wire_*` return the fields of `demo` in a message."""

    def __init__(self, names: DroneFrameNames) -> None:
        self._names = names

    def imu(self, demo: Demo, stamp: Time) -> Imu | None:
        """Return the attitude. The covariances mark rates and accelerations as unknown."""
        if (orientation := _orientation(demo)) is None:
            return None
        message = Imu()
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        set_quaternion(message.orientation, orientation)
        message.orientation_covariance[0] = message.orientation_covariance[4] = TILT_DEVIATION**2
        message.orientation_covariance[8] = YAW_DEVIATION**2
        message.angular_velocity_covariance[0] = message.linear_acceleration_covariance[0] = -1.0
        return message

    def battery_state(self, demo: Demo, stamp: Time) -> BatteryState | None:
        """Return the charge, the only value on the wire."""
        if (charge := demo.charge) is None:
            return None
        message = BatteryState(percentage=charge, present=True)
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        for field in ("voltage", "temperature", "current", "charge", "capacity", "design_capacity"):
            setattr(message, field, math.nan)
        return message

    def altitude(self, demo: Demo, stamp: Time) -> Range | None:
        """Return the height above ground, measured by ultrasound."""
        if demo.altitude is None:
            return None
        message = Range(radiation_type=Range.ULTRASOUND, min_range=NEAREST_RANGE_M, max_range=FARTHEST_RANGE_M)
        message.header.stamp, message.header.frame_id = stamp, self._names.altimeter
        message.range = demo.altitude / 1000
        return message

    def height(self, demo: Demo, stamp: Time) -> PointStamped | None:
        """Return the drone's position above the ground below it."""
        if demo.altitude is None:
            return None
        message = PointStamped()
        message.header.stamp, message.header.frame_id = stamp, self._names.footprint
        message.point.z = demo.altitude / 1000
        return message

    def velocity(self, demo: Demo, stamp: Time) -> TwistWithCovarianceStamped | None:
        """Return the velocity in body axes. Missing components are 0 with a large variance."""
        given = (demo.vx, demo.vy, demo.vz)
        if given == (None, None, None):
            return None
        message = TwistWithCovarianceStamped()
        message.header.stamp, message.header.frame_id = stamp, self._names.base_link
        linear = message.twist.twist.linear
        linear.x, linear.y, linear.z = _flu_metres(*(value or 0.0 for value in given))
        of_linear = zip(given, (*TWIST_VARIANCES[:2], CLIMB_VARIANCE), strict=True)
        variances = [UNKNOWN_VARIANCE if value is None else variance for value, variance in of_linear]
        message.twist.covariance = covariance_from_diagonal([*variances, *TWIST_VARIANCES[3:]])
        return message

    def odometry(self, pose: Pose, stamp: Time) -> Odometry:
        """Return the pose, with the drift added to the covariances of x and y."""
        message = Odometry(child_frame_id=self._names.base_link)
        message.header.stamp, message.header.frame_id = stamp, self._names.odom
        position, linear = message.pose.pose.position, message.twist.twist.linear
        position.x, position.y, position.z = pose.x, pose.y, pose.z
        set_quaternion(message.pose.pose.orientation, pose.orientation)
        linear.x, linear.y, linear.z = pose.velocity
        ODOMETRY_COVARIANCES.fill(message)
        for diagonal in (0, covariances.AXES + 1):
            message.pose.covariance[diagonal] += pose.variance
        return message

    def transforms(self, pose: Pose, stamp: Time) -> TFMessage:
        """Return the transforms from odom to base_link, and to the ground below it."""
        flown = odometry_transform(self.odometry(pose, stamp))
        _, _, yaw = euler_from_quaternion(pose.orientation)
        below = transform(
            self._names.odom, self._names.footprint, (pose.x, pose.y, 0.0), quaternion_from_euler(0.0, 0.0, yaw)
        )
        below.header.stamp = stamp
        return TFMessage(transforms=[flown, below])

    def detections(self, block: VisionDetect, stamp: Time) -> DetectionArray:
        """Return the current detections."""
        return detection_array(map(_found, block.features), self._names.optical, stamp)

    def raw(self, datagram: bytes, _: Time) -> String:
        return String(data=datagram.decode())

    # From ROS.

    def wire_imu(self, message: Imu) -> dict[str, Any]:
        is_measured = message.orientation_covariance[0] >= 0  # -1 means that the IMU measures none
        return _angles(message.orientation) if is_measured else {}

    def wire_charge(self, message: BatteryState) -> dict[str, Any]:
        charge = CHARGE.clamped(_scaled(message.percentage, CHARGE.most))
        return {"vbat_flying_percentage": None if charge is None else round(charge)}  # the wire has whole percent

    def wire_range(self, message: Range) -> dict[str, Any]:
        return _height(message.range) if math.isfinite(message.range) else {}

    def wire_height(self, message: PointStamped) -> dict[str, Any]:
        return _height(message.point.z) if math.isfinite(message.point.z) else {}

    def wire_velocity(self, message: TwistWithCovarianceStamped) -> dict[str, Any]:
        """Return the known components."""
        known = _velocity(message.twist.twist.linear)
        return {name: value for axis, (name, value) in enumerate(known.items()) if is_measured(message, axis)}

    def wire_odometry(self, message: Odometry) -> dict[str, Any]:
        pose = message.pose.pose
        return {**_angles(pose.orientation), **_height(pose.position.z), **_velocity(message.twist.twist.linear)}

    def wire_detections(self, message: DetectionArray) -> VisionDetect:
        """Return the current detections that have a position in the image."""
        features = []
        for found in found_in(message):
            place = (found.x, found.y, found.width, found.height)
            scaled = [_scaled(value, PICTURE_UNITS) for value in place]
            known = [round(value) for value in scaled if value is not None]
            if len(known) == len(place):
                xc, yc, width, height = known
                distance = None if found.distance is None else _scaled(found.distance, 100)
                features.append(Feature(xc, yc, width, height, None if distance is None else round(distance)))
        return VisionDetect(tuple(features[:MAX_FEATURES]))

    def wire_raw(self, message: String) -> bytes:
        return bytes(message.data.encode())


def assembled_demo(value: Callable[[str], Any], state: FlightState | None = None) -> Demo:
    """Assemble the block of a drone; `value` returns the newest value of a topic, or None.

    Odometry is used if no other topic has a value. Of several other topics, the last one in the table is used.
    """
    known: dict[str, Any] = value("odom") or {}
    for row in TOPICS:
        if row.of is Demo:
            known = {**known, **(value(row.name) or {})}
    return Demo(ctrl_state=None if state is None else state << MAJOR_STATE_SHIFT, **known)


def _found(feature: Feature) -> Found:
    x, y, width, height = (v / PICTURE_UNITS for v in (feature.xc, feature.yc, feature.width, feature.height))
    return Found(x, y, width, height, None if feature.dist is None else feature.dist / 100)


def _orientation(demo: Demo) -> Quaternion | None:
    if demo.phi is None or demo.theta is None or demo.psi is None:
        return None
    phi, theta, psi = (math.radians(angle / 1000) for angle in (demo.phi, demo.theta, demo.psi))
    return quaternion_from_euler(phi, 0.0 - theta, 0.0 - psi)


def _flu_metres(vx: float, vy: float, vz: float) -> tuple[float, float, float]:
    """Convert a velocity of the wire to the axes of REP 103, m/s."""
    forward, left, up = frames.flu_from_frd(vx, vy, vz)
    return forward / 1000, left / 1000, up / 1000


def _angles(message: QuaternionMessage) -> dict[str, Any]:
    """Return phi, theta and psi in the wire's unit, or nothing for an invalid rotation."""
    if (q := unit_quaternion(message, 0.5)) is None:
        return {}
    roll, pitch, yaw = (1000 * math.degrees(angle) for angle in euler_from_quaternion(q))
    return {"phi": roll, "theta": 0.0 - pitch, "psi": 0.0 - yaw}


def _height(height: float) -> dict[str, Any]:
    scaled = _scaled(height, 1000)
    return {"altitude": None if scaled is None else round(scaled)}  # the wire has whole millimetres


def _velocity(linear: Vector3) -> dict[str, Any]:
    vx, vy, vz = frames.flu_from_frd(linear.x, linear.y, linear.z)  # the same conversion from FLU
    return {"vx": _scaled(vx, 1000), "vy": _scaled(vy, 1000), "vz": _scaled(vz, 1000)}


def _scaled(value: float, factor: float) -> float | None:
    """Return a value in the wire's unit if it is valid there, else None."""
    return value * factor if abs(value) * factor <= MAX_MAGNITUDE else None


def _blocks() -> QoSProfile:
    """Return the QoS of raw blocks: a drone sends a few together, about 15 times per second."""
    return QoSProfile(depth=50)


NAVDATA_TOPIC = "dronegui/navdata"
DETECTIONS_TOPIC = "detections"

TOPICS = (
    Topic(
        NAVDATA_TOPIC,
        String,
        of=bytes,
        to_ros=Translation.raw,
        from_ros=Translation.wire_raw,
        qos=_blocks,
        requested=_blocks,
        meaning="each block of navdata as received, for `dronegui_server`",
    ),
    Topic(
        DETECTIONS_TOPIC,
        DetectionArray,
        of=VisionDetect,
        to_ros=Translation.detections,
        from_ros=Translation.wire_detections,
        requested=queued,
        meaning="detections of the drone's vision, as shares of the image",
    ),
    Topic(
        "battery_state",
        BatteryState,
        of=Demo,
        to_ros=Translation.battery_state,
        from_ros=Translation.wire_charge,
        fresh_s=30.0,  # charge changes slowly, and many drivers publish it rarely
        meaning="charge, the only value on the wire",
    ),
    Topic(
        "height",
        PointStamped,
        of=Demo,
        to_ros=Translation.height,
        from_ros=Translation.wire_height,
        meaning="height above the ground below, m",
    ),
    Topic(
        "altitude",
        Range,
        of=Demo,
        to_ros=Translation.altitude,
        from_ros=Translation.wire_range,
        meaning="height by the ultrasound rangefinder, m",
    ),
    Topic(
        "velocity",
        TwistWithCovarianceStamped,
        of=Demo,
        to_ros=Translation.velocity,
        from_ros=Translation.wire_velocity,
        meaning="velocity in body axes, m/s; rates and missing components have the variance 1e6",
    ),
    Topic(
        "imu/data",
        Imu,
        of=Demo,
        to_ros=Translation.imu,
        from_ros=Translation.wire_imu,
        meaning="attitude; rates and accelerations are marked as unknown",
    ),
    Topic(
        "odom",
        Odometry,
        of=Pose,
        to_ros=Translation.odometry,
        from_ros=Translation.wire_odometry,
        if_parameter="publish_odometry",
        meaning="pose by integrated velocities, with measured height and attitude",
    ),
    Topic("/tf", TFMessage, of=Pose, to_ros=Translation.transforms, if_parameter="publish_tf"),
)

TABLE = TopicTable(
    (*TOPICS, VIDEO_ROW, *PICTURE_ROWS),
    lambda: Translation(DroneFrameNames()),
    {
        Demo: lambda translation, value, stamp: assembled_demo(value),
        VisionDetect: lambda translation, value, stamp: value(DETECTIONS_TOPIC),
    },
)
