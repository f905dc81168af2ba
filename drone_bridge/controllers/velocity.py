# SPDX-License-Identifier: Apache-2.0
"""The behaviour `velocity` with its topics: odometry and velocities in, body rates and thrust out.

For vehicles that take `cmd_rates` alone. testbed_bridge follows cmd_vel by itself, with the same control law: to use
both, remap cmd_vel and cmd_vel_stamped of one of them.
"""

from functools import partial

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Twist, TwistStamped
from nav_msgs.msg import Odometry
from rclpy.node import Node

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.messages import ErrorLog, read_pose
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.controllers.timing import make_steady_timer
from drone_bridge.motion.attitude_estimator import MeasuredAttitude
from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.motion.velocity_control import HOVER, VelocityCommand, VelocityControl, VelocityParameters
from drone_bridge.msg import CommandRates, DroneProperties
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.command_ages import CommandAges
from drone_bridge.ros.log_limiter import ConditionLogLimiter
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.qos import command_stream, latched
from drone_bridge.ros.stall_watch import StreamSettling
from drone_bridge.ros.subscriptions import subscribe
from drone_bridge.ros.time import seconds_of
from drone_bridge.ros.velocity_messages import OtherTypes, VelocityFrames, cmd_vel_type

NAME = "velocity"
STAMPED = "cmd_vel_stamped"
REFUSED = "refused_velocities"
PARAMETERS = (
    ParameterDeclaration(
        f"{NAME}.command_timeout",
        0.5,
        "Seconds without a velocity after which the drone hovers; a stamped velocity that is older is refused.",
        (0.05, 60.0),
    ),
    ParameterDeclaration(
        f"{NAME}.stamp_source",
        "ros",
        "Stamps of velocities: ROS time, or the time that odom is stamped with, as by a bridge with stamp_source: "
        "wire.",
        choices=("ros", "wire"),
    ),
    *declarations(VelocityParameters, NAME),
)


class VelocityBehaviour(Behaviour):
    """Answers each odometry message with the command for the newest velocity. Without odometry, the bridge hovers."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._velocity_parameters = read(VelocityParameters, NAME, parameters)
        self._timeout_s = parameters[f"{NAME}.command_timeout"]
        self._control: VelocityControl | None = None
        self._wanted: tuple[VelocityCommand, float] = HOVER, 0.0  # and until when it holds
        self._published = ("", "")  # state and reason
        self._errors = ErrorLog(node)
        self._condition_limiter = ConditionLogLimiter()
        self._odometry_stamp = Time()
        self._frames = VelocityFrames("base_link", (), lambda: None)  # until there is odometry
        self._commands = node.create_publisher(CommandRates, "cmd_rates", 1)
        self._state_publisher = StatePublisher(node, NAME, logs_reasons=True)
        self._state_publisher.stamp = self._odometry_stamp
        subscribe(node, DroneProperties, "drone_properties", self._on_properties, latched())
        subscribe(node, Odometry, "odom", self._on_odometry, 1)
        is_wire_time = parameters[f"{NAME}.stamp_source"] == "wire"
        self._ages = CommandAges(
            node,
            STAMPED,
            parameters,
            now=(lambda: self._odometry_stamp) if is_wire_time else None,
            prefix=f"{NAME}.",
        )
        cmd_vel = cmd_vel_type(parameters)
        for topic, message_type in (("cmd_vel", cmd_vel), (STAMPED, TwistStamped)):
            take = partial(self._on_twist, topic, StreamSettling())
            subscribe(node, message_type, topic, take, command_stream())
        other_types = OtherTypes(node, "cmd_vel", cmd_vel)
        make_steady_timer(node, 1.0, other_types.warn_of_publishers)
        self._publish_state("waiting", "for drone_properties and odom")

    def leave(self) -> None:
        self._control = None

    def _on_properties(self, message: DroneProperties) -> None:
        """Start over with this drone, as the bridge does for a new simulation."""
        self._control = None
        try:
            drone = DroneModel.of(message)
        except ValueError as error:
            self._errors.log(f"Velocities can't be flown with drone_properties: {error}.")
            return
        self._control = VelocityControl(drone, self._velocity_parameters)

    def _on_twist(self, topic: str, settling: StreamSettling, message: Twist | TwistStamped) -> None:
        ages = self._ages
        try:
            if refusal := settling.refusal() or ages.refusal(ages.stamp_of(message)):
                raise ValueError(refusal)
            twist = self._frames.in_body(message)
        except ValueError as error:
            self._warn_ongoing(REFUSED, f"A velocity on {topic} was refused: {error}")
            return
        wanted = VelocityCommand(twist.linear.x, twist.linear.y, twist.linear.z, twist.angular.z)
        if not np.isfinite(wanted).all():
            self._errors.log(f"A velocity was refused: {tuple(wanted)} is not finite.")
            return
        self._condition_limiter.end(REFUSED)
        self._wanted = wanted, elapsed_s() + self._timeout_s

    def _on_odometry(self, message: Odometry) -> None:
        if self._control is None:
            return
        try:
            position, (roll, pitch, yaw) = read_pose(message, "odom")
        except ValueError as error:
            self._errors.log(f"Odometry can't be used: {error}")
            return
        stamp = self._odometry_stamp = self._state_publisher.stamp = message.header.stamp
        self._frames = VelocityFrames(message.child_frame_id, {message.header.frame_id}, lambda: yaw)
        wanted, expires_s = self._wanted
        is_fresh = elapsed_s() <= expires_s
        self._control.measured(seconds_of(stamp), MeasuredAttitude(roll, pitch, yaw), position.tolist())
        flown = self._control.command(wanted if is_fresh else HOVER)
        self._control.flown(flown, is_velocity=True)
        command = CommandRates(
            roll_rate=flown.roll_rate, pitch_rate=flown.pitch_rate, yaw_rate=flown.yaw_rate, thrust=flown.thrust
        )
        command.header.stamp = stamp
        command.header.frame_id = self._state_publisher.frame_id = message.child_frame_id
        self._commands.publish(command)
        is_moving = is_fresh and any(wanted)
        self._publish_state(
            "moving" if is_moving else "hovering", "as commanded" if is_fresh else "no velocity is commanded"
        )

    def _publish_state(self, state: str, reason: str) -> None:
        if (state, reason) != self._published:
            self._published = (state, reason)
            self._state_publisher.publish(state, reason)

    def _warn_ongoing(self, condition: str, sentence: str) -> None:
        """Log an ongoing condition when it begins, then at growing intervals."""
        if line := self._condition_limiter.admit(condition, sentence):
            self._node.get_logger().warning(line)


start = VelocityBehaviour
