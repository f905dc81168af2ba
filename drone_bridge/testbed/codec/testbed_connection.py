# SPDX-License-Identifier: Apache-2.0
"""The testbed's end of a conversation in the testbed protocol."""

import math

from drone_bridge.testbed.codec import layouts
from drone_bridge.testbed.codec.messages import (
    AngleUnit,
    AttitudeLayout,
    Constants,
    Limits,
    MotionParameters,
    SensorFrame,
    implausible_constants,
    implausible_floats,
    non_finite,
)
from drone_bridge.testbed.codec.packing import CONSTANTS, REPLY, constant_values, pack
from drone_bridge.wire.events import (
    NEED_DATA,
    ConnectionClosed,
    EventSource,
    LocalProtocolError,
    NeedData,
    RemoteProtocolError,
)


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
        self._floats = layouts.floats_of(layout)
        self._constants: Constants | None = None
        self._buffer = bytearray()
        self._failure = ""
        self._ended = False
        self._has_told_end = False
        self._time = -math.inf
        self._awaits_reply = False

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
        if self._awaits_reply:
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
        read = dict(zip(self._layout.floats, self._floats.unpack(floats), strict=True))
        if complaint := implausible_floats(read, self._angle_unit, self._time):
            raise LocalProtocolError(complaint)
        self._time = read["time"]
        self._awaits_reply = True
        return [*images, memoryview(floats)]

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Receive bytes. An answer may come ahead of its frame; a second one may not."""
        if self._failure:
            return
        self._buffer += memoryview(data)[: 2 * REPLY.size + 1 - len(self._buffer)]
        if len(self._buffer) > (1 + self._awaits_reply) * REPLY.size:
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
        if self._awaits_reply and len(self._buffer) >= REPLY.size:
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
        self._awaits_reply = False
        return reply
