# SPDX-License-Identifier: Apache-2.0
"""The parameters that robot_bridge and robot_server share."""

from typing import Final

from drone_bridge.net.discovery import DISCOVERY_PORT
from drone_bridge.ros.parameters import ParameterDeclaration

SKID_STEER: Final = (
    ParameterDeclaration("wheel_separation", 0.5, "Distance between left and right wheels, m.", range=(0.01, 10.0)),
    ParameterDeclaration("max_wheel_speed", 1.0, "Speed of one side at full command, m/s.", range=(0.01, 100.0)),
)

DISCOVERY_UDP_PORT: Final = ParameterDeclaration(
    "discovery_port", DISCOVERY_PORT, "The UDP port used for discovery.", range=(1, 65535)
)
