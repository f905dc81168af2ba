# SPDX-License-Identifier: Apache-2.0
"""The messages of the telemetry protocol, in the units of the wire; see docs/telemetry.md.

None is what a document may leave out, and does.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

MAX_THRUST = 1.0  # shares of what the drone can do
MAX_TILT = 0.5
#: No vehicle is that far away, that fast or that much accelerated: m, m/s, m/s^2, rad, rad/s.
MAX_MAGNITUDE = 1e6
MAX_TIMESTAMP_S = 2**31 - 1
MAX_PATTERN_LETTERS = 64
#: Beyond these a pinhole's focal length is useless: degrees.
MIN_FOV = 1.0
MAX_FOV = 179.0


class Vector(NamedTuple):
    """Along or about the axes: x forward, y left, z up."""

    x: float
    y: float
    z: float


@dataclass(frozen=True, slots=True)
class DroneCommand:
    """What a drone is to do. The document calls pitch forward/backward tilt, and roll left/right tilt."""

    thrust: float = 0.0  # from -1 to 1, positive up
    pitch: float = 0.0  # from -0.5 to 0.5, as the two below
    roll: float = 0.0
    yaw: float = 0.0


class Orientation(NamedTuple):
    """Euler angles, rad."""

    roll: float
    pitch: float
    yaw: float


@dataclass(frozen=True, slots=True)
class Imu:
    """Attitude and motion of the body."""

    orientation: Orientation
    angular_velocity: Vector  # rad/s
    linear_acceleration: Vector | None = None  # m/s^2; at rest 9.81 upwards


@dataclass(frozen=True, slots=True)
class Altimeter:
    """Height above ground and how it changes."""

    altitude: float  # m
    vertical_velocity: float  # m/s, positive up


@dataclass(frozen=True, slots=True)
class LandingPad:
    """A landing pad in sight, as seen from the body."""

    relative_x: float  # m, positive forward
    relative_y: float  # m, positive to the left
    distance: float  # m, vertical
    confidence: float  # from 0 to 1


@dataclass(frozen=True, slots=True)
class Camera:
    """The camera, which looks down, and its picture if the document carries one."""

    width: int  # pixels
    height: int  # pixels
    fov: float | None = None  # horizontal field of view, degrees
    jpeg: bytes | None = None
    #: Width and height as the JPEG has them itself, pixels; known when it was read from a document.
    jpeg_size: tuple[int, int] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DroneTelemetry:
    """What a drone senses, without a position."""

    imu: Imu
    altimeter: Altimeter
    velocity: Vector  # m/s, of the body, from optical flow
    landing_pad: LandingPad | None  # None when out of sight
    camera: Camera
    landed: bool | None = None
    timestamp: float | None = None  # s


@dataclass(frozen=True, slots=True)
class RoverTelemetry:
    """Where a rover is in the world, whose z is up, and how it moves there."""

    position: Vector  # m
    velocity: Vector  # m/s
    pattern: str  # for instance circular
    timestamp: float | None = None  # s


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a camera image may be; what is larger is refused before it is decoded."""

    image_bytes: int = 4 * 1024 * 1024
    image_width: int = 4096  # pixels
    image_height: int = 4096  # pixels
