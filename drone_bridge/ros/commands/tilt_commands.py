# SPDX-License-Identifier: Apache-2.0
"""TiltCommands: command topics of a tilt-controlled drone: velocities on cmd_vel, shares on cmd_axes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from builtin_interfaces.msg import Time

from drone_bridge.motion.tilted_drone import Shares, TiltedDrone
from drone_bridge.msg import CommandAxes
from drone_bridge.ros.commands.command_axes import shares_from_axes
from drone_bridge.ros.commands.command_topics import CommandTopics
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.node.protocol_node import ProtocolNode

FOLLOWED_AXES = ("linear.x", "linear.y", "linear.z", "angular.z")


def drone_parameters(drone: TiltedDrone) -> tuple[ParameterDeclaration, ...]:
    """Return the parameters of a drone's full deflections. `drone` has the defaults."""
    return tuple(
        ParameterDeclaration(f"drone.{name}", float(getattr(drone, name)), meaning, range=(least, most))
        for name, meaning, least, most in (
            ("max_tilt", "Tilt at full deflection, rad.", 0.01, 1.2),
            ("max_climb", "Climb at full deflection, m/s.", 0.01, 20.0),
            ("max_yaw_rate", "Turn rate at full deflection, rad/s.", 0.01, 20.0),
        )
    )


def read_drone(parameters: DeclaredParameters, drone: TiltedDrone) -> TiltedDrone:
    """Return a copy of a drone with the full deflections of the parameters."""
    deflections = {name: parameters[f"drone.{name}"] for name in ("max_tilt", "max_climb", "max_yaw_rate")}
    return replace(drone, **deflections)


class TiltCommands(CommandTopics[Shares]):
    """Command topics of such a drone. A TiltPilot flies the decisions of the arbiter."""

    def __init__(
        self,
        node: ProtocolNode,
        drone: TiltedDrone,
        *,
        now: Callable[[], Time] | None = None,
        has_landing_button: bool = False,
    ) -> None:
        """Subscribe to the command topics.

        Args:
            node: the node with the topics.
            drone: the drone with its full deflections, see `read_drone`.
            now: the clock of stamps, if it is not a machine's clock.
            has_landing_button: whether the drone lands by a button, not by a velocity.
        """
        super().__init__(
            node, now, within_maxima=drone.within_maxima, holds_zero=True, has_landing_button=has_landing_button
        )
        self.take_velocities(FOLLOWED_AXES)
        self.take("cmd_axes", CommandAxes, shares_from_axes)
