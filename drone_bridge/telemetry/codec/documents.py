# SPDX-License-Identifier: Apache-2.0
"""Documents of the telemetry protocol: JSON objects read into messages, and made of them.

An invalid document raises RemoteProtocolError, which names the field, such as imu.orientation.roll.
"""

import json
import reprlib
from typing import Any

from drone_bridge.telemetry.codec.json_and_base64 import from_base64, from_json, to_base64, to_json
from drone_bridge.telemetry.codec.messages import (
    MAX_FOV,
    MAX_MAGNITUDE,
    MAX_PATTERN_LETTERS,
    MAX_THRUST,
    MAX_TILT,
    MAX_TIMESTAMP_S,
    MIN_FOV,
    Altimeter,
    Camera,
    DroneCommand,
    DroneTelemetry,
    Imu,
    LandingPad,
    Limits,
    Orientation,
    RoverTelemetry,
    Vector,
)
from drone_bridge.wire import jpeg
from drone_bridge.wire.events import LocalProtocolError, RemoteProtocolError

#: A document as it came: a datagram, or the text of a topic.
Document = bytes | bytearray | memoryview | str
Object = dict[str, Any]
Message = DroneCommand | DroneTelemetry | RoverTelemetry

DEFAULT_LIMITS = Limits()
_BYTES_WITHOUT_IMAGE = 65536
#: Of a document too large for a datagram: each value takes ten times its size in memory.
_MAX_VALUES = 20_000


def parse(document: Document, limits: Limits = DEFAULT_LIMITS) -> Object:
    """Return the JSON object in a document. Raises RemoteProtocolError for anything else."""
    size = len(document)
    if size > _BYTES_WITHOUT_IMAGE:
        _check_large(document, limits)
    try:
        parsed = from_json(document)
    except json.JSONDecodeError as error:
        raise RemoteProtocolError(f"The document is not JSON: {error.msg} at character {error.pos}.") from error
    if not isinstance(parsed, dict):
        raise RemoteProtocolError(f"The document is {_shown(parsed)}, and has to be an object.")
    return parsed


def _check_large(document: Document, limits: Limits) -> None:
    allowed = _BYTES_WITHOUT_IMAGE + _base64_letters(limits.image_bytes)
    if len(document) > allowed:
        raise RemoteProtocolError(f"The document has {len(document)} bytes, and {allowed} are allowed.")
    text = document if isinstance(document, str) else bytes(document).decode("latin-1")
    if sum(map(text.count, ",[{")) > _MAX_VALUES:
        raise RemoteProtocolError(f"The document has more than {_MAX_VALUES} values.")


# Messages of objects.


def read_command(document: Object) -> DroneCommand:
    """Return the command. Raises RemoteProtocolError."""
    return DroneCommand(
        _number(document, "thrust", "", -MAX_THRUST, MAX_THRUST),
        _number(document, "pitch", "", -MAX_TILT, MAX_TILT),
        _number(document, "roll", "", -MAX_TILT, MAX_TILT),
        _number(document, "yaw", "", -MAX_TILT, MAX_TILT),
    )


def read_drone(document: Object, limits: Limits = DEFAULT_LIMITS) -> DroneTelemetry:
    """Return the drone's telemetry. Raises RemoteProtocolError."""
    imu = _object(document, "imu", "")
    angles = _object(imu, "orientation", "imu.")
    altimeter = _object(document, "altimeter", "")
    has_acceleration = imu.get("linear_acceleration") is not None
    return DroneTelemetry(
        Imu(
            Orientation(
                _number(angles, "roll", "imu.orientation."),
                _number(angles, "pitch", "imu.orientation."),
                _number(angles, "yaw", "imu.orientation."),
            ),
            _vector(imu, "angular_velocity", "imu.", "imu.angular_velocity."),
            _vector(imu, "linear_acceleration", "imu.", "imu.linear_acceleration.") if has_acceleration else None,
        ),
        Altimeter(_number(altimeter, "altitude", "altimeter."), _number(altimeter, "vertical_velocity", "altimeter.")),
        _vector(document, "velocity", "", "velocity."),
        _landing_pad(document),
        _camera(_object(document, "camera", ""), limits),
        _landed(document),
        _timestamp(document),
    )


def read_rover(document: Object) -> RoverTelemetry:
    """Return the rover's telemetry. Raises RemoteProtocolError."""
    pattern = _value(document, "pattern", "")
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN_LETTERS:
        raise RemoteProtocolError(
            f"pattern is {_shown(pattern)}, and has to be a name of at most {MAX_PATTERN_LETTERS} letters."
        )
    return RoverTelemetry(
        _vector(document, "position", "", "position."),
        _vector(document, "velocity", "", "velocity."),
        pattern,
        _timestamp(document),
    )


def _landing_pad(document: Object) -> LandingPad | None:
    if _value(document, "landing_pad", "") is None:
        return None
    pad = _object(document, "landing_pad", "")
    return LandingPad(
        _number(pad, "relative_x", "landing_pad."),
        _number(pad, "relative_y", "landing_pad."),
        _number(pad, "distance", "landing_pad."),
        _number(pad, "confidence", "landing_pad.", 0.0, 1.0),
    )


def _camera(camera: Object, limits: Limits) -> Camera:
    width = _pixels(camera, "width", limits.image_width)
    height = _pixels(camera, "height", limits.image_height)
    fov = None if camera.get("fov") is None else _number(camera, "fov", "camera.", MIN_FOV, MAX_FOV)
    image = _value(camera, "image", "camera.")
    return Camera(width, height, fov, *((None, None) if image is None else _jpeg(image, limits)))


def _jpeg(image: Any, limits: Limits) -> tuple[bytes, tuple[int, int]]:
    if not isinstance(image, str):
        raise RemoteProtocolError(f"camera.image is {_shown(image)}, and has to be base64 text or null.")
    if len(image) > _base64_letters(limits.image_bytes):
        raise RemoteProtocolError(
            f"camera.image has {len(image)} letters of base64, which is more than the {limits.image_bytes} bytes "
            "that are allowed."
        )
    data = _from_base64(image)
    if len(data) > limits.image_bytes:
        raise RemoteProtocolError(f"camera.image has {len(data)} bytes, and {limits.image_bytes} are allowed.")
    try:
        width, height = jpeg.read_size(data)
    except ValueError as error:
        raise RemoteProtocolError(f"camera.image {error}.") from error
    if not (1 <= width <= limits.image_width and 1 <= height <= limits.image_height):
        raise RemoteProtocolError(
            f"camera.image has {width} x {height} pixels, and from 1 x 1 to {limits.image_width} x "
            f"{limits.image_height} are allowed."
        )
    return data, (width, height)


# Fields. `where` is the path of the object, with a dot at its end, or nothing.


def _value(fields: Object, name: str, where: str) -> Any:
    try:
        return fields[name]
    except KeyError:
        raise RemoteProtocolError(f"{where}{name} is missing.") from None


def _number(fields: Object, name: str, where: str, low: float = -MAX_MAGNITUDE, high: float = MAX_MAGNITUDE) -> float:
    # Twenty numbers make a document, nearly all of them floats. NaN is not between anything.
    value = fields.get(name)
    if type(value) is float and low <= value <= high:
        return value
    value = _value(fields, name, where)
    # A bool is an int in Python, and no number in JSON.
    if isinstance(value, (float, int)) and not isinstance(value, bool) and low <= value <= high:
        return float(value)
    raise RemoteProtocolError(f"{where}{name} is {_shown(value)}, and has to be a number from {low:g} to {high:g}.")


def _object(fields: Object, name: str, where: str) -> Object:
    value = _value(fields, name, where)
    if not isinstance(value, dict):
        raise RemoteProtocolError(f"{where}{name} is {_shown(value)}, and has to be an object.")
    return value


def _vector(fields: Object, name: str, where: str, path: str) -> Vector:
    """`path` is that of the vector, with a dot at its end."""
    vector = _object(fields, name, where)
    return Vector(_number(vector, "x", path), _number(vector, "y", path), _number(vector, "z", path))


def _pixels(camera: Object, name: str, limit: int) -> int:
    value = _value(camera, name, "camera.")
    if type(value) is float and value.is_integer():  # JSON has one kind of number, and some libraries write 320.0
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= limit:
        raise RemoteProtocolError(
            f"camera.{name} is {_shown(value)}, and has to be a whole number from 1 to {limit} pixels."
        )
    return value


def _landed(document: Object) -> bool | None:
    landed = document.get("landed")
    if landed is not None and not isinstance(landed, bool):
        raise RemoteProtocolError(f"landed is {_shown(landed)}, and has to be true or false.")
    return landed


def _timestamp(document: Object) -> float | None:
    if document.get("timestamp") is None:
        return None
    return _number(document, "timestamp", "", 0.0, MAX_TIMESTAMP_S)


def _from_base64(text: str) -> bytes:
    try:
        return from_base64(text)
    except ValueError as error:
        raise RemoteProtocolError(
            "camera.image is not base64: it has invalid characters, or some are missing."
        ) from error


def _base64_letters(size: int) -> int:
    return (size + 2) // 3 * 4


def _shown(value: Any) -> str:
    """Return a value for a sentence, shortened."""
    return reprlib.repr(value)


# Documents of messages.


def write(message: Message) -> bytes:
    """Return the message as a document. Raises LocalProtocolError for what no receiver would take."""
    try:
        if isinstance(message, DroneTelemetry):
            document = _drone_object(message)
            read_drone(document)
        elif isinstance(message, RoverTelemetry):
            document = _rover_object(message)
            read_rover(document)
        else:
            document = {field: getattr(message, field) for field in ("thrust", "pitch", "roll", "yaw")}
            read_command(document)
        return to_json(document)
    except (RemoteProtocolError, ValueError) as error:
        raise LocalProtocolError(str(error)) from error
    except (AttributeError, TypeError) as error:
        raise LocalProtocolError(f"{_shown(message)} can't be sent: {error}.") from error


def _drone_object(telemetry: DroneTelemetry) -> Object:
    imu, altimeter, pad, camera = telemetry.imu, telemetry.altimeter, telemetry.landing_pad, telemetry.camera
    image = None if camera.jpeg is None else to_base64(camera.jpeg)
    return {
        "imu": {
            "orientation": imu.orientation._asdict(),
            "angular_velocity": imu.angular_velocity._asdict(),
            **_optional(linear_acceleration=imu.linear_acceleration and imu.linear_acceleration._asdict()),
        },
        "altimeter": {"altitude": altimeter.altitude, "vertical_velocity": altimeter.vertical_velocity},
        "velocity": telemetry.velocity._asdict(),
        "landing_pad": pad
        and {
            "relative_x": pad.relative_x,
            "relative_y": pad.relative_y,
            "distance": pad.distance,
            "confidence": pad.confidence,
        },
        "camera": {"width": camera.width, "height": camera.height, **_optional(fov=camera.fov), "image": image},
        **_optional(landed=telemetry.landed, timestamp=telemetry.timestamp),
    }


def _rover_object(telemetry: RoverTelemetry) -> Object:
    return {
        "position": telemetry.position._asdict(),
        "velocity": telemetry.velocity._asdict(),
        "pattern": telemetry.pattern,
        **_optional(timestamp=telemetry.timestamp),
    }


def _optional(**fields: Any) -> Object:
    """Return the fields that there are."""
    return {name: value for name, value in fields.items() if value is not None}
