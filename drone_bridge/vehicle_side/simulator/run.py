# SPDX-License-Identifier: Apache-2.0
"""When the world runs and when it is paused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drone_bridge.vehicle_side.simulator.items import RefusedError


@dataclass(frozen=True, slots=True)
class Tempo:
    """How fast the world runs, as CONFIG tells it."""

    frequency: float = 100.0  # steps per second of the wall clock
    speed: float = 1.0  # simulated seconds per second of the wall clock
    is_non_real_time: bool = False  # steps follow each other as fast as they can

    @property
    def step_s(self) -> float:
        """How much simulated time a step takes, s."""
        return self.speed / self.frequency


class RunControl:
    """Runs or not, for a number of steps or forever. It starts paused."""

    def __init__(self) -> None:
        #: Called when steps are to be made again.
        self.on_run: Callable[[], None] = lambda: None
        self._left = 0  # steps; 0 for no end
        #: Whether steps are to be made.
        self.is_running = False

    def run(self, steps: int) -> None:
        """Run so many steps, 0 for no end. Raises RefusedError while running."""
        if self.is_running:
            raise RefusedError(0, "The simulator is not paused.")
        self._left, self.is_running = steps, True
        self.on_run()

    def pause(self) -> None:
        """Stop. Raises RefusedError while paused."""
        if not self.is_running:
            raise RefusedError(0, "The simulator is not running.")
        self.is_running = False

    def count_step(self) -> bool:
        """Note that a step is about to be made; return whether it is the last one, after which the world is paused."""
        if self._left != 1:
            self._left = max(0, self._left - 1)
            return False
        self._left, self.is_running = 0, False
        return True
