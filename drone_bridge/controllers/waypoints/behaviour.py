# SPDX-License-Identifier: Apache-2.0
"""The behaviour `waypoints` with its topics: odometry in, velocities out."""

import math
import time
from typing import Final

from nav_msgs.msg import Odometry
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node

from drone_bridge.controllers.pose_messages import read_pose
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.controllers.velocity_commands import VelocityCommands
from drone_bridge.controllers.waypoints.pilot import Decision, Waypoint, WaypointParameters, Waypoints, WaypointState
from drone_bridge.motion.matrices import Matrix, Vector, rotation_from_angles
from drone_bridge.msg import DroneProperties
from drone_bridge.ros.compatible_subscription import subscribe
from drone_bridge.ros.diagnostics import LogLimiter
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.topics import latched

NAME: Final = "waypoints"
PARAMETERS: Final = (
    ParameterDeclaration(
        f"{NAME}.points",
        ["x=2 y=0", "x=2 y=2", "x=0 y=2", "x=0 y=0"],
        "The waypoints, in the frame of the odometry: for instance 'x=2 y=0 z=-1 yaw=1.57', in m "
        "and rad. Omitted axes are free.",
    ),
    ParameterDeclaration(f"{NAME}.rate", 20.0, "Commands per second.", range=(1.0, 200.0)),
    ParameterDeclaration(
        f"{NAME}.odometry_timeout", 0.5, "Seconds without odometry after which the vehicle is stopped.", (0.05, 60.0)
    ),
    *declarations(WaypointParameters, NAME),
)


class WaypointsBehaviour:
    """Drives from waypoint to waypoint while there is odometry; stops otherwise."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        """Raises ValueError with a sentence for invalid waypoints."""
        self._node = node
        try:
            self._points = tuple(map(Waypoint.read, parameters[f"{NAME}.points"]))
            self._parameters = read(WaypointParameters, NAME, parameters)
            self._waypoints = Waypoints(self._parameters, self._points)
        except ValueError as error:
            raise ValueError(f"{NAME}.points can't be used: {error}.") from None
        self._odometry_timeout_s = parameters[f"{NAME}.odometry_timeout"]
        self._measured: tuple[Vector, Matrix] | None = None
        self._measured_s = -math.inf
        self._is_left = False
        self._log_limiter = LogLimiter()
        self._commands = VelocityCommands(node)
        self._state_publisher = StatePublisher(node, NAME, logs_reasons=True)
        subscribe(node, Odometry, "odom", self._on_odometry, 1)
        self._is_announced = False
        subscribe(node, DroneProperties, "drone_properties", self._on_properties, latched())
        # A steady clock: a simulation that stands still is no reason to leave a vehicle uncommanded.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(1 / parameters[f"{NAME}.rate"], self._on_timer, clock=clock)

    def leave(self) -> None:
        self._is_left = True
        self._commands.leave()

    def _on_odometry(self, message: Odometry) -> None:
        try:
            position, angles = read_pose(message, "odom")
        except ValueError as error:
            if line := self._log_limiter.admit(f"Odometry can't be used: {error}"):
                self._node.get_logger().error(line)
            return
        self._measured, self._measured_s = (position, rotation_from_angles(*angles)), time.monotonic()

    def _on_properties(self, _: DroneProperties) -> None:
        """Restart with the first waypoint when a drone is announced again, as its simulation was restarted."""
        if self._is_announced:
            self._waypoints = Waypoints(self._parameters, self._points)
            self._measured = None
        self._is_announced = True

    def _on_timer(self) -> None:
        if self._is_left:
            return
        now_s = time.monotonic()
        if self._measured is None:
            self._publish_state(Decision(WaypointState.WAITING, "for odometry"))
            return
        if now_s - self._measured_s > self._odometry_timeout_s:
            self._waypoints.interrupted()
            decision = Decision(WaypointState.STOPPED, f"no odometry for {self._odometry_timeout_s:g} s")
        else:
            decision = self._waypoints.update(now_s, *self._measured)
        self._commands.publish(decision.velocity, decision.turn)
        self._publish_state(decision)

    def _publish_state(self, decision: Decision) -> None:
        self._state_publisher.publish(decision.state.value, decision.reason, decision.distance)


start: Final = WaypointsBehaviour
