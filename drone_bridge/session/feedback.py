# SPDX-License-Identifier: Apache-2.0
"""Feedback: passes a vehicle's measurements to its limits and its pilot. Pure.

A session calls it for each report, before it publishes: nothing that a subscriber, a message or DDS does can lose a
measurement that steers.
"""

from drone_bridge.motion.limits import Limits
from drone_bridge.motion.measurement import Measurement
from drone_bridge.motion.observed_motion import ObservedMotion
from drone_bridge.session.tilt_pilot import TiltPilot


class Feedback:
    """Receiver of the measurements of one vehicle. For the thread of its session."""

    def __init__(self, observed: ObservedMotion, limits: Limits, pilot: TiltPilot | None = None) -> None:
        """`pilot` is that of a drone that is steered by tilt."""
        self._observed, self._limits, self._pilot = observed, limits, pilot

    def measured(self, measured: Measurement, now_s: float) -> None:
        """Handle a report. Motion or height that the pilot doubts is withheld from the limits."""
        if measured.charge is not None:
            self._limits.charged(measured.charge, now_s)
        height = measured.height
        if pilot := self._pilot:
            if measured.is_flying is False:
                pilot.stands()
            elif motion := measured.motion:
                pilot.measured(motion, now_s)
            height = None if pilot.is_height_doubted else height
            if pilot.is_position_doubted:
                self._observed.doubted()
                return
        self._observed.measured(measured.yaw, measured.position, measured.level_velocity, height)
