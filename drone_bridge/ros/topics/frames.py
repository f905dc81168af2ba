# SPDX-License-Identifier: Apache-2.0
"""FrameNames: tf frames of a vehicle (REP 105), and axis conventions common to several protocols."""

import math
from dataclasses import dataclass

from drone_bridge.motion.quaternions import Quaternion
from drone_bridge.parameter_fields import parameter


def check_prefix(prefix: str) -> str | None:
    """Return why a name of a frame can't begin so, or None."""
    return f"is {prefix!r}, but must not begin with /: tf2 has no such frames." if prefix.startswith("/") else None


def check_frame(name: str) -> str | None:
    """Return why a frame can't have this name, or None."""
    return check_prefix(name) if name else "is empty, but must name a frame."


@dataclass(frozen=True, slots=True)
class FrameNames:
    """tf frames of any vehicle, with a common prefix."""

    frame_prefix: str = ""
    map_frame: str = parameter("map", "The world's frame, without the prefix.", check=check_frame)
    odom_frame: str = parameter("odom", "The odometry frame, without the prefix.", check=check_frame)
    base_frame: str = parameter("base_link", "The body's frame, without the prefix.", check=check_frame)

    @property
    def own(self) -> set[str]:
        """All frames, without the prefix."""
        return {self.map_frame, self.odom_frame, self.base_frame}

    @property
    def map(self) -> str:
        """World frame, ENU."""
        return f"{self.frame_prefix}{self.map_frame}"

    @property
    def odom(self) -> str:
        return f"{self.frame_prefix}{self.odom_frame}"

    @property
    def base_link(self) -> str:
        """Body frame: x forward, y left, z up."""
        return f"{self.frame_prefix}{self.base_frame}"


class DroneFrameNames(FrameNames):
    """tf frames of a drone with one camera, a rangefinder and a lidar."""

    __slots__ = ()

    @property
    def altimeter(self) -> str:
        """Rangefinder frame, whose x axis points down."""
        return f"{self.frame_prefix}altimeter_link"

    @property
    def laser(self) -> str:
        """Lidar frame."""
        return f"{self.frame_prefix}laser"

    @property
    def footprint(self) -> str:
        """Frame on the ground below the drone: level, with its heading."""
        return f"{self.frame_prefix}base_footprint"

    @property
    def optical(self) -> str:
        """Optical frame of the camera."""
        return f"{self.frame_prefix}camera_optical_frame"


#: Rotation from a camera's body frame (x forward) to its optical frame (z forward).
OPTICAL_IN_BODY = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Rotation from the body frame to a downward camera's optical frame: up in the image is forward.
DOWNWARD_OPTICAL_IN_BODY = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Rotation of the body's x axis downwards, the direction of the rangefinder.
DOWN_IN_BODY = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))
