# SPDX-License-Identifier: Apache-2.0
"""GoalsBehaviour: behaviour `goals` of drone_controller, which executes goals and is idle otherwise."""

from rclpy.node import Node

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.command_timer import CommandTimer
from drone_bridge.controllers.commands import VelocityCommands
from drone_bridge.controllers.goals.guides import GoalParameters
from drone_bridge.controllers.goals.server import GoalServer
from drone_bridge.controllers.state_publisher import StatePublisher
from drone_bridge.ros.node.parameters import DeclaredParameters, declarations, read

NAME = "goals"
PARAMETERS = (*declarations(GoalParameters, NAME),)


class GoalsBehaviour(Behaviour):
    """Publishes velocities while a goal is followed or held. Otherwise it publishes none."""

    def __init__(self, node: Node, parameters: DeclaredParameters) -> None:
        goals = read(GoalParameters, parameters, NAME)
        self._goals = GoalServer(node, goals, flies=True, on_goal=lambda: self._timer.set_idle(False))
        self._is_left = False
        self._node = node
        self._commands: VelocityCommands | None = None  # created for the first goal
        self._state_publisher = StatePublisher(node, NAME, logs_reasons=True)
        self._timer = CommandTimer(node, self._on_timer)

    def leave(self) -> None:
        self._is_left = True
        if self._commands:
            self._commands.leave()

    def destroy(self) -> None:
        self._goals.destroy()

    def _on_timer(self) -> None:
        if self._is_left:
            return
        step = self._goals.step()
        self._timer.set_idle(self._goals.session.is_idle)
        if step:
            self._commands = self._commands or VelocityCommands(self._node)
            self._commands.publish(step.velocity, lands=self._goals.session.lands)
        self._state_publisher.publish(*self._goals.session.state, step.distance if step else None)


start = GoalsBehaviour
