# SPDX-License-Identifier: Apache-2.0
"""The GUI between its controllers and its drone: which packets take effect, and what it knows of the drone."""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass
from typing import Any, Final

from drone_bridge.emulators.dronegui.flight import Flight
from drone_bridge.emulators.dronegui.navdata import blocks
from drone_bridge.links.errors import LinkError
from drone_bridge.links.udp import UdpListener, name
from drone_bridge.programs.program import say
from drone_bridge.protocols.dronegui import DEFAULT_NAVDATA_PORT, ControlPacket, ReceiverConnection
from drone_bridge.protocols.errors import RemoteProtocolError

COMPLAINT_PERIOD_S: Final = 1.0
#: From the press of reset until the drone has been asked for navdata, and sends it.
BOOTSTRAP_S: Final = 0.3
#: Hosts that navdata is sent to: those whose packets took effect, the latest ones.
MAX_CONTROLLERS: Final = 8


@dataclass(frozen=True, slots=True)
class Dialect:
    """How the GUI differs from the document, and what it has been through before it is started here."""

    python_literals: bool = False
    strict_real: bool = False
    is_bootstrapped: bool = False
    sends_navdata: bool = True
    navdata_port: int = DEFAULT_NAVDATA_PORT
    navdata_rate: float = 15.0  # per second


class Gui:
    """The receiver of packets, and sender of navdata.

    As with the real one, a GUI that has just been started does not know whether its drone flies: it learns that from
    navdata, which it asks the drone for only when reset is pressed. Before, every press of take_off means to take off.
    """

    def __init__(self, flight: Flight, dialect: Dialect, navdata_socket: UdpListener) -> None:
        """`navdata_socket` is what navdata goes out from."""
        self.packets = self.late = self.refused = 0
        self._flight = flight
        self._dialect = dialect
        self._protocol = ReceiverConnection(
            python_literals=dialect.python_literals,
            complete_states_only=dialect.strict_real,
            loose_values=dialect.strict_real,
        )
        self._navdata_socket = navdata_socket
        self._navdata_due_s = flight.time if dialect.is_bootstrapped else math.inf  # in time of the flight
        self._navdata_number = 0
        self._controllers: dict[str, Any] = {}  # addresses that navdata goes to, by host
        self._sender = ""
        self._may_complain_at_s = 0.0

    @property
    def is_bootstrapped(self) -> bool:
        """Whether navdata comes from the drone."""
        return self._flight.time >= self._navdata_due_s or self._navdata_number > 0

    def receive(self, datagram: bytes, source: Any) -> None:
        """Take a datagram, and have the drone do what it says. `source` is an address, as sockets have it."""
        sender = name(source)
        self._protocol.receive_data(datagram)
        try:
            event = self._protocol.next_event()
        except RemoteProtocolError as error:
            self.refused += 1
            self._complain(f"refused a packet of {sender}: {error}")
            return
        if not isinstance(event, ControlPacket):
            self.late += 1
            return
        if sender != self._sender:
            self._complain(f"controlled by {sender}")
            self._sender = sender
        self.packets += 1
        self._remember(source)
        if event.controls.reset and math.isinf(self._navdata_due_s):
            say("reset: the GUI asks the drone for navdata")
            self._navdata_due_s = self._flight.time + BOOTSTRAP_S
        self._flight.control(event.controls, sees_flight=self.is_bootstrapped)

    def send_navdata(self) -> None:
        """Send what is due to all controllers."""
        if self._flight.time < self._navdata_due_s:
            return
        self._navdata_due_s = max(self._navdata_due_s + 1 / self._dialect.navdata_rate, self._flight.time)
        datagrams = [self._protocol.send(block) for block in blocks(self._flight, self._navdata_number)]
        self._navdata_number += 1
        if not self._dialect.sends_navdata:
            return
        for address in self._controllers.values():
            for datagram in datagrams:
                with contextlib.suppress(LinkError):  # perhaps it is there again for the next one
                    self._navdata_socket.send(datagram, address)

    def _remember(self, source: Any) -> None:
        host, _, *rest = source
        self._controllers.pop(host, None)
        self._controllers[host] = (host, self._dialect.navdata_port, *rest)
        if len(self._controllers) > MAX_CONTROLLERS:
            del self._controllers[next(iter(self._controllers))]

    def _complain(self, sentence: str) -> None:
        """Say something that senders decide about, and so not more than once a second."""
        if time.monotonic() >= self._may_complain_at_s:
            say(sentence)
            self._may_complain_at_s = time.monotonic() + COMPLAINT_PERIOD_S
