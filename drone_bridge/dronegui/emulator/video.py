# SPDX-License-Identifier: Apache-2.0
"""Video of the emulated drone's camera, drawn from its pose and sent like the GUI forwards it.

The forward camera sees the ground up to the horizon, in haze, and the tag that its navdata detects. The downward camera
sees only the ground.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np

from drone_bridge.dronegui.cameras import DOWN, FRONT, Camera
from drone_bridge.dronegui.emulator.flight import Flight
from drone_bridge.dronegui.emulator.navdata import TAG_POSITION_M, TAG_SIZE_M
from drone_bridge.dronegui.video import encode
from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.vision.drawn_camera import DOWNWARD, FORWARD, DrawnCamera
from drone_bridge.vision.drawn_marker import draw_marker
from drone_bridge.vision.surfaces import FACING_BACK, Colour, Image, Surface, ground
from drone_bridge.wire.rate_limit import RateLimit

VIDEO_RATE = 15.0  # pictures per second
#: Height of both cameras above the drone's feet, m.
CAMERA_HEIGHT = 0.1
SKY: Colour = (214, 198, 178)
HAZE = 12.0  # distance at which a third of the contrast is left, m
#: Reduction of the ground's resolution, as most of it is far away.
COARSER_AHEAD = 4.0
TAG_DICTIONARY, TAG_IDENTITY, TAG_PIXELS = "DICT_4X4_50", 7, 96
#: Width of the marker with its margin, cells.
TAG_CELLS, MARGIN_CELLS = 6, 1


class Scenery:
    """View of one of the cameras."""

    def __init__(self, camera: Camera, seed: int) -> None:
        is_down = camera is DOWN
        optical = DOWNWARD if is_down else FORWARD
        self._camera = DrawnCamera(camera.width, camera.height, camera.focal_length, optical)
        self._ground = ground(seed)
        self._coarser = 1.0 if is_down else COARSER_AHEAD
        margin = TAG_PIXELS * MARGIN_CELLS // TAG_CELLS
        marker = np.pad(draw_marker(TAG_DICTIONARY, TAG_IDENTITY, TAG_PIXELS), margin, constant_values=255)
        side = TAG_SIZE_M * (TAG_CELLS + 2 * MARGIN_CELLS) / TAG_CELLS
        self._tag = Surface(np.stack([marker] * 3, axis=2), side, side, directions=FACING_BACK)
        columns, rows = np.arange(camera.width, dtype=np.float32), np.arange(camera.height, dtype=np.float32)
        #: Homogeneous coordinates of each pixel, and the length of its ray at a depth of 1.
        self._pixels = (*np.meshgrid(columns, rows), np.float32(1.0))
        across, down = (size / 2 - 0.5 for size in (camera.width, camera.height))
        self._lengths = np.hypot(np.hypot(columns - across, (rows - down)[:, np.newaxis]) / camera.focal_length, 1.0)

    def draw(self, position: Vector, rotation: Matrix) -> Image:
        """Return a new image.

        Args:
            position: position of the drone in the world frame, m.
            rotation: rotation from the body frame to the world frame.
        """
        camera, eye = self._camera, position + np.array([0.0, 0.0, CAMERA_HEIGHT])
        view = camera.view(rotation)
        image: Image = np.empty((camera.height, camera.width, 3), np.uint8)
        self._ground.show(image, view, -eye, camera.focal_length, self._coarser)
        image = self._in_haze(image, view, float(eye[2]))
        towards_tag = np.array(TAG_POSITION_M) - eye
        if self._tag.is_ahead(view, towards_tag):
            self._tag.show(image, view, towards_tag, camera.focal_length)
        return image

    def _in_haze(self, image: Image, view: Matrix, height: float) -> Image:
        """Return the ground's image with haze, which covers everything above the horizon."""
        of_down = -np.linalg.inv(view)[2].astype(np.float32)  # descent of a pixel's ray at a depth of 1
        falls = sum(share * coordinate for share, coordinate in zip(of_down, self._pixels, strict=True))
        clear = np.exp(self._lengths * (-height / HAZE) / np.maximum(falls, 1e-6))[..., np.newaxis]
        sky = np.array(SKY, np.float32)
        hazy: Image = (sky + (image - sky) * clear.astype(np.float32)).astype(np.uint8)
        return hazy


class Shot(NamedTuple):
    """View of the next picture, and the addresses of its receivers."""

    camera: Camera
    position: Vector
    rotation: Matrix
    receivers: Sequence[Any]


class Video:
    """Draws, encodes and sends in its own thread, so that the flight is not delayed."""

    def __init__(self, camera: Camera, outlet: DatagramPort, port: int, network: BadNetwork[bytes], seed: int) -> None:
        """Start the thread, which sends from the outlet to this port of the receivers. `close` closes both."""
        self._camera, self._outlet, self._port, self._network, self._seed = camera, outlet, port, network, seed
        self._rate_limit = RateLimit()
        self._next: Shot | None = None
        self._wakeup = threading.Event()
        self._is_over = False
        self._thread = threading.Thread(target=self._run, name="video", daemon=True)
        self._thread.start()

    def is_due(self, now_s: float) -> bool:
        """Return whether a picture is due; true once per period."""
        return self._rate_limit.is_due(now_s, VIDEO_RATE)

    def show(self, flight: Flight, receivers: Sequence[Any]) -> None:
        """Send a picture of the current view to these hosts. It replaces a picture that is not drawn yet."""
        self._next = Shot(self._camera, flight.position.copy(), flight.rotation, receivers)
        self._wakeup.set()

    def switch(self) -> Camera:
        """Take the next pictures with the other camera, and return it."""
        self._camera = FRONT if self._camera is DOWN else DOWN
        return self._camera

    def close(self) -> None:
        self._is_over = True
        self._wakeup.set()
        self._thread.join()
        self._outlet.close()

    def _run(self) -> None:
        cv2.setNumThreads(1)  # waking other threads costs more than it gains for small images
        sceneries, number = functools.cache(functools.partial(Scenery, seed=self._seed)), 0
        while not self._is_over:
            self._wakeup.wait()
            self._wakeup.clear()
            if shot := self._next:
                number += 1
                drawn = sceneries(shot.camera).draw(shot.position, shot.rotation)
                image = cv2.cvtColor(drawn, cv2.COLOR_BGR2RGB)
                self._send(encode(np.asarray(image, np.uint8), number=number), shot.receivers)

    def _send(self, packet: bytes, receivers: Sequence[Any]) -> None:
        for arriving in self._network.carry(packet):
            for host, _, *rest in receivers:
                with contextlib.suppress(LinkError):  # it may be reachable for the next one
                    self._outlet.send(arriving, (host, self._port, *rest))
