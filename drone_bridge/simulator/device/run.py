# SPDX-License-Identifier: Apache-2.0
"""Running and pausing the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drone_bridge.simulator.device.items import RefusedError


@dataclass(frozen=True, slots=True)
class Timing:
    """How fast the world runs, as in CONFIG."""

    frequency: float = 100.0  # steps per second of the wall clock
    speed: float = 1.0  # simulated seconds per second of the wall clock
    is_non_real_time: bool = False  # steps follow each other as fast as possible

    @property
    def step_s(self) -> float:
        """Simulated time per step, s."""
        return self.speed / self.frequency


class RunControl:
    """Whether the world runs, for a number of steps or forever. It starts paused."""

    def __init__(self) -> None:
        #: Called when the world is unpaused.
        self.on_run: Callable[[], None] = lambda: None
        #: Steps until it pauses; 0 for unlimited.
        self.steps_left = 0
        #: Whether the world is unpaused.
        self.is_running = False

    def run(self, steps: int) -> None:
        """Run `steps` steps, 0 for unlimited. Raises RefusedError while running."""
        if self.is_running:
            raise RefusedError(0, "The simulator is not paused.")
        self.steps_left, self.is_running = steps, True
        self.on_run()

    def pause(self) -> None:
        """Pause. Raises RefusedError while paused."""
        if not self.is_running:
            raise RefusedError(0, "The simulator is not running.")
        self.is_running = False

    def follow(self, *, is_running: bool) -> None:
        """Do as another world does, which counts its steps itself."""
        self.steps_left, self.is_running = 0, is_running

    def count_step(self) -> bool:
        """Count a step; return whether it was the last one, which pauses the world."""
        if self.steps_left != 1:
            self.steps_left = max(0, self.steps_left - 1)
            return False
        self.steps_left, self.is_running = 0, False
        return True
