# SPDX-License-Identifier: Apache-2.0
"""Creates the model of motion for controllers from the properties that a bridge publishes."""

from drone_bridge.motion.flight_control import DroneModel
from drone_bridge.msg import DroneProperties


def drone_model(properties: DroneProperties) -> DroneModel:
    """Return the model of a drone with these properties. Raises ValueError for a drone that could not fly."""
    return DroneModel(
        mass=properties.mass,
        gravity=properties.gravity,
        drag=properties.drag,
        max_thrust=properties.max_thrust,
        max_roll_rate=properties.max_roll_rate,
        max_pitch_rate=properties.max_pitch_rate,
        max_yaw_rate=properties.max_yaw_rate,
    )
