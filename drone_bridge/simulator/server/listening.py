# SPDX-License-Identifier: Apache-2.0
"""The endpoint of the link's thread: listens for any number of clients."""

from collections.abc import Callable

from drone_bridge.net.connector import Backoff, Cancellation, LinkCancelledError, address_name
from drone_bridge.net.tcp_clients import TcpClients


class Listening:
    """A stream for the link's thread: all clients together."""

    def __init__(self, clients: TcpClients, host: str) -> None:
        self.clients = clients
        self.peer = f"clients on {address_name(host, clients.port)}"

    def close(self) -> None:
        self.clients.close()


class ListeningEndpoint:
    """Listens at once, and again if serving fails."""

    def __init__(self, host: str, cancellation: Cancellation, listen: Callable[[int | None], TcpClients]) -> None:
        """`listen` gets the previous port, if any. Raises LinkError as it does."""
        self.backoff = Backoff()
        self._host, self._cancellation, self._listen = host, cancellation, listen
        self._first: TcpClients | None = listen(None)
        self.port = self._first.port

    def open(self) -> Listening:
        """Return the listening stream. Raises LinkCancelledError and LinkError."""
        if self._first:
            clients, self._first = self._first, None
            return Listening(clients, self._host)
        if self._cancellation.wait(self.backoff.next_delay_s()):
            raise LinkCancelledError("Listening was cancelled.")
        return Listening(self._listen(self.port), self._host)

    def close(self) -> None:
        """Stop listening if `open` was never called."""
        if self._first:
            self._first.close()
