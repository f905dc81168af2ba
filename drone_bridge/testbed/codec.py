# SPDX-License-Identifier: Apache-2.0
"""The drone autopilot and virtual testbed protocol: TCP, big-endian, no lengths, no magic numbers.

Theory of operation, by the document "Drone Autopilot & Virtual TestBed Wire Protocol" (it has no sections; what real
testbeds do differently is in docs/testbed.md):

The testbed opens with `Constants`. Then the two take turns: the testbed sends a `SensorFrame`, the autopilot
answers with `MotionParameters`, and simulated time stands still meanwhile. Closing the connection instead of
sending a frame is the regular end.

One wrong byte shifts all that follow, and implausible values are the only sign of it. Hence the checks, of incoming and
outgoing messages: finite numbers, usable angles of view, pitch within half a turn, time not running backwards. Time 0
is the exception: it says that a new simulation has started on the same connection.

No field says which floats follow the images, but the strict turns do: after a frame a testbed sends nothing until it is
answered, so the frame ends where silence begins. That distinguishes 12 bytes from 28. Of the two layouts with 12 bytes
the documented one is assumed: nothing in a single frame distinguishes a yaw from a roll.

All values are in the units of the wire: angles and rates in degrees (or radians, where a testbed uses them), everything
else SI; see docs/testbed.md.

On the wire:

Big-endian, no lengths, no magic numbers.

| who | what | bytes | when |
| --- | --- | --- | --- |
| testbed | constants: two angles of view, width, height (int32), separation, weight, gravity, drag, maxima of thrust and of pitch, roll and yaw rate (float32) | 48 | once, first |
| testbed | left image, right image (8-bit red, green, blue; rows from the top) | 2 * 3 * width * height | each step |
| testbed | pitch, yaw, time (float32); see `attitude_layout` | 12 (`pose`: 28) | after the images |
| autopilot | pitch rate, roll rate, yaw rate, thrust (float32) | 16 | in answer to each frame |

The testbed does not compute the next step until it has the answer: simulated time stands still until then. It ends a
session by closing the connection between two frames.
"""  # noqa: E501 -- tables

import math
import operator
import struct
from array import array
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import Enum
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
    "BYTES_PER_PIXEL",
    "DEFAULT_PORT",
    "NEED_DATA",
    "AngleUnit",
    "AttitudeLayout",
    "AutopilotConnection",
    "ConnectionClosed",
    "Constants",
    "ImageBytes",
    "Limits",
    "MotionParameters",
    "SensorFrame",
    "SimulationRestarted",
    "TestbedConnection",
]

DEFAULT_PORT = 8000  # TCP, where testbeds usually listen
BYTES_PER_PIXEL = 3  # red, green, blue
# pi as a float32 is a little more than pi, and rounding may put a half turn just above 180 degrees.
_HALF_TURN_TOLERANCE = 1.0001

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


FLOAT32 = Range(-3.4028234663852886e38, 3.4028234663852886e38)


@dataclass(frozen=True, slots=True)
class MotionParameters:
    """The autopilot's answer to a frame, in the order of the wire."""

    pitch_rate: Annotated[float, FLOAT32]  # positive lowers the nose
    roll_rate: Annotated[float, FLOAT32]  # positive banks right
    yaw_rate: Annotated[float, FLOAT32]  # positive turns right
    thrust: Annotated[float, FLOAT32]  # N


def within_maxima(motion: MotionParameters, constants: Constants) -> tuple[MotionParameters, bool]:
    """Return finite motion parameters within the announced maxima, and whether they were within them."""
    asked = (motion.pitch_rate, motion.roll_rate, motion.yaw_rate, motion.thrust)
    clamped = (
        _clamp(motion.pitch_rate, -constants.max_pitch_rate, constants.max_pitch_rate),
        _clamp(motion.roll_rate, -constants.max_roll_rate, constants.max_roll_rate),
        _clamp(motion.yaw_rate, -constants.max_yaw_rate, constants.max_yaw_rate),
        _clamp(motion.thrust, 0.0, constants.max_thrust),
    )
    # Radians and back to degrees may miss a maximum by a rounding error.
    within = clamped == asked or all(math.isclose(a, b, rel_tol=1e-9) for a, b in zip(clamped, asked, strict=True))
    return motion if clamped == asked else MotionParameters(*clamped), within


def _clamp(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)  # NaN stays, and is refused: in the other order it becomes `high`


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


def implausible_floats(
    floats: tuple[float, ...], layout: AttitudeLayout, unit: AngleUnit, time_before: float
) -> str | None:
    """Return a sentence about the first implausible float after the images.

    Time may advance, or restart from 0, which is a new simulation.
    """
    if not math.isfinite(sum(floats)) and (problem := non_finite(zip(layout.floats, floats, strict=True))):
        return problem
    *_, pitch, _, time = floats  # in every layout
    if abs(pitch) > unit.half_turn * _HALF_TURN_TOLERANCE:
        return f"pitch is {pitch:g}, and has to be within {unit.half_turn:g} {unit.value}."
    if time < time_before and time != 0.0:
        return f"time runs back from {time_before:.9g} s to {time:.9g} s."
    return None


# Packing.

CONSTANTS = struct.Struct(">ffiiffffffff")
REPLY = struct.Struct(">ffff")
_PARAMETERS = MotionParameters.__slots__
constant_values = operator.attrgetter(*Constants.__slots__)
_reply_values = operator.attrgetter(*_PARAMETERS)  # astuple is slow, and this is done per frame


def pack(layout: struct.Struct, names: Iterable[str], values: tuple[float, ...]) -> bytes:
    """Pack values that have to survive as finite float32. Raises LocalProtocolError."""
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
    """Pack an answer. Raises LocalProtocolError."""
    if not isinstance(parameters, MotionParameters):
        raise LocalProtocolError(f"An autopilot does not send {type(parameters).__name__}.")
    return pack(REPLY, _PARAMETERS, _reply_values(parameters))


# The layout of the bytes after the images, which the first frame tells.

SHORT_BYTES = 12  # pitch_yaw and pitch_roll
POSE_BYTES = 28
#: One byte more than any layout has: a peer that sends it does not wait for answers.
SURPLUS_BYTES = POSE_BYTES + 1
# Beyond these a first frame makes no sense. Pixels that are read as floats are nearly always far beyond.
_FARTHEST_M = 1e6
_LATEST_S = 1e7
_LEAST_NORMAL_FLOAT32 = 2.0**-126
# Noise of a computation may be smaller still, dark pixels read as floats nearly always are.
_LEAST_BESIDE_PIXELS = 1e-20
_ANGLES = ("pitch", "roll", "yaw", "heading")


def floats_of(layout: AttitudeLayout) -> struct.Struct:
    """Return how the floats of this layout are packed."""
    return struct.Struct(f">{len(layout.floats)}f")


def decide_layout(tail: bytes, is_followed_by_silence: bool, unit: AngleUnit) -> AttitudeLayout | None:
    """Return the layout of a first frame, or None if more has to come, or silence, to be sure.

    `tail` is what has come after the images, up to SURPLUS_BYTES. Raises ValueError with a sentence for bytes that fit
    no layout, or two.
    """
    is_followed_by_pixels = len(tail) >= SURPLUS_BYTES
    least = _LEAST_BESIDE_PIXELS if is_followed_by_pixels else _LEAST_NORMAL_FLOAT32

    def fits(layout: AttitudeLayout) -> bool:
        floats = floats_of(layout)
        if len(tail) < floats.size:
            return False
        return _is_plausible(dict(zip(layout.floats, floats.unpack_from(tail), strict=True)), unit, least)

    is_pose, is_short = fits(AttitudeLayout.POSE), fits(AttitudeLayout.PITCH_YAW)
    if is_followed_by_pixels:
        # A peer that does not wait for its answer: what follows is its next image, and its values have to tell.
        if is_pose == is_short:
            raise ValueError(f"The first frame fits {'more than one' if is_pose else 'no'} layout.")
        return AttitudeLayout.POSE if is_pose else AttitudeLayout.PITCH_YAW
    if len(tail) == POSE_BYTES and is_pose and (is_followed_by_silence or not is_short):
        return AttitudeLayout.POSE
    if not is_followed_by_silence or len(tail) not in (SHORT_BYTES, POSE_BYTES):
        return None
    if len(tail) == SHORT_BYTES and is_short:
        return AttitudeLayout.PITCH_YAW
    numbers = ", ".join(f"{number:g}" for number in struct.unpack(f">{len(tail) // 4}f", tail))
    raise ValueError(f"The first frame fits no layout: after its images came {numbers}.")


def _is_plausible(floats: Mapping[str, float], unit: AngleUnit, least: float) -> bool:
    """Return whether a testbed can have meant these as the floats of its first frame, `least` if not 0."""
    if non_finite(floats.items()) or any(0 < abs(value) < least for value in floats.values()):
        return False
    for name, value in floats.items():
        if name in _ANGLES:
            limit = unit.half_turn * (1 if name == "pitch" else 2) * 1.0001  # rounding to float32
            is_plausible = abs(value) <= limit
        elif name == "time":
            is_plausible = 0 <= value <= _LATEST_S
        else:
            is_plausible = abs(value) <= _FARTHEST_M
        if not is_plausible:
            return False
    return True


# The two ends of a conversation.

#: What is taken ahead for a frame before a whole one has come: 49 bytes can announce one of 64 MiB and begin it.
_AHEAD_BYTES = 1 << 20


def _new_image(size: int) -> "array[int]":
    return array("B", bytes(size))


class AutopilotConnection(EventSource[Constants | SimulationRestarted | SensorFrame | ConnectionClosed]):
    """The autopilot's side: constants and frames come in, motion parameters go out.

    Bytes come either through `receive_data`, or without a copy through `get_buffers` (or `get_buffer`) and
    `buffer_updated`, which hand out the memory of the very images that the next bytes belong to. `next_event` then
    gives `Constants` once, `SensorFrame`s, `ConnectionClosed` at the end, and `NEED_DATA` whenever it has to wait.

    Without a `layout` the first frame decides it, see `decide_layout`: the caller reports by `peer_waits` that
    nothing follows, and `layout` is then the one found.

    The images are `array('B')`s. With `reuses_images` all frames have the same two, whose memory is in the caches: the
    caller must be done with one frame before it requests the buffers for another. A first frame above 1 MiB is
    collected in memory that grows with the received bytes, and copied into its images when complete.
    """

    def __init__(
        self,
        layout: AttitudeLayout | None = AttitudeLayout.PITCH_YAW,
        angle_unit: AngleUnit = AngleUnit.DEGREES,
        limits: Limits | None = None,
        reuses_images: bool = False,
    ) -> None:
        self.layout = layout
        self._angle_unit = angle_unit
        self._limits = limits or Limits()
        self._reuses_images = reuses_images
        self._floats = floats_of(layout or AttitudeLayout.POSE)
        self._surplus = b""  # what came of the second frame while the layout of the first was found out
        self._constants: Constants | None = None
        self._images: tuple[array[int], array[int]]  # once the constants have come
        self._views: list[memoryview] = []  # of the images and what follows them
        self._pieces: list[bytearray] = []  # of a first frame that is large
        self._scalars = bytearray(CONSTANTS.size)
        self._size = self._missing = CONSTANTS.size  # bytes of this message, and those of them that have yet to come
        self._buffers = [memoryview(self._scalars)]  # where these belong
        self._events: deque[Constants | SensorFrame | SimulationRestarted | ConnectionClosed] = deque()
        self._failure = ""
        self._ended = False
        self._frames = 0
        self._time = -math.inf
        self._unanswered = 0
        self._packed_event: MotionParameters | None = None  # the last answer, and its bytes
        self._packed = b""

    @property
    def inside_message(self) -> bool:
        """Whether the peer owes us the rest of its constants or of a frame. Between frames it may pause."""
        return self._constants is None or 0 < self._missing < self._size or bool(self._surplus)

    @property
    def silence_decides(self) -> bool:
        """Whether the frame may be complete: `peer_waits` is to be called if nothing follows."""
        return self.layout is None and len(self._after_images()) in (SHORT_BYTES, POSE_BYTES)

    @property
    def has_floats(self) -> bool:
        """Whether something has come after the images: if it makes no sense, the layout may be another."""
        return bool(self._after_images())

    @property
    def must_answer(self) -> bool:
        """Whether the testbed is waiting for an answer."""
        return self._unanswered > 0

    def get_buffers(self) -> list[memoryview]:
        """Return the memory, piece by piece, for all that is missing of this message, where the next bytes belong.

        Raises RemoteProtocolError after the peer broke the protocol.
        """
        if self._failure:
            raise RemoteProtocolError(self._failure)
        if not self._buffers:
            self._missing = self._missing or self._size
            if self._frames == 0 and self._size > _AHEAD_BYTES:
                came = self._size - self._missing
                self._pieces.append(bytearray(min(max(came, _AHEAD_BYTES), self._missing)))
                self._buffers = [memoryview(self._pieces[-1])]
            else:
                self._buffers = self._frame_buffers()
            surplus, self._surplus = self._surplus, b""
            while surplus:
                count = min(len(surplus), len(self._buffers[0]))
                self._buffers[0][:count] = surplus[:count]
                self.buffer_updated(count)
                surplus = surplus[count:]
        return self._buffers

    def get_buffer(self) -> memoryview:
        """Return the first piece, at least one byte, of what `get_buffers` returns. Raises as that does."""
        return self.get_buffers()[0]

    def buffer_updated(self, count: int) -> None:
        """Note that `count` bytes were written to the start of what `get_buffers` or `get_buffer` returned."""
        self._missing -= count
        if self._missing:
            while self._buffers and count >= len(self._buffers[0]):
                count -= len(self._buffers.pop(0))
            if self._buffers:
                self._buffers[0] = self._buffers[0][count:]
        if self.layout is None and len(self._after_images()) >= POSE_BYTES:
            self._decide_layout(is_followed_by_silence=False)
        elif not self._missing:
            self._complete()

    def peer_waits(self) -> None:
        """Note a silence so long that the testbed must be waiting: its frame ends here."""
        if self.silence_decides:
            self._decide_layout(is_followed_by_silence=True)

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Receive bytes, by copying them. Bytes after a protocol violation are ignored."""
        rest = memoryview(data)
        while rest and not self._failure:
            buffer = self.get_buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            self.buffer_updated(count)
            rest = rest[count:]

    def receive_eof(self) -> None:
        """Handle the end of the peer's stream: regular between frames, an error anywhere else."""
        if self._ended or self._failure:
            return
        self.peer_waits()
        self._ended = True
        if self._surplus:
            self.get_buffers()
        got = f"{self._size - self._missing} of {self._size} bytes"
        if self._constants is None:
            self._failure = f"The testbed closed inside its constants, after {got}."
        elif self._failure:
            return
        elif self.inside_message:
            self._failure = f"The testbed closed inside frame {self._frames}, after {got}."
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
        """Return the bytes that answer the oldest unanswered frame.

        Raises LocalProtocolError for a float that is not finite or too large for the wire, and when no frame waits.
        """
        if not self.must_answer:
            raise LocalProtocolError("Motion parameters answer a frame, and no frame is waiting for them.")
        if event is not self._packed_event:  # while nobody commands, it is the same one for every frame
            self._packed, self._packed_event = pack_reply(event), event
        self._unanswered -= 1
        return self._packed

    def finish(self, event: MotionParameters) -> bytes:
        """Return the bytes of the last answer, after which nothing is to be sent.

        It answers the pending frame or, ahead of time, the next one: a testbed reads it when it has sent that frame. So
        an autopilot can leave a safe command behind at any moment, until the testbed has left.
        """
        if self._ended or self._constants is None:
            raise LocalProtocolError("A last answer is for a testbed that has sent its constants, and has not left.")
        return pack_reply(event)

    def _after_images(self) -> bytes:
        """Return the received bytes after the images, of this message or the one completed last."""
        if self._constants is None:
            return b""
        count = self._size - self._missing - 2 * self._constants.image_bytes
        if count <= 0:
            return b""
        if not self._pieces:
            return bytes(self._scalars[:count])
        skipped, found = 2 * self._constants.image_bytes, b""
        for piece in self._pieces:
            found += memoryview(piece)[skipped:]
            skipped = max(0, skipped - len(piece))
        return found[:count]

    def _decide_layout(self, is_followed_by_silence: bool) -> None:
        """Decide the layout of the first frame, if enough was received."""
        assert self._constants is not None
        after_images = self._after_images()
        try:
            self.layout = decide_layout(after_images, is_followed_by_silence, self._angle_unit)
        except ValueError as error:
            self._failure = str(error)
        if self.layout is None:
            return
        self._floats = floats_of(self.layout)
        size = self._floats.size
        self._scalars, self._surplus = bytearray(after_images[:size]), after_images[size:]
        self._views = []
        self._size = 2 * self._constants.image_bytes + size
        self._missing = 0
        self._complete()

    def _complete(self) -> None:
        """Create the event for a complete message."""
        self._buffers = []
        if self._pieces:
            whole = memoryview(b"".join(self._pieces))
            self._pieces = []
            for buffer in self._frame_buffers():
                buffer[:] = whole[: len(buffer)]
                whole = whole[len(buffer) :]
        try:
            self._events.append(self._read_constants() if self._constants is None else self._read_frame())
        except RemoteProtocolError as error:
            self._failure = str(error)

    def _frame_buffers(self) -> list[memoryview]:
        """Return the buffers for a frame, with new images unless these are reused."""
        if not (self._frames and self._reuses_images):
            assert self._constants is not None
            size = self._constants.image_bytes
            self._images, self._views = (_new_image(size), _new_image(size)), []
        if not self._views:
            self._views = [memoryview(part) for part in (*self._images, self._scalars)]
        return self._views.copy()

    def _read_constants(self) -> Constants:
        constants = Constants(*CONSTANTS.unpack(self._scalars))
        if problem := implausible_constants(constants, self._angle_unit, self._limits, self._floats.size):
            raise RemoteProtocolError(f"In the testbed's constants, {problem}")
        self._constants = constants
        self._scalars = bytearray(self._floats.size if self.layout else SURPLUS_BYTES)
        self._size = 2 * constants.image_bytes + len(self._scalars)
        return constants

    def _read_frame(self) -> SensorFrame:
        assert self.layout  # which is decided by then
        floats = self._floats.unpack(self._scalars)
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
        self._floats = floats_of(layout)
        self._constants: Constants | None = None
        self._buffer = bytearray()
        self._failure = ""
        self._ended = False
        self._has_told_end = False
        self._time = -math.inf
        #: Whether the last frame is still to be answered; nothing is sent meanwhile, as simulated time stands still.
        self.awaits_reply = False

    def send(self, event: Constants | SensorFrame) -> bytes:
        """Return the bytes of the constants, which come first and once, or of a frame.

        What the layout does not carry is left out. Raises LocalProtocolError for what an autopilot would refuse, a
        missing field, an image of the wrong size, constants that are missing or come twice, and a frame before the
        last one was answered.
        """
        if isinstance(event, Constants):
            return self._send_constants(event)
        if isinstance(event, SensorFrame):
            return b"".join(self.send_in_pieces(event))
        raise LocalProtocolError(f"A testbed does not send {type(event).__name__}.")

    def send_in_pieces(self, frame: SensorFrame) -> list[memoryview]:
        """Return the bytes of a frame as `send` does, in pieces: both images, without copying them, and the floats."""
        if self._constants is None:
            raise LocalProtocolError("The constants have to be sent before the first frame.")
        if self.awaits_reply:
            raise LocalProtocolError("A frame can be sent only when the one before has been answered.")
        try:
            images = [memoryview(image).cast("B") for image in (frame.left, frame.right)]
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"An image is not bytes in one piece: {error}.") from error
        for name, image in zip(("left", "right"), images, strict=True):
            if len(image) != self._constants.image_bytes:
                raise LocalProtocolError(
                    f"The {name} image has {len(image)} bytes, and {self._constants.width} x {self._constants.height} "
                    f"pixels are {self._constants.image_bytes}."
                )
        floats = pack(self._floats, self._layout.floats, self._values(frame))
        read = self._floats.unpack(floats)
        if complaint := implausible_floats(read, self._layout, self._angle_unit, self._time):
            raise LocalProtocolError(complaint)
        self._time = read[-1]
        self.awaits_reply = True
        return [*images, memoryview(floats)]

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Receive bytes. An answer may come ahead of its frame; a second one may not."""
        if self._failure:
            return
        self._buffer += memoryview(data)[: 2 * REPLY.size + 1 - len(self._buffer)]
        if len(self._buffer) > (1 + self.awaits_reply) * REPLY.size:
            self._failure = (
                f"The autopilot sent more than the one answer of {REPLY.size} bytes that it may send ahead of a frame."
            )

    def receive_eof(self) -> None:
        """Handle the end of the peer's stream: regular between answers, an error inside one."""
        self._ended = True

    def next_event(self) -> MotionParameters | ConnectionClosed | NeedData:
        """Return the answer to the last frame, ConnectionClosed once at the end, or NEED_DATA.

        Raises RemoteProtocolError, again at each call.
        """
        if self.awaits_reply and len(self._buffer) >= REPLY.size:
            return self._read_reply()
        if self._failure:
            self._buffer.clear()  # no frame that is sent from now on gets an answer
            raise RemoteProtocolError(self._failure)
        if not self._ended or self._has_told_end:
            return NEED_DATA
        if len(self._buffer) % REPLY.size:
            got = f"{len(self._buffer)} of {REPLY.size} bytes"
            self._failure = f"The autopilot closed inside an answer, after {got}."
            raise RemoteProtocolError(self._failure)
        self._has_told_end = True
        return ConnectionClosed()

    def _send_constants(self, constants: Constants) -> bytes:
        if self._constants:
            raise LocalProtocolError("The constants are sent once.")
        data = pack(CONSTANTS, Constants.__slots__, constant_values(constants))
        read = Constants(*CONSTANTS.unpack(data))  # as the autopilot will: rounding may reach what a limit excludes
        if problem := implausible_constants(read, self._angle_unit, self._limits, self._floats.size):
            raise LocalProtocolError(problem)
        self._constants = constants
        return data

    def _values(self, frame: SensorFrame) -> tuple[float, ...]:
        position = (None, None, None) if frame.position is None else frame.position
        if not isinstance(position, tuple | list) or len(position) != 3:
            raise LocalProtocolError(f"The position of a frame is {position!r:.200}, and has to be three numbers.")
        x, y, z = position
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
        reply = MotionParameters(*REPLY.unpack_from(self._buffer))
        del self._buffer[: REPLY.size]
        named = ((name, getattr(reply, name)) for name in MotionParameters.__slots__)
        if problem := non_finite(named):
            self._buffer.clear()
            self._failure = f"In the autopilot's answer, {problem}"
            raise RemoteProtocolError(self._failure)
        self.awaits_reply = False
        return reply
