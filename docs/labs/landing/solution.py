# SPDX-License-Identifier: Apache-2.0
"""A pilot: to the pad of a rover that stands, and down."""

import numpy as np

PERIOD_S = 0.04


class Pilot:
    """Remembers where the pad was seen, and flies there by velocities."""

    def __init__(self):
        self.pad = None  # forward and to the left, m

    def act(self, seen):
        """Return thrust, pitch, roll and yaw, as LandingEnv describes them."""
        (vx, vy, vz), height = seen[5:8], seen[8]
        if seen[9]:
            self.pad = seen[10:12]
        elif self.pad is not None:
            self.pad = self.pad - PERIOD_S * np.array([vx, vy])
        if self.pad is None:  # rise, and look around
            return [0.3 * (0.5 - vz), 0, 0, 0.3]
        ahead, left = self.pad
        off = np.hypot(ahead, left)
        climb = -0.6 if off < 0.25 or (height > 1.5 and off < 0.5) else 0.0
        action = [0.4 * (climb - vz), 0.5 * (0.6 * ahead - vx), -0.5 * (0.6 * left - vy), 0]
        return np.clip(action, -1, 1)
