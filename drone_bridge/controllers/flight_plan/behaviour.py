# SPDX-License-Identifier: Apache-2.0
"""The behaviour `flight_plan` with its topics and services: takeoff, cmd_vel, hover, land."""

import time
from typing import Any, Final

from geometry_msgs.msg import Twist
from rclpy.clock import Clock, ClockType  # type: ignore[attr-defined] # where humble has it, too
from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import SetBool, Trigger

from drone_bridge.controllers.flight_plan.pilot import Call, FlightPlan, PlanParameters
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.ros.compatible_subscription import subscribe
from drone_bridge.ros.parameters import DeclaredParameters, ParameterDeclaration, declarations, read
from drone_bridge.ros.topics import latched

NAME: Final = "flight_plan"
PARAMETERS: Final = (
    ParameterDeclaration(f"{NAME}.rate", 20.0, "Commands per second.", range=(1.0, 200.0)),
    *declarations(PlanParameters, NAME),
)


class FlightPlanBehaviour:
    """Flies the plan once, as soon as a bridge offers its services."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        self._node = node
        self._plan = FlightPlan(read(PlanParameters, NAME, parameters))
        self._is_left = False
        self._velocity_publisher = node.create_publisher(Twist, "cmd_vel", 1)
        self._state_publisher = StatePublisher(node, NAME)
        self._clients: dict[str, Any] = {
            "takeoff": node.create_client(Trigger, "takeoff"),
            "land": node.create_client(Trigger, "land"),
            "hover": node.create_client(SetBool, "hover"),
        }
        subscribe(node, Bool, "flying", self._on_flying, latched())
        # A drone keeps flying while ROS time stands still.
        clock = Clock(clock_type=ClockType.STEADY_TIME)
        node.create_timer(1 / parameters[f"{NAME}.rate"], self._on_timer, clock=clock)

    def leave(self) -> None:
        self._is_left = True

    def _on_flying(self, message: Bool) -> None:
        self._plan.is_flying = message.data

    def _on_timer(self) -> None:
        if self._is_left:
            return
        if not all(client.service_is_ready() for client in self._clients.values()):
            if not self._plan.has_begun:
                return
            self._plan.give_up("the bridge is gone")
        if not self._plan.is_over:
            step = self._plan.update(time.monotonic())
            if step.call:
                self._call(step.call)
            if step.velocity:
                twist = Twist()
                twist.linear.x, twist.linear.y = step.velocity
                self._velocity_publisher.publish(twist)
        self._state_publisher.publish(self._plan.state, self._plan.problem or "by the clock")

    def _call(self, call: Call) -> None:
        request = Trigger.Request() if call.data is None else SetBool.Request(data=call.data)
        self._clients[call.service].call_async(request).add_done_callback(self._on_answer)

    def _on_answer(self, future: Any) -> None:
        answer = future.result()
        self._plan.answered(time.monotonic(), answer.success, answer.message)
        if not answer.success:
            self._node.get_logger().warning(f"Refused: {answer.message}")


start: Final = FlightPlanBehaviour
