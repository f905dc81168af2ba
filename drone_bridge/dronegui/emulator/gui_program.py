# SPDX-License-Identifier: Apache-2.0
"""The emulated drone behind its GUI, on sockets: packets in, navdata out, and reports on standard output."""

from __future__ import annotations

import contextlib
from typing import Any

from drone_bridge.dronegui.codec import ControlPacket
from drone_bridge.dronegui.device import Dialect, Gui
from drone_bridge.dronegui.emulator.flight import Flight
from drone_bridge.dronegui.emulator.navdata import blocks
from drone_bridge.net.connector import LinkError
from drone_bridge.net.udp import UdpListener, name
from drone_bridge.programs.program import LimitedReports, say
from drone_bridge.wire.events import RemoteProtocolError


class GuiProgram:
    """A GUI without its window: it counts packets, and reports who controls it."""

    def __init__(self, flight: Flight, dialect: Dialect, navdata_socket: UdpListener | None) -> None:
        """`navdata_socket` sends navdata; without one, controllers get none."""
        self.packets = self.late = self.refused = 0
        self._flight = flight
        self._gui = Gui(flight, dialect, navdata_socket.loopback_host) if navdata_socket else Gui(flight, dialect)
        self._navdata_socket = navdata_socket
        self._navdata_number = 0
        self._sender = ""
        self._reports = LimitedReports()
        self._was_hearing = self._was_reset = False

    def receive(self, datagram: bytes, source: Any) -> None:
        """Handle a datagram. `source` is a socket address."""
        sender = name(source)
        try:
            event = self._gui.receive(datagram, source, self._flight.time)
        except RemoteProtocolError as error:
            self.refused += 1
            self._reports.say(f"refused a packet of {sender}: {error}")
            return
        if not isinstance(event, ControlPacket):
            self.late += 1
            return
        if sender != self._sender:
            self._reports.say(f"controlled by {sender}")
            self._sender = sender
        self.packets += 1
        if event.controls.reset and not self._was_reset:
            say("reset: the GUI asks the drone for navdata")
        self._was_reset = event.controls.reset

    def start_navdata(self, *_: object) -> None:
        """Do what the GUI's user does by this name."""
        self._gui.start_navdata(self._flight.time)
        say("Start navdata: the GUI asks the drone for navdata")

    def land(self, *_: object) -> None:
        """Do what the GUI's user does by this name."""
        say("Land: the GUI tells the drone to land")
        self._flight.land()

    def send_navdata(self) -> None:
        """Send navdata that is due to all controllers."""
        is_hearing = self._gui.hears_drone(self._flight.time)
        if self._was_hearing and not is_hearing:
            say("the drone takes the GUI for gone, and sends no more navdata")
        self._was_hearing = is_hearing
        if not self._gui.navdata_is_due(self._flight.time):
            return
        datagrams = self._gui.navdata(blocks(self._flight, self._navdata_number))
        self._navdata_number += 1
        if not self._navdata_socket:
            return
        for datagram in datagrams:
            for address in self._gui.receivers(datagram, self._flight.time):
                with contextlib.suppress(LinkError):  # perhaps it is there again for the next one
                    self._navdata_socket.send(datagram, address)
