# SPDX-License-Identifier: Apache-2.0
"""What environments of Gymnasium have in common: a vehicle drawn by the seed, commands that come late, pictures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Dict

Numbers = npt.NDArray[np.float32]
Image = npt.NDArray[np.uint8]


class EmulatedEnv(gymnasium.Env[Any, Numbers], ABC):
    """One emulated vehicle with a task.

    The observation is `state`, numbers in the units that the subclass names, or with `images` a dict of that and of
    the cameras' images. Of each episode wind, noise, task and the commands' delay are drawn by the seed: the same seed
    and actions give the same bytes.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 # as Gymnasium declares it

    def __init__(
        self, state: Box, actions: Box, cameras: dict[str, Box], *, render_mode: str | None, images: bool, delay: int
    ) -> None:
        """`delay`: by how many steps commands are late at most. Raises ValueError for what can't be."""
        if render_mode not in (None, "rgb_array"):
            raise ValueError(f"render_mode is {render_mode!r}; allowed are None and 'rgb_array'.")
        if delay < 0:
            raise ValueError(f"delay is {delay} steps, and has to be at least 0.")
        self.render_mode = render_mode
        self.action_space: Any = actions
        self.observation_space: Any = Dict({"state": state, **cameras}) if images else state
        self._images = images
        self._most_delay = delay
        self._late: deque[list[float]] = deque()
        self._lowest, self._highest = actions.low, actions.high

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin another episode, the next of the seed's or the first of another seed's."""
        super().reset(seed=seed)
        late = int(self.np_random.integers(self._most_delay + 1))
        self._begin(int(self.np_random.integers(2**31)))
        self._late = deque([self._neutral()] * late)
        return self._observed(), self._info()

    def step(self, action: Numbers) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Command the vehicle, and advance by one step. What is beyond the action space is clamped."""
        command = np.minimum(np.maximum(action, self._lowest), self._highest).tolist()
        if self._late:
            self._late.append(command)
            command = self._late.popleft()
        reward, is_over = self._fly(command)
        return self._observed(), reward, is_over, False, self._info()

    def render(self) -> Image | None:
        """Return what the first camera sees now, height x width x 3: red, green, blue."""
        return next(iter(self._seen().values())) if self.render_mode else None

    def _observed(self) -> Any:
        state = np.array(self._state(), np.float32)
        return {"state": state, **self._seen()} if self._images else state

    @abstractmethod
    def _begin(self, seed: int) -> None:
        """Make another vehicle, with all that the seed decides."""

    @abstractmethod
    def _neutral(self) -> list[float]:
        """Return the action that holds the vehicle best."""

    @abstractmethod
    def _fly(self, command: list[float]) -> tuple[float, bool]:
        """Advance by a step, and return the reward and whether the episode is over."""

    @abstractmethod
    def _state(self) -> list[float]:
        """Return the numbers of the observation, as they are measured now."""

    @abstractmethod
    def _seen(self) -> dict[str, Image]:
        """Return what each camera sees now."""

    @abstractmethod
    def row(self) -> dict[str, float | str]:
        """Return the truth now, by the names in the file that the emulator writes with --trajectory."""

    @property
    @abstractmethod
    def said(self) -> str:
        """What the emulator would say of the flight's end, if it has ended."""

    def _info(self) -> dict[str, Any]:
        """Return the truth, which no observation has."""
        return {}


def box(*ranges: tuple[float, float]) -> Box:
    """Return a space of numbers, each with its least and greatest value."""
    low, high = zip(*ranges, strict=True)
    return Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


def pixels(width: int, height: int) -> Box:
    """Return the space of images: red, green, blue."""
    return Box(0, 255, (height, width, 3), np.uint8)
