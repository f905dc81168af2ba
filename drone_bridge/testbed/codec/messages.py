# SPDX-License-Identifier: Apache-2.0
"""The messages of testbed and autopilot, and which values are implausible.

All values are in the units of the wire: angles and rates in degrees (or radians, where a testbed uses them),
everything else SI; see docs/testbed.md.
"""

import math
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
from typing import Final, Union

DEFAULT_PORT: Final = 8000  # TCP, where testbeds usually listen
BYTES_PER_PIXEL: Final = 3  # red, green, blue
# pi as a float32 is a little more than pi, and rounding may put a half turn just above 180 degrees.
_HALF_TURN_TOLERANCE: Final = 1.0001

#: One camera image: width * height * 3 bytes, rows from the top, pixels from the left, red green blue.
ImageBytes = Union["array[int]", bytes, bytearray, memoryview]


class AttitudeLayout(str, Enum):
    """Which floats follow the two images; their names are in `floats`."""

    PITCH_YAW = "pitch_yaw"  # the document
    PITCH_ROLL = "pitch_roll"  # its first erratum: the second float had always been roll
    POSE = "pose"  # the second semester's revision

    @property
    def floats(self) -> tuple[str, ...]:
        """The names of the floats, in the order of the wire."""
        if self is AttitudeLayout.POSE:
            return ("x", "y", "z", "heading", "pitch", "roll", "time")
        return (*self.value.split("_"), "time")


class AngleUnit(str, Enum):
    """The unit of every angle and angular rate on the wire."""

    DEGREES = "degrees"
    RADIANS = "radians"

    def __init__(self, name: str) -> None:
        #: Half a turn in this unit.
        self.half_turn = 180.0 if name == "degrees" else math.pi
        #: This unit in radians.
        self.radians = math.pi / self.half_turn


@dataclass(frozen=True, slots=True)
class Limits:
    """What a testbed may announce. Anything above is refused before memory is allocated for it."""

    width: int = 4096  # pixels
    height: int = 4096  # pixels
    frame_bytes: int = 64 * 1024 * 1024  # two images and the floats after them


@dataclass(frozen=True, slots=True)
class Constants:
    """What the testbed announces once, before the first frame, in the order of the wire."""

    horizontal_angle_of_view: float  # edge to edge
    vertical_angle_of_view: float  # edge to edge
    width: int  # pixels, both cameras
    height: int  # pixels, both cameras
    camera_separation: float  # m
    weight: float  # kg: a mass, whatever its name
    gravity: float  # m/s^2; some testbeds send it negative
    drag: float  # kg/s: force per unit of air speed
    max_thrust: float  # N
    max_pitch_rate: float
    max_roll_rate: float
    max_yaw_rate: float

    @property
    def image_bytes(self) -> int:
        """The size of one camera image in bytes."""
        return self.width * self.height * BYTES_PER_PIXEL


@dataclass(frozen=True, slots=True)
class SensorFrame:
    """What the drone senses after a simulation step. None if the layout does not carry it."""

    left: ImageBytes
    right: ImageBytes
    time: float  # s of simulated time
    pitch: float  # positive looks down
    roll: float | None = None  # positive banks right
    yaw: float | None = None  # the heading: 0 looks along -z, positive turns right
    position: tuple[float, float, float] | None = None  # m: x right at heading 0, y up, -z ahead at heading 0


@dataclass(frozen=True, slots=True)
class SimulationRestarted:
    """A new simulation begins on the same connection, with the same constants: the next frame has time 0."""

    time_before: float  # s, of the last frame of the simulation before


@dataclass(frozen=True, slots=True)
class MotionParameters:
    """The autopilot's answer to a frame, in the order of the wire."""

    pitch_rate: float  # positive lowers the nose
    roll_rate: float  # positive banks right
    yaw_rate: float  # positive turns right
    thrust: float  # N


def non_finite(named: Iterable[tuple[str, float]]) -> str | None:
    """Return a sentence about the first float that is not finite."""
    for name, value in named:
        if not math.isfinite(value):
            return f"{name} is {value}, and has to be a finite number."
    return None


def implausible_constants(constants: Constants, unit: AngleUnit, limits: Limits, bytes_after_images: int) -> str | None:
    """Return a sentence about the first implausible constant."""
    named = [(field.name, getattr(constants, field.name)) for field in fields(constants)]
    if problem := non_finite(named):
        return problem
    for name, value, limit in (("width", constants.width, limits.width), ("height", constants.height, limits.height)):
        if not 1 <= value <= limit:
            return f"{name} is {value}, and has to be from 1 to {limit} pixels."
    for name, value in named:
        if name.endswith("angle_of_view") and not 0.0 < value < unit.half_turn:
            return f"{name} is {value:g}, and has to be between 0 and {unit.half_turn:g} {unit.value}."
        if name != "gravity" and value < 0:
            return f"{name} is {value:g}, and can't be negative."
    size = 2 * constants.image_bytes + bytes_after_images
    if size > limits.frame_bytes:
        return (
            f"a frame of {constants.width} x {constants.height} has {size} bytes, and {limits.frame_bytes} are allowed."
        )
    return None


def implausible_floats(floats: Mapping[str, float], unit: AngleUnit, time_before: float) -> str | None:
    """Return a sentence about the first implausible float after the images.

    Time may advance, or restart from 0, which is a new simulation.
    """
    if not math.isfinite(sum(floats.values())) and (problem := non_finite(floats.items())):
        return problem
    if abs(floats["pitch"]) > unit.half_turn * _HALF_TURN_TOLERANCE:
        return f"pitch is {floats['pitch']:g}, and has to be within {unit.half_turn:g} {unit.value}."
    if floats["time"] < time_before and floats["time"] != 0.0:
        return f"time runs back from {time_before:.9g} s to {floats['time']:.9g} s."
    return None
