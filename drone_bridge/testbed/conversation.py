# SPDX-License-Identifier: Apache-2.0
"""One conversation with each message of the protocol, and which of an operator's commands are neutral."""

import struct
from collections.abc import Callable, Iterator

from drone_bridge.kind import Sent, Side
from drone_bridge.testbed.codec import Constants, MotionParameters, SensorFrame

_MOTION_PARAMETERS = struct.Struct(">4f")
#: Largest yaw rate of a neutral command, degrees/s. A hovering drone uses the other axes to stay in place.
_HOVERING_RATE = 0.5


def conversation() -> tuple[Sent, ...]:
    """Return the constants and two frames with their answers, of 2 x 1 pixels; numbers are exact on the wire."""
    constants = Constants(90.0, 60.0, 2, 1, 0.25, 1.5, 9.75, 0.25, 25.0, 720.0, 360.0, 180.0)
    frames = (
        SensorFrame(bytes(range(6)), bytes(range(6, 12)), time, pitch, yaw=yaw)
        for time, pitch, yaw in ((0.25, 1.5, -2.5), (0.5, -12.0, 90.0))
    )
    answer = MotionParameters(1.5, -2.5, 90.0, 12.25)
    return (
        Sent(Side.VEHICLE, constants),
        *(sent for frame in frames for sent in (Sent(Side.VEHICLE, frame), Sent(Side.OPERATOR, answer))),
    )


def commands() -> Callable[[bytes], Iterator[bool]]:
    """Read answers to frames; those without a yaw rate are neutral, as a hovering drone leans against the wind.

    By their size alone: a connection reads no answer to a frame that it has not sent.
    """
    heard = bytearray()

    def read(data: bytes) -> Iterator[bool]:
        heard.extend(data)
        while len(heard) >= _MOTION_PARAMETERS.size:
            _, _, yaw_rate, _ = _MOTION_PARAMETERS.unpack_from(heard)
            del heard[: _MOTION_PARAMETERS.size]
            yield abs(yaw_rate) <= _HOVERING_RATE

    return read
