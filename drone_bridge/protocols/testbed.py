# SPDX-License-Identifier: Apache-2.0
"""The drone autopilot and virtual testbed protocol: TCP, big-endian, no lengths, no magic numbers.

The testbed opens with `Constants`. Then the two take turns: the testbed sends a `SensorFrame`, the autopilot
answers with `MotionParameters`, and simulated time stands still meanwhile. Closing the connection instead of
sending a frame is the regular end.

All values are in the units of the wire: angles and rates in degrees (or radians, where a testbed uses them),
everything else SI; see docs/testbed.md. One wrong byte shifts all that follow, and implausible floats are the only
sign of it. Hence the checks here: finite numbers, usable angles of view, pitch within half a turn, time not
running backwards.
"""

import math
import struct
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass, fields
from enum import Enum
from typing import Final, Union

from drone_bridge.protocols.errors import LocalProtocolError, RemoteProtocolError
from drone_bridge.protocols.events import NEED_DATA, ConnectionClosed, NeedData

__all__ = [
    "NEED_DATA",
    "AngleUnit",
    "AttitudeLayout",
    "AutopilotConnection",
    "ConnectionClosed",
    "Constants",
    "Limits",
    "MotionParameters",
    "SensorFrame",
    "TestbedConnection",
]

BYTES_PER_PIXEL: Final = 3  # red, green, blue
_CONSTANTS = struct.Struct(">ffiiffffffff")
_REPLY = struct.Struct(">ffff")
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

    @property
    def half_turn(self) -> float:
        """Half a turn in this unit."""
        return 180.0 if self is AngleUnit.DEGREES else math.pi


@dataclass(frozen=True, slots=True)
class Limits:
    """What a testbed may announce. Anything above is refused before memory is taken for it."""

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
    """What the drone senses after a simulation step. None is what the layout does not carry."""

    left: ImageBytes
    right: ImageBytes
    time: float  # s of simulated time
    pitch: float  # positive looks down
    roll: float | None = None  # positive banks right
    yaw: float | None = None  # the heading: 0 looks along -z, positive turns right
    position: tuple[float, float, float] | None = None  # m: x right at heading 0, y up, -z ahead at heading 0


@dataclass(frozen=True, slots=True)
class MotionParameters:
    """The autopilot's answer to a frame, in the order of the wire."""

    pitch_rate: float  # positive lowers the nose
    roll_rate: float  # positive banks right
    yaw_rate: float  # positive turns right
    thrust: float  # N


def _frame_floats(layout: AttitudeLayout) -> struct.Struct:
    return struct.Struct(f">{len(layout.floats)}f")


def _non_finite(named: Iterable[tuple[str, float]]) -> str | None:
    """Return a sentence about the first float that is no finite number."""
    for name, value in named:
        if not math.isfinite(value):
            return f"{name} is {value}, and has to be a finite number."
    return None


def _implausible_constants(constants: Constants, unit: AngleUnit, limits: Limits) -> str | None:
    """Return a sentence about the first constant that no testbed can mean."""
    for field in fields(constants):
        value = getattr(constants, field.name)
        if not math.isfinite(value):
            return f"{field.name} is {value}, and has to be a finite number."
        if field.name.endswith("angle_of_view") and not 0.0 < value < unit.half_turn:
            return f"{field.name} is {value:g}, and has to be between 0 and {unit.half_turn:g} {unit.value}."
        if field.name != "gravity" and value < 0:
            return f"{field.name} is {value:g}, and can't be negative."
    for name, value, limit in (("width", constants.width, limits.width), ("height", constants.height, limits.height)):
        if not 1 <= value <= limit:
            return f"{name} is {value}, and has to be from 1 to {limit} pixels."
    size = 2 * constants.image_bytes + _frame_floats(AttitudeLayout.POSE).size
    if size > limits.frame_bytes:
        return (
            f"a frame of {constants.width} x {constants.height} has {size} bytes, and {limits.frame_bytes} are allowed."
        )
    return None


def _pack(layout: struct.Struct, names: Iterable[str], values: tuple[float, ...]) -> bytes:
    """Pack values that have to survive as finite float32. Raises LocalProtocolError."""
    try:
        packed = layout.pack(*values)
    except (struct.error, OverflowError) as error:
        raise LocalProtocolError(f"{dict(zip(names, values, strict=True))} does not fit the wire: {error}.") from error
    if complaint := _non_finite(zip(names, values, strict=True)):
        raise LocalProtocolError(complaint)
    return packed


def _new_image(size: int) -> "array[int]":
    return array("B", bytes(size))


class AutopilotConnection:
    """The autopilot's side: constants and frames come in, motion parameters go out.

    Bytes come either through `receive_data`, or without a copy through `get_buffer` and `buffer_updated`, which hand
    out the memory of the very image that the next bytes belong to. `next_event` then gives `Constants` once,
    `SensorFrame`s, `ConnectionClosed` at the end, and `NEED_DATA` whenever it has to wait.

    `new_image(size)` supplies the memory of each image: an `array('B')` of exactly `size` bytes, not used by anybody
    else until the frame after the next is read.
    """

    def __init__(
        self,
        layout: AttitudeLayout = AttitudeLayout.PITCH_YAW,
        angle_unit: AngleUnit = AngleUnit.DEGREES,
        limits: Limits | None = None,
        new_image: Callable[[int], "array[int]"] = _new_image,
    ) -> None:
        self._layout = layout
        self._angle_unit = angle_unit
        self._limits = limits or Limits()
        self._new_image = new_image
        self._floats = _frame_floats(layout)
        self._constants: Constants | None = None
        self._images: list[array[int]] = []
        self._scalars = bytearray(_CONSTANTS.size)
        self._segments = deque([memoryview(self._scalars)])
        self._filled = 0  # bytes of the first segment that have come
        self._events: deque[Constants | SensorFrame | ConnectionClosed] = deque()
        self._failure: RemoteProtocolError | None = None
        self._ended = False
        self._frames = 0
        self._time = -math.inf
        self._unanswered = 0
        self._finished = False

    @property
    def inside_message(self) -> bool:
        """Whether the peer owes us the rest of its constants or of a frame. Between frames it may take its time."""
        return self._constants is None or self._filled > 0 or 0 < len(self._segments) < 3

    @property
    def must_answer(self) -> bool:
        """Whether the testbed is waiting for an answer."""
        return self._unanswered > 0 and not self._finished

    def get_buffer(self) -> memoryview:
        """Return the memory, at least one byte, where the next received bytes have to be written.

        Raises RemoteProtocolError after the peer broke the protocol.
        """
        if self._failure:
            raise self._failure
        if not self._segments:
            assert self._constants is not None
            self._images = [self._new_image(self._constants.image_bytes) for _ in range(2)]
            self._segments.extend([*(memoryview(image) for image in self._images), memoryview(self._scalars)])
        return self._segments[0][self._filled :]

    def buffer_updated(self, count: int) -> None:
        """Say that `count` bytes have been written to the start of what `get_buffer` returned."""
        self._filled += count
        if self._filled < len(self._segments[0]):
            return
        self._filled = 0
        self._segments.popleft()
        if self._segments:
            return
        try:
            self._events.append(self._read_constants() if self._constants is None else self._read_frame())
        except RemoteProtocolError as error:
            self._failure = error

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes by copying them. What follows a broken protocol is ignored."""
        rest = memoryview(data)
        while rest and not self._failure:
            buffer = self.get_buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            self.buffer_updated(count)
            rest = rest[count:]

    def receive_eof(self) -> None:
        """Say that the peer has closed its side: the regular end between frames, an error anywhere else."""
        if self._ended or self._failure:
            return
        self._ended = True
        if self._constants is None:
            got = f"{self._filled} of {_CONSTANTS.size} bytes"
            self._failure = RemoteProtocolError(f"The testbed closed inside its constants, after {got}.")
        elif self.inside_message:
            size = 2 * self._constants.image_bytes + self._floats.size
            got = f"{size - sum(map(len, self._segments)) + self._filled} of {size} bytes"
            self._failure = RemoteProtocolError(f"The testbed closed inside frame {self._frames}, after {got}.")
        else:
            self._events.append(ConnectionClosed())

    def next_event(self) -> Constants | SensorFrame | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        if self._events:
            return self._events.popleft()
        if self._failure:
            raise self._failure
        return NEED_DATA

    def send(self, event: MotionParameters) -> bytes:
        """Return the bytes that answer the oldest unanswered frame.

        Raises LocalProtocolError for a float that is not finite or too large for the wire, and when no frame waits.
        """
        if not self.must_answer:
            raise LocalProtocolError("Motion parameters answer a frame, and no frame is waiting for them.")
        data = _pack(_REPLY, MotionParameters.__slots__, astuple(event))
        self._unanswered -= 1
        return data

    def finish(self, event: MotionParameters) -> bytes:
        """Return the bytes of the last answer, after which nothing can be sent.

        It answers the frame that waits, or ahead of time the one that has yet to come: a testbed reads it when it has
        sent that frame. So an autopilot can leave a safe command behind at any moment.
        """
        data = _pack(_REPLY, MotionParameters.__slots__, astuple(event))
        if self._finished or self._constants is None:
            raise LocalProtocolError("A last answer is possible once, after the constants have come.")
        self._finished = True
        return data

    def _read_constants(self) -> Constants:
        constants = Constants(*_CONSTANTS.unpack(self._scalars))
        if complaint := _implausible_constants(constants, self._angle_unit, self._limits):
            raise RemoteProtocolError(f"In the testbed's constants, {complaint}")
        self._constants = constants
        self._scalars = bytearray(self._floats.size)
        return constants

    def _read_frame(self) -> SensorFrame:
        named = dict(zip(self._layout.floats, self._floats.unpack(self._scalars), strict=True))
        half_turn = self._angle_unit.half_turn
        complaint = _non_finite(named.items())
        if not complaint and abs(named["pitch"]) > half_turn * _HALF_TURN_TOLERANCE:
            complaint = f"pitch is {named['pitch']:g}, and has to be within {half_turn:g} {self._angle_unit.value}."
        if not complaint and named["time"] < self._time:
            complaint = f"time runs back from {self._time:g} s to {named['time']:g} s."
        if complaint:
            raise RemoteProtocolError(f"In the testbed's frame {self._frames}, {complaint}")
        left, right = self._images
        has_position = self._layout is AttitudeLayout.POSE
        self._frames += 1
        self._unanswered += 1
        self._time = named["time"]
        return SensorFrame(
            left,
            right,
            time=named["time"],
            pitch=named["pitch"],
            roll=named.get("roll"),
            yaw=named["heading"] if has_position else named.get("yaw"),
            position=(named["x"], named["y"], named["z"]) if has_position else None,
        )


class TestbedConnection:
    """The testbed's side: constants and frames go out, motion parameters come in, in strict turns."""

    __test__ = False  # not a test, whatever its name tells pytest

    def __init__(
        self,
        layout: AttitudeLayout = AttitudeLayout.PITCH_YAW,
        angle_unit: AngleUnit = AngleUnit.DEGREES,
        limits: Limits | None = None,
    ) -> None:
        self._layout = layout
        self._angle_unit = angle_unit
        self._limits = limits or Limits()
        self._floats = _frame_floats(layout)
        self._constants: Constants | None = None
        self._buffer = bytearray()
        self._failure: RemoteProtocolError | None = None
        self._ended = False
        self._awaits_reply = False

    def send(self, event: Constants | SensorFrame) -> bytes:
        """Return the bytes of the constants, which come first and once, or of a frame.

        Raises LocalProtocolError for what an autopilot would refuse, a missing or superfluous field, an image of the
        wrong size, constants that are missing or come twice, and a frame before the last one was answered.
        """
        return self._send_constants(event) if isinstance(event, Constants) else self._send_frame(event)

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take received bytes. An answer may come ahead of its frame; a second one may not."""
        if self._failure:
            return
        self._buffer += memoryview(data)[: 2 * _REPLY.size + 1 - len(self._buffer)]
        if len(self._buffer) > (1 + self._awaits_reply) * _REPLY.size:
            self._failure = RemoteProtocolError(
                f"The autopilot sent more than the one answer of {_REPLY.size} bytes that it may send ahead of a frame."
            )

    def receive_eof(self) -> None:
        """Say that the peer has closed its side: the regular end between answers, an error inside one."""
        self._ended = True

    def next_event(self) -> MotionParameters | ConnectionClosed | NeedData:
        """Return the answer to the last frame, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        if self._awaits_reply and len(self._buffer) >= _REPLY.size:
            return self._read_reply()
        if self._failure:
            raise self._failure
        if not self._ended:
            return NEED_DATA
        if len(self._buffer) % _REPLY.size:
            got = f"{len(self._buffer)} of {_REPLY.size} bytes"
            self._failure = RemoteProtocolError(f"The autopilot closed inside an answer, after {got}.")
            raise self._failure
        return ConnectionClosed()

    def _send_constants(self, constants: Constants) -> bytes:
        if self._constants:
            raise LocalProtocolError("The constants are sent once.")
        if complaint := _implausible_constants(constants, self._angle_unit, self._limits):
            raise LocalProtocolError(complaint)
        data = _pack(_CONSTANTS, Constants.__slots__, astuple(constants))
        self._constants = constants
        return data

    def _send_frame(self, frame: SensorFrame) -> bytes:
        if self._constants is None:
            raise LocalProtocolError("The constants have to be sent before the first frame.")
        if self._awaits_reply:
            raise LocalProtocolError("A frame can be sent only when the one before has been answered.")
        images = [memoryview(image).cast("B") for image in (frame.left, frame.right)]
        for name, image in zip(("left", "right"), images, strict=True):
            if len(image) != self._constants.image_bytes:
                raise LocalProtocolError(
                    f"The {name} image has {len(image)} bytes, and {self._constants.width} x {self._constants.height} "
                    f"pixels are {self._constants.image_bytes}."
                )
        data = b"".join((*images, _pack(self._floats, self._layout.floats, self._values(frame))))
        self._awaits_reply = True
        return data

    def _values(self, frame: SensorFrame) -> tuple[float, ...]:
        x, y, z = frame.position or (None, None, None)
        named = {"x": x, "y": y, "z": z, "heading": frame.yaw, "pitch": frame.pitch, "roll": frame.roll}
        named |= {"yaw": frame.yaw, "time": frame.time}
        values = []
        for name in self._layout.floats:
            value = named[name]
            if value is None:
                raise LocalProtocolError(f"The layout {self._layout.value} carries {name}, and the frame has none.")
            values.append(value)
        return tuple(values)

    def _read_reply(self) -> MotionParameters:
        reply = MotionParameters(*_REPLY.unpack_from(self._buffer))
        del self._buffer[: _REPLY.size]
        named = ((name, getattr(reply, name)) for name in MotionParameters.__slots__)
        if complaint := _non_finite(named):
            self._failure = RemoteProtocolError(f"In the autopilot's answer, {complaint}")
            raise self._failure
        self._awaits_reply = False
        return reply
