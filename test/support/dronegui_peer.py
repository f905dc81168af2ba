# SPDX-License-Identifier: Apache-2.0
"""A peer for controllers of a drone's GUI: records every packet and answers none."""

import json
import socket
import threading
import time

from processes import TIMEOUT_S

MARK = b"mark"
HOVER = {"take_off": False, "reset": False, "hover": True, "roll": 0.0, "pitch": 0.0, "yaw": 0.0, "gas": 0.0}


class Packet:
    """One packet, and when it came."""

    def __init__(self, datagram):
        document = json.loads(datagram, parse_constant=lambda name: 1 / 0)
        self.came_s = time.monotonic()
        self.seq = document["seq"]
        self.state = document["state"]
        assert set(document) == {"seq", "state"}
        assert set(self.state) == set(HOVER)

    def __repr__(self):
        return f"<{self.seq} {self.state}>"

    def is_following(self, **axes):
        """Whether it says what was commanded, and no button."""
        wanted = {**HOVER, "hover": False, **axes}
        return all(abs(self.state[name] - value) < 1e-9 for name, value in wanted.items())

    @property
    def is_hover(self):
        """Whether it says hover and nothing else."""
        return self.state == HOVER

    def presses(self, button):
        """Whether it says that the button is pressed."""
        return self.state[button]


class DroneGuiPeer:
    """Listens on a free port of 127.0.0.1."""

    def __init__(self, port=0):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self._changed = threading.Condition()
        self._packets = []
        self._failure = None
        self._marks = [0, 0]  # how many were sent, and how many of them have come
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self):
        while datagram := self._socket.recv(65535):
            with self._changed:
                try:
                    if datagram == MARK:
                        self._marks[1] += 1
                    else:
                        self._packets.append(Packet(datagram))
                except Exception as error:
                    self._failure = f"{datagram!r}: {error!r}"
                self._changed.notify_all()

    @property
    def packets(self):
        """All packets that were sent so far."""
        with self._changed:
            if self._thread.is_alive():  # what was sent before the mark has come when the mark has
                self._socket.sendto(MARK, ("127.0.0.1", self.port))
                self._marks[0] += 1
                number = self._marks[0]
                assert self._changed.wait_for(lambda: self._marks[1] >= number, TIMEOUT_S), "the mark was lost"
            assert self._failure is None, self._failure
            return list(self._packets)

    def forget(self):
        """Begin a new list of packets."""
        with self._changed:
            self._packets.clear()

    def wait(self, wanted=lambda packet: True, since=0, timeout_s=TIMEOUT_S):
        """Return the first packet, from the one with index `since` on, that is wanted."""
        position = since

        def find():
            nonlocal position
            while position < len(self._packets):
                if wanted(self._packets[position]):
                    return True
                position += 1
            return False

        with self._changed:
            found = self._changed.wait_for(find, timeout_s)
            assert found, f"no such packet within {timeout_s} s among {self._packets[since:][-5:]}"
        return self.packets[position]

    def wait_for_next(self, wanted=lambda packet: True):
        """Return the first wanted one of the packets that are still to come."""
        return self.wait(wanted, len(self.packets))

    def close(self):
        """Be gone. Calling it again does nothing."""
        if not self._thread.is_alive():
            return
        self._socket.sendto(b"", ("127.0.0.1", self.port))  # which ends the thread
        self._thread.join()
        self._socket.close()
