# SPDX-License-Identifier: Apache-2.0
"""WaypointsBehaviour: ROS side of the behaviour `waypoints`: odometry in, velocities and service calls out."""

from __future__ import annotations

import math
import time
from typing import Any

from nav_msgs.msg import Odometry
from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import Trigger

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.command_timer import COMMAND_RATE, plan_clock
from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.controllers.messages import ErrorLog, read_odometry
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.controllers.vehicle_pose import VehiclePose
from drone_bridge.controllers.waypoints.waypoint import Waypoint
from drone_bridge.controllers.waypoints.waypoints import TourDecision, WaypointParameters, Waypoints, WaypointState
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.qos import latched
from drone_bridge.ros.steady_timer import steady_timer
from drone_bridge.ros.subscriptions import subscribe

NAME = "waypoints"
PARAMETERS = (
    ParameterDeclaration(
        f"{NAME}.points",
        ["x=2 y=0", "x=2 y=2", "x=0 y=2", "x=0 y=0"],
        "The waypoints, one after the other. A place in the frame of the odometry: 'x=2 y=0 z=-1 yaw=1.57', in m and "
        "rad, where omitted axes are free. A leg by the clock in body axes: 'forward=0.3 left=0 up=0 turn=0 for=2', in "
        "m/s, rad/s and s. 'takeoff' and 'land' call the vehicle's services. At a place, or after a call, 'for=2' is "
        "the time to wait there, s.",
    ),
    *declarations(WaypointParameters, NAME),
)


class WaypointsBehaviour(Behaviour):
    """Flies the waypoints once all prerequisites are available, such as odometry and services."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        """Parse the waypoints. Raises ValueError with a sentence for invalid ones."""
        self._node = node
        try:
            points = tuple(map(Waypoint.read, parameters[f"{NAME}.points"]))
            self._parameters = read(WaypointParameters, parameters, NAME)
            self._waypoints = Waypoints(self._parameters, points)
        except ValueError as error:
            raise ValueError(f"{NAME}.points can't be used: {error}.") from None
        self._now = plan_clock(node)
        self._errors = ErrorLog(node)
        self._measured: VehiclePose | None = None
        self._measured_s = -math.inf
        self._is_flying: bool | None = None
        self._is_left = False
        self._commands = VelocityCommands(node)
        self._state_publisher = StatePublisher(node, NAME, logs_reasons=True)
        # Only for services in use, since a client alone makes a service appear in the graph.
        called = sorted({point.call for point in points if point.call})
        self._services: dict[str, Any] = {name: node.create_client(Trigger, name) for name in called}
        subscribe(node, Bool, "flying", self._on_flying, latched())
        subscribe(node, Odometry, "odom", self._on_odometry, 1)
        steady_timer(node, 1 / COMMAND_RATE, self._on_timer)

    def leave(self) -> None:
        self._is_left = True
        self._commands.leave()

    def _on_flying(self, message: Bool) -> None:
        self._is_flying = message.data

    def _on_odometry(self, message: Odometry) -> None:
        if measured := read_odometry(message, self._errors):
            self._state_publisher.frame_id = message.child_frame_id
            self._measured, self._measured_s = measured, time.monotonic()

    def _on_timer(self) -> None:
        if self._is_left:
            return
        if missing := [name for name, service in self._services.items() if not service.service_is_ready()]:
            if not self._waypoints.has_begun:
                self._publish_state(TourDecision(WaypointState.WAITING, f"for the service {missing[0]}"))
                return
            self._waypoints.give_up("the bridge is gone")
        is_late = time.monotonic() - self._measured_s > self._parameters.odometry_timeout
        decision = self._waypoints.update(self._now(), None if is_late else self._measured, self._is_flying)
        if decision.commands:
            self._commands.publish(decision.velocity)
        if decision.call:
            future = self._services[decision.call].call_async(Trigger.Request())
            future.add_done_callback(self._on_answer)
        self._publish_state(decision)

    def _on_answer(self, future: Any) -> None:
        answer = future.result()
        self._waypoints.answered(self._now(), answer.success, answer.message)

    def _publish_state(self, decision: TourDecision) -> None:
        self._state_publisher.publish(decision.state.value, decision.reason, decision.distance)


start = WaypointsBehaviour
