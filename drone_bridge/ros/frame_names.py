# SPDX-License-Identifier: Apache-2.0
"""The names of tf frames (REP 105)."""

from dataclasses import dataclass


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
    def optical(self) -> str:
        """The camera, in optical axes."""
        return f"{self.prefix}camera_optical_frame"
