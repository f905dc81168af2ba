# SPDX-License-Identifier: Apache-2.0
"""SeekTargetBehaviour: ROS side of the behaviour `seek_target`: stereo images in, body rates and thrust out."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from rclpy.node import Node
from sensor_msgs.msg import CameraInfo, Imu
from sensor_msgs.msg import Image as ImageMessage

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.camera_messages import read_pinhole, read_pixels
from drone_bridge.controllers.messages import ErrorLog, read_angles, read_pose
from drone_bridge.controllers.seek_target.pilot import SeekDecision, SeekParameters, SeekTarget
from drone_bridge.controllers.stamped_sets import StampedSets
from drone_bridge.controllers.state_publisher import WAITING, StatePublisher
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.motion.matrices import NOT_COMPUTABLE, Triple
from drone_bridge.motion.quaternions import MeasuredAttitude
from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.ros.node.parameters import DeclaredParameters, declarations, read
from drone_bridge.ros.qos import latched
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.ros.streams import TopicStream
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.time import seconds_of
from drone_bridge.vision.pinhole import Image, Pinhole

#: Topics whose messages of one stamp form a frame.
TOPICS = ("left/image_raw", "right/image_raw", "left/camera_info", "right/camera_info", "imu/data")
#: Optional part of a frame.
ODOMETRY = "odom"
PROPERTIES = "drone_properties"
MESSAGE_TYPES = (ImageMessage, ImageMessage, CameraInfo, CameraInfo, Imu)

# Angles with a larger variance, rad^2, are treated as unmeasured.
_UNKNOWN_VARIANCE = 1.0


@dataclass(frozen=True, slots=True)
class StereoFrame:
    """Stereo images of equal size, with camera and attitude."""

    stamp: float  # s
    left: Image
    right: Image
    pinhole: Pinhole  # of both cameras
    baseline: float  # m between the cameras
    attitude: MeasuredAttitude
    place: Triple | None  # position of the drone, m; None without odometry

    @classmethod
    def read(cls, messages: Mapping[str, Any]) -> StereoFrame:
        """Parse messages of one stamp, by topic. Raises ValueError with a sentence for invalid ones.

        Odometry, if present, provides the attitude as well, since its yaw refers to the same frame as its position.
        """
        left_info, right_info = messages["left/camera_info"], messages["right/camera_info"]
        place: Triple | None = None
        if ODOMETRY in messages:
            position, angles = read_pose(messages[ODOMETRY], ODOMETRY)
            x, y, z = position.tolist()
            attitude, place = MeasuredAttitude(*angles), (x, y, z)
        else:
            attitude = _attitude(messages["imu/data"])
        pinhole = read_pinhole(left_info, "left/camera_info")
        return cls(
            seconds_of(left_info.header.stamp),
            read_pixels(messages["left/image_raw"], "left/image_raw", pinhole, "left/camera_info"),
            read_pixels(messages["right/image_raw"], "right/image_raw", pinhole, "left/camera_info"),
            pinhole,
            _baseline(right_info),
            attitude,
            place,
        )


def _baseline(right: CameraInfo) -> float:
    focal, shift = right.p[0], right.p[3]
    baseline = -shift / focal if focal else math.nan
    if not 0 <= baseline < math.inf:
        raise ValueError(
            f"in right/camera_info, P[3] is {shift} and P[0] is {focal}: the baseline, -P[3] / P[0], must be at "
            "least 0 m."
        )
    return float(baseline)


def _attitude(imu: Imu) -> MeasuredAttitude:
    angles = read_angles(imu, "imu/data")
    if angles is None:
        return MeasuredAttitude()
    variances = imu.orientation_covariance[0::4]
    known = [angle if variance < _UNKNOWN_VARIANCE else None for angle, variance in zip(angles, variances, strict=True)]
    return MeasuredAttitude(*known)


NAME = "seek_target"
PARAMETERS = declarations(SeekParameters, NAME)
#: Seconds without frames after which the state names the missing topics.
FRAME_TIMEOUT_S = 1.0
# At most two pending frames are processed. Older ones are dropped.
_FRAME_QUEUE = 2


class SeekTargetBehaviour(Behaviour):
    """Passes frames to SeekTarget as they arrive, and publishes its decisions."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._seek_parameters = read(SeekParameters, parameters, NAME)
        self._errors = ErrorLog(node)
        self._drone: DroneModel | None = None
        self._answered_s = -math.inf
        self._has_left = False
        self._seek: SeekTarget | None = None
        self._seen_by: tuple[Pinhole, float] | None = None
        self._state_publisher = StatePublisher(node, NAME)
        self._state_publisher.stamp = Time()
        self._commands = node.create_publisher(CommandRates, "cmd_rates", 1)
        subscribe(node, DroneProperties, PROPERTIES, self._on_properties, latched())
        self._odometry = TopicStream(node, Odometry, ODOMETRY)
        # Kept until its frame is complete, which may come after the frame before: images are large and published last.
        self._newest_odometry: Odometry | None = None
        self._frames = StampedSets(TOPICS, self._on_frame)
        for topic, kind in zip(TOPICS, MESSAGE_TYPES, strict=True):
            subscribe(node, kind, topic, partial(self._frames.add, topic), _FRAME_QUEUE)
        steady_timer(node, FRAME_TIMEOUT_S, self._watch)

    def leave(self) -> None:
        self._has_left = True

    def _on_properties(self, message: DroneProperties) -> None:
        self._seek = None
        try:
            self._drone = DroneModel.of(message)
        except ValueError as error:
            self._drone = None
            self._errors.log(f"The drone on drone_properties can't be flown: {error}.")

    def _on_frame(self, messages: dict[str, Any]) -> None:
        """Decide by a complete frame, and publish the command."""
        if self._has_left or self._drone is None:
            return
        self._newest_odometry = odometry = self._odometry.take() or self._newest_odometry
        if odometry and odometry.header.stamp == messages["left/camera_info"].header.stamp:
            messages[ODOMETRY] = odometry
        try:
            frame = StereoFrame.read(messages)
            decision = self._decide(self._drone, frame)
        except ValueError as error:
            self._errors.log(f"A frame can't be used: {error}")
            return
        self._answered_s = time.monotonic()
        header = messages["imu/data"].header
        self._state_publisher.frame_id, self._state_publisher.stamp = header.frame_id, header.stamp
        roll_rate, pitch_rate, yaw_rate, thrust = decision.command
        self._commands.publish(
            CommandRates(header=header, roll_rate=roll_rate, pitch_rate=pitch_rate, yaw_rate=yaw_rate, thrust=thrust)
        )
        self._state_publisher.publish(decision.state.value, decision.reason, decision.distance)

    def _watch(self) -> None:
        """Publish the missing topics if no frame could be processed for FRAME_TIMEOUT_S."""
        if time.monotonic() - self._answered_s > FRAME_TIMEOUT_S:
            unknown = [] if self._drone else [PROPERTIES]
            self._state_publisher.publish(WAITING, self._frames.waits_for(FRAME_TIMEOUT_S, *unknown))

    def _decide(self, drone: DroneModel, frame: StereoFrame) -> SeekDecision:
        """Return the decision. Resets the behaviour and raises ValueError if it can't be computed."""
        cameras = (frame.pinhole, frame.baseline)
        try:
            if self._seek is None or cameras != self._seen_by:  # other cameras mean another testbed
                self._seek, self._seen_by = SeekTarget(self._seek_parameters, drone, *cameras), cameras
            decision = self._seek.update(frame.stamp, frame.left, frame.right, frame.attitude, frame.place)
            if decision.command.is_finite:
                return decision
            problem = "numbers are not finite"
        except NOT_COMPUTABLE as error:
            problem = str(error)
        self._seek = None  # a fault would persist in the estimates
        raise ValueError(f"no command can be computed for {drone}: {problem}.")


start = SeekTargetBehaviour
