# SPDX-License-Identifier: Apache-2.0
"""ControllerConnection, DroneConnection, RoverConnection: codec of the telemetry of a drone without GPS and a rover.

JSON documents, one per datagram or topic message.

Theory of operation, by the document "Communication Protocol (GPS-Denied)":

- **Drone telemetry** (its sections "Drone Telemetry", "Sensor Details", "Camera"; drone to controller) is sent about 25
times per second, without acknowledgement. Every fifth document has a JPEG.
- **Drone commands** ("Drone Commands"; controller to drone) are shares of the drone's capabilities. The last one stays
in force: the document has no timeout.
- **Rover telemetry** ("Rover Telemetry") has the position of the rover with the pad, in a separate world frame. A drone
may receive it, too, in a simulation whose rover is driven by another program.
- No document is acknowledged, and no field names its type: the sender does, or the fields that only that type has.
- **Late** documents have a timestamp before the newest one. A timestamp more than a second back means that the sender
has restarted.
- **Refusal**: an unreadable document is refused as a whole, with the name of the field, such as
`imu.orientation.roll`, and changes nothing. An unreadable image is dropped, without the rest of its document. Sizes
and numbers are limited before anything is decoded.
- **A command beyond its range** is clamped, because saturating controllers send such commands, and reported. A value
that is not finite is refused.

Signs and units are those of the wire; see docs/telemetry.md.

On the wire:

One JSON object per datagram (UDP, port 5555), or per message on a topic, without acknowledgement. The messages below
have the fields of the documents, by the same names. None means missing or null. Unknown fields are ignored. A number
beyond ±10⁶ cannot be a measurement, and is refused.

```json
{"thrust":0.5,"pitch":0.1,"roll":-0.2,"yaw":0.0}
```
"""

import json
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

from drone_bridge.wire import jpeg
from drone_bridge.wire.events import (
    NEED_DATA,
    LocalProtocolError,
    MessageSource,
    RemoteProtocolError,
)
from drone_bridge.wire.json_faults import fault_in
from drone_bridge.wire.json_fields import (
    MAX_MAGNITUDE,
    NOT_SENT,
    NULL,
    JsonObject,
    Number,
    Object,
    RefusedValueError,
    shown,
)
from drone_bridge.wire.json_numbers import is_number, whole_number
from drone_bridge.wire.json_text import Document, from_base64, from_json, to_base64, to_json
from drone_bridge.wire.outgoing import Range

__all__ = [
    "COMMAND_TOPIC", "DEFAULT_PORT", "DRONE_TOPIC", "HOVER", "IMAGE_EVERY", "MAX_FOV", "MAX_IMAGE_BYTES",
    "MAX_IMAGE_HEIGHT", "MAX_IMAGE_WIDTH", "MAX_MAGNITUDE", "MAX_PATTERN_LETTERS", "MAX_THRUST", "MAX_TILT",
    "MAX_TIMESTAMP_S", "MIN_FOV", "NEED_DATA", "PERIOD_S", "RESTART_S", "ROVER_EVERY", "ROVER_TOPIC", "Altimeter",
    "Camera", "ControllerConnection", "Document", "DroneCommand", "DroneConnection", "DroneTelemetry", "Imu",
    "LandingPad", "LateTelemetry", "Orientation", "RoverConnection", "RoverTelemetry", "Sender", "Vector",
]  # fmt: skip


DEFAULT_PORT = 5555
#: Topics of documents as text.
DRONE_TOPIC = "/drone/telemetry"
ROVER_TOPIC = "/rover/telemetry"
COMMAND_TOPIC = "/drone/command"
#: Period of a drone's documents. One of IMAGE_EVERY has an image, one of ROVER_EVERY goes with a rover's document.
PERIOD_S = 0.04
IMAGE_EVERY = 5
ROVER_EVERY = 2
#: A timestamp that is further back is not late: its sender has restarted.
RESTART_S = 1.0
MAX_THRUST = 1.0  # shares of the drone's maxima
MAX_TILT = 0.5
THRUST, TILT = Range(-MAX_THRUST, MAX_THRUST), Range(-MAX_TILT, MAX_TILT)
_COMMAND_RANGES = {"thrust": THRUST, "pitch": TILT, "roll": TILT, "yaw": TILT}
MAX_TIMESTAMP_S = 2**31 - 1
MAX_PATTERN_LETTERS = 64
#: Limits of the field of view, beyond which a pinhole's focal length is useless, degrees.
MIN_FOV = 1.0
MAX_FOV = 179.0
#: Limits of a camera image. Larger images are refused before they are decoded.
MAX_IMAGE_BYTES = 4 * 1024 * 1024
MAX_IMAGE_WIDTH = MAX_IMAGE_HEIGHT = 4096  # pixels
#: Limit of the base64 text in a document, in lines of 64 letters that end with an escaped CR and LF.
_MAX_LETTERS = (MAX_IMAGE_BYTES + 2) // 3 * 4 * 17 // 16
# Measurements beyond these ranges are refused.
SHARE, FIELD_OF_VIEW, TIME = Number(0.0, 1.0), Number(MIN_FOV, MAX_FOV), Number(0.0, MAX_TIMESTAMP_S)


# Types of the documents' fields.


class Pixels:
    """Width or height of an image."""

    def __init__(self, most: int) -> None:
        self._most = most

    def read(self, value: Any) -> int:
        pixels = whole_number(value)
        if pixels is None or not 1 <= pixels <= self._most:
            raise RefusedValueError(f" is {shown(value)} but must be a whole number from 1 to {self._most} pixels.")
        return pixels

    write = read


class Name:
    """Name of a rover's pattern."""

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or len(value) > MAX_PATTERN_LETTERS:
            sentence = f"not a name of at most {MAX_PATTERN_LETTERS} letters."
            raise RefusedValueError(f" is {shown(value)}, {sentence}")
        return value

    write = read


def read_image(value: Any) -> bytes:
    """Decode the JPEG in camera.image. Raises RefusedValueError with a sentence."""
    if not isinstance(value, str):
        raise RefusedValueError(f"camera.image is {shown(value)}, not base64 text or null.")
    if len(value) > _MAX_LETTERS:
        sentence = f"letters of base64, more than the limit of {MAX_IMAGE_BYTES} bytes."
        raise RefusedValueError(f"camera.image has {len(value)} {sentence}")
    try:
        data = from_base64(value)
    except ValueError as error:
        raise RefusedValueError("camera.image is not base64: characters are invalid or missing.") from error
    return checked_image(data)


def checked_image(data: bytes) -> bytes:
    """Return a JPEG if its size is allowed. Raises RefusedValueError with a sentence."""
    if len(data) > MAX_IMAGE_BYTES:
        raise RefusedValueError(f"camera.image has {len(data)} bytes (limit {MAX_IMAGE_BYTES}).")
    try:
        width, height = jpeg.read_size(data)
    except ValueError as error:
        raise RefusedValueError(f"camera.image {error}.") from error
    if not (1 <= width <= MAX_IMAGE_WIDTH and 1 <= height <= MAX_IMAGE_HEIGHT):
        allowed = f"from 1 x 1 to {MAX_IMAGE_WIDTH} x {MAX_IMAGE_HEIGHT} are allowed"
        raise RefusedValueError(f"camera.image has {width} x {height} pixels ({allowed}).")
    return data


# Messages, in the units of the wire. None stands for a value that a document lacks.


class Vector(NamedTuple):
    """Vector along, or rotation about, the axes: x forward, y left, z up."""

    x: float
    y: float
    z: float


@dataclass(frozen=True, slots=True)
class DroneCommand:
    """Command to a drone. The document calls pitch forward/backward tilt, and roll left/right tilt."""

    thrust: Annotated[float, THRUST] = 0.0  # positive up
    pitch: Annotated[float, TILT] = 0.0
    roll: Annotated[float, TILT] = 0.0
    yaw: Annotated[float, TILT] = 0.0
    problem: Annotated[str, NOT_SENT] = field(default="", compare=False)  # the received values beyond their range


#: Command that is always safe: level, without climbing or sinking.
HOVER = DroneCommand()


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
    linear_acceleration: Vector | None = None  # m/s^2; +9.81 up at rest


@dataclass(frozen=True, slots=True)
class Altimeter:
    """Height above ground, and its rate of change."""

    altitude: float  # m
    vertical_velocity: float  # m/s, positive up


@dataclass(frozen=True, slots=True)
class LandingPad:
    """Visible landing pad, relative to the body."""

    relative_x: float  # m, positive forward
    relative_y: float  # m, positive to the left
    distance: float  # m, vertical
    confidence: Annotated[float, SHARE]  # of 1


@dataclass(frozen=True, slots=True)
class Camera:
    """Downward camera, and its image if the document has one."""

    width: Annotated[int, Pixels(MAX_IMAGE_WIDTH)]
    height: Annotated[int, Pixels(MAX_IMAGE_HEIGHT)]
    fov: Annotated[float | None, FIELD_OF_VIEW] = None  # horizontal field of view, degrees
    jpeg: Annotated[bytes | None, NOT_SENT] = None  # `image` on the wire, in base64; null in four of five documents
    problem: Annotated[str, NOT_SENT] = field(default="", compare=False)  # reason why the received image is unreadable

    @property
    def jpeg_size(self) -> tuple[int, int] | None:
        """Width and height of the JPEG, pixels; None without a readable JPEG."""
        try:
            return None if self.jpeg is None else jpeg.read_size(self.jpeg)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class DroneTelemetry:
    """Sensor readings of a drone, without a position."""

    imu: Imu
    altimeter: Altimeter
    velocity: Vector  # m/s, of the body, from optical flow
    landing_pad: Annotated[LandingPad | None, NULL]  # None when out of sight
    camera: Camera
    landed: bool | None = None
    timestamp: Annotated[float | None, TIME] = None  # s


@dataclass(frozen=True, slots=True)
class RoverTelemetry:
    """Position and velocity of a rover in the world, whose z is up."""

    position: Vector  # m
    velocity: Vector  # m/s
    pattern: Annotated[str, Name()]  # for instance circular
    timestamp: Annotated[float | None, TIME] = None  # s


# Documents.

Message = DroneCommand | DroneTelemetry | RoverTelemetry

_COMMAND, _DRONE, _ROVER = JsonObject(DroneCommand), JsonObject(DroneTelemetry), JsonObject(RoverTelemetry)
_OBJECTS: dict[type, JsonObject[Any]] = {DroneCommand: _COMMAND, DroneTelemetry: _DRONE, RoverTelemetry: _ROVER}
_BYTES_WITHOUT_IMAGE = 65536
#: Limit for documents that are larger than a datagram: each value takes ten times its size in memory.
_MAX_VALUES = 20_000


def parse(document: Document) -> Object:
    """Parse the JSON object in a document. Raises RemoteProtocolError for anything else."""
    if len(document) > _BYTES_WITHOUT_IMAGE:
        _check_large(document)
    try:
        parsed = from_json(document)
    except json.JSONDecodeError as error:
        text = document if isinstance(document, str) else bytes(document).decode(errors="replace")
        raise RemoteProtocolError(f"The document{fault_in(text, error.msg, error.pos)}") from error
    if not isinstance(parsed, dict):
        raise RemoteProtocolError(f"The document is {shown(parsed)}, not an object.")
    return parsed


def _check_large(document: Document) -> None:
    allowed = _BYTES_WITHOUT_IMAGE + _MAX_LETTERS
    if len(document) > allowed:
        raise RemoteProtocolError(f"The document has {len(document)} bytes (limit {allowed}).")
    text = document if isinstance(document, str) else bytes(document).decode("latin-1")
    if sum(map(text.count, ",[{")) > _MAX_VALUES:
        raise RemoteProtocolError(f"The document has more than {_MAX_VALUES} values.")


def write(message: Message) -> bytes:
    """Return the message as a document. Raises LocalProtocolError for values that a receiver would refuse."""
    try:
        document = _OBJECTS[type(message)].write(message)
        if isinstance(message, DroneTelemetry):
            image = message.camera.jpeg
            document["camera"]["image"] = None if image is None else to_base64(checked_image(image))
        return to_json(document)
    except RefusedValueError as error:
        raise LocalProtocolError(str(error).removeprefix(".")) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LocalProtocolError(f"{shown(message)} can't be sent: {error}.") from error


# The three ends of the protocol.

Sender = Literal["drone", "rover"]


@dataclass(frozen=True, slots=True)
class LateTelemetry:
    """Document with a timestamp before the newest one, which was discarded."""

    sender: Sender
    timestamp: float  # s
    newest_timestamp: float  # s


class ControllerConnection(MessageSource[DroneTelemetry | RoverTelemetry | LateTelemetry]):
    """Controller's end: receives telemetry of one drone and one rover, sends commands to the drone.

    A refused document changes nothing, and does not affect later ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self._newest: dict[Sender, float] = {}  # timestamps, s

    def receive_data(self, document: Document, sender: Sender | None = None) -> None:
        """Receive a whole document, for `next_event`. If the `sender` is unknown, the fields decide."""
        self._queue.read(self._read, document, sender)

    def send(self, command: DroneCommand) -> bytes:
        """Return the command as a document. Raises LocalProtocolError for invalid values."""
        return write(command)

    def _read(self, document: Document, sender: Sender | None) -> DroneTelemetry | RoverTelemetry | LateTelemetry:
        fields = parse(document)
        if sender is None:
            sender = _sender(fields)
        telemetry = _read_drone(fields) if sender == "drone" else _ROVER.read_document(fields)
        timestamp = telemetry.timestamp
        if timestamp is not None:
            newest = self._newest.get(sender, timestamp)
            if newest - RESTART_S <= timestamp < newest:
                return LateTelemetry(sender, timestamp, newest)
            self._newest[sender] = timestamp
        return telemetry


class DroneConnection(MessageSource[DroneCommand | RoverTelemetry]):
    """Drone's end: receives commands, and telemetry of a rover to find; sends its own telemetry."""

    def receive_data(self, document: Document) -> None:
        """Receive a whole document, for `next_event`."""
        self._queue.read(self._read, document)

    def send(self, telemetry: DroneTelemetry) -> bytes:
        """Return the telemetry as a document. Raises LocalProtocolError for invalid values."""
        return write(telemetry)

    @staticmethod
    def _read(document: Document) -> DroneCommand | RoverTelemetry:
        fields = parse(document)
        is_rovers = "thrust" not in fields and "position" in fields
        return _ROVER.read_document(fields) if is_rovers else _read_command(fields)


class RoverConnection:
    """Rover's end: sends its telemetry, and receives nothing."""

    def send(self, telemetry: RoverTelemetry) -> bytes:
        """Return the telemetry as a document. Raises LocalProtocolError for invalid values."""
        return write(telemetry)


def _sender(fields: dict[str, object]) -> Sender:
    if "imu" in fields:
        return "drone"
    if "position" in fields:
        return "rover"
    raise RemoteProtocolError("The document has neither the field imu (a drone's) nor position (a rover's).")


def _read_command(fields: Object) -> DroneCommand:
    problems = []
    for name, allowed in _COMMAND_RANGES.items():
        value = fields.get(name)
        if is_number(value) and (fit := allowed.clamped(value)) is not value:
            fields[name] = fit
            problems.append(f"{name} is {shown(value)}, beyond {allowed.least:g} to {allowed.most:g}")
    command = _COMMAND.read_document(fields)
    return replace(command, problem=", ".join(problems)) if problems else command


def _read_drone(fields: Object) -> DroneTelemetry:
    telemetry = _DRONE.read_document(fields)
    image = fields["camera"].get("image")
    if image is None:
        return telemetry
    try:
        camera = replace(telemetry.camera, jpeg=read_image(image))
    except RefusedValueError as error:  # a bad image does not affect the rest
        camera = replace(telemetry.camera, problem=str(error))
    return replace(telemetry, camera=camera)
