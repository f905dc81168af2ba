# SPDX-License-Identifier: Apache-2.0
"""Gui: control GUI between controllers and a drone: effective packets, effects of buttons, receivers of navdata.

Like the real one, it never acknowledges a packet, accepts packets from any sender, and keeps the last state in force
forever. Until it has requested navdata from the drone, which a press of reset triggers, it can't detect whether the
drone flies, and every press of take_off takes off.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from drone_bridge.dronegui.codec import (
    AXES,
    DEFAULT_NAVDATA_PORT,
    ControlPacket,
    Controls,
    LatePacket,
    Navdata,
    ReceiverConnection,
)
from drone_bridge.wire.events import RemoteProtocolError
from drone_bridge.wire.rate_limit import RateLimit

#: Delay between the press of reset and the drone's navdata, s.
BOOTSTRAP_S = 0.3
NAVDATA_RATE = 15.0  # blocks per second
#: Maximum number of hosts that receive navdata besides the GUI's own: the last ones whose packets took effect.
MAX_CONTROLLERS = 8
#: Time for which such a host receives navdata after its last packet, as from a drone itself, s.
CONTROLLER_TIMEOUT_S = 2.0


class GuiDrone(Protocol):
    """Drone behind the GUI."""

    @property
    def is_flying(self) -> bool:
        """Whether it reports being in the air, including landing."""

    def take_off(self) -> None:
        """Take off; no effect in the air."""

    def land(self) -> None:
        """Land."""

    def reset(self) -> None:
        """Stop the motors in the air. On the ground, end an emergency."""

    def steer(self, controls: Controls) -> None:
        """Follow hover and the axes from now on."""


@dataclass(frozen=True, slots=True)
class GuiDialect:
    """Differences between the GUI and the document, and its initial state."""

    is_bootstrapped: bool = False
    navdata_port: int = DEFAULT_NAVDATA_PORT


class Gui:
    """Receiver of packets and sender of navdata. Times are seconds of any one clock. Single-threaded."""

    def __init__(self, drone: GuiDrone, dialect: GuiDialect, own_host: str = "127.0.0.1") -> None:
        """`own_host` is the GUI's own address, in the address family of navdata."""
        self.controls = Controls()  # in force
        #: Start time of navdata; infinite before it is requested.
        self.receives_navdata_from_s = -math.inf if dialect.is_bootstrapped else math.inf
        self._drone = drone
        self._dialect = dialect
        self._protocol = ReceiverConnection()
        self._rate_limit = RateLimit()
        self._own_address = (own_host, dialect.navdata_port)
        self._own_received_s = -math.inf  # last effective packet from the own host
        #: Other hosts by name, in order of their last packet, with address and time.
        self._controllers: dict[str, tuple[Any, float]] = {}
        self._heard: tuple[tuple[Any, float], ...] = ()  # all of these, including the own host

    def receives_navdata(self, now_s: float) -> bool:
        """Return whether the drone sends navdata, which reports whether it flies."""
        return now_s >= self.receives_navdata_from_s

    def start_navdata(self, now_s: float) -> None:
        """Request navdata from the drone, as "Stream Navdata" and a press of reset do."""
        self.receives_navdata_from_s = min(self.receives_navdata_from_s, now_s + BOOTSTRAP_S)

    def receive(self, datagram: bytes, source: Any, now_s: float) -> ControlPacket | LatePacket:
        """Execute a datagram. `source` is a socket address.

        Raises RemoteProtocolError for a refused datagram, which changes nothing.
        """
        self._protocol.receive_data(datagram)
        event = self._protocol.next_event()
        if not isinstance(event, ControlPacket):
            assert isinstance(event, LatePacket)
            return event
        self._remember(source, now_s)
        before, self.controls = self.controls, event.controls
        self._drone.steer(event.controls)
        if event.controls.reset and not before.reset:
            self.start_navdata(now_s)
            self._drone.reset()
        elif event.controls.take_off and not before.take_off:
            if self.receives_navdata(now_s) and self._drone.is_flying:
                self._drone.land()
            else:
                self._drone.take_off()
        return event

    def is_stop(self, datagram: bytes) -> bool:
        """Return whether a datagram takes effect, presses no button but hover, and does not move the drone."""
        try:
            event = self._protocol.peek(datagram)
        except RemoteProtocolError:
            return False
        if not isinstance(event, ControlPacket) or event.controls.take_off or event.controls.reset:
            return False
        return event.controls.hover or not any(getattr(event.controls, axis) for axis in AXES)

    def navdata_is_due(self, now_s: float) -> bool:
        """Return whether navdata is due; true once per period."""
        return self.receives_navdata(now_s) and self._rate_limit.is_due(now_s, NAVDATA_RATE)

    def navdata(self, block: Navdata) -> bytes:
        """Return the datagram of a block for its `receivers`. Raises LocalProtocolError."""
        return self._protocol.send(block)

    def receivers(self, now_s: float) -> tuple[Any, ...]:
        """Return the destinations of navdata: the GUI's own host, and recent senders for CONTROLLER_TIMEOUT_S.

        The own host gets navdata before any packet, because some controllers only send in response.
        """
        recent = [to for to, received_s in self._controllers.values() if now_s <= received_s + CONTROLLER_TIMEOUT_S]
        return (self._own_address, *recent)

    def controllers(self, now_s: float) -> tuple[Any, ...]:
        """Return the navdata addresses of hosts with an effective packet within CONTROLLER_TIMEOUT_S.

        Thread-safe.
        """
        return tuple(to for to, received_s in self._heard if now_s <= received_s + CONTROLLER_TIMEOUT_S)

    def _remember(self, source: Any, now_s: float) -> None:
        host, _, *rest = source
        if host == self._own_address[0]:
            self._own_received_s = now_s
        else:
            self._controllers.pop(host, None)
            self._controllers[host] = (host, self._dialect.navdata_port, *rest), now_s
            if len(self._controllers) > MAX_CONTROLLERS:
                del self._controllers[next(iter(self._controllers))]
        self._heard = ((self._own_address, self._own_received_s), *self._controllers.values())
