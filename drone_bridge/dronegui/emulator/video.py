# SPDX-License-Identifier: Apache-2.0
"""Video of the emulated drone's camera, drawn from its pose and sent like the GUI forwards it."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import cv2
import numpy as np

from drone_bridge.motion.ar_drone_flight import ArDroneFlight
from drone_bridge.motion.matrices import Matrix, Vector
from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import DatagramPort
from drone_bridge.programs.bad_network import BadNetwork
from drone_bridge.vision.ar_drone_cameras import DOWN, FRONT, ArDroneCamera
from drone_bridge.vision.floor_view import FloorView
from drone_bridge.vision.uvlc import encode
from drone_bridge.wire.rate_limit import RateLimit

VIDEO_RATE = 15.0  # pictures per second


class Shot(NamedTuple):
    """View of the next picture, and the addresses of its receivers."""

    camera: ArDroneCamera
    position: Vector
    rotation: Matrix
    receivers: Sequence[Any]


class GuiVideoSender:
    """Draws, encodes and sends in its own thread, so that the flight is not delayed."""

    def __init__(
        self, camera: ArDroneCamera, outlet: DatagramPort, port: int, network: BadNetwork[bytes], seed: int
    ) -> None:
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

    def show(self, flight: ArDroneFlight, receivers: Sequence[Any]) -> None:
        """Send a picture of the current view to these hosts. It replaces a picture that is not drawn yet."""
        self._next = Shot(self._camera, flight.position.copy(), flight.rotation, receivers)
        self._wakeup.set()

    def switch(self) -> ArDroneCamera:
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
        views, number = functools.cache(functools.partial(FloorView, seed=self._seed)), 0
        while not self._is_over:
            self._wakeup.wait()
            self._wakeup.clear()
            if shot := self._next:
                number += 1
                drawn = views(shot.camera).draw(shot.position, shot.rotation)
                image = cv2.cvtColor(drawn, cv2.COLOR_BGR2RGB)
                self._send(encode(np.asarray(image, np.uint8), number=number), shot.receivers)

    def _send(self, packet: bytes, receivers: Sequence[Any]) -> None:
        for arriving in self._network.carry(packet):
            for host, _, *rest in receivers:
                with contextlib.suppress(LinkError):  # it may be reachable for the next one
                    self._outlet.send(arriving, (host, self._port, *rest))
