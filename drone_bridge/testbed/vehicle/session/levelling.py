# SPDX-License-Identifier: Apache-2.0
"""Levelling: decides when a hovering drone is levelled out by repeated commands. Pure."""

import math

#: Tilt, rad, above which a drone is always levelled out, and at which it counts as level.
TILTED, LEVEL = math.radians(5.0), math.radians(0.5)
#: Period after the first neutral command, s, in which smaller tilts are levelled out. It starts late in case the
#: operator comes back, and it is short because some vehicles stop by themselves without commands.
FROM_S, UNTIL_S = 1.0, 2.5


class Levelling:
    """Monitor of the drone's tilt. After non-zero rates, `update` must follow soon."""

    def __init__(self) -> None:
        #: Whether the neutral command rotates the drone at any tilt.
        self.is_on = False

    def update(self, neutral_s: float | None, tilt: float | None) -> bool:
        """Return whether to repeat the neutral command. The last repetition has zero rates.

        Args:
            neutral_s: time since the first of the current neutral commands, s; None while the drone is commanded.
            tilt: tilt of the drone, rad; None if unknown.
        """
        was_on, self.is_on = self.is_on, False
        if neutral_s is None:
            return False
        if tilt is not None:
            self.is_on = tilt > TILTED or (FROM_S < neutral_s < UNTIL_S and tilt > LEVEL)
        return self.is_on or was_on

    def turns(self, tilt: float | None) -> bool:
        """Return whether a neutral command rotates a drone with this tilt."""
        return tilt is not None and (self.is_on or tilt > TILTED)
