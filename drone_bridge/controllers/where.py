# SPDX-License-Identifier: Apache-2.0
"""Where: where a vehicle is, by its odometry."""

from typing import NamedTuple

from drone_bridge.motion.matrices import Matrix, Vector, angles_from_rotation


class Where(NamedTuple):
    """Where a vehicle is, in the frame of its odometry."""

    position: Vector  # m
    rotation: Matrix  # from body to world

    @property
    def yaw(self) -> float:
        return angles_from_rotation(self.rotation)[2]
