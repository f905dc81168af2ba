# SPDX-License-Identifier: Apache-2.0
"""A drone or rover for tests, which decide on every document, on a UDP port of this machine."""

import json

import cv2
import numpy as np
from processes import Process
from ros_session import wait_until
from telemetry_documents import HEIGHT, WIDTH
from udp_peer import UdpPeer


def jpeg(width=WIDTH, height=HEIGHT):
    """Return a picture that is red above and blue below."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, :, 2] = 255
    pixels[height // 2 :, :, 0] = 255
    return cv2.imencode(".jpg", pixels)[1].tobytes()


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


def send_until(send, condition, what):
    """Send again and again, until somebody who came late has seen it too."""
    wait_until(lambda: send() or condition(), what, period_s=0.03)
