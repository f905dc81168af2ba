# SPDX-License-Identifier: Apache-2.0
"""VehiclePose: a vehicle's position and attitude from its odometry."""

from typing import NamedTuple

from drone_bridge.motion.matrices import Matrix, Vector, angles_from_rotation


class VehiclePose(NamedTuple):
    """Position and attitude of a vehicle in its odometry frame."""

    position: Vector  # m
    rotation: Matrix  # from body to world

    @property
    def yaw(self) -> float:
        return angles_from_rotation(self.rotation)[2]
