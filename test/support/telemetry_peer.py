# SPDX-License-Identifier: Apache-2.0
"""Drone or rover on a local UDP port, with documents controlled by tests."""

import json

import cv2
import numpy as np
from ros_session import wait_until
from telemetry_documents import HEIGHT, WIDTH
from udp_peer import UdpPeer


def jpeg(width=WIDTH, height=HEIGHT):
    """Return an image that is red above and blue below."""
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[: height // 2, :, 2] = 255
    pixels[height // 2 :, :, 0] = 255
    return cv2.imencode(".jpg", pixels)[1].tobytes()


class TelemetryPeer(UdpPeer):
    """Peer that sends documents from a free port, and records replies."""

    def __init__(self, port):
        self.bridge_port = port
        super().__init__()

    commands = UdpPeer.received

    def read(self, datagram):
        return json.loads(datagram)

    def send(self, *documents):
        """Send documents, or unchanged bytes."""
        for document in documents:
            data = document if isinstance(document, bytes) else json.dumps(document).encode()
            self._socket.sendto(data, ("127.0.0.1", self.bridge_port))


def send_until(send, condition, what):
    """Send repeatedly, until a late subscriber has received it."""
    wait_until(lambda: send() or condition(), what, period_s=0.03)
