# SPDX-License-Identifier: Apache-2.0
"""drone_controller: flies a drone through standard topics, with one of several behaviours."""

from typing import Any

from rclpy.node import Node

from drone_bridge.controllers.behaviour import Behaviour
from drone_bridge.controllers.goals import behaviour as goals
from drone_bridge.controllers.land_on_pad import behaviour as land_on_pad
from drone_bridge.controllers.seek_target import behaviour as seek_target
from drone_bridge.controllers.waypoints import behaviour as waypoints
from drone_bridge.ros.node.parameters import DeclaredParameters, ParameterDeclaration
from drone_bridge.ros.node.program import run

#: Modules of the behaviours by name, each with PARAMETERS and `start`.
BEHAVIOURS: dict[str, Any] = {module.NAME: module for module in (seek_target, waypoints, land_on_pad, goals)}
PARAMETERS = (
    ParameterDeclaration("behaviour", seek_target.NAME, "Active behaviour.", choices=tuple(BEHAVIOURS)),
    *(declaration for module in BEHAVIOURS.values() for declaration in module.PARAMETERS),
)


class DroneController(Node):
    """Node that runs the behaviour selected by the parameter `behaviour`."""

    def __init__(self, **options: Any) -> None:
        super().__init__("drone_controller", **options)
        self._declared = DeclaredParameters(self, PARAMETERS)
        self._behaviour: Behaviour | None = None

    def start(self) -> bool:
        name = self._declared["behaviour"]
        self._behaviour = BEHAVIOURS[name].start(self, self._declared)
        self._declared.freeze_because("when the node starts, and it is running: restart it with the new value")
        self.get_logger().info(f"Behaviour {name} is ready.")
        return True

    def leave(self) -> None:
        """Stop commanding. The bridge handles the timeout of commands."""
        if self._behaviour:
            self._behaviour.leave()

    def destroy_node(self) -> None:
        if self._behaviour:
            self._behaviour.destroy()
        super().destroy_node()  # type: ignore[no-untyped-call, unused-ignore] # Jazzy


def main() -> int:
    """Run the node."""
    return run(DroneController)
