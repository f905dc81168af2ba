# SPDX-License-Identifier: Apache-2.0
"""VelocityPublisher: what a server's operator commands, on cmd_vel or, where somebody takes shares, on cmd_axes."""

import math
import time
from typing import Any

from rclpy.publisher import Publisher

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.command_axes import axes_from_shares
from drone_bridge.ros.neutral_repeater import NeutralRepeater, has_followers
from drone_bridge.ros.protocol_node import ProtocolNode
from drone_bridge.ros.publishers import wait_for_delivery
from drone_bridge.ros.velocity_messages import cmd_vel_type, twist_from_velocity

_DEPTH = 10
#: How often is looked who takes cmd_axes.
_LOOK_PERIOD_S = 0.2


class VelocityPublisher:
    """Publishes what an operator commands, and repeats a neutral command while it is the last one. For one thread.

    An operator that commands shares gives them as well: where somebody takes cmd_axes they are published there, as they
    are, and otherwise the velocities that they stand for on cmd_vel.
    """

    def __init__(self, node: ProtocolNode, axes_frame_id: str | None = None) -> None:
        """`axes_frame_id` is the frame of shares, None where there are none."""
        self._node = node
        self._axes_frame_id = axes_frame_id
        self._publisher = node.make_publisher(cmd_vel_type(node.parameters), "cmd_vel", _DEPTH)
        self._publishers: tuple[Publisher[Any], ...] = (self._publisher,)
        if axes_frame_id is not None:
            self._publishers += (node.make_publisher(CommandAxes, "cmd_axes", _DEPTH),)
        self._repeater = NeutralRepeater(node, self._publishers, lambda: self._message(STILL, Shares()))
        self._moves = False  # the last command
        self._looked_s = -math.inf
        self._are_shares_taken = False

    @property
    def is_neutral_last(self) -> bool:
        """Whether zero is the vehicle's newest command, as far as is known."""
        return self._repeater.age_s is not None

    def publish(self, velocity: BodyVelocity, shares: Shares, decided_s: float) -> None:
        """Publish a command; `decided_s` is when it was decided to follow it, see `ProtocolNode.publish`."""
        if self._axes_frame_id is not None:
            self._look()
        self._moves = velocity != STILL or shares != Shares()
        self._repeater.publish(*self._message(velocity, shares), decided_s)
        self._node.report.counts["commands"] += 1

    def wait_for_delivery(self) -> None:
        """Wait until the last command has arrived, as ROS may be shut down next."""
        for publisher in self._publishers:
            wait_for_delivery(publisher)

    def _look(self) -> None:
        """Find out on which topic the vehicle listens; the topic that is left gets zero."""
        now_s = time.monotonic()
        if self._moves and now_s - self._looked_s < _LOOK_PERIOD_S:
            return
        self._looked_s = now_s
        are_taken = has_followers(self._node, "cmd_axes")
        if are_taken != self._are_shares_taken:
            if self._moves:
                self._repeater.publish(*self._message(STILL, Shares()), elapsed_s())
            self._are_shares_taken = are_taken

    def _message(self, velocity: BodyVelocity, shares: Shares) -> "tuple[Publisher[Any], Any]":
        if not self._are_shares_taken or self._axes_frame_id is None:
            return self._publisher, twist_from_velocity(velocity)
        stamp = self._node.get_clock().now().to_msg()
        return self._publishers[-1], axes_from_shares(shares, stamp, self._axes_frame_id)
