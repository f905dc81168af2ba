# SPDX-License-Identifier: Apache-2.0
"""PaveReader: frames of an AR.Drone 2's video stream, each with a head `PaVE`.

The head has 64 or 68 bytes, by its own field, and names the size of the payload, so that a frame is read without
looking into it. Bytes that belong to no frame, as after a connection in the middle of one, are skipped and counted.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum

from drone_bridge.wire.events import LocalProtocolError

SIGNATURE = b"PaVE"
_HEAD = struct.Struct("<4sBBHIHHHHIIBBBBIIHBBBB2xI")
HEAD_BYTES = (64, 68)
_LONGEST_HEAD = 512
MAX_PAYLOAD_BYTES = 1 << 20


class VideoCodec(IntEnum):
    """Codecs of a payload."""

    UVLC = 1
    P264 = 2
    MPEG4 = 3
    H264 = 4


class FrameType(IntEnum):
    """Types of a frame."""

    IDR = 1  # needs no other frame, and has the decoder's headers
    INTRA = 2
    PREDICTED = 3
    HEADERS = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """Frame of a video stream."""

    codec: int
    width: int  # pixels
    height: int  # pixels
    number: int
    time_ms: int  # by the camera's clock
    type: int
    stream: int  # changes with codec, camera and resolution
    payload: bytes
    version: int = 2
    is_announcement: bool = False  # without data
    is_last: bool = False  # of the stream


class PaveReader:
    """Reader of a stream, which is split anywhere. It never holds more than one frame."""

    def __init__(self) -> None:
        #: Number of bytes that belong to no frame.
        self.skipped = 0
        self._data = bytearray()

    def receive(self, data: bytes | bytearray | memoryview) -> Iterator[Frame]:
        """Yield the frames that these bytes complete."""
        self._data += data
        while True:
            at = self._data.find(SIGNATURE)
            self._skip(at if at >= 0 else len(self._data) - _partial(self._data))
            if len(self._data) < HEAD_BYTES[0]:
                return
            head = _HEAD.unpack_from(self._data)
            head_bytes, payload_bytes = head[3], head[4]
            if not HEAD_BYTES[0] <= head_bytes <= _LONGEST_HEAD or payload_bytes > MAX_PAYLOAD_BYTES:
                self._skip(len(SIGNATURE))
                continue
            if len(self._data) < head_bytes + payload_bytes:
                return
            payload = bytes(memoryview(self._data)[head_bytes : head_bytes + payload_bytes])
            del self._data[: head_bytes + payload_bytes]
            yield _frame(head, payload)

    def _skip(self, count: int) -> None:
        self.skipped += count
        del self._data[:count]


def _partial(data: bytearray) -> int:
    """Return how many bytes at the end may begin a signature."""
    return next((size for size in range(len(SIGNATURE) - 1, 0, -1) if data.endswith(SIGNATURE[:size])), 0)


def _frame(head: tuple[int, ...], payload: bytes) -> Frame:
    _, version, codec, _, _, _, _, width, height, number, time_ms, _, _, kind, control, _, _, stream, *_ = head
    flags = {"is_announcement": control == 1, "is_last": control == 2}
    return Frame(codec, width, height, number, time_ms, kind, stream, payload, version, **flags)


def write_frame(frame: Frame, head_bytes: int = HEAD_BYTES[1]) -> bytes:
    """Return a frame with its head. Raises LocalProtocolError."""
    sps, pps = (14, 10) if frame.type == FrameType.IDR else (0, 0)
    control = 1 if frame.is_announcement else 2 if frame.is_last else 0
    coded_height = -(-frame.height // 16) * 16
    if len(frame.payload) > MAX_PAYLOAD_BYTES:
        raise LocalProtocolError(f"A frame has {len(frame.payload)} bytes, and {MAX_PAYLOAD_BYTES} are allowed.")
    try:
        head = _HEAD.pack(
            *(SIGNATURE, frame.version, frame.codec, head_bytes, len(frame.payload), frame.width, coded_height),
            *(frame.width, frame.height, frame.number, frame.time_ms, 1, 0, frame.type, control, 0, 0),
            *(frame.stream, 1, 0, sps, pps, len(frame.payload)),
        )
    except (struct.error, TypeError) as error:
        raise LocalProtocolError(f"A frame can't be sent: {error}.") from error
    return head.ljust(head_bytes, b"\0") + frame.payload
