# SPDX-License-Identifier: Apache-2.0
"""What travels between a controller and the GUI: controls one way, navdata the other. Units are those of the wire.

The drone's axes are x forward, y right, z down: phi + banks right, theta + raises the nose, psi + turns right.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

BUTTONS: Final = ("take_off", "reset", "hover")
AXES: Final = ("roll", "pitch", "yaw", "gas")

#: The width and height of an image in navdata's units, whatever its size in pixels.
PICTURE_UNITS: Final = 1000
#: The major flight state is in the upper half of ctrl_state, what kind of it in the lower one.
MAJOR_STATE_SHIFT: Final = 16


@dataclass(frozen=True, slots=True)
class Controls:
    """The state of all controls: three buttons, pressed or not, and four axes from -1 to 1.

    `take_off` (a toggle: it lands a drone that flies) and `reset` (an emergency stop when flying) act when they are
    pressed, `hover` for as long as it is: the axes are then ignored.
    """

    take_off: bool = False
    reset: bool = False
    hover: bool = True
    roll: float = 0.0  # share of the greatest angle, + goes right
    pitch: float = 0.0  # share of the greatest angle, + goes backward
    yaw: float = 0.0  # share of the greatest rate, + turns right
    gas: float = 0.0  # share of the greatest speed, + climbs


@dataclass(frozen=True, slots=True)
class ControlPacket:
    """A packet that took effect, with the resulting state of all controls."""

    seq: float
    controls: Controls


@dataclass(frozen=True, slots=True)
class LatePacket:
    """A packet that was discarded, as one with the same or a higher number came before."""

    seq: float
    newest_seq: float


class FlightState(IntEnum):
    """The major state of the drone."""

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


_AIRBORNE: Final = frozenset(
    {
        FlightState.FLYING,
        FlightState.HOVERING,
        FlightState.TAKING_OFF,
        FlightState.GOING_TO_FIX,
        FlightState.LANDING,
        FlightState.LOOPING,
    }
)


@dataclass(frozen=True, slots=True)
class Demo:
    """The navdata block `demo`. None stands for a value that is missing, NaN or infinite."""

    ctrl_state: int | None = None
    vbat_flying_percentage: float | None = None  # of a full battery
    theta: float | None = None  # thousandths of a degree, + raises the nose
    phi: float | None = None  # thousandths of a degree, + banks right
    psi: float | None = None  # thousandths of a degree, + turns right
    altitude: float | None = None  # mm
    vx: float | None = None  # mm/s, + forward
    vy: float | None = None  # mm/s, + right
    vz: float | None = None  # mm/s, + down
    num_frames: int | None = None  # of the video

    @property
    def flight_state(self) -> FlightState | None:
        """The major flight state, None if missing or unknown."""
        if self.ctrl_state is None or self.ctrl_state >> MAJOR_STATE_SHIFT not in _FLIGHT_STATES:
            return None
        return FlightState(self.ctrl_state >> MAJOR_STATE_SHIFT)


_FLIGHT_STATES: Final = frozenset(FlightState)


@dataclass(frozen=True, slots=True)
class Feature:
    """A detection of the drone's vision."""

    xc: float  # PICTURE_UNITS, its middle, + right from the left edge
    yc: float  # PICTURE_UNITS, + down from the upper edge
    width: float  # PICTURE_UNITS
    height: float  # PICTURE_UNITS
    dist: float | None = None  # cm


@dataclass(frozen=True, slots=True)
class VisionDetect:
    """The navdata block `visiondetect`: the current detections."""

    features: tuple[Feature, ...] = ()


@dataclass(frozen=True, slots=True)
class OtherNavdata:
    """A navdata block that is not interpreted: its type, empty if missing, and its other fields."""

    type: str
    fields: Mapping[str, Any]


Navdata = Demo | VisionDetect | OtherNavdata
