# SPDX-License-Identifier: Apache-2.0
"""GUI that forwards its drone's video: sends packets to a port of this machine."""

import socket

from repository import CAPTURES
from udp_peer import KeepsSending

VIDEO = CAPTURES / "dronegui_video"


def captured(name):
    """Return a captured packet."""
    return (VIDEO / f"{name}.bin").read_bytes()


class VideoSender(KeepsSending):
    """Sends to a port of 127.0.0.1, from an address of this machine."""

    def __init__(self, port, host="127.0.0.1"):
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self._to = ("127.0.0.1", port)

    def send(self, packet):
        self._socket.sendto(packet, self._to)

    def close(self):
        """Close the socket."""
        self.stop()
        self._socket.close()
