# SPDX-License-Identifier: Apache-2.0
"""The AR.Drone in demonstrations."""

from drone_bridge.programs.demonstration import Demonstration

#: At full stick, as its programs assume: m/s and rad/s.
AR_DRONE: dict[str, float | str] = {
    "full_scale.roll": 5.0,
    "full_scale.pitch": 5.0,
    "full_scale.yaw": 1.745,
    "full_scale.gas": 0.7,
}


DEMONSTRATION = Demonstration(
    takeoff="dronegui_bridge/takeoff",
    server_parameters={**AR_DRONE, "command_output": "cmd_vel"},
)
