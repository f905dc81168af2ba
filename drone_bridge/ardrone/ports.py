# SPDX-License-Identifier: Apache-2.0
"""DronePeer: the link to an AR.Drone, with its ports for commands, navdata and settings."""

import contextlib
import errno
import socket
from collections.abc import Callable, Sequence
from typing import Any

from drone_bridge.ardrone.codec import CONNECT, CONTROL, NAVDATA
from drone_bridge.net.connector import RECEIVED, LinkError, MakeTap, Selectable, no_log
from drone_bridge.net.datagram_link import DatagramPeer
from drone_bridge.net.link_loop import ReceivedData
from drone_bridge.wire.addresses import peer_name

#: Bytes of settings that are read at a time.
CHUNK_BYTES = 4096


class DronePeer(DatagramPeer):
    """Commands and navdata over UDP, from free ports of our own. Settings come over TCP, once they are requested.

    A failure of the control port is no failure of the link: the session retries.
    """

    def __init__(
        self,
        host: str,
        ports: tuple[int, int, int],
        on_failure: Callable[[LinkError, float], None],
        wire_log: MakeTap | None = None,
    ) -> None:
        """See DatagramPeer. The ports are those for commands, navdata and settings; 0 for no control port."""
        commands, navdata, self._control_port = ports
        super().__init__(host, commands, on_failure, wire_log)
        self._navdata = DatagramPeer(host, navdata, on_failure, wire_log)
        self._control: socket.socket | None = None
        self._control_tap = no_log("", "", "")

    def open(self) -> None:
        """See Link."""
        super().open()
        self._navdata.open()
        self._close_control()

    def cancel(self) -> None:
        super().cancel()
        self._navdata.cancel()

    def files(self) -> Sequence[Selectable]:
        return (*self._navdata.files(), *((self._control,) if self._control else ()))

    def receive(self) -> ReceivedData | None:
        """See Link. Navdata come first. The port of commands is not read: a drone sends nothing from there."""
        if received := self._navdata.receive():
            return ReceivedData(received.data, NAVDATA)
        chunk = self._read_control()
        return ReceivedData(chunk, CONTROL) if chunk else None

    def send(self, data: bytes | memoryview, to: Any) -> None:
        """See Link. CONNECT to CONTROL makes a new connection, DISCONNECT ends it; nothing is sent over it."""
        if to == CONTROL:
            self._close_control()
            if data == CONNECT:
                with contextlib.suppress(OSError):
                    self._open_control()
        elif to == NAVDATA:
            self._navdata.send(data, None)
        else:
            super().send(data, None)

    def close(self) -> None:
        self._close_control()
        self._navdata.close()
        super().close()

    def _open_control(self) -> None:
        if not self._control_port or not self.address:
            return
        family = socket.AF_INET6 if ":" in self.peer_host else socket.AF_INET
        self._control = socket.socket(family, socket.SOCK_STREAM)
        self._control.setblocking(False)
        if self._control.connect_ex((self.peer_host, self._control_port)) not in (0, errno.EINPROGRESS):
            self._close_control()
        else:
            own, peer = self._control.getsockname(), (self.peer_host, self._control_port)
            self._control_tap = self._wire_log("tcp", peer_name(own), peer_name(peer))

    def _read_control(self) -> bytes:
        if not self._control:
            return b""
        try:
            chunk = self._control.recv(CHUNK_BYTES)
            self._control_tap(RECEIVED, chunk)
            if chunk:
                return chunk
        except (BlockingIOError, InterruptedError):
            return b""
        except OSError:
            pass
        self._close_control()
        return b""

    def _close_control(self) -> None:
        if self._control:
            with contextlib.suppress(OSError):
                self._control.close()
        self._control = None
