# SPDX-License-Identifier: Apache-2.0
"""What emulators write of the way of their vehicle, read while they write it."""

import csv
import itertools
import math


class Trajectory:
    """Time, x, y and yaw of each state that an emulator has written so far, in ENU."""

    def __init__(self, path, place):
        self._path = path
        self._place = place
        self._file = None
        self._names = []
        self._rest = ""
        self.states = []

    def read(self):
        """Read what has been written since the last time, and return the time of the last state."""
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

    def between(self, began_s, ended_s):
        return [state for state in self.states if began_s <= state[0] <= ended_s]

    def close(self):
        if self._file:
            self._file.close()


def mean_motion(states):
    """Return the speed forward, m/s, and the turning, rad/s."""
    forward = turned = 0.0
    for (_, x, y, yaw), (_, next_x, next_y, next_yaw) in itertools.pairwise(states):
        turn = math.remainder(next_yaw - yaw, math.tau)
        forward += math.cos(yaw + turn / 2) * (next_x - x) + math.sin(yaw + turn / 2) * (next_y - y)
        turned += turn
    duration_s = states[-1][0] - states[0][0]
    return forward / duration_s, turned / duration_s
