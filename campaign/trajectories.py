# SPDX-License-Identifier: Apache-2.0
"""Trajectory: an emulator's record of its vehicle's path, read while it is written."""

import csv
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TextIO

Row = Mapping[str, str]
Place = tuple[float, float, float]  # x and y, m, and yaw, rad, in ENU
State = tuple[float, float, float, float]  # the time, s, and the place


class Trajectory:
    """States that an emulator has written so far."""

    def __init__(self, path: Path, place: Callable[[Row], Place]) -> None:
        """Take a function that reads a row."""
        self._path = path
        self._place = place
        self._file: TextIO | None = None
        self._names: list[str] = []
        self._rest = ""
        self.states: list[State] = []

    def read(self) -> float:
        """Read new rows, and return the time of the last state."""
        if self._file is None:
            self._file = self._path.open()
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        for values in csv.reader(lines):
            if not self._names:
                self._names = values
                continue
            row = dict(zip(self._names, values, strict=True))
            self.states.append((float(row["time"]), *self._place(row)))
        return self.states[-1][0] if self.states else 0.0

    def between(self, began_s: float, ended_s: float) -> list[State]:
        """Return the states between two times."""
        return [state for state in self.states if began_s <= state[0] <= ended_s]

    def close(self) -> None:
        """Close the file."""
        if self._file:
            self._file.close()


def mean_motion(states: Sequence[State]) -> tuple[float, float]:
    """Return the forward speed, m/s, and the turn rate, rad/s."""
    forward = turned = 0.0
    for (_, x, y, yaw), (_, next_x, next_y, next_yaw) in itertools.pairwise(states):
        turn = math.remainder(next_yaw - yaw, math.tau)
        forward += math.cos(yaw + turn / 2) * (next_x - x) + math.sin(yaw + turn / 2) * (next_y - y)
        turned += turn
    duration_s = states[-1][0] - states[0][0]
    return forward / duration_s, turned / duration_s
