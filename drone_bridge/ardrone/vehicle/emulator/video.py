# SPDX-License-Identifier: Apache-2.0
"""Video of the emulated drone: drawn from its pose, or captured frames of a real one, for one client at a time.

An AR.Drone 2 sends frames over TCP, and closes the connection in an emergency. An AR.Drone 1 sends a picture per
datagram to the client that has asked last. See `ar_drone.video_sender` for the thread.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
from pathlib import Path
from typing import Any

from drone_bridge.ar_drone.cameras import DOWN_2, FRONT_2
from drone_bridge.ar_drone.drawn_pictures import DRAWN_RATE
from drone_bridge.ar_drone.flight import View
from drone_bridge.ardrone.codec import Frame, FrameType, PaveReader, VideoCodec, write_frame
from drone_bridge.ardrone.vehicle.emulator.ipcm_h264 import IpcmEncoder
from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.tcp import listening_socket
from drone_bridge.vision.floor_view import FloorView
from drone_bridge.vision.picture_camera import PictureCamera

#: Pictures per second of an AR.Drone 2.
CAPTURED_RATE = 30.0
#: Frames from one that needs no other to the next.
GROUP = 15
SEND_TIMEOUT_S = 1.0


class DrawnFrames:
    """Frames of an AR.Drone 2."""

    rate = DRAWN_RATE

    def __init__(self, seed: int) -> None:
        self._cv2: Any = importlib.import_module("cv2")
        self._cv2.setNumThreads(1)  # waking other threads costs more than it gains for small images
        self._views = {camera: FloorView(camera, seed) for camera in (FRONT_2, DOWN_2)}
        self._camera: PictureCamera | None = None
        self._number = self._stream = self._left = 0

    def next(self, view: View) -> bytes:
        camera = DOWN_2 if view.is_down else FRONT_2
        if camera is not self._camera:
            self._camera, self._stream, self._left = camera, self._stream + 1, 0
            self._encoder = IpcmEncoder(camera.width, camera.height)
        is_idr = self._left == 0
        self._left = GROUP - 1 if is_idr else self._left - 1
        self._number += 1
        drawn = self._views[camera].draw(view.position, view.rotation)
        samples = self._cv2.cvtColor(drawn, self._cv2.COLOR_BGR2YUV_I420).reshape(-1)
        luma, chroma = camera.width * camera.height, camera.width * camera.height // 4
        y = samples[:luma].reshape(camera.height, camera.width)
        cb, cr = (
            samples[begin : begin + chroma].reshape(camera.height // 2, camera.width // 2)
            for begin in (luma, luma + chroma)
        )
        kind = FrameType.IDR if is_idr else FrameType.PREDICTED
        payload = self._encoder.encode(y, cb, cr, is_idr=is_idr)
        time_ms = round(1000 * self._number / self.rate)
        frame = Frame(VideoCodec.H264, camera.width, camera.height, self._number, time_ms, kind, self._stream, payload)
        return write_frame(frame)


class CapturedFrames:
    """Frames of a real AR.Drone 2, over and over."""

    rate = CAPTURED_RATE

    def __init__(self, path: Path) -> None:
        """Read the file. Raises OSError, and LinkError for a file without frames."""
        self._frames = list(PaveReader().receive(path.read_bytes()))
        if not self._frames:
            raise LinkError(f"{path} has no frames of an AR.Drone 2.")
        self._sent = 0

    def next(self, view: View) -> bytes:
        frame = self._frames[self._sent % len(self._frames)]
        self._sent += 1
        return write_frame(frame)


class StreamOutlet:
    """TCP port."""

    def __init__(self, host: str, number: int) -> None:
        """Listen. Raises LinkError."""
        self._listening = listening_socket(host, number, backlog=2)
        self._listening.setblocking(False)
        self._client: socket.socket | None = None

    @property
    def has_client(self) -> bool:
        return self._client is not None

    def fileno(self) -> int:
        return self._listening.fileno()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            client = self._listening.accept()[0]
            self.leave()
            client.settimeout(SEND_TIMEOUT_S)
            self._client = client

    def send(self, data: bytes) -> None:
        try:
            if self._client:
                self._client.sendall(data)
        except OSError:  # it has gone, or does not read
            self.leave()

    def leave(self) -> None:
        if self._client:
            self._client.close()
        self._client = None

    def close(self) -> None:
        self.leave()
        self._listening.close()


class DatagramOutlet:
    """UDP port."""

    def __init__(self, host: str, number: int) -> None:
        """Bind the port. Raises LinkError."""
        self._port = DatagramPort(host, number)
        self._client: Any = None

    @property
    def has_client(self) -> bool:
        return self._client is not None

    def fileno(self) -> int:
        return self._port.files()[0].fileno()

    def accept(self) -> None:
        with contextlib.suppress(LinkError):
            if received := self._port.receive():
                self._client = received.source

    def send(self, data: bytes) -> None:
        with contextlib.suppress(LinkError):
            self._port.send(data, self._client)

    def leave(self) -> None:
        self._client = None

    def close(self) -> None:
        self._port.close()
