# SPDX-License-Identifier: Apache-2.0
"""Video of the emulated drone: drawn from its pose, or captured frames of a real one, for one client at a time.

An AR.Drone 2 sends frames over TCP, and closes the connection in an emergency. An AR.Drone 1 sends a picture per
datagram to the client that has asked last. A thread draws and sends, so that the flight is not delayed.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from drone_bridge.ardrone.codec import Frame, FrameType, PaveReader, VideoCodec, write_frame
from drone_bridge.motion.ar_drone_flight import ArDroneFlight
from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.net.connector import Cancellation, LinkError, wait_readable
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.net.tcp import listening_socket
from drone_bridge.vision.ar_drone_cameras import DOWN, DOWN_2, FRONT, FRONT_2, ArDroneCamera
from drone_bridge.vision.floor_view import FloorView
from drone_bridge.vision.ipcm_h264 import IpcmEncoder
from drone_bridge.vision.uvlc import encode

#: Pictures per second: drawn ones, and those of an AR.Drone 2.
DRAWN_RATE, CAPTURED_RATE = 15.0, 30.0
#: Frames from one that needs no other to the next.
GROUP = 15
SEND_TIMEOUT_S = 1.0
#: Period of the checks whether there is a view.
FIRST_VIEW_S = 0.1


class View(NamedTuple):
    """What the cameras see, and the drone's state."""

    is_down: bool  # the downward camera is chosen
    position: Vector
    rotation: Matrix
    is_stopped: bool  # by an emergency


class Pictures(Protocol):
    """Pictures as they are sent."""

    rate: float  # pictures per second

    def next(self, view: View) -> bytes:
        """Return the next picture."""


class DrawnFrames:
    """Frames of an AR.Drone 2."""

    rate = DRAWN_RATE

    def __init__(self, seed: int) -> None:
        self._cv2: Any = importlib.import_module("cv2")
        self._cv2.setNumThreads(1)  # waking other threads costs more than it gains for small images
        self._views = {camera: FloorView(camera, seed) for camera in (FRONT_2, DOWN_2)}
        self._camera: ArDroneCamera | None = None
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


class DrawnDatagrams:
    """Pictures of an AR.Drone 1."""

    rate = DRAWN_RATE

    def __init__(self, seed: int) -> None:
        self._cv2: Any = importlib.import_module("cv2")
        self._views = {camera: FloorView(camera, seed) for camera in (FRONT, DOWN)}
        self._number = 0

    def next(self, view: View) -> bytes:
        self._number += 1
        drawn = self._views[DOWN if view.is_down else FRONT].draw(view.position, view.rotation)
        image = self._cv2.cvtColor(drawn, self._cv2.COLOR_BGR2RGB)
        return encode(np.asarray(image, np.uint8), number=self._number)


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


class VideoOutlet(Protocol):
    """Where pictures are sent."""

    @property
    def has_client(self) -> bool:
        """Whether pictures are sent to a client."""

    def fileno(self) -> int:
        """Return the descriptor that becomes readable with a client."""

    def accept(self) -> None:
        """Take a client that waits, in place of another one."""

    def send(self, data: bytes) -> None:
        """Send a picture."""

    def leave(self) -> None:
        """End the connection of a client."""

    def close(self) -> None:
        """Close it."""


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


class ArdroneVideoSender:
    """Thread that draws and sends."""

    def __init__(self, outlet: VideoOutlet, pictures: Callable[[], Pictures], report: Callable[[str], None]) -> None:
        """Start the thread. `close` stops it, and closes the outlet.

        Args:
            outlet: where pictures are sent.
            pictures: creates them for the first client, since OpenCV and the ground take seconds on a busy machine.
            report: gets a line per change.
        """
        self._outlet, self._make_pictures, self._report = outlet, pictures, report
        self._view: View | None = None
        self._cancellation = Cancellation()
        self._thread = threading.Thread(target=self._run, name="video", daemon=True)
        self._thread.start()

    def show(self, flight: ArDroneFlight, channel: str, is_stopped: bool) -> None:
        """Draw the next picture from here, by the setting of the camera, unless it is stopped."""
        self._view = View(channel == "1", flight.position.copy(), flight.rotation, is_stopped)

    def close(self) -> None:
        self._cancellation.cancel()
        self._thread.join()
        self._cancellation.close()
        self._outlet.close()

    def _run(self) -> None:
        outlet, due_s, had_client = self._outlet, 0.0, False
        pictures: Pictures | None = None
        while not self._cancellation.is_set:
            left_s = max(due_s - time.monotonic(), 0.0) if outlet.has_client else None
            ready = wait_readable([self._cancellation, outlet], left_s)
            if ready[1]:
                outlet.accept()
            view, now_s = self._view, time.monotonic()
            if view is None:
                due_s = now_s + FIRST_VIEW_S
            elif view.is_stopped:
                outlet.leave()
            elif outlet.has_client and now_s >= due_s:
                pictures = pictures or self._make_pictures()
                due_s = max(due_s + 1 / pictures.rate, now_s)
                outlet.send(pictures.next(view))
            if outlet.has_client != had_client:
                had_client = outlet.has_client
                self._report("video: a client" if had_client else "video: no client")
