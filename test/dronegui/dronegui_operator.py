# SPDX-License-Identifier: Apache-2.0
"""Operator of a GUI: sends control packets, and receives navdata."""

import json
import select
import socket
import time

from patience import TIMEOUT_S
from udp_peer import KeepsSending

from drone_bridge.dronegui.codec import ControllerConnection, Controls

LANDED, FLYING, HOVERING = 2, 3, 4


class DroneGuiOperator(KeepsSending):
    """Controller that receives navdata on a free port of its own, `navdata_port`."""

    def __init__(self):
        super().__init__()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._address = None
        self._protocol = ControllerConnection()
        self._navdata = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._navdata.bind(("127.0.0.1", 0))
        self._navdata.settimeout(TIMEOUT_S)
        self.navdata_port = self._navdata.getsockname()[1]

    def call(self, port):
        """Send to this port of this machine from now on."""
        self._address = ("127.0.0.1", port)

    def send(self, **controls):
        self._socket.sendto(self._protocol.send(Controls(**controls)), self._address)

    def press(self, button):
        self.send(**{button: True})
        self.send()

    def receive(self):
        """Return the next datagram of navdata."""
        return self._navdata.recv(65535)

    def forget(self):
        """Drop received navdata."""
        self._navdata.setblocking(False)
        try:
            while self._navdata.recv(65535):
                pass
        except BlockingIOError:
            self._navdata.settimeout(TIMEOUT_S)

    def hears_nothing_for(self, seconds):
        if heard := select.select([self._navdata], [], [], seconds)[0]:
            self.receive()
        return not heard

    def wait(self, wanted):
        """Return the first matching document, within the timeout."""
        until_s = time.monotonic() + TIMEOUT_S
        while not wanted(document := json.loads(self.receive())):
            assert time.monotonic() < until_s, f"nothing wanted came within {TIMEOUT_S} s, at last {document}"
        return document

    def demo(self, wanted=lambda demo: True):
        return self.wait(lambda document: document.get("type") == "demo" and wanted(document))

    def state(self, state):
        return self.demo(lambda demo: demo.get("ctrl_state", 0) >> 16 == state)

    def close(self):
        self.stop()
        self._socket.close()
        self._navdata.close()
