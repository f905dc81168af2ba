# SPDX-License-Identifier: Apache-2.0
"""A pilot that can land the emulated drone."""

import numpy as np

from drone_bridge.telemetry.codec import PERIOD_S, DroneCommand


class Pilot:
    """Flies to the pad by what the telemetry says, as simply as can be; it never turns, and does not search."""

    def __init__(self, offset=None):
        """`offset` is the way to the pad, m forward and left, where it is known before it is seen."""
        self.offset = None if offset is None else np.array(offset)
        self.pad_velocity = np.zeros(2)  # m/s over the ground

    def command(self, telemetry):
        velocity = np.array(telemetry.velocity[:2])
        pad = telemetry.landing_pad
        if self.offset is None:
            if not pad:
                return DroneCommand()
            self.offset = np.array([pad.relative_x, pad.relative_y])
        self.offset += (self.pad_velocity - velocity) * PERIOD_S
        if pad:
            surprise = np.array([pad.relative_x, pad.relative_y]) - self.offset
            self.offset += 0.2 * surprise
            self.pad_velocity += 0.2 * surprise
        wanted = self.pad_velocity + np.clip(0.8 * self.offset, -1, 1)
        forward, left = np.clip(0.25 * (wanted - velocity) + 0.04 * velocity, -0.3, 0.3)
        sinks = np.hypot(*self.offset) < 0.2
        return DroneCommand(thrust=-0.2 if sinks else 0.0, pitch=float(forward), roll=-float(left))
