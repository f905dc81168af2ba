# SPDX-License-Identifier: Apache-2.0
"""DroneVideo: a drone's video as the kit `pictures` reads it, and which camera it is of.

An AR.Drone 2 has one client of its video at a time, and stops it at an emergency and when its codec changes. So the
connection is closed while nobody wants pictures, and made again after SILENCE_S without a frame and after an emergency.
An AR.Drone 1 sends each picture in a datagram of its own, after one of ours, which is repeated in a silence.

Nothing in the video of an AR.Drone 2 names the camera. The drone begins a new stream when it switches, so that the
camera of the setting is that of the pictures from the first frame of the next stream on.
"""

import contextlib
import errno
import math
import socket
from collections.abc import Callable

from drone_bridge.ar_drone.cameras import UVLC_WORK
from drone_bridge.ardrone.codec import WAKE_UP, Frame, FrameType, PaveReader, VideoCodec
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import RECEIVED, SENT, MakeTap, no_log
from drone_bridge.pictures.source import H264, NOTHING, ReadResult, VideoFrame
from drone_bridge.pictures.video_port import VIDEO
from drone_bridge.wire.addresses import peer_name

#: Transport of a stream in the wire log.
STREAM = "tcp video"
UVLC = f"{UVLC_WORK}:decode"
#: Time without a frame after which the video is asked for again, s.
SILENCE_S = 1.0
CHUNK_BYTES = 1 << 16
#: Most bytes that are read at a time, and dropped after a stall.
MAX_READ_BYTES, MAX_STALE_BYTES = 1 << 20, 1 << 23
MAX_DATAGRAMS = 64
MAX_DATAGRAM_BYTES = 1 << 16


class DroneVideo:
    """Video of one drone. Single-threaded."""

    peer, problem = "the drone", ""
    advice = "restart it, if none comes: the connection is retried each second"

    def __init__(
        self,
        host: Callable[[], str],
        port: int,
        *,
        version: Callable[[], int],
        camera: Callable[[], str],
        is_ready: Callable[[], bool],
        is_emergency: Callable[[], bool],
        wire_log: MakeTap | None = None,
    ) -> None:
        """Start closed.

        Args:
            host: returns the drone's address, empty while unknown.
            port: its port for video.
            version: returns the drone's version, 1 or 2.
            camera: returns the name of the camera by the drone's setting.
            is_ready: returns whether the drone has its settings.
            is_emergency: returns whether it reports an emergency.
            wire_log: log for bytes.
        """
        self._host, self._port, self._version = host, port, version
        self._camera, self._is_ready, self._is_emergency = camera, is_ready, is_emergency
        self._wire_log = wire_log or no_log
        self._tap = no_log("", "", "")
        self._socket: socket.socket | None = None
        self._is_stream = True  # over TCP
        self._reader = PaveReader()
        self._frame_at = -math.inf  # time of the last frame, or of the last try
        self._was_emergency = False
        self._stream: int | None = None
        self._shown = ""  # camera of this stream

    @property
    def is_open(self) -> bool:
        return self._socket is not None

    @property
    def left_s(self) -> float:
        return 0.0

    def fileno(self) -> int:
        assert self._socket
        return self._socket.fileno()

    def keep_open(self, is_wanted: bool) -> None:
        """See PictureSource."""
        is_emergency = self._is_emergency()
        if self._was_emergency and not is_emergency:
            self._frame_at = -math.inf
        self._was_emergency = is_emergency
        if not is_wanted:
            self.close()
            self._frame_at = -math.inf
            return
        now_s = elapsed_s()
        if now_s < self._frame_at + SILENCE_S or not (host := self._host()) or not self._is_ready():
            return
        self.close()
        self._frame_at, self._is_stream = now_s, self._version() != 1
        with contextlib.suppress(OSError):
            self._open(host)

    def take(self, rate_hz: float) -> ReadResult:
        """See PictureSource. All frames are read, as each needs the one before."""
        if not self._socket:
            return NOTHING
        frames = self._read_stream(MAX_READ_BYTES) if self._is_stream else self._read_datagrams()
        if frames:
            self._frame_at = elapsed_s()
        return ReadResult(frames, len(frames), 0, "")

    def drop(self) -> int:
        """See PictureSource."""
        return len(self._read_stream(MAX_STALE_BYTES) if self._is_stream else self._read_datagrams())

    def close(self) -> None:
        if self._socket:
            self._socket.close()
        self._socket, self._stream, self._reader = None, None, PaveReader()

    def _open(self, host: str) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM if self._is_stream else socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        if self._socket.connect_ex((host, self._port)) not in (0, errno.EINPROGRESS):
            self.close()
            return
        ends = peer_name(self._socket.getsockname()), peer_name((host, self._port))
        self._tap = self._wire_log(STREAM if self._is_stream else VIDEO, *ends)
        if not self._is_stream:
            self._socket.send(WAKE_UP)
            self._tap(SENT, WAKE_UP)

    def _read_stream(self, most_bytes: int) -> list[VideoFrame]:
        frames: list[VideoFrame] = []
        for _ in range(most_bytes // CHUNK_BYTES):
            if (chunk := self._receive(CHUNK_BYTES)) is None:
                break
            if not chunk:
                self.close()
                break
            frames += [self._made(frame) for frame in self._reader.receive(chunk) if _has_picture(frame)]
        return frames

    def _read_datagrams(self) -> list[VideoFrame]:
        """Return the newest picture."""
        newest: bytes | None = None
        for _ in range(MAX_DATAGRAMS):
            if (datagram := self._receive(MAX_DATAGRAM_BYTES)) is None:
                break
            newest = datagram
        return [VideoFrame(newest, UVLC)] if newest else []

    def _receive(self, most_bytes: int) -> bytes | None:
        """Return bytes, none at the end of the stream; None if nothing waits."""
        if not self._socket:
            return None
        try:
            data = self._socket.recv(most_bytes)
            self._tap(RECEIVED, data)
            return data
        except (BlockingIOError, InterruptedError):
            return None
        except OSError:  # refused, or reset
            self.close()
            return None

    def _made(self, frame: Frame) -> VideoFrame:
        if frame.stream != self._stream:
            self._stream, self._shown = frame.stream, self._camera()
        if frame.codec == VideoCodec.UVLC:
            return VideoFrame(frame.payload, UVLC)
        is_key = frame.type == FrameType.IDR
        return VideoFrame(frame.payload, H264, self._shown, is_key, frame.number, frame.stream)


def _has_picture(frame: Frame) -> bool:
    return bool(frame.payload) and not frame.is_announcement and frame.type != FrameType.HEADERS
