# SPDX-License-Identifier: Apache-2.0
"""The criteria of a good touchdown on the pad."""

from __future__ import annotations

from dataclasses import dataclass

# A good landing is none worse than this.
MAX_POSITION_ERROR = 0.35  # m from the middle of the pad: the landing gear then stands on the plate
MAX_VERTICAL_SPEED = 1.0  # m/s
MAX_RELATIVE_SPEED = 0.7  # m/s across the pad


@dataclass(frozen=True, slots=True)
class Touchdown:
    """How the drone came down, on the rover or beside it."""

    time: float  # s
    on_rover: bool
    position_error: float  # m, horizontal, from the middle of the pad
    vertical_speed: float  # m/s, downwards
    relative_speed: float  # m/s, horizontal, as seen from what it came down on

    @property
    def is_good(self) -> bool:
        """Whether the drone has landed gently on the pad."""
        return (
            self.on_rover
            and self.position_error <= MAX_POSITION_ERROR
            and self.vertical_speed <= MAX_VERTICAL_SPEED
            and self.relative_speed <= MAX_RELATIVE_SPEED
        )

    def describe(self) -> str:
        """Return one line for people and programs."""
        return (
            f"touchdown on the {'rover' if self.on_rover else 'ground'} at t={self.time:.2f} s: "
            f"position error {self.position_error:.3f} m, vertical speed {self.vertical_speed:.2f} m/s, "
            f"relative speed {self.relative_speed:.2f} m/s, {'good' if self.is_good else 'bad'}"
        )
