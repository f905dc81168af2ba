# SPDX-License-Identifier: Apache-2.0
"""VelocityFrames: transforms commanded velocities to body axes. Velocities as messages."""

import math
from collections.abc import Callable, Collection
from typing import Any

from geometry_msgs.msg import Twist, TwistStamped, Vector3
from rclpy.node import Node

from drone_bridge.motion.body_velocity import BodyVelocity
from drone_bridge.motion.vectors import Triple
from drone_bridge.ros.node.parameters import DeclaredParameters, read
from drone_bridge.ros.topics.frames import FrameNames


def velocity_from_twist(twist: Twist) -> BodyVelocity:
    """Convert a cmd_vel in body axes to a velocity."""
    linear, angular = twist.linear, twist.angular
    return BodyVelocity(linear.x, linear.y, linear.z, angular.x, angular.y, angular.z)


def twist_from_velocity(velocity: BodyVelocity) -> Twist:
    """Convert a velocity to a cmd_vel, the inverse of `velocity_from_twist`."""
    return Twist(
        linear=Vector3(x=velocity.forward, y=velocity.left, z=velocity.up),
        angular=Vector3(x=velocity.roll, y=velocity.pitch, z=velocity.turn),
    )


def as_published(message: Any, publisher: Any, node: Node) -> Any:
    """Convert a Twist to the publisher's type. A TwistStamped gets the present time, and body axes."""
    if publisher.msg_type is not TwistStamped or not isinstance(message, Twist):
        return message
    stamped = TwistStamped(twist=message)
    stamped.header.stamp = node.get_clock().now().to_msg()
    return stamped


class VelocityFrames:
    """Transformation of commanded velocities to body axes."""

    def __init__(
        self, body: str, worlds: Collection[str], yaw: Callable[[], float | None], plain_body: str = ""
    ) -> None:
        """Define the frames.

        Args:
            body: the body frame; an empty `frame_id` means it too.
            worlds: the world frames, in which `yaw` is measured.
            yaw: returns the body's heading, rad; None while it is unknown.
            plain_body: the body frame without its prefix, which programs without one name: it means the body, too.
        """
        self._body, self._worlds, self._yaw, self._plain_body = body, worlds, yaw, plain_body

    def in_body(self, message: Twist | TwistStamped) -> BodyVelocity:
        """Return the velocity in body axes, or in level axes with the heading. Raises ValueError with a sentence."""
        if isinstance(message, Twist):
            return velocity_from_twist(message)
        velocity, frame = velocity_from_twist(message.twist), message.header.frame_id
        if frame in ("", self._body, self._plain_body):
            return velocity
        if frame not in self._worlds:
            worlds = "".join(f", or {name} for the world's" for name in sorted(self._worlds))
            raise ValueError(
                f"its frame_id is {frame!r}, but must be empty or {self._body} for the body's axes{worlds}."
            )
        yaw = self._yaw()
        if yaw is None:
            raise ValueError(f"its frame_id is {frame}, but the heading of the vehicle in {frame} is unknown.")
        linear, angular = _turned(velocity.linear, -yaw), _turned(velocity.angular, -yaw)
        if not all(map(math.isfinite, (*linear, *angular))):
            raise ValueError(f"it is too large to be rotated from the axes of {frame} into the body's.")
        return BodyVelocity(*linear, *angular)


def velocity_frames(parameters: DeclaredParameters, yaw: Callable[[], float | None]) -> VelocityFrames:
    """Return the frames of a bridge: odom if it has one, and map only if the bridge itself relates it to odom."""
    names = read(FrameNames, parameters)
    worlds = {names.odom} if "odom_frame" in parameters else set()
    if "map_frame" in parameters and ("publish_map_to_odom" not in parameters or parameters["publish_map_to_odom"]):
        worlds.add(names.map)
    return VelocityFrames(names.base_link, worlds, yaw, names.base_frame)


def _turned(vector: Triple, angle: float) -> Triple:
    cos, sin = math.cos(angle), math.sin(angle)
    x, y, z = vector
    return cos * x - sin * y, sin * x + cos * y, z
