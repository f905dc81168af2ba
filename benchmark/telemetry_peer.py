# SPDX-License-Identifier: Apache-2.0
"""Drone and rover that send the same documents repeatedly, except for the timestamp."""

import base64
import contextlib
import socket
import time

import cv2
import numpy as np
import orjson

WIDTH = 320  # pixels
HEIGHT = 240
JPEG_QUALITY = 70
IMAGE_BYTES = 10_000  # about
ROVER_EVERY = 10  # documents of the drone to one of the rover
LARGEST_COMMAND = 65535
_TIMESTAMP = b"1234567.890123456"  # s, replaced in each document


class Peer:
    """Sends to one UDP port of this machine."""

    def __init__(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])  # free, so that the other side can bind it
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._drone = drone_document(jpeg()).split(_TIMESTAMP)
        self._rover = rover_document().split(_TIMESTAMP)

    def send(self, number: int) -> None:
        """Send the drone's document, and some of the rover's, with CLOCK_MONOTONIC as the timestamp."""
        if number % ROVER_EVERY == 0:
            self._send(self._rover)
        self._send(self._drone)

    def close(self) -> None:
        self._socket.close()

    def _send(self, parts: list[bytes]) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._socket.recv(LARGEST_COMMAND, socket.MSG_DONTWAIT):
                pass  # commands
        self._socket.sendto(f"{time.monotonic():.9f}".encode().join(parts), ("127.0.0.1", self.port))


def jpeg() -> bytes:
    """Return an image of ground with enough detail for the size."""
    random = np.random.default_rng(1)
    ground = cv2.resize(random.uniform(60, 180, (12, 16, 3)), (WIDTH, HEIGHT), interpolation=cv2.INTER_CUBIC)
    detail = random.normal(0.0, 1.0, (HEIGHT, WIDTH, 3))
    for contrast in np.arange(1.0, 40.0, 0.25):
        pixels = np.clip(ground + contrast * detail, 0, 255).astype(np.uint8)
        encoded = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])[1].tobytes()
        if len(encoded) >= IMAGE_BYTES:
            break
    return encoded


def drone_document(image: bytes) -> bytes:
    """Return the document of a drone over a pad, without white space."""
    return _document(
        {
            "imu": {
                "orientation": {"roll": 0.01234, "pitch": -0.02345, "yaw": 1.23456},
                "angular_velocity": {"x": 0.00123, "y": -0.00234, "z": 0.00345},
                "linear_acceleration": {"x": 0.01234, "y": -0.02345, "z": 9.81},
            },
            "altimeter": {"altitude": 5.01234, "vertical_velocity": -0.12345},
            "velocity": {"x": 0.12345, "y": -0.01234, "z": -0.12345},
            "landing_pad": {"relative_x": 0.51234, "relative_y": -0.21234, "distance": 4.51234, "confidence": 0.85},
            "camera": {
                "width": WIDTH,
                "height": HEIGHT,
                "fov": 60.0,
                "image": base64.b64encode(image).decode(),
            },
            "landed": False,
        }
    )


def rover_document() -> bytes:
    """Return the document of a rover that drives in a circle."""
    return _document(
        {
            "position": {"x": 1.51234, "y": 0.81234, "z": 0.15},
            "velocity": {"x": 0.31234, "y": 0.41234, "z": 0.0},
            "pattern": "circular",
        }
    )


def _document(fields: dict[str, object]) -> bytes:
    return orjson.dumps(fields)[:-1] + b',"timestamp":' + _TIMESTAMP + b"}"
