# SPDX-License-Identifier: Apache-2.0
"""Waypoint, and its text format: a place, a timed leg, or a call of the vehicle's takeoff or land."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from drone_bridge.motion.matrices import Vector

CALLS = ("takeoff", "land")
COORDINATES = ("x", "y", "z", "yaw")
SPEEDS = ("forward", "left", "up", "turn")
RANGES = {"for": (0.0, 3600.0, "s"), "yaw": (-math.tau, math.tau, "rad")}


@dataclass(frozen=True, slots=True)
class Waypoint:
    """Place, leg or call, with its duration.

    A place is in the odometry frame: x, y, z in m, yaw in rad to the left of x; None is free. A leg has speeds in body
    axes of REP 103, in m/s, and rad/s to the left. A leg without speeds is a rest.
    """

    x: float | None = None
    y: float | None = None
    z: float | None = None
    yaw: float | None = None
    forward: float = 0.0
    left: float = 0.0
    up: float = 0.0
    turn: float = 0.0
    #: The service to call: takeoff or land.
    call: str = ""
    #: Duration of the leg, or of the stay after the place was reached or the call took effect, s.
    duration_s: float = 0.0

    @classmethod
    def read(cls, text: str) -> Waypoint:
        """Parse for instance 'x=2 y=-1.5 yaw=1.57', 'forward=0.3 for=2' or 'takeoff for=5'. Raises ValueError."""
        values: dict[str, Any] = {}
        for part in text.split():
            name, _, number = part.partition("=")
            key, value = ("call", part) if part in CALLS else (name, _number(text, part, name, number))
            if key in values:
                raise ValueError(f"the waypoint '{text}' has more than one {key}: '{part}'")
            values[key] = value
        if not values:
            raise ValueError("a waypoint is empty, but must be a place, a leg or a call, such as x=2 y=1")
        if sum(not values.keys().isdisjoint(kind) for kind in (COORDINATES, SPEEDS, ("call",))) > 1:
            raise ValueError(f"the waypoint '{text}' is more than one of a place, a leg and a call")
        if "for" not in values and not values.keys().isdisjoint(SPEEDS):
            raise ValueError(f"the waypoint '{text}' has no duration: add for= (s)")
        return cls(duration_s=values.pop("for", 0.0), **values)

    def __str__(self) -> str:
        """Return a readable form: x 2.00 y -1.50 m, yaw 90°."""
        held = ((name, value) for name, value in (("x", self.x), ("y", self.y), ("z", self.z)) if value is not None)
        place = " ".join(f"{name} {value:.2f}" for name, value in held)
        yaw = "" if self.yaw is None else f"yaw {math.degrees(self.yaw):.0f}°"
        speeds = " ".join(f"{name} {value:g}" for name in SPEEDS if (value := getattr(self, name)))
        lasts = f"for {self.duration_s:g} s" if self.duration_s else ""
        return ", ".join(filter(None, (place and f"{place} m", yaw, self.call, speeds, lasts)))

    @property
    def is_place(self) -> bool:
        """Whether this is a place, which requires odometry."""
        return any(value is not None for value in (self.x, self.y, self.z, self.yaw))

    def place(self, elsewhere: Vector) -> Vector:
        """Return the position, m, with free coordinates from another position."""
        held = (self.x, self.y, self.z)
        return np.array([free if value is None else value for value, free in zip(held, elsewhere, strict=True)])


def _number(text: str, part: str, name: str, number: str) -> float:
    if name not in (*COORDINATES, *SPEEDS, "for"):
        raise ValueError(
            f"the waypoint '{text}' has '{part}', but must consist of x=, y=, z= (m) and yaw= (rad), or of forward=, "
            f"left=, up= (m/s) and turn= (rad/s), or of {' or '.join(CALLS)}; and of for= (s)"
        )
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"the waypoint '{text}' has '{part}', but {name} must be a finite number")
    low, high, unit = RANGES.get(name, (-math.inf, math.inf, ""))
    if not low <= value <= high:
        raise ValueError(f"the waypoint '{text}' has '{part}', but {name}= must be from {low:g} to {high:g} {unit}")
    return value
