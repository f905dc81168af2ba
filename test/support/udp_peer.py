# SPDX-License-Identifier: Apache-2.0
"""UDP peer that receives in a thread, and lets a test wait for datagrams."""

import socket
import threading

from patience import TIMEOUT_S


class UdpPeer:
    """Socket on a port of 127.0.0.1 (0: a free one). `received` has the datagrams converted by `read`."""

    def __init__(self, port=0):
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", port))
        self.port = self._socket.getsockname()[1]
        self._changed = threading.Condition()
        self._received = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def read(self, datagram):
        """Return the content of a datagram."""
        raise NotImplementedError

    def _listen(self):
        while datagram := self._socket.recv(65535):
            with self._changed:
                self._take(datagram)
                self._changed.notify_all()

    def _take(self, datagram):
        self._received.append(self.read(datagram))

    @property
    def received(self):
        """All received datagrams."""
        with self._changed:
            return list(self._received)

    def wait(self, wanted=lambda one: True, since=0, timeout_s=TIMEOUT_S):
        """Return the first wanted one with an index of at least `since`."""

        def find():
            return next((one for one in self._received[since:] if wanted(one)), None)

        with self._changed:
            found = self._changed.wait_for(find, timeout_s)
            assert found is not None, f"nothing such within {timeout_s} s among {self._received[since:][-5:]}"
        return found

    def close(self):
        """Close the socket. Idempotent."""
        if not self._thread.is_alive():
            return
        self._socket.sendto(b"", ("127.0.0.1", self.port))  # which ends the thread
        self._thread.join()
        self._socket.close()


class KeepsSending:
    """Mixin that repeats data with `send`, like legacy programs."""

    def __init__(self):
        self._sending = None
        self._is_stopped = threading.Event()

    def keep_sending(self, *arguments, **fields):
        """Send the same data repeatedly until `stop`."""
        self.stop()
        self._is_stopped.clear()

        def send():
            while not self._is_stopped.wait(0.04):
                self.send(*arguments, **fields)

        self._sending = threading.Thread(target=send)
        self._sending.start()

    def stop(self):
        """Stop sending."""
        self._is_stopped.set()
        if self._sending:
            self._sending.join()
        self._sending = None
