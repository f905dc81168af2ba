# SPDX-License-Identifier: Apache-2.0
"""ControllerConnection, DroneConnection, RoverConnection: the ends of the telemetry of a drone without GPS and a rover.

JSON documents, one per datagram or topic message.

Theory of operation, by the document "Communication Protocol (GPS-Denied)":

- **Drone telemetry** (its sections "Drone Telemetry", "Sensor Details", "Camera"; drone to controller) comes some 25
  times a second whether or not anybody answers, with a JPEG in every fifth document.
- **Drone commands** ("Drone Commands"; controller to drone) are shares of what the drone can do. The last one stays in
  force: the document knows no time-out.
- **Rover telemetry** ("Rover Telemetry") says where the rover with the pad is, in a world of its own. To a drone it
  may come as well, for a simulation whose rover somebody else drives.
- Nothing is answered, and no field names what a document is: its sender does, or the fields that only it has.
- **Late** is a document with a timestamp before the newest one's. One that is a second back is a sender that has
  restarted.
- **Refusal**: a document that can't be read is refused as a whole, by the name of the field, such as
  `imu.orientation.roll`, and changes nothing; an image that can't be read is left out of it. Sizes and numbers are
  bounded before anything is decoded.

Signs and units are those of the wire; see docs/telemetry.md.

On the wire:

One JSON object per datagram (UDP, port 5555), or per message on a topic; nothing is acknowledged. The messages below
have the fields of the documents, by the same names; None is what may be missing, or null. Fields that are not listed
are ignored. A number beyond ±10⁶ cannot be a measurement, and is refused.

```json
{"thrust":0.5,"pitch":0.1,"roll":-0.2,"yaw":0.0}
```
"""

import base64
import json
import math
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, NamedTuple

from drone_bridge.wire import jpeg
from drone_bridge.wire.events import (
    NEED_DATA,
    EventQueue,
    EventSource,
    LocalProtocolError,
    NeedData,
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
from drone_bridge.wire.json_numbers import whole_number
from drone_bridge.wire.outgoing import Range

try:
    import orjson

    # Older ones take documents that are nested without end.
    HAS_ORJSON = tuple(map(int, orjson.__version__.split(".")[:3])) >= (3, 9, 15)
except ImportError:
    HAS_ORJSON = False
try:
    import pybase64

    HAS_PYBASE64 = True
except ImportError:
    HAS_PYBASE64 = False

__all__ = [
    "COMMAND_TOPIC",
    "DEFAULT_PORT",
    "DRONE_TOPIC",
    "HOVER",
    "IMAGE_EVERY",
    "MAX_FOV",
    "MAX_IMAGE_BYTES",
    "MAX_IMAGE_HEIGHT",
    "MAX_IMAGE_WIDTH",
    "MAX_MAGNITUDE",
    "MAX_PATTERN_LETTERS",
    "MAX_THRUST",
    "MAX_TILT",
    "MAX_TIMESTAMP_S",
    "MIN_FOV",
    "NEED_DATA",
    "PERIOD_S",
    "RESTART_S",
    "ROVER_EVERY",
    "ROVER_TOPIC",
    "Altimeter",
    "Camera",
    "ControllerConnection",
    "Document",
    "DroneCommand",
    "DroneConnection",
    "DroneTelemetry",
    "Imu",
    "LandingPad",
    "LateTelemetry",
    "Orientation",
    "RoverConnection",
    "RoverTelemetry",
    "Sender",
    "Vector",
]


DEFAULT_PORT = 5555
#: The topics of documents as text.
DRONE_TOPIC = "/drone/telemetry"
ROVER_TOPIC = "/rover/telemetry"
COMMAND_TOPIC = "/drone/command"
#: A drone sends with this period; one of IMAGE_EVERY documents has an image, one of ROVER_EVERY goes with a rover's.
PERIOD_S = 0.04
IMAGE_EVERY = 5
ROVER_EVERY = 2
#: A timestamp that is further back than this is not late: its sender has restarted.
RESTART_S = 1.0
MAX_THRUST = 1.0  # shares of what the drone can do
MAX_TILT = 0.5
THRUST, TILT = Range(-MAX_THRUST, MAX_THRUST), Range(-MAX_TILT, MAX_TILT)
MAX_TIMESTAMP_S = 2**31 - 1
MAX_PATTERN_LETTERS = 64
#: Beyond these a pinhole's focal length is useless: degrees.
MIN_FOV = 1.0
MAX_FOV = 179.0
#: Of a camera image; what is larger is refused before it is decoded.
MAX_IMAGE_BYTES = 4 * 1024 * 1024
MAX_IMAGE_WIDTH = MAX_IMAGE_HEIGHT = 4096  # pixels
#: So many bytes in a document: in base64, in lines of 64 letters that end with an escaped CR and LF.
_MAX_LETTERS = (MAX_IMAGE_BYTES + 2) // 3 * 4 * 17 // 16
# What is measured out of its range means nothing, and is refused.
SHARE, FIELD_OF_VIEW, TIME = Number(0.0, 1.0), Number(MIN_FOV, MAX_FOV), Number(0.0, MAX_TIMESTAMP_S)


# JSON and base64, by orjson and pybase64 where they are installed, and by Python's own modules where they are not. Both
# accept and refuse the same; docs/telemetry.md says what the slower one costs.

#: A document as it came: a datagram, in UTF-8, or the text of a topic.
Document = bytes | bytearray | memoryview | str


def from_json(text: Document) -> Any:
    """Return the value of a JSON text.

    Raises json.JSONDecodeError; NaN, Infinity, numbers too large for a float, lone surrogates and what is nested too
    deep are refused as well.
    """
    return orjson.loads(text) if HAS_ORJSON else _from_json(text)


def to_json(value: Any) -> bytes:
    """Return the JSON text of a value, in which there may be numbers of NumPy. Raises TypeError and ValueError."""
    return orjson.dumps(value, option=orjson.OPT_SERIALIZE_NUMPY) if HAS_ORJSON else _to_json(value)


def from_base64(text: str) -> bytes:
    """Return the bytes that base64 stands for; line ends, which many encoders write, and blanks are skipped.

    Raises ValueError for any other letter that does not belong there, and for padding that is missing or too much.
    """
    decode = _from_base64_fast if HAS_PYBASE64 else _from_base64
    try:
        return decode(text.encode("ascii"))
    except ValueError:
        return decode(text.encode("ascii").translate(None, b" \t\r\n\v\f"))


def to_base64(data: bytes) -> str:
    """Return bytes as base64."""
    return pybase64.b64encode_as_string(data) if HAS_PYBASE64 else base64.b64encode(data).decode("ascii")


def _from_base64_fast(letters: bytes) -> bytes:
    return pybase64.b64decode(letters, validate=True)


def _from_base64(letters: bytes) -> bytes:
    if len(letters) % 4 or letters.endswith(b"==="):  # Python's own module takes any number of them at the end
        raise ValueError("padding is missing, or there is too much")
    return base64.b64decode(letters, validate=True)


def _from_json(text: Document) -> Any:
    try:
        characters = text if isinstance(text, str) else bytes(text).decode("utf-8")
        value = _DECODER.decode(characters)
        if "\\u" in characters:  # may have become half of a surrogate pair
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise json.JSONDecodeError(reason, "", 0) from error
    return value


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number out of range")
    return value


def _integer(text: str) -> float:
    # As orjson has it, an integer that 64 bits don't hold is a float.
    value = int(text) if len(text) <= 20 else None
    return value if value is not None and -(2**63) <= value < 2**64 else _finite(text)


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_float=_finite, parse_int=_integer, parse_constant=_refuse)


def _to_json(value: Any) -> bytes:
    return json.dumps(
        value, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_number_of_numpy
    ).encode("utf-8")


def _number_of_numpy(value: Any) -> Any:
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is not a JSON type")
    return value.tolist()


# What the fields of documents hold.


class Pixels:
    """The width or height of an image."""

    name = ""

    def __init__(self, most: int) -> None:
        self._most = most

    def read(self, value: Any, context: Any = None) -> int:
        pixels = whole_number(value)
        if pixels is None or not 1 <= pixels <= self._most:
            raise RefusedValueError(f" is {shown(value)}, and has to be a whole number from 1 to {self._most} pixels.")
        return pixels

    write = read


class Name:
    """The name of a rover's pattern."""

    name = ""

    def read(self, value: Any, context: Any = None) -> str:
        if not isinstance(value, str) or len(value) > MAX_PATTERN_LETTERS:
            sentence = f"and has to be a name of at most {MAX_PATTERN_LETTERS} letters."
            raise RefusedValueError(f" is {shown(value)}, {sentence}")
        return value

    write = read


class Jpeg:
    """A JPEG in base64. One that can't be read costs no more than itself: it counts as none."""

    name = "image"

    def read(self, value: Any, context: list[str]) -> bytes | None:
        """Return the JPEG; `context` gets what is wrong with it."""
        try:
            return self._read(value)
        except RefusedValueError as error:
            context.append(f"camera.image{error}")
            return None

    def write(self, value: Any) -> str:
        self._check(value)
        return to_base64(value)

    def _read(self, value: Any) -> bytes:
        if not isinstance(value, str):
            raise RefusedValueError(f" is {shown(value)}, and has to be base64 text or null.")
        if len(value) > _MAX_LETTERS:
            raise RefusedValueError(
                f" has {len(value)} letters of base64, which is more than the {MAX_IMAGE_BYTES} bytes that are allowed."
            )
        try:
            data = from_base64(value)
        except ValueError as error:
            raise RefusedValueError(" is not base64: it has invalid characters, or some are missing.") from error
        self._check(data)
        return data

    def _check(self, data: bytes) -> None:
        if len(data) > MAX_IMAGE_BYTES:
            raise RefusedValueError(f" has {len(data)} bytes, and {MAX_IMAGE_BYTES} are allowed.")
        try:
            width, height = jpeg.read_size(data)
        except ValueError as error:
            raise RefusedValueError(f" {error}.") from error
        if not (1 <= width <= MAX_IMAGE_WIDTH and 1 <= height <= MAX_IMAGE_HEIGHT):
            allowed = f"{MAX_IMAGE_WIDTH} x {MAX_IMAGE_HEIGHT}"
            raise RefusedValueError(f" has {width} x {height} pixels, and from 1 x 1 to {allowed} are allowed.")


# Messages, in the units of the wire. None is what a document may leave out, and does.


class Vector(NamedTuple):
    """Along or about the axes: x forward, y left, z up."""

    x: float
    y: float
    z: float


@dataclass(frozen=True, slots=True)
class DroneCommand:
    """What a drone is to do. The document calls pitch forward/backward tilt, and roll left/right tilt."""

    thrust: Annotated[float, THRUST] = 0.0  # positive up
    pitch: Annotated[float, TILT] = 0.0
    roll: Annotated[float, TILT] = 0.0
    yaw: Annotated[float, TILT] = 0.0


#: The command that is always safe: level, neither up nor down.
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
    confidence: Annotated[float, SHARE]  # of 1


@dataclass(frozen=True, slots=True)
class Camera:
    """The camera, which looks down, and its picture if the document carries one."""

    width: Annotated[int, Pixels(MAX_IMAGE_WIDTH)]
    height: Annotated[int, Pixels(MAX_IMAGE_HEIGHT)]
    fov: Annotated[float | None, FIELD_OF_VIEW] = None  # horizontal field of view, degrees
    jpeg: Annotated[bytes | None, NULL, Jpeg()] = None  # `image`: in base64; null in four of five documents
    #: Why the picture of a document that was received could not be read.
    problem: Annotated[str, NOT_SENT] = field(default="", compare=False)

    @property
    def jpeg_size(self) -> tuple[int, int] | None:
        """Width and height as the JPEG has them itself, pixels; None without one that says so."""
        try:
            return None if self.jpeg is None else jpeg.read_size(self.jpeg)
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class DroneTelemetry:
    """What a drone senses, without a position."""

    imu: Imu
    altimeter: Altimeter
    velocity: Vector  # m/s, of the body, from optical flow
    landing_pad: Annotated[LandingPad | None, NULL]  # None when out of sight
    camera: Camera
    landed: bool | None = None
    timestamp: Annotated[float | None, TIME] = None  # s


@dataclass(frozen=True, slots=True)
class RoverTelemetry:
    """Where a rover is in the world, whose z is up, and how it moves there."""

    position: Vector  # m
    velocity: Vector  # m/s
    pattern: Annotated[str, Name()]  # for instance circular
    timestamp: Annotated[float | None, TIME] = None  # s


# Documents.

Message = DroneCommand | DroneTelemetry | RoverTelemetry

_COMMAND, _DRONE, _ROVER = JsonObject(DroneCommand), JsonObject(DroneTelemetry), JsonObject(RoverTelemetry)
_OBJECTS: dict[type, JsonObject[Any]] = {DroneCommand: _COMMAND, DroneTelemetry: _DRONE, RoverTelemetry: _ROVER}
_BYTES_WITHOUT_IMAGE = 65536
#: Of a document too large for a datagram: each value takes ten times its size in memory.
_MAX_VALUES = 20_000


def parse(document: Document) -> Object:
    """Return the JSON object in a document. Raises RemoteProtocolError for anything else."""
    if len(document) > _BYTES_WITHOUT_IMAGE:
        _check_large(document)
    try:
        parsed = from_json(document)
    except json.JSONDecodeError as error:
        text = document if isinstance(document, str) else bytes(document).decode(errors="replace")
        raise RemoteProtocolError(f"The document{fault_in(text, error.msg, error.pos)}") from error
    if not isinstance(parsed, dict):
        raise RemoteProtocolError(f"The document is {shown(parsed)}, and has to be an object.")
    return parsed


def _check_large(document: Document) -> None:
    allowed = _BYTES_WITHOUT_IMAGE + _MAX_LETTERS
    if len(document) > allowed:
        raise RemoteProtocolError(f"The document has {len(document)} bytes, and {allowed} are allowed.")
    text = document if isinstance(document, str) else bytes(document).decode("latin-1")
    if sum(map(text.count, ",[{")) > _MAX_VALUES:
        raise RemoteProtocolError(f"The document has more than {_MAX_VALUES} values.")


def write(message: Message) -> bytes:
    """Return the message as a document. Raises LocalProtocolError for what no receiver would take."""
    try:
        return to_json(_OBJECTS[type(message)].write(message))
    except RefusedValueError as error:
        raise LocalProtocolError(str(error).removeprefix(".")) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise LocalProtocolError(f"{shown(message)} can't be sent: {error}.") from error


# The three roles.

Sender = Literal["drone", "rover"]


@dataclass(frozen=True, slots=True)
class LateTelemetry:
    """A document that came after one with a later timestamp, and was discarded."""

    sender: Sender
    timestamp: float  # s
    newest_timestamp: float  # s


class ControllerConnection(EventSource[DroneTelemetry | RoverTelemetry | LateTelemetry]):
    """The controller's side: telemetry of one drone and one rover comes in, commands to the drone go out.

    A document that is refused changes nothing, and those after it are read as if it had not come.
    """

    def __init__(self) -> None:
        self._newest: dict[Sender, float] = {}  # timestamps, s
        self._queue: EventQueue[DroneTelemetry | RoverTelemetry | LateTelemetry] = EventQueue()

    def receive_data(self, document: Document, sender: Sender | None = None) -> None:
        """Receive a whole document, for `next_event`. If the `sender` is not known, the fields decide."""
        try:
            self._queue.put(self._read(document, sender))
        except RemoteProtocolError as error:
            self._queue.put(error)

    def next_event(self) -> DroneTelemetry | RoverTelemetry | LateTelemetry | NeedData:
        """Return what the next document was, or NEED_DATA. Raises RemoteProtocolError, once per refused document."""
        return self._queue.next_event()

    def send(self, command: DroneCommand) -> bytes:
        """Return the command as a document. Raises LocalProtocolError for what the protocol does not allow."""
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


class DroneConnection(EventSource[DroneCommand | RoverTelemetry]):
    """The drone's side: commands come in, and telemetry of a rover that it is to find; its own telemetry goes out."""

    def __init__(self) -> None:
        self._queue: EventQueue[DroneCommand | RoverTelemetry] = EventQueue()

    def receive_data(self, document: Document) -> None:
        """Take one whole document, of which `next_event` then tells what it was."""
        try:
            fields = parse(document)
            is_rovers = "thrust" not in fields and "position" in fields
            self._queue.put((_ROVER if is_rovers else _COMMAND).read_document(fields))
        except RemoteProtocolError as error:
            self._queue.put(error)

    def next_event(self) -> DroneCommand | RoverTelemetry | NeedData:
        """Return what the next document was, or NEED_DATA. Raises RemoteProtocolError, once per refused document."""
        return self._queue.next_event()

    def send(self, telemetry: DroneTelemetry) -> bytes:
        """Return the telemetry as a document. Raises LocalProtocolError for what the protocol does not allow."""
        return write(telemetry)


class RoverConnection:
    """The rover's side: its telemetry goes out, and nothing comes in."""

    def send(self, telemetry: RoverTelemetry) -> bytes:
        """Return the telemetry as a document. Raises LocalProtocolError for what the protocol does not allow."""
        return write(telemetry)


def _sender(fields: dict[str, object]) -> Sender:
    if "imu" in fields:
        return "drone"
    if "position" in fields:
        return "rover"
    raise RemoteProtocolError("The document has neither imu, as a drone's has, nor position, as a rover's has.")


def _read_drone(fields: Object) -> DroneTelemetry:
    image_problems: list[str] = []
    telemetry = _DRONE.read_document(fields, image_problems)
    if not image_problems:
        return telemetry
    return replace(telemetry, camera=replace(telemetry.camera, problem=image_problems[0]))
