# SPDX-License-Identifier: Apache-2.0
"""Levelling: when a drone that is to hover is turned level by repeated commands. Pure."""

import math

#: The tilt, rad, from which it is levelled out at any time, and within which it is level.
TILTED, LEVEL = math.radians(5.0), math.radians(0.5)
#: When, after the first neutral command, it is levelled out from a smaller tilt: not at once, for an operator who is
#: back, and not for long, for a vehicle that stops by itself when it hears nothing.
FROM_S, UNTIL_S = 1.0, 2.5


class Levelling:
    """Looks how the drone is turned, again and again: rates other than zero have to be followed by others soon."""

    def __init__(self) -> None:
        #: Whether the neutral command turns the drone, whatever its tilt.
        self.is_on = False

    def look(self, neutral_s: float | None, tilt: float | None) -> bool:
        """Return whether the neutral command is to be repeated; the last time it has zero rates.

        Args:
            neutral_s: for how long the neutral command has been the last one; None if it is not.
            tilt: of the drone, rad; None if it is not known.
        """
        was_on, self.is_on = self.is_on, False
        if neutral_s is None:
            return False
        if tilt is not None:
            self.is_on = tilt > TILTED or (FROM_S < neutral_s < UNTIL_S and tilt > LEVEL)
        return self.is_on or was_on

    def turns(self, tilt: float | None) -> bool:
        """Return whether a neutral command for a drone of this tilt turns it."""
        return tilt is not None and (self.is_on or tilt > TILTED)
