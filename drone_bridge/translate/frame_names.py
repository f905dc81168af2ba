# SPDX-License-Identifier: Apache-2.0
"""What tf frames are called (REP 105)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FrameNames:
    """The tf frames that every vehicle may have, with their prefix."""

    prefix: str = ""

    @property
    def map(self) -> str:
        """The world, ENU."""
        return f"{self.prefix}map"

    @property
    def odom(self) -> str:
        """The frame that odometry counts from."""
        return f"{self.prefix}odom"

    @property
    def base_link(self) -> str:
        """The body, x forward, y left, z up."""
        return f"{self.prefix}base_link"
