# SPDX-License-Identifier: Apache-2.0
"""PeerWithLatePort and PortWithOutlet: the links of both ends, as navdata has ports of its own."""

import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any

from drone_bridge.net.clock import Clock
from drone_bridge.net.connector import LinkError, MakeTap, Selectable
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.net.link_loop import Received
from drone_bridge.wire.addresses import address_name


def open_outlet(host: str, port: int, payload: str, wire_log: MakeTap | None = None) -> tuple[DatagramPort, str]:
    """Return a port to send from, a free one if it can't be this one, and then why, in sentences. Raises LinkError.

    `payload` is what is sent from it, for these sentences.
    """
    try:
        return DatagramPort(host, port, wire_log), ""
    except LinkError as error:
        outlet = DatagramPort(host, 0, wire_log)
        return outlet, f"{error} {payload} goes out from port {outlet.port} instead."


class PortWithOutlet(DatagramPort):
    """A port for datagrams from anybody, and another one from which everything is sent."""

    def __init__(self, host: str, port: int, outlet_port: int, wire_log: MakeTap | None = None) -> None:
        """Bind both; the outlet takes a free port if it can't have its own. Raises LinkError."""
        super().__init__(host, port, wire_log)
        try:
            #: `problem`: why the outlet has another port, and which, in sentences; empty if it has its own.
            self.outlet, self.problem = open_outlet(host, outlet_port, "Navdata", wire_log)
        except LinkError:
            super().close()
            raise

    def send(self, data: bytes | memoryview, to: Any) -> None:
        self.outlet.send(data, to)

    def close(self) -> None:
        super().close()
        self.outlet.close()


#: How often a port is tried that somebody else has.
RETRY_S = 2.0
#: Datagrams that are dropped in a turn, of those that nobody reads.
MAX_UNREAD = 32


class PeerWithLatePort(DatagramPeer):
    """A peer that sends its state to our address towards it, to a port that may be somebody else's for now.

    What the peer sends to the port from which it is sent to is not read.
    """

    def __init__(
        self,
        host: str,
        port: int,
        state_port: int | None,
        on_failure: Callable[[LinkError, float], None],
        wire_log: MakeTap | None = None,
        *,
        on_port: Callable[[str, str], None],
        clock: Clock,
    ) -> None:
        """Begin unbound.

        Args:
            host: the peer's.
            port: the peer's.
            state_port: our port for its state, None for no port at all.
            on_failure: as DatagramPeer's.
            wire_log: where bytes are logged.
            on_port: gets the address of our port whenever it was tried, and why it can't be had, or an empty text.
            clock: for when it is tried again.
        """
        super().__init__(host, port, on_failure, wire_log)
        self._state_port, self._on_port, self._clock = state_port, on_port, clock
        self._state: DatagramPort | None = None
        self._tried_s = -math.inf
        #: Why there is no port; empty while there is one.
        self.problem = ""

    def open(self) -> None:
        super().open()
        self._close_state()
        self._tried_s = -math.inf
        self._try_port()

    @property
    def hosts(self) -> tuple[str, str] | None:
        """Our address towards the peer, and the peer's; None while there is no link. For any thread."""
        with contextlib.suppress(OSError):  # it is being opened again
            if opened := self._socket:
                return str(opened.getsockname()[0]), str(opened.getpeername()[0])
        return None

    def files(self) -> Sequence[Selectable]:
        return (*super().files(), *(self._state.files() if self._state else ()))

    def receive(self) -> Received | None:
        """Return the next datagram that came to the port. Raises LinkRefusedError of what was sent."""
        for _ in range(MAX_UNREAD):
            if not super().receive():
                break
        self._try_port()
        if not self._state:
            return None
        try:
            return self._state.receive()
        except LinkError as error:
            self._close_state()
            self._note_port(str(error))
            return None

    def close(self) -> None:
        super().close()
        self._close_state()

    def _try_port(self) -> None:
        if self._state or self._state_port is None or self._clock.now_s() < self._tried_s + RETRY_S:
            return
        assert self._socket
        self._tried_s = self._clock.now_s()
        try:
            self._state = DatagramPort(self._socket.getsockname()[0], self._state_port, self._wire_log)
        except LinkError as error:
            self._note_port(str(error))
        else:
            self._note_port("")

    def _note_port(self, problem: str) -> None:
        assert self._socket
        assert self._state_port is not None
        self.problem = problem
        self._on_port(address_name(self._socket.getsockname()[0], self._state_port), problem)

    def _close_state(self) -> None:
        if self._state:
            self._state.close()
            self._state = None
