# SPDX-License-Identifier: Apache-2.0
"""ControllersOutlet: sends the pictures of the emulated drone like the GUI forwards them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

from drone_bridge.net.connector import LinkError
from drone_bridge.net.datagram_link import DatagramPort


class ControllersOutlet:
    """UDP port to all controllers, of which the GUI's own host is always one."""

    has_client = True

    def __init__(self, port: DatagramPort, number: int) -> None:
        """`number` is the port of the controllers."""
        self._port, self._number = port, number
        #: Addresses of the controllers, with any port.
        self.receivers: Sequence[Any] = ()

    def fileno(self) -> int:
        return self._port.files()[0].fileno()

    def accept(self) -> None:
        """Ignore a datagram."""
        with contextlib.suppress(LinkError):
            self._port.receive()

    def send(self, data: bytes) -> None:
        for host, _, *rest in self.receivers:
            with contextlib.suppress(LinkError):  # it may be reachable for the next one
                self._port.send(data, (host, self._number, *rest))

    def leave(self) -> None:
        self.receivers = ()

    def close(self) -> None:
        self._port.close()
