# SPDX-License-Identifier: Apache-2.0
"""The autopilot's end of a conversation in the testbed protocol."""

import math
from array import array
from collections import deque
from typing import Final

from drone_bridge.testbed.codec import layouts
from drone_bridge.testbed.codec.messages import (
    AngleUnit,
    AttitudeLayout,
    Constants,
    Limits,
    MotionParameters,
    SensorFrame,
    SimulationRestarted,
    implausible_constants,
    implausible_floats,
)
from drone_bridge.testbed.codec.packing import CONSTANTS, pack_reply
from drone_bridge.wire.events import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    RemoteProtocolError,
)

#: What is taken ahead for a frame before a whole one has come: 49 bytes can announce one of 64 MiB and begin it.
_AHEAD_BYTES: Final = 1 << 20


def _new_image(size: int) -> "array[int]":
    return array("B", bytes(size))


class AutopilotConnection(EventSource[Constants | SimulationRestarted | SensorFrame | ConnectionClosed]):
    """The autopilot's side: constants and frames come in, motion parameters go out.

    Bytes come either through `receive_data`, or without a copy through `get_buffers` (or `get_buffer`) and
    `buffer_updated`, which hand out the memory of the very images that the next bytes belong to. `next_event` then
    gives `Constants` once, `SensorFrame`s, `ConnectionClosed` at the end, and `NEED_DATA` whenever it has to wait.

    Without a `layout` it is decided from the first frame, as in `layouts`: the caller reports by `peer_waits` that
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
        self._floats = layouts.floats_of(layout or AttitudeLayout.POSE)
        self._float_names = (layout or AttitudeLayout.POSE).floats
        self._floats_before = b""  # of the last frame
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
        self._finished = False

    @property
    def inside_message(self) -> bool:
        """Whether the peer owes us the rest of its constants or of a frame. Between frames it may pause."""
        return self._constants is None or 0 < self._missing < self._size or bool(self._surplus)

    @property
    def silence_decides(self) -> bool:
        """Whether the frame may be complete: `peer_waits` is to be called if nothing follows."""
        return self.layout is None and len(self._after_images()) in (layouts.SHORT_BYTES, layouts.POSE_BYTES)

    @property
    def layout_hint(self) -> str:
        """What the bytes after the images would mean in each layout, for error messages; may be empty."""
        after_images = self._after_images()
        if after_images and self._frames and self._floats.size == layouts.SHORT_BYTES:
            # If the frames are longer than thought, the rest of the last one stands where an image should begin.
            rest = layouts.POSE_BYTES - layouts.SHORT_BYTES
            after_images = self._floats_before + bytes(memoryview(self._images[0])[:rest])
        return layouts.describe(after_images) if after_images else ""

    @property
    def must_answer(self) -> bool:
        """Whether the testbed is waiting for an answer."""
        return self._unanswered > 0 and not self._finished

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

    @property
    def pixel_bytes_ahead(self) -> int:
        """How many of the bytes that belong into what `get_buffers` returned are pixels; they come first."""
        return 0 if self._constants is None else max(0, self._missing - len(self._scalars))

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
        if self.layout is None and len(self._after_images()) >= layouts.POSE_BYTES:
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
        """Return the bytes of the last answer, after which nothing can be sent.

        It answers the pending frame or, ahead of time, the next one: a testbed reads it when it has sent that frame. So
        an autopilot can leave a safe command behind at any moment.
        """
        data = pack_reply(event)
        if self._finished or self._constants is None:
            raise LocalProtocolError("A last answer is possible once, after the constants have come.")
        self._finished = True
        return data

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
            self.layout = layouts.decide(after_images, is_followed_by_silence, self._angle_unit)
        except ValueError as error:
            self._failure = str(error)
        if self.layout is None:
            return
        self._floats, self._float_names = layouts.floats_of(self.layout), self.layout.floats
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
        self._scalars = bytearray(self._floats.size if self.layout else layouts.SURPLUS_BYTES)
        self._size = 2 * constants.image_bytes + len(self._scalars)
        return constants

    def _read_frame(self) -> SensorFrame:
        floats = dict(zip(self._float_names, self._floats.unpack(self._scalars), strict=True))
        if problem := implausible_floats(floats, self._angle_unit, self._time):
            raise RemoteProtocolError(f"In the testbed's frame {self._frames}, {problem}")
        self._frames += 1
        self._unanswered += 1
        time = floats["time"]
        if time < self._time:
            self._events.append(SimulationRestarted(self._time))
        self._time = time
        self._floats_before = bytes(self._scalars)
        if self.layout is not AttitudeLayout.POSE:
            return SensorFrame(*self._images, position=None, **floats)
        position = floats.pop("x"), floats.pop("y"), floats.pop("z")
        return SensorFrame(*self._images, position=position, yaw=floats.pop("heading"), **floats)
