# SPDX-License-Identifier: Apache-2.0
"""DroneGuiTranslation: dronegui packets and navdata to topics and back; the table of topics.

`units` has the signs. Values missing in a block give no message, or an unknown in it. Values without a message are left
out of a block. On topics, velocities are along the body's axes, and on the wire along level ones.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from geometry_msgs.msg import PointStamped, TwistWithCovarianceStamped, Vector3
from geometry_msgs.msg import Quaternion as QuaternionMessage
from nav_msgs.msg import Odometry
from rclpy.qos import QoSProfile
from sensor_msgs.msg import BatteryState, Imu, Range
from std_msgs.msg import String

from drone_bridge.ar_drone.drone import PICTURE_UNITS
from drone_bridge.ar_drone.topics import ArDroneMessages
from drone_bridge.dronegui import units
from drone_bridge.dronegui.codec import (
    AXES,
    BUTTONS,
    MAJOR_STATE_SHIFT,
    MAX_FEATURES,
    Controls,
    Demo,
    Feature,
    FlightState,
    VisionDetect,
)
from drone_bridge.dronegui.pictures.packets import VIDEO_ROW
from drone_bridge.motion.dead_reckoning import DeadReckonedPose
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.quaternions import euler_from_quaternion, quaternion_from_euler, rotated, unit_quaternion
from drone_bridge.msg import DetectionArray, DroneGuiState
from drone_bridge.pictures.topics import PICTURE_ROWS
from drone_bridge.ros.qos import queued
from drone_bridge.ros.topics.covariances import is_measured
from drone_bridge.ros.topics.detections import found_in
from drone_bridge.ros.topics.frames import DroneFrameNames
from drone_bridge.ros.topics.standard_rows import standard_row
from drone_bridge.ros.topics.table import Topic, TopicTable


def drone_gui_state(seq: int, controls: Controls, stamp: Time) -> DroneGuiState:
    """Return a sent packet as a message."""
    message = DroneGuiState(seq=seq, **{name: getattr(controls, name) for name in (*BUTTONS, *AXES)})
    message.header.stamp = stamp
    return message


# Navdata.

#: Field of a velocity along the body's axes, until the block's attitude is known.
_IN_BODY = "in_body"
#: Fields that odometry needs.
_OF_ODOMETRY = ("phi", "theta", "psi", "altitude", "vx", "vy")


def navdata_facts(demo: Demo) -> dict[str, str]:
    """Return the values of navdata that diagnostics show."""
    state = demo.flight_state
    unknown = "nothing" if demo.ctrl_state is None else f"an unknown state (ctrl_state {demo.ctrl_state})"
    return {
        "flight_state": unknown if state is None else str(state),
        "navdata_lacks": ", ".join(name for name in _OF_ODOMETRY if getattr(demo, name) is None),
    }


class DroneGuiTranslation(ArDroneMessages[Demo]):
    """Converter between navdata and ROS. `wire_*` return the fields of `demo` in a message."""

    def measurement(self, wire: Demo) -> Measurement:
        return units.measurement(wire)

    def velocity(self, demo: Demo, stamp: Time) -> TwistWithCovarianceStamped | None:
        """Return the velocity in body axes. Missing components are 0 with a large variance."""
        given = (demo.vx, demo.vy, demo.vz)
        if given == (None, None, None):
            return None
        has = [value is not None for value in given]
        return self.velocity_of(self.converted(demo), units.metres(*given), stamp, has=has)

    def detections(self, block: VisionDetect, stamp: Time) -> DetectionArray:
        """Return the current detections, in the front camera's frame: the camera is not on the wire."""
        return self.detections_of(block.features, stamp)

    def raw(self, datagram: bytes, _: Time) -> String:
        return String(data=datagram.decode())

    # From ROS.

    def wire_imu(self, message: Imu) -> dict[str, Any]:
        is_measured = message.orientation_covariance[0] >= 0  # -1 means that the IMU measures none
        return _angles(message.orientation) if is_measured else {}

    def wire_charge(self, message: BatteryState) -> dict[str, Any]:
        return units.charge(message.percentage)

    def wire_range(self, message: Range) -> dict[str, Any]:
        return units.altitude(message.range) if math.isfinite(message.range) else {}

    def wire_height(self, message: PointStamped) -> dict[str, Any]:
        return units.altitude(message.point.z) if math.isfinite(message.point.z) else {}

    def wire_velocity(self, message: TwistWithCovarianceStamped) -> dict[str, Any]:
        """Return the known components along the body's axes."""
        measured = [is_measured(message, axis) for axis in range(3)]
        in_body = _finite(message.twist.twist.linear)
        known = [value if has_value else None for value, has_value in zip(in_body, measured, strict=True)]
        return {_IN_BODY: known} if any(measured) else {}

    def wire_odometry(self, message: Odometry) -> dict[str, Any]:
        pose, in_body = message.pose.pose, _finite(message.twist.twist.linear)
        return {**_angles(pose.orientation), **units.altitude(pose.position.z), _IN_BODY: in_body}

    def wire_detections(self, message: DetectionArray) -> VisionDetect:
        """Return the current detections that have a position in the image."""
        features = []
        for found in found_in(message):
            place = (found.x, found.y, found.width, found.height)
            scaled = [units.scaled(value, PICTURE_UNITS) for value in place]
            known = [round(value) for value in scaled if value is not None]
            if len(known) == len(place):
                xc, yc, width, height = known
                distance = None if found.distance is None else units.scaled(found.distance, 100)
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
    known |= _levelled(known.pop(_IN_BODY, [None] * 3), known)
    return Demo(ctrl_state=None if state is None else state << MAJOR_STATE_SHIFT, **known)


def _finite(vector: Vector3) -> list[float | None]:
    return [value if math.isfinite(value) else None for value in (vector.x, vector.y, vector.z)]


def _levelled(in_body: list[float | None], block: dict[str, Any]) -> dict[str, float | None]:
    """Return the known components of a velocity along level axes, by the angles in the block."""
    tilt = units.measurement(Demo(phi=block.get("phi"), theta=block.get("theta")))
    rotation = quaternion_from_euler(tilt.roll or 0.0, tilt.pitch or 0.0, 0.0)
    level = units.velocity(*rotated(rotation, *(value or 0.0 for value in in_body)))
    return {name: value for (name, value), given in zip(level.items(), in_body, strict=True) if given is not None}


def _angles(message: QuaternionMessage) -> dict[str, Any]:
    """Return phi, theta and psi in the wire's unit, or nothing for an invalid rotation."""
    if (q := unit_quaternion(message, 0.5)) is None:
        return {}
    return units.angles(*euler_from_quaternion(q))


def _blocks() -> QoSProfile:
    """Return the QoS of raw blocks: a drone sends a few together, about 15 times per second."""
    return QoSProfile(depth=50)


NAVDATA_TOPIC = "dronegui/navdata"
DETECTIONS_TOPIC = "detections"

_T = DroneGuiTranslation
_row = partial(standard_row, Demo)
TOPICS = (
    Topic(
        NAVDATA_TOPIC,
        String,
        of=bytes,
        to_ros=_T.raw,
        from_ros=_T.wire_raw,
        qos=_blocks,
        requested=_blocks,
        meaning="each block of navdata as received, for `dronegui_server`",
    ),
    standard_row(
        VisionDetect,
        DETECTIONS_TOPIC,
        _T.detections,
        _T.wire_detections,
        "detections of the drone's vision, as shares of the image",
        requested=queued,
    ),
    # Charge changes slowly, and many drivers publish it rarely.
    _row("battery_state", _T.battery_state, _T.wire_charge, "charge, the only value on the wire", fresh_s=30.0),
    _row("height", _T.height, _T.wire_height, "height above the ground below, m"),
    _row("altitude", _T.altitude, _T.wire_range, "height by the ultrasound rangefinder, m"),
    _row(
        "velocity",
        _T.velocity,
        _T.wire_velocity,
        "velocity in body axes, m/s; rates and missing components have the variance 1e6",
    ),
    _row("imu/data", _T.imu, _T.wire_imu, "attitude; rates and accelerations are marked as unknown"),
    standard_row(
        DeadReckonedPose,
        "odom",
        _T.odometry,
        _T.wire_odometry,
        "pose by integrated velocities, with measured height and attitude",
        if_parameter="publish_odometry",
    ),
    standard_row(DeadReckonedPose, "/tf", _T.transforms, if_parameter="publish_tf"),
)

TABLE = TopicTable(
    (*TOPICS, VIDEO_ROW, *PICTURE_ROWS),
    lambda: DroneGuiTranslation(DroneFrameNames()),
    {
        Demo: lambda translation, value, stamp: assembled_demo(value),
        VisionDetect: lambda translation, value, stamp: value(DETECTIONS_TOPIC),
    },
)
