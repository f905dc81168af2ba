# SPDX-License-Identifier: Apache-2.0
"""FrameNames: the tf frames of a vehicle (REP 105), and the axes that more than one protocol has."""

import math
from dataclasses import dataclass

from drone_bridge.motion.quaternions import Quaternion


@dataclass(frozen=True, slots=True)
class FrameNames:
    """The tf frames of any vehicle, with a common prefix."""

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
        """The world, ENU."""
        return f"{self.prefix}{self.map_name}"

    @property
    def odom(self) -> str:
        return f"{self.prefix}{self.odom_name}"

    @property
    def base_link(self) -> str:
        """The body, x forward, y left, z up."""
        return f"{self.prefix}{self.base_name}"


class DroneFrameNames(FrameNames):
    """The tf frames of a drone with one camera and a rangefinder."""

    __slots__ = ()

    @property
    def altimeter(self) -> str:
        """The rangefinder, whose x axis points down."""
        return f"{self.prefix}altimeter_link"

    @property
    def footprint(self) -> str:
        """The ground below the drone, in axes that share its heading and stay level."""
        return f"{self.prefix}base_footprint"

    @property
    def optical(self) -> str:
        """The camera, in optical axes."""
        return f"{self.prefix}camera_optical_frame"


#: Turns the axes of a camera's body frame (x forward) into those of its optical frame (z forward).
OPTICAL_IN_BODY = Quaternion(-0.5, 0.5, -0.5, 0.5)
#: Turns the axes of the body into those of a downward camera's optical frame: up in the picture is forward.
DOWNWARD_OPTICAL_IN_BODY = Quaternion(math.sqrt(0.5), -math.sqrt(0.5), 0.0, 0.0)
#: Turns the body's x axis down, which is along what a rangefinder measures.
DOWN_IN_BODY = Quaternion(0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))


def enu_from_ned(north: float, east: float, down: float) -> tuple[float, float, float]:
    """Return a point or vector of the north-east-down world in ENU; and the other way round, by the same swap."""
    return east, north, 0.0 - down  # not -x, which makes -0.0 of zero


def flu_from_frd(forward: float, right: float, down: float) -> tuple[float, float, float]:
    """Return a vector of the forward-right-down body in REP 103's axes; and the other way round, by the same turn."""
    return forward, 0.0 - right, 0.0 - down
