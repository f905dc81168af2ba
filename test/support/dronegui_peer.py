# SPDX-License-Identifier: Apache-2.0
"""Peer for controllers of a drone's GUI, which records every packet and answers none."""

import json

import pytest
from patience import TIMEOUT_S
from udp_peer import UdpPeer

MARK = b"mark"
HOVER = {"take_off": False, "reset": False, "hover": True, "roll": 0.0, "pitch": 0.0, "yaw": 0.0, "gas": 0.0}


class Packet:
    """Received packet, and its time."""

    def __init__(self, datagram):
        document = json.loads(datagram, parse_constant=lambda name: 1 / 0)
        self.seq = document["seq"]
        self.state = document["state"]
        assert set(document) == {"seq", "state"}
        assert set(self.state) == set(HOVER)

    def __repr__(self):
        return f"<{self.seq} {self.state}>"

    @property
    def is_hover(self):
        """Whether it commands only hover."""
        return self.state == HOVER

    def presses(self, button):
        """Whether it reports the button as pressed."""
        return self.state[button]


class DroneGuiPeer(UdpPeer):
    """Socket on a free port of 127.0.0.1."""

    def __init__(self, port=0):
        self._failure = None
        self._marks = [0, 0]  # numbers of sent and received packets
        super().__init__(port)

    def read(self, datagram):
        return Packet(datagram)

    def _take(self, datagram):
        try:
            if datagram == MARK:
                self._marks[1] += 1
            else:
                super()._take(datagram)
        except Exception as error:
            self._failure = f"{datagram!r}: {error!r}"

    @property
    def received(self):
        """All packets that were sent so far."""
        with self._changed:
            if self._thread.is_alive():  # packets before the mark have arrived when the mark has
                self._socket.sendto(MARK, ("127.0.0.1", self.port))
                self._marks[0] += 1
                number = self._marks[0]
                assert self._changed.wait_for(lambda: self._marks[1] >= number, TIMEOUT_S), "the mark was lost"
            assert self._failure is None, self._failure
            return list(self._received)

    packets = received

    def wait(self, *arguments, **options):
        found = super().wait(*arguments, **options)
        assert self._failure is None, self._failure
        return found

    def forget(self):
        """Clear the list of packets."""
        assert self.received is not None  # all earlier packets have arrived
        with self._changed:
            self._received.clear()


def module_peer():
    """Return the fixture `peer` for a file whose tests share one peer: `peer = module_peer()`."""

    @pytest.fixture(scope="module", name="peer")
    def fixture():
        peer = DroneGuiPeer()
        yield peer
        peer.close()

    return fixture
