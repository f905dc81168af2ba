# SPDX-License-Identifier: Apache-2.0
"""AutopilotConnection and TestbedConnection: the two ends of the drone autopilot and virtual testbed protocol.

TCP, big-endian, without lengths or magic numbers.

Theory of operation, by the document "Drone Autopilot & Virtual TestBed Wire Protocol" (it has no sections; deviations
of real testbeds are in docs/testbed.md):

The testbed opens with `Constants`. Then both ends take turns: the testbed sends a `SensorFrame`, the autopilot replies
with `MotionParameters`, and simulated time is frozen until then. A session normally ends when the testbed closes the
connection instead of sending a frame.

One wrong byte shifts all following bytes, and is visible only by implausible values. Incoming and outgoing messages are
therefore checked: finite numbers, usable angles of view, pitch within half a turn, monotonic time. Time 0 is an
exception: a new simulation has started on the same connection.

No field announces the layout of the floats after the images, but their number follows from the strict alternation:
after a frame, a testbed sends nothing until it has the reply, so silence marks the end of the frame. This distinguishes
12 bytes from 28. Of the two layouts with 12 bytes, the documented one is assumed: a single frame can't distinguish yaw
from roll. The layout of a peer that does not wait has to be set.

All values are in the units of the wire: angles and rates in degrees (or radians, with some testbeds), everything else
in SI units; see docs/testbed.md.

On the wire:

| sender | message | bytes | when |
| --- | --- | --- | --- |
| testbed | constants: two angles of view, width, height (int32), separation, weight, gravity, drag, maxima of thrust and of pitch, roll and yaw rate (float32) | 48 | once, first |
| testbed | left image, right image (8-bit red, green, blue; rows from the top) | 2 * 3 * width * height | each step |
| testbed | pitch, yaw, time (float32); see `attitude_layout` | 12 (`pose`: 28) | after the images |
| autopilot | pitch rate, roll rate, yaw rate, thrust (float32) | 16 | in reply to each frame |

The testbed computes the next step when it has the reply: simulated time is frozen until then. It ends a session by
closing the connection between two frames.
"""  # noqa: E501 -- tables

import math
import operator
import struct
from array import array
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import Annotated, Union

from drone_bridge.wire.events import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    RemoteProtocolError,
)
from drone_bridge.wire.outgoing import Range

__all__ = [
    "BYTES_PER_PIXEL", "DEFAULT_PORT", "NEED_DATA", "AngleUnit", "AttitudeLayout", "AutopilotConnection",
    "ConnectionClosed", "Constants", "ImageBytes", "MotionParameters", "SensorFrame", "SimulationRestarted",
    "SizeLimits", "TestbedConnection",
]  # fmt: skip

DEFAULT_PORT = 8000  # TCP port, the usual one of testbeds
BYTES_PER_PIXEL = 3  # red, green, blue
# The nearest float32 to pi is slightly larger than pi, and rounding may put a half turn just above 180 degrees.
_HALF_TURN_TOLERANCE = 1.0001

#: One camera image: width * height * 3 bytes, rows from the top, pixels from the left, red green blue.
ImageBytes = Union["array[int]", bytes, bytearray, memoryview]


class AttitudeLayout(str, Enum):
    """Layout of the floats after the two images, which `floats` names."""

    PITCH_YAW = "pitch_yaw"  # as documented
    PITCH_ROLL = "pitch_roll"  # the document's first erratum: the second float had always been roll
    POSE = "pose"  # the second semester's revision

    @property
    def floats(self) -> tuple[str, ...]:
        """Names of the floats, in wire order."""
        if self is AttitudeLayout.POSE:
            return ("x", "y", "z", "heading", "pitch", "roll", "time")
        return (*self.value.split("_"), "time")


class AngleUnit(str, Enum):
    """Unit of all angles and angular rates on the wire."""

    DEGREES = "degrees"
    RADIANS = "radians"

    def __init__(self, name: str) -> None:
        #: Half a turn in this unit.
        self.half_turn = 180.0 if name == "degrees" else math.pi
        #: One of this unit in radians.
        self.radians = math.pi / self.half_turn


@dataclass(frozen=True, slots=True)
class SizeLimits:
    """Largest sizes of a testbed's announcement. Larger sizes are refused before memory is allocated."""

    width: int = 4096  # pixels
    height: int = 4096  # pixels
    frame_bytes: int = 64 * 1024 * 1024  # two images and the floats after them


@dataclass(frozen=True, slots=True)
class Constants:
    """Constants that the testbed sends once, before the first frame, in wire order."""

    horizontal_angle_of_view: float  # edge to edge
    vertical_angle_of_view: float  # edge to edge
    width: int  # pixels, both cameras
    height: int  # pixels, both cameras
    camera_separation: float  # m
    weight: float  # kg: a mass, despite its name
    gravity: float  # m/s^2; some testbeds send it negative
    drag: float  # kg/s: force per unit of air speed
    max_thrust: float  # N
    max_pitch_rate: float
    max_roll_rate: float
    max_yaw_rate: float

    @property
    def image_bytes(self) -> int:
        """Size of one camera image, bytes."""
        return self.width * self.height * BYTES_PER_PIXEL


@dataclass(frozen=True, slots=True)
class SensorFrame:
    """Sensor readings after a simulation step. Values that the layout lacks are None."""

    left: ImageBytes
    right: ImageBytes
    time: float  # s of simulated time
    pitch: float  # positive looks down
    roll: float | None = None  # positive banks right
    yaw: float | None = None  # the heading: 0 looks along -z, positive turns right
    position: tuple[float, float, float] | None = None  # m: x right at heading 0, y up, -z ahead at heading 0


@dataclass(frozen=True, slots=True)
class SimulationRestarted:
    """Start of a new simulation on the same connection, with the same constants: the next frame has time 0."""

    time_before: float  # s, of the last frame of the previous simulation


FLOAT32 = Range(-3.4028234663852886e38, 3.4028234663852886e38)


@dataclass(frozen=True, slots=True)
class MotionParameters:
    """Reply of the autopilot to a frame, in wire order."""

    pitch_rate: Annotated[float, FLOAT32]  # positive lowers the nose
    roll_rate: Annotated[float, FLOAT32]  # positive banks right
    yaw_rate: Annotated[float, FLOAT32]  # positive turns right
    thrust: Annotated[float, FLOAT32]  # N


def within_maxima(motion: MotionParameters, constants: Constants) -> tuple[MotionParameters, bool]:
    """Clamp motion parameters to the announced maxima; return them, and whether they were within the maxima."""
    asked = (motion.pitch_rate, motion.roll_rate, motion.yaw_rate, motion.thrust)
    clamped = (
        _clamp(motion.pitch_rate, -constants.max_pitch_rate, constants.max_pitch_rate),
        _clamp(motion.roll_rate, -constants.max_roll_rate, constants.max_roll_rate),
        _clamp(motion.yaw_rate, -constants.max_yaw_rate, constants.max_yaw_rate),
        _clamp(motion.thrust, 0.0, constants.max_thrust),
    )
    # Converting to radians and back may miss a maximum by a rounding error.
    within = clamped == asked or all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(clamped, asked, strict=True))
    return motion if clamped == asked else MotionParameters(*clamped), within


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)  # keeps NaN, which is refused; the other order replaces it by `high`


def non_finite(named: Iterable[tuple[str, float]]) -> str | None:
    """Return an error sentence about the first float that is not finite."""
    for name, value in named:
        if not math.isfinite(value):
            return f"{name} is {value}, not a finite number."
    return None


def implausible_constants(
    constants: Constants, unit: AngleUnit, limits: SizeLimits, bytes_after_images: int
) -> str | None:
    """Return an error sentence about the first implausible constant."""
    named = [(field.name, getattr(constants, field.name)) for field in fields(constants)]
    if problem := non_finite(named):
        return problem
    for name, value, limit in (("width", constants.width, limits.width), ("height", constants.height, limits.height)):
        if not 1 <= value <= limit:
            return f"{name} is {value}, not from 1 to {limit} pixels."
    for name, value in named:
        if name.endswith("angle_of_view") and not 0.0 < value < unit.half_turn:
            return f"{name} is {value:g}, not between 0 and {unit.half_turn:g} {unit.value}."
        if name != "gravity" and value < 0:
            return f"{name} is {value:g}, but must not be negative."
    size = 2 * constants.image_bytes + bytes_after_images
    if size > limits.frame_bytes:
        return f"a frame of {constants.width} x {constants.height} has {size} bytes (limit {limits.frame_bytes})."
    return None


def implausible_floats(
    floats: tuple[float, ...], layout: AttitudeLayout, unit: AngleUnit, time_before: float
) -> str | None:
    """Return an error sentence about the first implausible float after the images.

    Time may advance. It may also restart from 0 for a new simulation.
    """
    if not math.isfinite(sum(floats)) and (problem := non_finite(zip(layout.floats, floats, strict=True))):
        return problem
    *_, pitch, _, time = floats  # in every layout
    if abs(pitch) > unit.half_turn * _HALF_TURN_TOLERANCE:
        return f"pitch is {pitch:g}, not within {unit.half_turn:g} {unit.value}."
    if time < time_before and time != 0.0:
        return f"time runs back from {time_before:.9g} s to {time:.9g} s."
    return None


# Packing.

CONSTANTS = struct.Struct(">ffiiffffffff")
REPLY = struct.Struct(">ffff")
_PARAMETERS = MotionParameters.__slots__
constant_values = operator.attrgetter(*Constants.__slots__)
_reply_values = operator.attrgetter(*_PARAMETERS)  # astuple is too slow for each frame


def pack(layout: struct.Struct, names: Iterable[str], values: tuple[float, ...]) -> bytes:
    """Pack values as finite float32. Raises LocalProtocolError."""
    try:
        problem = non_finite(zip(names, values, strict=True))
        packed = layout.pack(*values)
    except (struct.error, OverflowError, TypeError, ValueError) as error:
        named = dict(zip(names, values, strict=True))
        raise LocalProtocolError(f"{named!r:.500} does not fit the wire: {error}.") from error
    if problem:
        raise LocalProtocolError(problem)
    return packed


def pack_reply(parameters: MotionParameters) -> bytes:
    """Pack a reply. Raises LocalProtocolError."""
    if not isinstance(parameters, MotionParameters):
        raise LocalProtocolError(f"An autopilot does not send {type(parameters).__name__}.")
    return pack(REPLY, _PARAMETERS, _reply_values(parameters))


@cache
def floats_of(layout: AttitudeLayout) -> struct.Struct:
    """Return the struct of a layout's floats."""
    return struct.Struct(f">{len(layout.floats)}f")


# The two ends of a connection.


def _new_image(size: int) -> "array[int]":
    return array("B", bytes(size))


class AutopilotConnection(EventSource[Constants | SimulationRestarted | SensorFrame | ConnectionClosed]):
    """Autopilot's end: receives constants and frames, sends motion parameters.

    Pass bytes to `receive_data`, or avoid a copy by `get_buffers` (or `get_buffer`) and `buffer_updated`, which provide
    the memory of the images themselves. `next_event` then returns `Constants` once, `SensorFrame`s, `ConnectionClosed`
    at the end, and `NEED_DATA` when it needs more bytes.

    Without a `layout`, the size of the first frame decides: the caller reports a silence by `peer_waits`, and
    `layout` then has the detected one.

    The images are `array('B')`s. With `reuses_images`, all frames share two arrays, which stay in the CPU caches. The
    caller must not use a frame after it has requested the buffers for the next one.
    """

    def __init__(
        self,
        layout: AttitudeLayout | None = AttitudeLayout.PITCH_YAW,
        angle_unit: AngleUnit = AngleUnit.DEGREES,
        limits: SizeLimits | None = None,
        reuses_images: bool = False,
    ) -> None:
        self.layout = layout
        self._angle_unit = angle_unit
        self._limits = limits or SizeLimits()
        self._reuses_images = reuses_images
        self._constants: Constants | None = None
        self._images: tuple[array[int], array[int]]  # set with the first frame
        self._scalars = bytearray(CONSTANTS.size)
        self._missing = CONSTANTS.size  # bytes of this message
        self._buffers = [memoryview(self._scalars)]  # where they belong
        self._events: deque[Constants | SensorFrame | SimulationRestarted | ConnectionClosed] = deque()
        self._failure = ""
        self._ended = False
        self._frames = 0
        self._time = -math.inf
        self._unanswered = 0

    @property
    def _image_bytes(self) -> int:
        """Size of this message's images, bytes."""
        return 2 * self._constants.image_bytes if self._constants else 0

    @property
    def _size(self) -> int:
        """Size of this message, bytes."""
        return self._image_bytes + len(self._scalars)

    @property
    def inside_message(self) -> bool:
        """Whether a message (constants or frame) is incomplete. The peer may pause between frames."""
        return self._constants is None or 0 < self._missing < self._size

    @property
    def silence_decides(self) -> bool:
        """Whether the frame may be complete. Call `peer_waits` if nothing follows."""
        return self.layout is None and len(self._after_images()) == floats_of(AttitudeLayout.PITCH_YAW).size

    @property
    def has_floats(self) -> bool:
        """Whether bytes after the images were received. If they are implausible, the layout may be wrong."""
        return bool(self._after_images())

    @property
    def must_answer(self) -> bool:
        """Whether the testbed is waiting for a reply."""
        return self._unanswered > 0

    def get_buffers(self) -> list[memoryview]:
        """Return the memory, piece by piece, for the missing bytes of this message.

        Raises RemoteProtocolError after a protocol violation of the peer.
        """
        if self._failure:
            raise RemoteProtocolError(self._failure)
        if not self._buffers:
            self._missing = self._size
            if not (self._frames and self._reuses_images):
                size = self._image_bytes // 2
                self._images = _new_image(size), _new_image(size)
            self._buffers = [memoryview(part) for part in (*self._images, self._scalars)]
        return self._buffers

    def get_buffer(self) -> memoryview:
        """Return the first piece of `get_buffers`, at least one byte. Raises the same errors."""
        return self.get_buffers()[0]

    def buffer_updated(self, count: int) -> None:
        """Record that `count` bytes were written to the start of the memory of `get_buffers` or `get_buffer`."""
        self._missing -= count
        if self._missing:
            while self._buffers and count >= len(self._buffers[0]):
                count -= len(self._buffers.pop(0))
            if self._buffers:
                self._buffers[0] = self._buffers[0][count:]
        if not self._missing:
            self._complete()

    def peer_waits(self) -> None:
        """Record a silence: the testbed is waiting for a reply, so its frame ends here."""
        if self.silence_decides:
            self.layout = AttitudeLayout.PITCH_YAW
            self._scalars, self._missing = bytearray(self._after_images()), 0
            self._complete()

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Receive bytes, with a copy. Bytes after a protocol violation are ignored."""
        rest = memoryview(data)
        while rest and not self._failure:
            buffer = self.get_buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            self.buffer_updated(count)
            rest = rest[count:]

    def receive_eof(self) -> None:
        """End the stream as the peer has: regular between frames, an error anywhere else."""
        if self._ended or self._failure:
            return
        self.peer_waits()
        self._ended = True
        got = f"{self._size - self._missing} of {self._size} bytes"
        if self._constants is None:
            self._failure = f"The testbed closed the connection inside its constants, after {got}."
        elif self._failure:
            return
        elif self.inside_message:
            self._failure = f"The testbed closed the connection inside frame {self._frames}, after {got}."
        else:
            self._events.append(ConnectionClosed())

    def next_event(self) -> Constants | SimulationRestarted | SensorFrame | ConnectionClosed | NeedData:
        """Return the next event, or NEED_DATA. Raises RemoteProtocolError, again at each call."""
        if self._events:
            return self._events.popleft()
        if self._failure:
            raise RemoteProtocolError(self._failure)
        return NEED_DATA

    def send(self, event: MotionParameters) -> bytes:
        """Return the bytes that reply to the oldest unanswered frame.

        Raises LocalProtocolError if a float is not finite or too large for the wire, or if no frame is unanswered.
        """
        if not self.must_answer:
            raise LocalProtocolError("Motion parameters reply to a frame, and no frame is unanswered.")
        data = pack_reply(event)
        self._unanswered -= 1
        return data

    def finish(self, event: MotionParameters) -> bytes:
        """Return the bytes of the last reply. Do not send anything after it.

        It replies to the pending frame or, ahead of time, to the next one: a testbed reads it after it has sent that
        frame. So an autopilot can leave a safe command behind at any moment before the testbed disconnects.
        """
        if self._ended or self._constants is None:
            raise LocalProtocolError("A last reply needs a testbed that has sent its constants and is connected.")
        return pack_reply(event)

    def _after_images(self) -> bytes:
        """Return the received bytes after the images, of this message or of the last complete one."""
        count = self._size - self._missing - self._image_bytes
        return bytes(self._scalars[:count]) if self._constants and count > 0 else b""

    def _complete(self) -> None:
        """Create the event for a complete message."""
        self._buffers = []
        try:
            self._events.append(self._read_constants() if self._constants is None else self._read_frame())
        except RemoteProtocolError as error:
            self._failure = str(error)

    def _read_constants(self) -> Constants:
        constants, size = (
            Constants(*CONSTANTS.unpack(self._scalars)),
            floats_of(self.layout or AttitudeLayout.POSE).size,
        )
        if problem := implausible_constants(constants, self._angle_unit, self._limits, size):
            raise RemoteProtocolError(f"In the testbed's constants, {problem}")
        self._constants, self._scalars = constants, bytearray(size)
        return constants

    def _read_frame(self) -> SensorFrame:
        self.layout = self.layout or AttitudeLayout.POSE  # all bytes of the longest layout have arrived
        floats = floats_of(self.layout).unpack(self._scalars)
        if problem := implausible_floats(floats, self.layout, self._angle_unit, self._time):
            raise RemoteProtocolError(f"In the testbed's frame {self._frames}, {problem}")
        self._frames += 1
        self._unanswered += 1
        *place, pitch, angle, time = floats
        if time < self._time:
            self._events.append(SimulationRestarted(self._time))
        self._time = time
        if self.layout is AttitudeLayout.PITCH_YAW:
            return SensorFrame(*self._images, time, pitch, yaw=angle)
        if self.layout is AttitudeLayout.PITCH_ROLL:
            return SensorFrame(*self._images, time, pitch, angle)
        x, y, z, heading = place
        return SensorFrame(*self._images, time, pitch, angle, heading, (x, y, z))


class TestbedConnection(EventSource[MotionParameters | ConnectionClosed]):
    """Testbed's end: sends constants and frames, receives motion parameters, in strict turns."""

    __test__ = False  # not a test, although pytest collects names that begin with Test

    def __init__(
        self,
        layout: AttitudeLayout = AttitudeLayout.PITCH_YAW,
        angle_unit: AngleUnit = AngleUnit.DEGREES,
        limits: SizeLimits | None = None,
    ) -> None:
        self._layout = layout
        self._angle_unit = angle_unit
        self._limits = limits or SizeLimits()
        self._floats = floats_of(layout)
        self._constants: Constants | None = None
        self._buffer = bytearray()
        self._failure = ""
        self._ended = False
        self._has_told_end = False
        self._time = -math.inf
        #: Whether the last frame is unanswered. Nothing is sent meanwhile, because simulated time is frozen.
        self.awaits_reply = False

    def send(self, event: Constants | SensorFrame) -> bytes:
        """Return the bytes of the constants, which come first and once, or of a frame.

        Values that the layout lacks are omitted. Raises LocalProtocolError for values that an autopilot would refuse, a
        missing field, an image of the wrong size, missing or repeated constants, and a frame before the reply to the
        last one.
        """
        if isinstance(event, Constants):
            return self._send_constants(event)
        if isinstance(event, SensorFrame):
            return b"".join(self.send_in_pieces(event))
        raise LocalProtocolError(f"A testbed does not send {type(event).__name__}.")

    def send_in_pieces(self, frame: SensorFrame) -> list[memoryview]:
        """Return the bytes of a frame like `send`, in pieces: both images without a copy, and the floats."""
        if self._constants is None:
            raise LocalProtocolError("Constants must be sent before the first frame.")
        if self.awaits_reply:
            raise LocalProtocolError("The last frame is unanswered: the next one must wait for its reply.")
        try:
            images = [memoryview(image).cast("B") for image in (frame.left, frame.right)]
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"An image is not a contiguous buffer of bytes: {error}.") from error
        for name, image in zip(("left", "right"), images, strict=True):
            if len(image) != self._constants.image_bytes:
                raise LocalProtocolError(
                    f"The {name} image has {len(image)} bytes, not {self._constants.image_bytes} for "
                    f"{self._constants.width} x {self._constants.height} pixels."
                )
        floats = pack(self._floats, self._layout.floats, self._values(frame))
        read = self._floats.unpack(floats)
        if complaint := implausible_floats(read, self._layout, self._angle_unit, self._time):
            raise LocalProtocolError(complaint)
        self._time = read[-1]
        self.awaits_reply = True
        return [*images, memoryview(floats)]

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Receive bytes. One reply may come ahead of its frame."""
        if self._failure:
            return
        self._buffer += memoryview(data)[: 2 * REPLY.size + 1 - len(self._buffer)]
        if len(self._buffer) > (1 + self.awaits_reply) * REPLY.size:
            self._failure = f"The autopilot sent more than one reply ({REPLY.size} bytes) ahead of a frame."

    def receive_eof(self) -> None:
        """End the stream as the peer has: regular between replies, an error inside a reply."""
        self._ended = True

    def next_event(self) -> MotionParameters | ConnectionClosed | NeedData:
        """Return the reply to the last frame, ConnectionClosed once at the end, or NEED_DATA.

        Raises RemoteProtocolError, again at each call.
        """
        if self.awaits_reply and len(self._buffer) >= REPLY.size:
            return self._read_reply()
        if self._failure:
            self._buffer.clear()  # frames from now on get no reply
            raise RemoteProtocolError(self._failure)
        if not self._ended or self._has_told_end:
            return NEED_DATA
        if len(self._buffer) % REPLY.size:
            got = f"{len(self._buffer)} of {REPLY.size} bytes"
            self._failure = f"The autopilot closed the connection inside a reply, after {got}."
            raise RemoteProtocolError(self._failure)
        self._has_told_end = True
        return ConnectionClosed()

    def _send_constants(self, constants: Constants) -> bytes:
        if self._constants:
            raise LocalProtocolError("The constants must be sent only once.")
        data = pack(CONSTANTS, Constants.__slots__, constant_values(constants))
        read = Constants(*CONSTANTS.unpack(data))  # read back as the autopilot does: rounding may exceed a limit
        if problem := implausible_constants(read, self._angle_unit, self._limits, self._floats.size):
            raise LocalProtocolError(problem)
        self._constants = constants
        return data

    def _values(self, frame: SensorFrame) -> tuple[float, ...]:
        position = (None, None, None) if frame.position is None else frame.position
        if not isinstance(position, tuple | list) or len(position) != 3:
            raise LocalProtocolError(f"The position of a frame is {position!r:.200}, not three numbers.")
        x, y, z = position
        named = {"x": x, "y": y, "z": z, "heading": frame.yaw, "pitch": frame.pitch, "roll": frame.roll}
        named |= {"yaw": frame.yaw, "time": frame.time}
        values = []
        for name in self._layout.floats:
            value = named[name]
            if value is None:
                raise LocalProtocolError(f"The layout {self._layout.value} needs {name}, which the frame lacks.")
            values.append(value)
        return tuple(values)

    def _read_reply(self) -> MotionParameters:
        reply = MotionParameters(*REPLY.unpack_from(self._buffer))
        del self._buffer[: REPLY.size]
        named = ((name, getattr(reply, name)) for name in MotionParameters.__slots__)
        if problem := non_finite(named):
            self._buffer.clear()
            self._failure = f"In the autopilot's reply, {problem}"
            raise RemoteProtocolError(self._failure)
        self.awaits_reply = False
        return reply
