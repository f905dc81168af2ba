# SPDX-License-Identifier: Apache-2.0
"""Drone or rover on a local UDP port, with documents controlled by tests."""

import json

import cv2
import numpy as np
from processes import Process
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


def start_with_peer(**parameters):
    """Start a bridge on a free UDP port. Return it with a connected peer."""
    process = Process.node("telemetry_bridge", port=0, **parameters)
    try:
        port = process.wait_for_line(r"Waiting for telemetry on 127\.0\.0\.1:(\d+)")[1]
    except BaseException:
        process.end()
        raise
    return process, TelemetryPeer(int(port))


def send_until(send, condition, what):
    """Send repeatedly, until a late subscriber has received it."""
    wait_until(lambda: send() or condition(), what, period_s=0.03)
