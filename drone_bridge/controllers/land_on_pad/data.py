# SPDX-License-Identifier: Apache-2.0
"""The inputs and outputs of the behaviour `land_on_pad`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from drone_bridge.controllers.land_on_pad.tilt_control import ShareCommand
from drone_bridge.motion.matrices import Matrix, Vector


class LandState(str, Enum):
    """The state of the landing."""

    SEARCHING = "searching"
    APPROACHING = "approaching"
    FOLLOWING = "following"
    DESCENDING = "descending"
    COMMITTED = "committed"
    CLIMBING = "climbing"
    LANDED = "landed"


@dataclass(frozen=True, slots=True)
class PadSighting:
    """Position of the pad relative to the drone, with its uncertainty."""

    stamp: float  # s, of when
    offset: Vector  # from the drone, 3, m, levelled axes
    deviation: float  # standard deviation of that along each horizontal axis, m
    vertical_deviation: float  # and along the vertical one


@dataclass(frozen=True, slots=True)
class Measured:
    """The measurements of one moment. Level axes: z up, x along the nose at yaw 0."""

    stamp: float  # s
    rotation: Matrix  # from body to levelled axes
    velocity: Vector  # 3, m/s
    altitude: float  # m above the ground
    sighting: PadSighting | None = None
    landed: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The command, and the reason for it."""

    command: ShareCommand
    state: LandState
    reason: str  # a human-readable phrase
    distance: float | None  # to the pad, m; None while it is not known
