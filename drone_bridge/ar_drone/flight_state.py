# SPDX-License-Identifier: Apache-2.0
"""FlightState: the major flight states of an AR.Drone's navdata."""

from enum import IntEnum
from typing import NamedTuple

#: ctrl_state has the major flight state in its upper half, and the minor state in its lower half.
MAJOR_STATE_SHIFT = 16


class FlightState(IntEnum):
    """Major state of the drone."""

    DEFAULT = 0  # motors off: an emergency, until reset is pressed
    INIT = 1
    LANDED = 2
    FLYING = 3
    HOVERING = 4
    TEST = 5
    TAKING_OFF = 6
    GOING_TO_FIX = 7
    LANDING = 8
    LOOPING = 9

    @property
    def is_airborne(self) -> bool:
        """Whether the drone flies, including take-off and landing."""
        return self in _AIRBORNE

    def __str__(self) -> str:
        return self.name.lower().replace("_", " ")


class FlyingReport(NamedTuple):
    """Whether the drone flies."""

    is_flying: bool


_AIRBORNE = frozenset(
    {
        FlightState.FLYING,
        FlightState.HOVERING,
        FlightState.TAKING_OFF,
        FlightState.GOING_TO_FIX,
        FlightState.LANDING,
        FlightState.LOOPING,
    }
)
#: States in which the drone follows commands, and height and heading can be held.
STEERED = frozenset({FlightState.FLYING, FlightState.HOVERING})
_STATES = frozenset(FlightState)


def flight_state_of(ctrl_state: int | None) -> FlightState | None:
    """Return the major state in a ctrl_state; None if it is missing or unknown."""
    if ctrl_state is None or ctrl_state >> MAJOR_STATE_SHIFT not in _STATES:
        return None
    return FlightState(ctrl_state >> MAJOR_STATE_SHIFT)
