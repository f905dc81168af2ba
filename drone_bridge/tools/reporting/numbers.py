# SPDX-License-Identifier: Apache-2.0
"""The numbers in a message of any type, by field, and how to thin out many of them for a plot."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from drone_bridge.motion.quaternions import Quaternion, euler_from_quaternion

#: How the name of an angle ends.
ANGLE = ", deg"
MAX_FIELDS = 12  # of one topic: nobody can tell more lines apart
MAX_POINTS = 4000  # of one line, which is more than a screen has columns
#: Not plotted: where and when a message is from, and what is the same in all of them.
_LEFT_OUT = ("header", "stamp", "covariance", "_covariance")
_CONSTANT = ("field_of_view", "min_range", "max_range", "radiation_type", "design_capacity", "capacity")


def numbers_in(message: Any, prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield the scalar numbers of a message with their fields' names; a quaternion as Euler angles in degrees."""
    for declared in fields(message):
        name, value = declared.name, getattr(message, declared.name)
        if name.startswith("__") or name.endswith(_LEFT_OUT) or name in _CONSTANT:
            continue
        label = f"{prefix}{name}"
        if is_dataclass(value):
            if {item.name for item in fields(value)} >= {"x", "y", "z", "w"}:
                axes = (f"{label} {axis}{ANGLE}" for axis in ("roll", "pitch", "yaw"))
                yield from zip(axes, _degrees(value), strict=True)
            else:
                yield from numbers_in(value, _shortened(label))
        elif isinstance(value, bool | int | float | np.number):
            yield label, float(value)


def _shortened(label: str) -> str:
    """Leave out what messages repeat: 'pose.pose.position.x' is 'position.x' to people."""
    return "" if label in ("pose", "twist", "pose.pose", "twist.twist", "vector", "point") else f"{label}."


def _degrees(rotation: Any) -> tuple[float, ...]:
    """Return roll, pitch and yaw of REP 103."""
    angles = euler_from_quaternion(Quaternion(rotation.x, rotation.y, rotation.z, rotation.w))
    return tuple(map(math.degrees, angles))


@dataclass(slots=True)
class Series:
    """The numbers of one topic over time."""

    times: list[float] = field(default_factory=list)  # s from the beginning of the bag
    columns: dict[str, list[float]] = field(default_factory=dict)

    def add(self, time_s: float, message: Any) -> None:
        """Add a message; of one with other fields than the first only those in common are kept."""
        found = dict(numbers_in(message))
        if not self.times:
            self.columns = {name: [] for name in list(found)[:MAX_FIELDS]}
        self.times.append(time_s)
        for name, column in self.columns.items():
            column.append(found.get(name, math.nan))

    def is_interesting(self, name: str) -> bool:
        """Return whether a column has anything to show: some number that is not always zero or absent."""
        column = np.asarray(self.columns[name])
        return bool(np.any(np.isfinite(column) & (column != 0)))


def thinned(times: Sequence[float], values: Sequence[float]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return at most MAX_POINTS of the points, the lowest and the highest of each stretch: no peak is lost."""
    t, v = np.asarray(times, dtype=float), np.asarray(values, dtype=float)
    if len(t) <= MAX_POINTS:
        return t, v
    chosen = set()
    for stretch in np.array_split(np.arange(len(t)), MAX_POINTS // 2):
        part = v[stretch]
        if np.all(np.isnan(part)):
            chosen.add(int(stretch[0]))
        else:
            chosen |= {int(stretch[np.nanargmin(part)]), int(stretch[np.nanargmax(part)])}
    indices = sorted(chosen)
    return t[indices], v[indices]
