# SPDX-License-Identifier: Apache-2.0
"""BodyVelocity: commanded velocity of a vehicle, in its body axes. Pure and immutable."""

from __future__ import annotations

from dataclasses import dataclass

from drone_bridge.motion.vectors import Triple


@dataclass(frozen=True, slots=True)
class BodyVelocity:
    """Velocity along and about the body axes of REP 103; for a drone, levelled axes with its heading. Zero stops."""

    forward: float = 0.0
    """Along x, m/s."""
    left: float = 0.0
    """Along y, m/s."""
    up: float = 0.0
    """Along z, m/s."""
    roll: float = 0.0
    """About x, rad/s; positive lowers the right side."""
    pitch: float = 0.0
    """About y, rad/s; positive lowers the nose."""
    turn: float = 0.0
    """About z, rad/s; positive turns left."""

    @property
    def linear(self) -> Triple:
        """Forward, left and up, m/s."""
        return self.forward, self.left, self.up

    @property
    def angular(self) -> Triple:
        """Roll, pitch and turn, rad/s."""
        return self.roll, self.pitch, self.turn

    @property
    def components(self) -> tuple[float, float, float, float, float, float]:
        """All six."""
        return self.forward, self.left, self.up, self.roll, self.pitch, self.turn

    def with_linear(self, linear: Triple) -> BodyVelocity:
        """Return the same rotation with another linear velocity, m/s."""
        return BodyVelocity(*linear, self.roll, self.pitch, self.turn)


#: Zero velocity.
STILL = BodyVelocity()
