# SPDX-License-Identifier: Apache-2.0
"""The behaviour `seek_target` between topics: stereo images in, body rates and thrust out."""

import math
from collections.abc import Callable
from typing import Any, Final

from cv_bridge import CvBridge, CvBridgeError
from geometry_msgs.msg import Twist, TwistStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import CameraInfo, Image, Imu
from std_msgs.msg import Header

from drone_bridge.bridges.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.controllers.attitude_estimator import MeasuredAttitude
from drone_bridge.controllers.behaviour_parameters import declarations, read
from drone_bridge.controllers.flight_control import Command, DroneModel
from drone_bridge.controllers.seek_target import Decision, SeekParameters, SeekState, SeekTarget
from drone_bridge.controllers.sphere_detector import Pinhole
from drone_bridge.controllers.stamped_sets import StampedSets
from drone_bridge.msg import CommandRates, ControllerState, DroneProperties
from drone_bridge.translate.frames import Quaternion, euler_from_quaternion
from drone_bridge.translate.time import NANOSECONDS

NAME: Final = "seek_target"
PARAMETERS: Final = (
    ParameterDeclaration(
        f"{NAME}.command_topic", "cmd_rates", "Where commands go.", choices=("cmd_rates", "cmd_vel", "cmd_vel_stamped")
    ),
    *declarations(SeekParameters, NAME),
)
# An angle with a variance above this, rad^2, is not measured but anything.
_UNKNOWN_VARIANCE: Final = 1.0
_FRAME: Final = ("left/image_raw", "right/image_raw", "left/camera_info", "right/camera_info", "imu/data")
# A command may go on when there are two frames to catch up with, not more: newest wins.
_FRAME_QUEUE: Final = 2


class SeekTargetBehaviour:
    """Feeds SeekTarget with frames as they come, and publishes what it decides."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._seek_parameters = read(SeekParameters, NAME, parameters)
        self._images = CvBridge()
        self._drone: DroneModel | None = None
        self._seek: SeekTarget | None = None
        self._seen_by: tuple[Any, ...] = ()
        self._state: SeekState | None = None
        self._send = self._make_sender(parameters[f"{NAME}.command_topic"])
        self._state_publisher = node.create_publisher(ControllerState, "~/state", 10)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(DroneProperties, "drone_properties", self._on_properties, latched)
        frames = StampedSets(_FRAME, self._on_frame)
        for topic, kind in zip(_FRAME, (Image, Image, CameraInfo, CameraInfo, Imu), strict=True):
            node.create_subscription(kind, topic, lambda message, topic=topic: frames.add(topic, message), _FRAME_QUEUE)

    def leave(self) -> None:
        """Stop deciding."""
        self._drone = None

    def _make_sender(self, topic: str) -> Callable[[Header, Command], None]:
        kind, convert = _COMMANDS[topic]
        publisher: Publisher[Any] = self._node.create_publisher(kind, topic, 1)
        return lambda header, command: publisher.publish(convert(header, command))

    def _on_properties(self, message: DroneProperties) -> None:
        self._seek = None
        try:
            self._drone = DroneModel(
                mass=message.mass,
                gravity=message.gravity,
                drag=message.drag,
                max_thrust=message.max_thrust,
                max_roll_rate=message.max_roll_rate,
                max_pitch_rate=message.max_pitch_rate,
                max_yaw_rate=message.max_yaw_rate,
            )
        except ValueError as error:
            self._drone = None
            self._node.get_logger().error(f"No controller can fly what was announced on drone_properties: {error}")

    def _on_frame(self, frame: dict[str, Any]) -> None:
        """Answer the images, camera infos and attitude of one moment."""
        if self._drone is None:
            return
        info, right_info = frame["left/camera_info"], frame["right/camera_info"]
        stamp = info.header.stamp
        try:
            seek = self._seeker(self._drone, info, right_info)
            left, right = (self._images.imgmsg_to_cv2(frame[topic], "rgb8") for topic in _FRAME[:2])
            decision = seek.update(stamp.sec + stamp.nanosec / NANOSECONDS, left, right, _attitude(frame["imu/data"]))
        except (ValueError, ZeroDivisionError, CvBridgeError) as error:
            self._node.get_logger().error(f"A frame can't be used: {error}", throttle_duration_sec=1.0)
            return
        self._send(info.header, decision.command)
        self._tell(info.header, decision)

    def _seeker(self, drone: DroneModel, left: CameraInfo, right: CameraInfo) -> SeekTarget:
        """Return the seeker for this drone and these cameras; other cameras are another testbed."""
        cameras = (left.width, left.height, *left.k, *right.p)
        if self._seek is None or cameras != self._seen_by:
            pinhole = Pinhole(left.width, left.height, left.k[0], left.k[4], left.k[2], left.k[5])
            baseline = -right.p[3] / right.p[0]
            self._seek, self._seen_by = SeekTarget(self._seek_parameters, drone, pinhole, baseline), cameras
        return self._seek

    def _tell(self, header: Header, decision: Decision) -> None:
        state = ControllerState(
            behaviour=NAME,
            state=decision.state.value,
            reason=decision.reason,
            distance=math.nan if decision.distance is None else decision.distance,
        )
        state.header.stamp = header.stamp
        self._state_publisher.publish(state)
        if decision.state is not self._state:
            self._state = decision.state
            self._node.get_logger().info(f"{decision.state.value}: {decision.reason}")


def start(node: Node, parameters: DeclaredParameters) -> SeekTargetBehaviour:
    """Return the behaviour at work."""
    return SeekTargetBehaviour(node, parameters)


def _attitude(imu: Imu) -> MeasuredAttitude:
    q = imu.orientation
    angles = euler_from_quaternion(Quaternion(q.x, q.y, q.z, q.w))
    variances = imu.orientation_covariance[0::4]
    known = [angle if variance < _UNKNOWN_VARIANCE else None for angle, variance in zip(angles, variances, strict=True)]
    return MeasuredAttitude(*known)


def _command_rates(header: Header, command: Command) -> CommandRates:
    message = CommandRates(
        roll_rate=command.roll_rate,
        pitch_rate=command.pitch_rate,
        yaw_rate=command.yaw_rate,
        thrust=command.thrust,
    )
    message.header.stamp = header.stamp
    return message


def _twist(_: Header, command: Command) -> Twist:
    message = Twist()
    message.angular.x, message.angular.y, message.angular.z = command.roll_rate, command.pitch_rate, command.yaw_rate
    message.linear.z = command.thrust
    return message


def _twist_stamped(header: Header, command: Command) -> TwistStamped:
    message = TwistStamped(twist=_twist(header, command))
    message.header.stamp = header.stamp
    return message


# How a command is said on each topic that takes commands.
_COMMANDS: Final[dict[str, tuple[type, Callable[[Header, Command], Any]]]] = {
    "cmd_rates": (CommandRates, _command_rates),
    "cmd_vel": (Twist, _twist),
    "cmd_vel_stamped": (TwistStamped, _twist_stamped),
}
