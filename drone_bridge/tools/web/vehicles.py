# SPDX-License-Identifier: Apache-2.0
"""Which vehicles can be steered, and along which axes."""

from dataclasses import dataclass
from typing import Final

COMMAND_TOPIC: Final = "cmd_vel_stamped"
COMMAND_TYPE: Final = "geometry_msgs/msg/TwistStamped"
AXES: Final = ("x", "y", "z", "yaw")
FLYING: Final = AXES
DRIVING: Final = ("x", "yaw")
#: By the node that takes the commands, as launch files name it. Any other is offered all axes.
AXES_OF: Final = {
    "dronegui_bridge": FLYING,
    "telemetry_bridge": FLYING,
    "testbed_bridge": FLYING,
    "simulator_bridge": FLYING,
    "robot_bridge": DRIVING,
}


@dataclass(frozen=True, slots=True)
class Vehicle:
    """Something that follows velocities."""

    topic: str
    """Where it takes commands, as TwistStamped in its own frame."""
    node: str
    """The node that takes them."""

    @property
    def name(self) -> str:
        """Its namespace, or what the node bridges where it has none."""
        return self.topic.rpartition("/")[0].strip("/") or self.node.removesuffix("_bridge")

    @property
    def axes(self) -> tuple[str, ...]:
        """Those that it has, of AXES: forward, left, up, turning left."""
        return AXES_OF.get(self.node, AXES)
