# SPDX-License-Identifier: Apache-2.0
"""Opens links to a host by name, with retries, for a thread that can be cancelled."""

import queue
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from drone_bridge.net.backoff import Backoff
from drone_bridge.net.cancellation import Cancellation, wait_readable
from drone_bridge.net.errors import LinkCancelledError, LinkError, reason

if TYPE_CHECKING:
    from drone_bridge.net.wire_log import WireLog

StreamT = TypeVar("StreamT")

#: The longest delay after a port of this machine refused: asking costs nobody anything, and a vehicle waits.
LONGEST_LOCAL_DELAY_S = 1.0


class Connector(ABC, Generic[StreamT]):
    """Opens a link to a peer, retrying forever. How depends on the transport."""

    kind: ClassVar[socket.SocketKind]

    def __init__(
        self,
        host: str,
        port: int,
        cancellation: Cancellation,
        on_failure: Callable[[str, float], None],
        backoff: Backoff | None = None,
        *,
        wire_log: "WireLog | None" = None,
    ) -> None:
        """`on_failure` gets a sentence about each attempt that failed and the seconds until the next one."""
        self._wire_log = wire_log
        self._host = host
        self._port = port
        self._cancellation = cancellation
        self._on_failure = on_failure
        self.backoff = backoff or Backoff()
        self._is_first = True
        self._was_refused_here = False  # the last attempt, by this machine

    @property
    def port(self) -> int:
        return self._port

    def open(self) -> StreamT:
        """Wait for a link and return it. Raises LinkCancelledError.

        From the second call on even the first attempt waits: a peer that accepts and closes is not stormed.
        """
        if not self._is_first:
            self._pause(self.backoff.next_delay_s())
        self._is_first = False
        while True:
            try:
                return self._stream(self._connect())
            except OSError as error:
                delay_s = self.backoff.next_delay_s()
                if self._was_refused_here:
                    delay_s = min(delay_s, LONGEST_LOCAL_DELAY_S)
                self._on_failure(f"{address_name(self._host, self._port)} can't be reached: {reason(error)}.", delay_s)
                self._pause(delay_s)

    def open_once(self) -> StreamT:
        """Try once, without delay. Raises LinkError and LinkCancelledError."""
        try:
            return self._stream(self._connect())
        except OSError as error:
            raise LinkError(f"{address_name(self._host, self._port)} can't be reached: {reason(error)}.") from error

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    @abstractmethod
    def _connect_to(self, connecting: socket.socket, address: Any) -> None:
        """Connect a new socket. Raises OSError and LinkCancelledError."""

    @abstractmethod
    def _stream(self, connected: socket.socket) -> StreamT:
        """Return the link over a connected socket."""

    def _pause(self, delay_s: float) -> None:
        if self._cancellation.wait(delay_s):
            raise LinkCancelledError("Connecting was cancelled.")

    def _connect(self) -> socket.socket:
        """Try every address of the host."""
        failure = OSError("the name does not resolve to an address")
        self._was_refused_here = False
        for family, kind, protocol, _, address in self._resolve():
            try:
                connecting = socket.socket(family, kind, protocol)
            except OSError as error:  # IPv6 may be turned off, whatever the name stands for
                failure = error
                continue
            try:
                self._connect_to(connecting, address)
            except OSError as error:
                connecting.close()
                failure = error
                self._was_refused_here = isinstance(error, ConnectionRefusedError) and _is_own(family, address)
            except LinkCancelledError:
                connecting.close()
                raise
            else:
                return connecting
        raise failure

    def _resolve(self) -> list[Any]:
        """Look the host up in a thread, as the system's resolver can't be cancelled and may take long."""
        answers: queue.SimpleQueue[list[Any] | OSError] = queue.SimpleQueue()
        done = Cancellation()

        def resolve() -> None:
            try:
                answers.put(list(socket.getaddrinfo(self._host, self._port, type=self.kind)))
            except OSError as error:
                answers.put(error)
            except (ValueError, OverflowError) as error:  # no name at all, 'a..b' for instance, or no port
                answers.put(OSError(str(error)))
            done.cancel()

        threading.Thread(target=resolve, name="resolve", daemon=True).start()
        wait_readable([done, self._cancellation], None)
        done.close()
        if self._cancellation.is_set:
            raise LinkCancelledError("Connecting was cancelled.")
        answer = answers.get()
        if isinstance(answer, OSError):
            raise answer
        return answer


def _is_own(family: int, address: Any) -> bool:
    """Return whether a socket address is one of this machine."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address[0], 0, *address[2:]))
    except OSError:
        return False
    return True


def address_name(host: str, port: int) -> str:
    """Return a human-readable address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
