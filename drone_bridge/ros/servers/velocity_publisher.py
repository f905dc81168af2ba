# SPDX-License-Identifier: Apache-2.0
"""VelocityPublisher: commands of a server's operator, on cmd_axes if it has subscribers, otherwise on cmd_vel."""

import math
import time
from typing import Any

from rclpy.publisher import Publisher

from drone_bridge.motion.body_velocity import STILL, BodyVelocity
from drone_bridge.motion.tilted_drone import Shares
from drone_bridge.msg import CommandAxes
from drone_bridge.net.clock import elapsed_s
from drone_bridge.ros.commands.cmd_vel_type import CmdVelPublisher, followers
from drone_bridge.ros.commands.command_axes import axes_from_shares
from drone_bridge.ros.commands.velocity_messages import twist_from_velocity
from drone_bridge.ros.node.protocol_node import COMMANDS, ProtocolNode
from drone_bridge.ros.servers.neutral_repeater import NeutralRepeater

_DEPTH = 10
#: Period of the checks for subscribers of cmd_axes, s.
_LOOK_PERIOD_S = 0.2


class VelocityPublisher:
    """Publisher of an operator's commands, which repeats a neutral command while it is the last one. For one thread.

    An operator's shares are published unchanged on cmd_axes if that has subscribers other than observers. Otherwise the
    equivalent velocities are published on cmd_vel.
    """

    def __init__(self, node: ProtocolNode, axes_frame_id: str | None = None) -> None:
        """`axes_frame_id` is the frame of the shares, or None if the operator does not command shares."""
        self._node = node
        self._axes_frame_id = axes_frame_id
        self._publisher: Any = CmdVelPublisher(node, lambda kind: node.make_publisher(kind, "cmd_vel", _DEPTH))
        self._publishers: tuple[Any, ...] = (self._publisher,)
        if axes_frame_id is not None:
            self._publishers += (node.make_publisher(CommandAxes, "cmd_axes", _DEPTH),)
        self._repeater = NeutralRepeater(node, self._publishers, self._neutral)
        self._moves = False  # whether the last command is not neutral
        self._looked_s = -math.inf
        self._are_shares_taken = False

    @property
    def is_neutral_last(self) -> bool:
        """Whether zero is the vehicle's newest known command."""
        return self._repeater.age_s is not None

    def publish(self, velocity: BodyVelocity, shares: Shares, decided_s: float) -> None:
        """Publish a command. `decided_s` is its decision time, see `ProtocolNode.publish`."""
        if self._axes_frame_id is not None:
            self._select_topic()
        self._moves = velocity != STILL or shares != Shares()
        self._repeater.publish(*self._message(velocity, shares), decided_s)
        self._node.report.counts[COMMANDS] += 1

    def _select_topic(self) -> None:
        """Select the topic by its subscribers. After a change, the former topic gets zero."""
        now_s = time.monotonic()
        if self._moves and now_s - self._looked_s < _LOOK_PERIOD_S:
            return
        self._looked_s = now_s
        are_taken = self._has_takers()
        if are_taken != self._are_shares_taken:
            if self._moves:
                self._repeater.publish(*self._message(STILL, Shares()), elapsed_s())
            self._are_shares_taken = are_taken

    def _has_takers(self) -> bool:
        return self._axes_frame_id is not None and bool(followers(self._node, "cmd_axes"))

    def _neutral(self) -> "tuple[Publisher[Any], Any]":
        """Return the neutral command, with its publisher. In the executor, also before the first `publish`."""
        return self._message(STILL, Shares(), are_taken=self._has_takers())

    def _message(
        self, velocity: BodyVelocity, shares: Shares, *, are_taken: bool | None = None
    ) -> "tuple[Publisher[Any], Any]":
        if not (self._are_shares_taken if are_taken is None else are_taken) or self._axes_frame_id is None:
            return self._publisher, twist_from_velocity(velocity)
        stamp = self._node.get_clock().now().to_msg()
        return self._publishers[-1], axes_from_shares(shares, stamp, self._axes_frame_id)
