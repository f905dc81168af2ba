# SPDX-License-Identifier: Apache-2.0
"""Client of the simulator protocol for tests: waits for answers, and keeps out-of-band messages."""

import contextlib
import socket
import time

from patience import TIMEOUT_S

from drone_bridge.simulator.codec import NEED_DATA, Added, Answer, ClientConnection, ConnectionClosed, Error, Reassure

MAX_REPEATS = 50
REPEAT_PERIOD_S = 0.1


class SimulatorClient:
    """Connection to a simulator."""

    def __init__(self, port, receive_buffer=None, **limits):
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_S)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = ClientConnection(**limits)
        self.events = []  # out-of-band messages, in order

    # Requests in sequence.

    def ask(self, request):
        """Return the answer, which may be an Error."""
        self.socket.sendall(self.prepare(request))
        while not isinstance(event := self.next_event(), Answer):
            pass
        return event.response

    def get(self, request):
        """Return the answer, which must not be an Error.

        A server that was just stalled, as on a busy machine, asks to send the request again.
        """
        for _ in range(MAX_REPEATS):
            response = self.ask(request)
            if not (isinstance(response, Error) and "send it again" in response.message):
                break
            time.sleep(REPEAT_PERIOD_S)
        assert not isinstance(response, Error), f"{request!r} was answered with {response!r}"
        return response

    def add(self, request):
        """Return the ID of the added item."""
        response = self.get(request)
        assert isinstance(response, Added)
        return response.id

    def code(self, request):
        """Return the code of the Error that answers this."""
        response = self.ask(request)
        assert isinstance(response, Error), f"{request!r} was answered with {response!r}"
        assert response.message.endswith(".")
        return response.code

    def settle(self):
        """Wait until all messages sent so far are handled."""
        self.get(Reassure())

    # What comes by itself.

    def wait_for(self, kind, wanted=lambda event: True):
        """Return the first event of a wanted kind. Drop it and earlier events."""
        deadline = time.monotonic() + TIMEOUT_S
        seen = 0
        while time.monotonic() < deadline:
            for number in range(seen, len(self.events)):
                event = self.events[number]
                if isinstance(event, kind) and wanted(event):
                    del self.events[: number + 1]
                    return event
            seen = len(self.events)
            self.next_event()
        raise AssertionError(f"no {kind.__name__} in {self.events}")

    def collect_until(self, kind):
        """Wait for an event of a kind. Keep it and earlier events."""
        while not (self.events and isinstance(self.events[-1], kind)):
            self.next_event()

    def wait_until_closed(self):
        """Read to the end. Raises RemoteProtocolError if it is inside a message."""
        with contextlib.suppress(ConnectionResetError):
            while not isinstance(self.next_event(), ConnectionClosed):
                pass

    def take(self, kind):
        """Return and drop all received events of a kind."""
        taken = [event for event in self.events if isinstance(event, kind)]
        self.events = [event for event in self.events if not isinstance(event, kind)]
        return taken

    def next_event(self):
        """Return the next Answer, or an out-of-band message, which is also kept."""
        while (event := self._connection.next_event()) is NEED_DATA:
            data = self.socket.recv(65536)
            if data:
                self._connection.receive_data(data)
            else:
                self._connection.receive_eof()
        if not isinstance(event, Answer):
            self.events.append(event)
        return event

    # Bytes.

    def prepare(self, request):
        """Return a request's bytes for the caller to send, and expect its answer."""
        return self._connection.send(request)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()
