# SPDX-License-Identifier: Apache-2.0
"""FrameNames: tf frames of a vehicle (REP 105), and axis conventions common to several protocols."""

import math
from dataclasses import dataclass

from drone_bridge.motion.quaternions import Quaternion


@dataclass(frozen=True, slots=True)
class FrameNames:
    """tf frames of any vehicle, with a common prefix."""

    prefix: str = ""
    map_name: str = "map"
    odom_name: str = "odom"
    base_name: str = "base_link"

    @property
    def own(self) -> set[str]:
        """All frames, without the prefix."""
        return {self.map_name, self.odom_name, self.base_name}

    @property
    def map(self) -> str:
        """World frame, ENU."""
        return f"{self.prefix}{self.map_name}"

    @property
    def odom(self) -> str:
        return f"{self.prefix}{self.odom_name}"

    @property
    def base_link(self) -> str:
        """Body frame: x forward, y left, z up."""
        return f"{self.prefix}{self.base_name}"


class DroneFrameNames(FrameNames):
    """tf frames of a drone with one camera and a rangefinder."""

    __slots__ = ()

    @property
    def altimeter(self) -> str:
        """Rangefinder frame, whose x axis points down."""
        return f"{self.prefix}altimeter_link"

    @property
    def footprint(self) -> str:
        """Frame on the ground below the drone: level, with its heading."""
        return f"{self.prefix}base_footprint"

    @property
    def optical(self) -> str:
        """Optical frame of the camera."""
        return f"{self.prefix}camera_optical_frame"


#: Rotation from a camera's body frame (x forward) to its optical frame (z forward).
OPTICAL_IN_BODY = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Rotation from the body frame to a downward camera's optical frame: up in the image is forward.
DOWNWARD_OPTICAL_IN_BODY = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Rotation of the body's x axis downwards, the direction of the rangefinder.
DOWN_IN_BODY = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))
