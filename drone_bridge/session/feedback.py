# SPDX-License-Identifier: Apache-2.0
"""Feedback: passes a vehicle's measurements to its limits and its pilot. Pure.

A session calls it for each report, before it publishes: nothing that a subscriber, a message or DDS does can lose a
measurement that steers.
"""

from typing import Protocol

from drone_bridge.motion.limits import Limits
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion


class Pilot(Protocol):
    """Control of a vehicle by its own measurements, some of which it may doubt."""

    @property
    def is_position_doubted(self) -> bool:
        """Whether the newest motion is implausible."""

    @property
    def is_height_doubted(self) -> bool:
        """Whether the newest height is implausible."""

    @property
    def modelled_velocity(self) -> tuple[float, float] | None:
        """Velocity by a model while the position is doubted: forward, left, m/s. None if there is none."""

    def reported(self, measured: Measurement, now_s: float) -> None:
        """Update the estimate by a report of the vehicle."""


class Feedback:
    """Receiver of the measurements of one vehicle. For the thread of its session."""

    def __init__(self, observed: ObservedMotion, limits: Limits, pilot: Pilot | None = None) -> None:
        """`pilot` flies velocities by feedback; None for a vehicle that does so itself."""
        self._observed, self._limits = observed, limits
        #: May be replaced, for another vehicle.
        self.pilot = pilot

    def measured(self, measured: Measurement, now_s: float) -> None:
        """Pass a report to pilot and limits. Motion or height that the pilot doubts is withheld from the limits."""
        if measured.charge is not None:
            self._limits.charged(measured.charge, now_s)
        if measured.is_flying is not None:
            self._limits.flew(measured.is_flying, now_s)
        height = measured.height
        if pilot := self.pilot:
            pilot.reported(measured, now_s)
            height = None if pilot.is_height_doubted else height
            if pilot.is_position_doubted:
                self._observed.doubted(measured.yaw, pilot.modelled_velocity)
                return
        self._observed.measured(measured.yaw, measured.position, measured.level_velocity, height)
