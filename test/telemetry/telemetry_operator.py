# SPDX-License-Identifier: Apache-2.0
"""Operator that receives a drone's telemetry on a free UDP port, and commands the drone."""

import json
import select
import socket

from processes import TIMEOUT_S
from udp_peer import KeepsSending


class TelemetryOperator(KeepsSending):
    """Reads documents for the test, and sends commands to the last sender."""

    def __init__(self):
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(TIMEOUT_S)
        self.port = self._socket.getsockname()[1]
        self._drone = None

    def receive_bytes(self):
        """Return the next datagram."""
        data, self._drone = self._socket.recvfrom(65535)
        return data

    def receive(self):
        """Return the next document."""
        return json.loads(self.receive_bytes())

    def wait(self, wanted):
        """Return the first matching document."""
        while not wanted(document := self.receive()):
            pass
        return document

    def hears_nothing_for(self, seconds):
        if heard := select.select([self._socket], [], [], seconds)[0]:
            self.receive()
        return not heard

    def send(self, document):
        """Send a document, or raw bytes."""
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self._socket.sendto(data, self._drone)

    def close(self):
        self.stop()
        self._socket.close()
