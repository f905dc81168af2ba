# SPDX-License-Identifier: Apache-2.0
"""NavdataPeer and PortWithOutlet: the links of both ends, because navdata has ports of its own."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from drone_bridge.net.clock import Clock
from drone_bridge.net.connector import LinkError, MakeTap, Selectable
from drone_bridge.net.datagram_link import DatagramPeer, DatagramPort
from drone_bridge.net.link_loop import ReceivedData
from drone_bridge.wire.addresses import address_name


def open_outlet(host: str, port: int, payload: str, wire_log: MakeTap | None = None) -> tuple[DatagramPort, str]:
    """Open a port to send from; return it and, if another port is used instead, sentences why. Raises LinkError.

    `payload` names the data that is sent from it, for these sentences.
    """
    try:
        return DatagramPort(host, port, wire_log), ""
    except LinkError as error:
        outlet = DatagramPort(host, 0, wire_log)
        return outlet, f"{error} {payload} is sent from port {outlet.port} instead."


class PortWithOutlet(DatagramPort):
    """Port that receives datagrams, and another one that sends them."""

    def __init__(self, host: str, port: int, outlet_port: int, wire_log: MakeTap | None = None) -> None:
        """Bind both ports. If the outlet's port is in use, a free one is used instead. Raises LinkError."""
        super().__init__(host, port, wire_log)
        try:
            #: Sentences why the outlet has another port, and which; empty if it has its own.
            self.outlet, self.problem = open_outlet(host, outlet_port, "Navdata", wire_log)
        except LinkError:
            super().close()
            raise

    def send(self, data: bytes | memoryview, to: Any) -> None:
        self.outlet.send(data, to)

    def close(self) -> None:
        super().close()
        self.outlet.close()


#: Retry interval for a port that another program uses, s.
RETRY_S = 2.0
#: Maximum number of unexpected datagrams dropped per turn.
MAX_UNREAD = 32


class NavdataPeer(DatagramPeer):
    """Connected GUI that sends navdata to a local port, which may be in use by another program at first.

    Datagrams from the GUI to the sending port are ignored.
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
        """Start without a port.

        Args:
            host: address of the peer.
            port: port of the peer.
            state_port: our port for its state, None for no port.
            on_failure: see DatagramPeer.
            wire_log: log for bytes.
            on_port: callback after each attempt to bind our port, with its address and the reason of a failure, or "".
            clock: clock for retries.
        """
        super().__init__(host, port, on_failure, wire_log)
        self._state_port, self._on_port, self._clock = state_port, on_port, clock
        self._state: DatagramPort | None = None
        self._tried_s = -math.inf
        #: Reason why there is no port; empty if it is open.
        self.problem = ""

    def open(self) -> None:
        super().open()
        self._close_state()
        self._tried_s = -math.inf
        self._try_port()

    def files(self) -> Sequence[Selectable]:
        return (*super().files(), *(self._state.files() if self._state else ()))

    def receive(self) -> ReceivedData | None:
        """Return the next datagram received on the port. Raises LinkRefusedError if an earlier sent one was refused."""
        for _ in range(MAX_UNREAD):
            if not super().receive():
                break
        self._try_port()
        if not self._state:
            return None
        try:
            if received := self._state.receive():
                self.heard()
            return received
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
            self._note_port(self.problem or str(error))  # the programs that use it are looked up once
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
