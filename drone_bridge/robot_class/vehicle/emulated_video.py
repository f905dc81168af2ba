# SPDX-License-Identifier: Apache-2.0
"""EmulatedVideo: what the camera of an emulated robot sees, sent as H.264 by PyAV and OpenCV, which are optional."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from drone_bridge.motion.matrices import rotation_from_angles
from drone_bridge.net.clock import elapsed_s
from drone_bridge.net.connector import Cancellation
from drone_bridge.net.datagram_sockets import bound_socket
from drone_bridge.robot_class.camera import camera_of
from drone_bridge.robot_class.transports import Camera
from drone_bridge.robot_class.vehicle.body import EmulatedBody
from drone_bridge.vision.floor_view import FloorView

RATE, BITS_PER_S, DATAGRAM_BYTES = 30, 2_000_000, 1460
#: Drawing takes longer than encoding: pictures are drawn smaller, and sent several times. Programs probe for a rate.
REDUCTION, REPEATS = 2, 3
OPTIONS = {"preset": "ultrafast", "tune": "zerolatency", "x264-params": "repeat-headers=1:slices=1:log-level=none"}


class EmulatedVideo:
    """Thread that draws, encodes and sends while there is a viewer."""

    def __init__(self, camera: Camera, body: EmulatedBody, host: str, port: int, viewer: Callable[[], str]) -> None:
        """Start the thread. `viewer` returns the host of a client that has asked for it, or "".

        Raises LinkError and ImportError.
        """
        self._camera, self._body, self._port, self._viewer = camera, body, port, viewer
        self._av: Any = importlib.import_module("av")
        self._cv2: Any = importlib.import_module("cv2")
        self._socket, self._cancellation = bound_socket(host, 0), Cancellation()
        self._thread = threading.Thread(target=self._run, name="video", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._cancellation.cancel()
        self._thread.join()
        self._socket.close()

    def _run(self) -> None:
        pictures: Iterator[bytes] | None = None
        due_s = elapsed_s()
        while not self._cancellation.wait(max(0.0, due_s - elapsed_s())):
            viewer, due_s = self._viewer(), max(due_s + 1 / RATE, elapsed_s())
            pictures = (pictures or self._encoded()) if viewer else None
            data = next(pictures) if pictures else b""
            for begin in range(0, len(data), DATAGRAM_BYTES):
                with contextlib.suppress(OSError):
                    self._socket.sendto(data[begin : begin + DATAGRAM_BYTES], (viewer, self._port))

    def _encoded(self) -> Iterator[bytes]:
        """Yield pictures. The first one, and one in two seconds, needs no other."""
        camera, body = self._camera, self._body
        view = FloorView(camera_of(camera, "", camera.width // REDUCTION, camera.height // REDUCTION), seed=1)
        encoder = self._av.CodecContext.create("libx264", "w")
        encoder.width, encoder.height, encoder.pix_fmt = camera.width, camera.height, "yuv420p"
        encoder.bit_rate, encoder.gop_size = BITS_PER_S, 2 * RATE
        encoder.time_base, encoder.options = Fraction(1, RATE), OPTIONS
        while True:
            attitude = rotation_from_angles(body.roll, body.pitch, body.heading)
            drawn = view.draw(np.array([body.x, body.y, body.z]), attitude)
            pixels = self._cv2.resize(drawn, (camera.width, camera.height))
            for _ in range(REPEATS):
                yield b"".join(map(bytes, encoder.encode(self._av.VideoFrame.from_ndarray(pixels, "bgr24"))))
