# SPDX-License-Identifier: Apache-2.0
"""A drone or rover for tests, which decide on every document, on a UDP port of this machine."""

import base64
import copy
import json

import cv2
import numpy as np
from processes import Process
from ros_session import wait_until
from udp_peer import UdpPeer

HOVER = {"thrust": 0.0, "pitch": 0.0, "roll": 0.0, "yaw": 0.0}
WIDTH, HEIGHT = 32, 24

DRONE = {
    "imu": {
        "orientation": {"roll": 0.1, "pitch": -0.2, "yaw": 0.3},
        "angular_velocity": {"x": 0.01, "y": 0.02, "z": 0.03},
        "linear_acceleration": {"x": 0.5, "y": -0.5, "z": 9.81},
    },
    "altimeter": {"altitude": 5.0, "vertical_velocity": -0.1},
    "velocity": {"x": 1.0, "y": -0.5, "z": -0.1},
    "landing_pad": {"relative_x": 0.5, "relative_y": -0.2, "distance": 4.5, "confidence": 0.85},
    "camera": {"width": WIDTH, "height": HEIGHT, "fov": 60.0, "image": None},
    "landed": False,
    "timestamp": 1.234,
}
ROVER = {
    "position": {"x": 1.5, "y": 0.8, "z": 0.15},
    "velocity": {"x": 0.3, "y": 0.4, "z": 0.0},
    "pattern": "circular",
    "timestamp": 1.234,
}


def jpeg(width=WIDTH, height=HEIGHT):
    """Return a picture that is red above and blue below."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, :, 2] = 255
    pixels[height // 2 :, :, 0] = 255
    return cv2.imencode(".jpg", pixels)[1].tobytes()


def changed(document, **values):
    """Return a copy with other values at paths, whose dots are written as double underscores."""
    document = copy.deepcopy(document)
    for path, value in values.items():
        *parents, name = path.split("__")
        inner = document
        for parent in parents:
            inner = inner[parent]
        inner[name] = value
    return document


def drone(image=None, **values):
    """Return a drone's document, perhaps with an image."""
    text = None if image is None else base64.b64encode(image).decode()
    return changed(DRONE, camera__image=text, **values)


def without(document, *names):
    return {name: value for name, value in document.items() if name not in names}


class TelemetryPeer(UdpPeer):
    """Sends documents from a free port, and keeps what comes back."""

    def __init__(self, port):
        self.bridge_port = port
        super().__init__()

    commands = UdpPeer.received

    def read(self, datagram):
        return json.loads(datagram)

    def send(self, *documents):
        """Send documents, or bytes as they are."""
        for document in documents:
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self._socket.sendto(data, ("127.0.0.1", self.bridge_port))


def start_with_peer(**parameters):
    """Start a bridge on a free UDP port; return it with a peer that talks to it."""
    process = Process.node("telemetry_bridge", transport="udp", port=0, **parameters)
    try:
        port = process.wait_for_line(r"Waiting for telemetry on 127\.0\.0\.1:(\d+)")[1]
    except BaseException:
        process.end()
        raise
    return process, TelemetryPeer(int(port))


class Clock:
    """Timestamps that only go forward, for documents that are sent again and again."""

    def __init__(self, start=100.0):
        self.time = start

    def next(self):
        self.time = round(self.time + 0.04, 6)
        return self.time


def send_until(send, condition, what):
    """Send again and again, until somebody who came late has seen it too."""
    wait_until(lambda: send() or condition(), what, period_s=0.03)


def send_until_reported(send, reports, wanted):
    """Send all the while until a report is wanted: between two of them there is time to be silent again."""
    send_until(send, lambda: len(reports) and wanted(reports.wait()), "a report that telemetry comes")
